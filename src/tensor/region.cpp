#include "region.hpp"

#include <algorithm>
#include <limits>

#include <declivity/ops/copy.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/autograd.hpp>
#include <declivity/tensor/creation.hpp>
#include <fmt/format.h>

#include "in_place.hpp"
#include "ops/engine/lazy_array.hpp"
#include "ops/support/work_split.hpp"

namespace declivity::detail {

Region Region::whole(const Shape& shape) {
    Region region{.rank = shape.rank()};
    for (int axis = 0; axis < shape.rank(); ++axis)
        region.axes[static_cast<std::size_t>(axis)] = {.first = 0, .count = shape[axis]};
    return region;
}

Region Region::part(std::span<const Index> indices) const {
    Region out = *this;
    std::size_t axis = 0;
    const auto end = static_cast<std::size_t>(rank);
    const auto next = [&] {
        while (axis < end && out.axes[axis].dropped) ++axis;
        if (axis == end)
            throw ShapeError(fmt::format("operator[]: expected at most one index for each axis of {}, got {}",
                                         shape().str(), indices.size()));
    };
    int place = 0;
    for (const Index& index : indices) {
        next();
        Axis& cut = out.axes[axis++];
        if (const auto& element = index.element()) {
            if (*element < -cut.count || *element >= cut.count)
                throw ShapeError(fmt::format("operator[]: expected an index from {} to {} along axis {}, got {}",
                                             -cut.count, cut.count - 1, place, *element));
            cut.first += (*element < 0 ? *element + cut.count : *element) * cut.step;
            cut.count = 1;
            cut.dropped = true;
        } else {
            const Slice& slice = index.slice();
            if (slice.step < 1)
                throw ShapeError(fmt::format("operator[]: expected a step of at least 1, got {}", slice.step));
            const auto within = [&](std::int64_t i) {
                return std::clamp<std::int64_t>(i < 0 ? i + cut.count : i, 0, cut.count);
            };
            const std::int64_t from = within(slice.start.value_or(0)), to = within(slice.stop.value_or(cut.count));
            cut.first += from * cut.step;
            cut.count = to > from ? ceil_div(to - from, slice.step) : 0;
            cut.step *= slice.step;
        }
        ++place;
    }
    return out;
}

Shape Region::shape() const {
    Shape out;
    for (const Axis& axis : std::span(axes).first(static_cast<std::size_t>(rank)))
        if (!axis.dropped) out.push_back(axis.count);
    return out;
}

ops::View Region::of(const ops::View& whole) const {
    ops::View out = whole;
    for (int axis = rank - 1; axis >= 0; --axis) {
        const Axis& cut = axes[static_cast<std::size_t>(axis)];
        out = ops::sliced(out, axis, cut.count == 0 ? 0 : cut.first, cut.count, cut.step);
        if (!cut.dropped) continue;
        out.shape.erase(axis);
        out.strides.erase(axis);
    }
    return out;
}

Tensor Region::of(const Tensor& whole, std::string_view name) const {
    if (shape() == whole.shape()) return whole;
    const ops::LazyArray result = ops::view_of(whole.value(), [this](const ops::View& view) { return of(view); });
    return alias(name, whole, result, [region = *this, from = whole.shape()](const GradientContext& context) {
        if (grad_enabled()) {
            const Tensor& g = context.gradient();
            return std::vector{with_region("slice_scatter", zeros(from, {g.dtype(), g.device()}), g, region)};
        }
        context.accumulate_region(0, context.release_gradient(),
                                  [region](const ops::View& view) { return region.of(view); });
        return std::vector<Tensor>(1);
    });
}

namespace {

/// The gradient with the overwritten region set to 0.
Tensor without(Tensor gradient, const Region& region) {
    const ops::View out = writable_view(donated_elements(gradient));
    const BufferWrite write(out.buffer);
    ops::fill(region.of(out), 0, "slice_scatter");
    return Tensor(out);
}

std::vector<Tensor> gradients(const GradientContext& context, const Region& region) {
    std::vector<Tensor> out(2);
    Tensor g = context.release_gradient();
    if (context.needs(1)) out[1] = grad_enabled() ? region.of(g) : Tensor(region.of(g.view()));
    if (!context.needs(0)) return out;
    if (grad_enabled()) {
        out[0] = with_region("slice_scatter", g, zeros(region.shape(), {g.dtype(), g.device()}), region);
    } else {
        if (context.needs(1)) out[1] = out[1].clone();  // since its memory is written
        out[0] = without(std::move(g), region);
    }
    return out;
}

}  // namespace

Tensor with_region(const char* name, const Tensor& x, ops::LazyArray& elements, Tensor src, const Region& region) {
    ops::require_alike(name, "x", elements.dtype(), elements.device(), "src", src.dtype(), src.device());
    ops::require_shape(name, "src", src.shape(), region.shape());
    const ops::View out = writable_view(elements);
    ops::evaluate_into(name, donated_elements(src), region.of(out));
    elements = out;
    return attach_backward(
        name, {x, src}, out, [region](const GradientContext& context) { return gradients(context, region); },
        RuleKind::differentiable);
}

Tensor with_region(const char* name, Tensor x, Tensor src, const Region& region) {
    ops::LazyArray elements = donated_elements(x);
    return with_region(name, x, elements, std::move(src), region);
}

}  // namespace declivity::detail
