#include <declivity/tensor/indexing.hpp>

#include <span>
#include <utility>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <declivity/tensor/function_call.hpp>
#include <fmt/format.h>

#include "autograd/dependent_views.hpp"
#include "autograd/in_place.hpp"
#include "autograd/region_view.hpp"
#include "functions/support/in_place_arithmetic.hpp"
#include "tensor/region.hpp"
#include "tensor/tensor_state.hpp"

namespace declivity {

using detail::Region;

namespace {

constexpr const char* kIndexedAssignment = "operator[]=";

/// With a graph: all handles of `base` get its value with `value` written to the region; in place if only they and its
/// dependent views share the memory.
void write_in_graph(const Tensor& base, Tensor value, const Region& region) {
    detail::TensorState& state = *state_of(base);
    detail::release_dependent_views(state);
    ops::LazyArray elements = std::exchange(state.value, {});
    try {
        const Tensor previous = tensor_of(std::make_shared<detail::TensorState>());  // only its graph node
        state_of(previous)->node = state.node;
        state_of(previous)->output = state.output;
        Tensor result = detail::with_region(kIndexedAssignment, previous, elements, std::move(value), region);
        state.value = elements;
        detail::replace_value(base, std::move(result));
    } catch (...) {
        if (!state.value) state.value = elements;
        detail::refresh_dependent_views(base);
        throw;
    }
}

/// The right-hand side may be a dependent view of x (x[0] = x[1]); other views of it would have to change with it.
void refuse_views_of(const Tensor& base, const Tensor& value) {
    const auto& shares = state_of(base)->shares;
    if (!any_requires_grad({base, value}) || state_of(base)->requires_grad || !shares ||
        state_of(value)->shares != shares || detail::is_dependent_view(*state_of(base), value))
        return;
    throw ValueError(
        fmt::format("{}: expected a right-hand side with memory of its own when grad mode is on, got one of shape "
                    "{} that is a view of x (select, slice, reshape, ...); write x[...] in its place (y[0] = y[1]), or "
                    "a clone() of it made in a line before",
                    kIndexedAssignment, value.shape().str()));
}

std::shared_ptr<const Region> region_of(const Region& region, std::span<const Index> indices) {
    return std::make_shared<const Region>(region.part(indices));
}

}  // namespace

TensorPart Tensor::operator[](const Index& index) const { return (*this)[{index}]; }

TensorPart Tensor::operator[](std::initializer_list<Index> indices) const {
    return part(std::span(indices.begin(), indices.size()));
}

TensorPart Tensor::part(std::span<const Index> indices) const {
    detail::checked_state(state_, "operator[]");
    return {*this, region_of(Region::full(shape()), indices)};
}

TensorPart::TensorPart(const Tensor& whole, std::shared_ptr<const Region> region)
    : Tensor(detail::part_of(whole, *region)), whole_(whole), region_(std::move(region)) {
    // If all of x is selected, the part is x itself.
    if (state_of(*this) != state_of(whole)) detail::add_dependent_view(whole, *this, region_);
}

TensorPart TensorPart::operator[](const Index& index) const { return (*this)[{index}]; }

TensorPart TensorPart::operator[](std::initializer_list<Index> indices) const {
    return part(std::span(indices.begin(), indices.size()));
}

TensorPart TensorPart::part(std::span<const Index> indices) const { return {whole_, region_of(*region_, indices)}; }

void TensorPart::write(const TensorOrScalar& value) {
    const Tensor part = *this;
    const FunctionCall call(kIndexedAssignment, {{"x", whole_}, {"value", value.tensor()}});
    call.results({whole_});
    detail::require_no_overlap(kIndexedAssignment, whole_.value().view());
    if (value.is_scalar() && !detail::written_in_graph(whole_, kIndexedAssignment)) {
        Tensor(part).fill_(value.scalar());
        return;
    }
    Tensor source = value.is_scalar() ? full({}, value.scalar(), {part.dtype(), part.device()}) : value.tensor();
    detail::checked_state(state_of(source), kIndexedAssignment);
    if (state_of(source) == state_of(part)) return;
    refuse_views_of(whole_, source);
    if (!(source.device() == part.device())) source = source.to(part.device());
    (void)ops::expanded(kIndexedAssignment,
                        {.buffer = {},
                         .offset = 0,
                         .dtype = source.dtype(),
                         .shape = source.shape(),
                         .strides = dense_strides(source.shape())},
                        part.shape());
    source = expand(source.to(part.dtype()), part.shape());
    if (detail::written_in_graph(whole_, kIndexedAssignment, source)) {
        // Another part of x would lose its elements with the dependent views of x.
        if (!state_of(source)->requires_grad) {
            const Tensor detached = tensor_of(std::make_shared<detail::TensorState>());
            state_of(detached)->value = source.value();
            state_of(detached)->node = state_of(source)->node;
            state_of(detached)->output = state_of(source)->output;
            source = detached;
        }
        write_in_graph(whole_, std::move(source), *region_);
    } else {
        Tensor(part).copy_(std::move(source));
    }
}

TensorPart& TensorPart::operator=(const TensorPart& value) && {
    write(Tensor(value));
    return *this;
}
TensorPart& TensorPart::operator=(const TensorOrScalar& value) && {
    write(value);
    return *this;
}
TensorPart& TensorPart::operator+=(const TensorOrScalar& value) && {
    write(detail::updated_part(*this, Function::add, "operator+=", value));
    return *this;
}
TensorPart& TensorPart::operator-=(const TensorOrScalar& value) && {
    write(detail::updated_part(*this, Function::sub, "operator-=", value));
    return *this;
}
TensorPart& TensorPart::operator*=(const TensorOrScalar& value) && {
    write(detail::updated_part(*this, Function::mul, "operator*=", value));
    return *this;
}
TensorPart& TensorPart::operator/=(const TensorOrScalar& value) && {
    write(detail::updated_part(*this, Function::div, "operator/=", value));
    return *this;
}

}  // namespace declivity
