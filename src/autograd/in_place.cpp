#include "in_place.hpp"

#include <utility>

#include <declivity/ops/copy.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/function_call.hpp>
#include <fmt/format.h>

#include "dependent_views.hpp"
#include "graph.hpp"
#include "ops/engine/lazy_array.hpp"
#include "ops/support/sharing.hpp"
#include "runtime/capture.hpp"
#include "tensor/tensor_observer.hpp"
#include "tensor/tensor_state.hpp"

namespace declivity {
namespace detail {

bool written_in_graph(const Tensor& tensor, std::string_view function, const Tensor& source) {
    const TensorState& state = checked_state(state_of(tensor), function);
    if (!any_requires_grad({tensor, source})) return false;
    if (state.requires_grad)
        throw ValueError(
            fmt::format("{}: expected a tensor that does not require a gradient, got one of shape {} that requires a "
                        "gradient; write under NoGrad, or to a detach()ed clone",
                        function, tensor.shape().str()));
    if (shares_memory(state))
        throw ValueError(
            fmt::format("{}: expected a tensor with unshared memory when grad mode is on, got one of shape "
                        "{} that is a view or has one (x[i], slice, reshape, detach, ...), which would have to "
                        "change with it; release the other, write to a clone(), or to a part of x by x[i] = value "
                        "or x[i] += value",
                        function, tensor.shape().str()));
    if (TensorObserver::current() != nullptr && ops::capture_of(state.value) != Capture::current_number())
        Capture::current()->refuse(fmt::format("{} under a graph to a tensor from before the step", function),
                                   "it would have another value after each call",
                                   "write under NoGrad, or to a tensor of the step");
    return true;
}

void replace_value(const Tensor& tensor, Tensor source) {
    TensorState& state = *state_of(tensor);
    // Destroyed last: it may own a whole graph.
    const TensorState previous{.value = std::exchange(state.value, source.value()),
                               .node = std::exchange(state.node, state_of(source)->node)};
    state.output = state_of(source)->output;
    state.shares.reset();
    source = {};
    refresh_dependent_views(tensor);
    if (auto* const observer = TensorObserver::current()) observer->value_replaced(state_of(tensor));
}

ops::View writable(const Tensor& tensor, std::string_view function) {
    const ops::View& view = tensor.view();
    require_no_overlap(function, view);
    return view;
}

}  // namespace detail

using detail::access_value;
using detail::checked_state;
using detail::replace_value;
using detail::writable;
using detail::written_in_graph;

namespace {

/// Unshared elements: those of `source` if it is donated.
Tensor unshared_elements(Tensor source) {
    const detail::TensorState& state = *state_of(source);
    const ops::LazyArray& value = state.value;
    const bool is_unshared = !ops::is_shared(state_of(source)) && !state.requires_grad && !state.shares &&
                             (state.node != nullptr || !ops::is_shared(value)) &&
                             (!value.computed() || (!ops::is_shared(value.view().buffer) && value.view().dense()));
    return is_unshared ? source : source.clone();
}

void fill_in_place(std::string_view name, const Tensor& to, const Scalar& value) {
    checked_state(state_of(to), name);
    const FunctionCall call(name, {{"x", to}}, {{"value", value}});
    call.results({to});
    if (written_in_graph(to, name)) {
        const ops::View result = ops::View::make(to.device(), to.dtype(), to.shape());
        ops::fill(result, value, name);
        return replace_value(to, Tensor(result));
    }
    ops::fill(writable(to, name), value, name);
    to.bump_version();
}

}  // namespace

void Tensor::bump_version() const { access_value(state_, "bump_version").view().buffer.bump_version(); }

void Tensor::assign(const Tensor& other) {
    auto& state = checked_state(state_, "assign");
    if (state.node) throw ValueError(fmt::format("assign: expected a leaf, got the result of {}", state.node->name));
    const auto& from = checked_state(other.state_, "assign");
    if (auto* const observer = detail::TensorObserver::current()) {
        observer->uses(state_);
        observer->uses(other.state_);
        observer->writes_grad(state_);
    }
    state.value = from.value;
    state.shares.reset();
    detail::share_memory(other, *this);
    detail::exchange_grad(state, {});
}

Tensor& Tensor::copy_(Tensor source) {
    const ops::LazyArray& to = checked_state(state_, "copy_").value;
    checked_state(state_of(source), "copy_");
    const FunctionCall call("copy_", {{"x", *this}, {"source", source}});
    call.results({*this});
    ops::require_shape("copy_", "the source", source.shape(), to.shape());
    if (source.dtype() != to.dtype())
        throw TypeError(
            fmt::format("copy_: expected a source of type {}, got {}", name_of(to.dtype()), name_of(source.dtype())));
    const Device target = to.device();
    if (written_in_graph(*this, "copy_", source)) {
        if (!(source.device() == target)) source = source.to(target);
        replace_value(*this, unshared_elements(std::exchange(source, {})));
        return *this;
    }
    const ops::View destination = writable(*this, "copy_");
    const NoGrad no_grad;
    if (!(source.device() == target)) source = source.to(target);
    ops::evaluate_into("copy_", detail::release_value(std::exchange(source, {})), destination);
    return *this;
}

Tensor& Tensor::fill_(Scalar value) {
    fill_in_place("fill_", *this, value);
    return *this;
}

Tensor& Tensor::zero_() {
    fill_in_place("zero_", *this, 0);
    return *this;
}

}  // namespace declivity
