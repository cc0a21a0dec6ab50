#include <declivity/ops/softmax.hpp>

#include <utility>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/runtime/scope.hpp>
#include <declivity/tensor/function_call.hpp>
#include <fmt/format.h>

#include "autograd/decomposition.hpp"
#include "tensor/tensor_state.hpp"

namespace declivity {
namespace {

using ops::SoftmaxKind;

Tensor decomposed(SoftmaxKind kind, const Tensor& x, int axis) {
    // The maximum is a constant: its contribution to the gradient is 0.
    const Tensor centred = x - max(x.detach(), {axis}, true);
    const Tensor powers = exp(centred), total = sum(powers, {axis}, true);
    return kind == SoftmaxKind::softmax ? powers / total : centred - log(total);
}

Tensor apply(SoftmaxKind kind, const char* name, Tensor x, std::int64_t axis) {
    if (x.rank() == 0) return reshape(apply(kind, name, reshape(x, {1}), axis), {});
    const int along = normalize_axis(name, axis, x.rank());
    ops::require_real(name, "x", x.dtype());
    if (detail::by_decomposition())
        return detail::decomposed_in_f32(
            [&](const std::vector<Tensor>& in) { return std::vector{decomposed(kind, in[0], along)}; }, {x})[0];
    if (!any_requires_grad({x})) return Tensor(ops::softmax(kind, detail::release_value(std::move(x)), along));
    const ops::LazyArray out = ops::softmax(kind, x.value(), along);
    // A rule of its own rather than a decomposition: it needs only the result, so that x can be released.
    return attach_backward(
        name, {x}, out,
        [kind, name, along, result = Saved::result(out)](const GradientContext& context) {
            if (grad_enabled()) {
                const Tensor y = context.output(result, name), &g = context.gradient();
                return std::vector{kind == SoftmaxKind::softmax ? y * (g - sum(g * y, {along}, true))
                                                                : g - exp(y) * sum(g, {along}, true)};
            }
            const ops::View g = context.release_gradient().dense_view(), y = result.get(name).dense_view();
            return std::vector{Tensor(ops::softmax_backward(kind, y, g, along))};
        },
        RuleKind::differentiable);
}

}  // namespace

Tensor softmax(Tensor x, std::int64_t axis) {
    const FunctionCall call("softmax", {{"x", x}}, {{"axis", axis}});
    call.require_defined({"x"});
    return call.result(apply(SoftmaxKind::softmax, "softmax", std::move(x), axis));
}

Tensor log_softmax(Tensor x, std::int64_t axis) {
    const FunctionCall call("log_softmax", {{"x", x}}, {{"axis", axis}});
    call.require_defined({"x"});
    return call.result(apply(SoftmaxKind::log_softmax, "log_softmax", std::move(x), axis));
}

Tensor softmin(const Tensor& x, std::int64_t axis) {
    const FunctionCall call("softmin", {{"x", x}}, {{"axis", axis}});
    call.require_defined({"x"});
    ops::require_real("softmin", "x", x.dtype());
    const std::int64_t along = x.rank() == 0 ? axis : normalize_axis("softmin", axis, x.rank());
    return call.result(softmax(-x, along));
}

}  // namespace declivity
