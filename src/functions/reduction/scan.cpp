#include <declivity/ops/scan.hpp>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/ops/view.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/function_call.hpp>

#include "autograd/decomposition.hpp"
#include "functions/support/axes.hpp"
#include "tensor/reduced_precision.hpp"
#include "tensor/tensor_state.hpp"

namespace declivity {
namespace {

/// Sizes before an axis, along it, and after it.
Shape outer_axis_inner(const Shape& shape, int axis) {
    std::int64_t outer = 1, inner = 1;
    for (int i = 0; i < shape.rank(); ++i) (i < axis ? outer : inner) *= i == axis ? 1 : shape[i];
    return {outer, shape.rank() == 0 ? 1 : shape[axis], inner};
}

/// Calls the kernel, without gradient.
Tensor run_scan(const char* name, ops::Scan kind, const Tensor& x, int axis) {
    const ops::View in = reshape(x.detach(), outer_axis_inner(x.shape(), axis)).dense_view();
    const ops::View out = ops::View::make(in.device(), in.dtype, in.shape);
    ops::scan(name, kind, in, out);
    return reshape(Tensor(out), x.shape());
}

Tensor reversed(const Tensor& x, int axis) { return flip(x, {axis}); }

Tensor summed(const char* name, const Tensor& x, int axis) {
    const NoGrad no_grad;
    return run_scan(name, ops::Scan::sum, x, axis);
}

/// Differentiable cumulative sum in either direction; its gradient is the one in the other direction.
Tensor directed_cumsum(const char* name, const Tensor& x, int axis, bool backwards) {
    const Tensor y = backwards ? reversed(summed(name, reversed(x.detach(), axis), axis), axis) : summed(name, x, axis);
    return attach_backward(
        name, {x}, y.value(),
        [name, axis, backwards](const GradientContext& context) {
            return std::vector{directed_cumsum(name, context.gradient(), axis, !backwards)};
        },
        RuleKind::differentiable);
}

/// y[i] = fold(y[i - k], y[i]) for k = 1, 2, 4, ... (Hillis, Steele 1986): differentiable to any order, with zeros and
/// infinities, unlike a rule that divides.
template <class Fold>
Tensor by_doubling(const Tensor& x, int axis, const Fold& fold) {
    const std::int64_t n = x.shape()[axis];
    Tensor y = x;
    for (std::int64_t k = 1; k < n; k *= 2)
        y = concat({slice(y, axis, 0, k), fold(slice(y, axis, 0, n - k), slice(y, axis, k, n))}, axis);
    return y;
}

Tensor as_sum_type(const Tensor& x) { return is_floating(x.dtype()) ? x : x.to(DType::i64); }

CumulativeExtreme extreme(const char* name, ops::Scan kind, const Tensor& x, std::int64_t axis) {
    const FunctionCall call(name, {{"x", x}}, {{"axis", axis}});
    call.require_defined({"x"});
    const int along = detail::normalize_axis_of(name, x, axis);
    const Tensor input = x.dtype() == DType::boolean ? x.to(DType::u8) : x;
    const ops::View in = reshape(input.detach(), outer_axis_inner(x.shape(), along)).dense_view();
    const ops::View out = ops::View::make(in.device(), in.dtype, in.shape),
                    index_view = ops::View::make(in.device(), DType::i64, in.shape);
    ops::scan(name, kind, in, out, &index_view);
    const Tensor indices = reshape(Tensor(index_view), x.shape());
    Tensor values = reshape(Tensor(out), x.shape()).to(x.dtype());
    if (any_requires_grad({x})) values = x.rank() == 0 ? x : gather(x, along, indices);
    call.results({values, indices});
    return {values, indices};
}

}  // namespace

Tensor cumsum(const Tensor& x, std::int64_t axis) {
    const FunctionCall call("cumsum", {{"x", x}}, {{"axis", axis}});
    call.require_defined({"x"});
    const int along = detail::normalize_axis_of("cumsum", x, axis);
    if (x.rank() == 0) return call.result(as_sum_type(x));
    return call.result(directed_cumsum("cumsum", as_sum_type(x), along, false));
}

Tensor cumprod(const Tensor& x, std::int64_t axis) {
    const FunctionCall call("cumprod", {{"x", x}}, {{"axis", axis}});
    call.require_defined({"x"});
    const int along = detail::normalize_axis_of("cumprod", x, axis);
    const Tensor input = as_sum_type(x);
    if (x.rank() == 0) return call.result(input);
    if (!any_requires_grad({x}) && !detail::by_decomposition())
        return call.result(run_scan("cumprod", ops::Scan::product, input, along));
    const auto products = [&](const Tensor& values) {
        return by_doubling(values, along, [](const Tensor& a, const Tensor& b) { return a * b; });
    };
    return call.result(detail::in_f32(input.dtype(), products, input));
}

Tensor logcumsumexp(const Tensor& x, std::int64_t axis) {
    const FunctionCall call("logcumsumexp", {{"x", x}}, {{"axis", axis}});
    call.require_defined({"x"});
    ops::require_real("logcumsumexp", "x", x.dtype());
    const int along = detail::normalize_axis_of("logcumsumexp", x, axis);
    if (x.rank() == 0) return call.result(x);
    if (!any_requires_grad({x}) && !detail::by_decomposition())
        return call.result(run_scan("logcumsumexp", ops::Scan::log_sum_exp, x, along));
    const auto combine = [&](const Tensor& values) {
        // Two equal infinities have no gradient of their own: the later one stands for both, so that finite elements
        // behind it keep gradient 0.
        return by_doubling(values, along, [](const Tensor& a, const Tensor& b) {
            const Tensor same = isinf(a) & (a == b), zero = zeros_like(a.detach());
            return where(same, b, logaddexp(where(same, zero, a), where(same, zero, b)));
        });
    };
    return call.result(detail::in_f32(x.dtype(), combine, x));
}

CumulativeExtreme cummax(const Tensor& x, std::int64_t axis) { return extreme("cummax", ops::Scan::largest, x, axis); }
CumulativeExtreme cummin(const Tensor& x, std::int64_t axis) { return extreme("cummin", ops::Scan::smallest, x, axis); }

}  // namespace declivity
