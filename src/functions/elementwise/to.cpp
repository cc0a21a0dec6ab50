// Copies of a tensor: on another device, in another type, in memory of its own.
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/ops/copy.hpp>
#include <declivity/tensor/function_call.hpp>
#include <declivity/tensor/tensor.hpp>

#include "ops/engine/expression.hpp"
#include "ops/engine/lazy_array.hpp"
#include "tensor/tensor_state.hpp"

namespace declivity {

using detail::access_value;
using detail::checked_state;

Tensor Tensor::to(const Device& target) const {
    const Device origin = checked_state(state_, "to").value.device();
    if (origin == target) return *this;
    const std::string device_id = target.info().id;
    const FunctionCall call("to", {{"x", *this}}, {{"device", device_id}});
    // Contexts of different platforms share no memory: copied via the host.
    std::vector<std::byte> bytes(ops::bytes_of(shape(), dtype()));
    read_bytes("to", bytes, dtype());
    const Tensor copied = from_bytes(bytes, dtype(), shape(), target);
    return call.result(attach_backward(
        "to", {*this}, copied.value(),
        [origin](const GradientContext& context) { return std::vector{context.gradient().to(origin)}; },
        RuleKind::differentiable));
}

Tensor Tensor::to(DType target) const {
    const ops::LazyArray& from = access_value(state_, "to");
    if (from.dtype() == target) return *this;
    const FunctionCall call("to", {{"x", *this}}, {{"dtype", target}});
    ops::require_supported(from.device(), target);
    const ops::LazyArray converted = ops::make_lazy(ops::Expression::cast(from, target), from.device());
    if (!is_floating(target)) return call.result(Tensor(converted));
    return call.result(attach_backward(
        "to", {*this}, converted,
        [origin = from.dtype()](const GradientContext& context) { return std::vector{context.gradient().to(origin)}; },
        RuleKind::differentiable));
}

Tensor Tensor::clone() const {
    checked_state(state_, "clone");
    const FunctionCall call("clone", {{"x", *this}});
    const ops::View& from = access_value(state_, "clone").view();
    const ops::View out = ops::View::make(from.device(), from.dtype, from.shape);
    ops::copy(from, out);
    if (!any_requires_grad({*this})) return call.result(Tensor(out));
    return call.result(attach_backward(
        "clone", {*this}, out, [](const GradientContext& context) { return std::vector{context.release_gradient()}; },
        RuleKind::differentiable));
}

}  // namespace declivity
