#include <declivity/ops/reduce.hpp>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/runtime/scope.hpp>
#include <declivity/tensor/creation.hpp>
#include <declivity/tensor/function_call.hpp>
#include <fmt/format.h>

#include "tensor/tensor_state.hpp"

namespace declivity {
namespace {

using ops::Reduce;

struct Reduced {
    ops::View result;
    Shape keep_shape;  // with the reduced axes as size 1, which broadcasts to x
};

/// @param evaluate evaluate and store x first, for elements that are used again
Reduced reduced(Reduce kind, const Tensor& x, const Dims& axes, bool keep_axes, bool evaluate = false) {
    const Dims reduced_axes = ops::normalize_axes(ops::name_of(kind), axes, x.rank());
    // A shared lazy value is stored once, rather than recomputed by each reader.
    evaluate = evaluate || detail::is_shared(x);
    return {evaluate ? ops::reduce(kind, x.view(), reduced_axes, keep_axes)
                     : ops::reduce(kind, x.value(), reduced_axes, keep_axes),
            ops::reduced_shape(x.shape(), reduced_axes, true)};
}

Tensor extreme(Reduce kind, const Tensor& x, const Dims& axes, bool keep_axes) {
    const FunctionCall call(ops::name_of(kind), {{"x", x}}, {{"axes", axes}, {"keep_axes", keep_axes}});
    call.require_defined({"x"});
    // The gradient searches for the selected elements, which must not be recomputed with other rounding.
    const auto [result, keep_shape] = reduced(kind, x, axes, keep_axes, any_requires_grad({x}));
    if (!any_requires_grad({x})) return call.result(Tensor(result));
    return call.result(attach_backward(
        ops::name_of(kind), {x}, result,
        [x = Saved(x), result = Saved::result(result), keep_shape,
         name = ops::name_of(kind)](const GradientContext& context) {
            const Tensor in = x.get(name), value = reshape(result.get(name), keep_shape);
            // If there is a NaN, which equals nothing, it is the selected element.
            Tensor selected = equal(in, value);
            if (is_floating(in.dtype())) selected = logical_or(selected, logical_and(isnan(in), isnan(value)));
            Dims reduced_axes;
            for (int axis = 0; axis < keep_shape.rank(); ++axis)
                if (keep_shape[axis] != in.shape()[axis]) reduced_axes.push_back(axis);
            // No reduced axis is longer than 1: every element is selected.
            if (reduced_axes.empty()) return std::vector{reshape(context.gradient(), keep_shape)};
            const DType compute = compute_type(in.dtype());  // f16 and bf16 do not represent every count
            const Tensor share =
                reshape(context.gradient(), keep_shape).to(compute) / sum(selected, reduced_axes, true).to(compute);
            return std::vector{where(selected, share, zeros({}, {compute, in.device()})).to(in.dtype())};
        },
        RuleKind::differentiable));
}

}  // namespace

Tensor sum(Tensor x, const Dims& axes, bool keep_axes) {
    const FunctionCall call("sum", {{"x", x}}, {{"axes", axes}, {"keep_axes", keep_axes}});
    call.require_defined({"x"});
    const auto [result, keep_shape] = reduced(Reduce::sum, x, axes, keep_axes);
    if (!any_requires_grad({x})) return call.result(Tensor(result));
    return call.result(attach_backward(
        "sum", {x}, result,
        [keep_shape, x_shape = x.shape()](const GradientContext& context) {
            return std::vector{expand(reshape(context.gradient(), keep_shape), x_shape)};
        },
        RuleKind::differentiable));
}

Tensor mean(Tensor x, const Dims& axes, bool keep_axes) {
    const FunctionCall call("mean", {{"x", x}}, {{"axes", axes}, {"keep_axes", keep_axes}});
    call.require_defined({"x"});
    const auto [result, keep_shape] = reduced(Reduce::mean, x, axes, keep_axes);
    if (!any_requires_grad({x})) return call.result(Tensor(result));
    return call.result(attach_backward(
        "mean", {x}, result,
        [keep_shape, x_shape = x.shape()](const GradientContext& context) {
            const double elements =
                keep_shape.numel() == 0 ? 1 : static_cast<double>(x_shape.numel() / keep_shape.numel());
            return std::vector{expand(reshape(context.gradient(), keep_shape), x_shape) /
                               elements};  // which is fused into the next kernel
        },
        RuleKind::differentiable));
}

Tensor max(Tensor x, const Dims& axes, bool keep_axes) { return extreme(Reduce::max, x, axes, keep_axes); }
Tensor min(Tensor x, const Dims& axes, bool keep_axes) { return extreme(Reduce::min, x, axes, keep_axes); }

}  // namespace declivity
