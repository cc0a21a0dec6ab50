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
    Shape kept;  // with the reduced axes as size 1, which broadcasts to x
};

/// @param stored the elements are used again, so store them
Reduced reduced(Reduce kind, const Tensor& x, const Dims& axes, bool keep_axes, bool stored = false) {
    const Dims over = ops::normalize_axes(ops::name_of(kind), axes, x.rank());
    // A shared lazy value is stored once, rather than recomputed by each reader.
    stored = stored || detail::is_shared(x);
    return {stored ? ops::reduce(kind, x.view(), over, keep_axes) : ops::reduce(kind, x.value(), over, keep_axes),
            ops::reduced_shape(x.shape(), over, true)};
}

Tensor extreme(Reduce kind, const Tensor& x, const Dims& axes, bool keep_axes) {
    const FunctionCall call(ops::name_of(kind), {{"x", x}}, {{"axes", axes}, {"keep_axes", keep_axes}});
    call.require_defined({"x"});
    // The gradient searches for the selected elements, which must not be recomputed with other rounding.
    const auto [result, kept] = reduced(kind, x, axes, keep_axes, any_requires_grad({x}));
    if (!any_requires_grad({x})) return call.result(Tensor(result));
    return call.result(attach_backward(
        ops::name_of(kind), {x}, result,
        [x = Saved(x), result = Saved::result(result), kept,
         name = ops::name_of(kind)](const GradientContext& context) {
            const Tensor in = x.get(name), value = reshape(result.get(name), kept);
            // If there is a NaN, which equals nothing, it is the selected element.
            Tensor chosen = equal(in, value);
            if (is_floating(in.dtype())) chosen = logical_or(chosen, logical_and(isnan(in), isnan(value)));
            Dims over;
            for (int axis = 0; axis < kept.rank(); ++axis)
                if (kept[axis] != in.shape()[axis]) over.push_back(axis);
            // No reduced axis is longer than 1: every element is selected.
            if (over.empty()) return std::vector{reshape(context.gradient(), kept)};
            const DType wide = compute_type(in.dtype());  // f16 and bf16 do not represent every count
            const Tensor share = reshape(context.gradient(), kept).to(wide) / sum(chosen, over, true).to(wide);
            return std::vector{where(chosen, share, zeros({}, {wide, in.device()})).to(in.dtype())};
        },
        RuleKind::differentiable));
}

}  // namespace

Tensor sum(Tensor x, const Dims& axes, bool keep_axes) {
    const FunctionCall call("sum", {{"x", x}}, {{"axes", axes}, {"keep_axes", keep_axes}});
    call.require_defined({"x"});
    const auto [result, kept] = reduced(Reduce::sum, x, axes, keep_axes);
    if (!any_requires_grad({x})) return call.result(Tensor(result));
    return call.result(attach_backward(
        "sum", {x}, result,
        [kept, from = x.shape()](const GradientContext& context) {
            return std::vector{expand(reshape(context.gradient(), kept), from)};
        },
        RuleKind::differentiable));
}

Tensor mean(Tensor x, const Dims& axes, bool keep_axes) {
    const FunctionCall call("mean", {{"x", x}}, {{"axes", axes}, {"keep_axes", keep_axes}});
    call.require_defined({"x"});
    const auto [result, kept] = reduced(Reduce::mean, x, axes, keep_axes);
    if (!any_requires_grad({x})) return call.result(Tensor(result));
    return call.result(attach_backward(
        "mean", {x}, result,
        [kept, from = x.shape()](const GradientContext& context) {
            const double elements = kept.numel() == 0 ? 1 : static_cast<double>(from.numel() / kept.numel());
            return std::vector{expand(reshape(context.gradient(), kept), from) /
                               elements};  // which is fused into the next kernel
        },
        RuleKind::differentiable));
}

Tensor max(Tensor x, const Dims& axes, bool keep_axes) { return extreme(Reduce::max, x, axes, keep_axes); }
Tensor min(Tensor x, const Dims& axes, bool keep_axes) { return extreme(Reduce::min, x, axes, keep_axes); }

}  // namespace declivity
