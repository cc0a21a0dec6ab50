#include <declivity/ops/softmax.hpp>

#include <declivity/runtime/error.hpp>
#include <declivity/runtime/scope.hpp>
#include <declivity/tensor/autograd.hpp>
#include <declivity/tensor/functions.hpp>
#include <fmt/format.h>

#include "halves.hpp"

namespace declivity {
namespace {

using ops::SoftmaxKind;

Tensor apply(SoftmaxKind kind, const char* name, const Tensor& x, std::int64_t axis) {
    if (!x.defined()) throw ValueError(fmt::format("{}: wants a tensor, got an undefined one", name));
    const int along = normalize_axis(name, axis, x.rank());
    if (is_half(x.dtype())) return apply(kind, name, detail::widened(x), along).to(x.dtype());
    const Span span(name);
    const ops::View out = ops::View::make(x.device(), x.dtype(), x.shape());
    ops::softmax(kind, x.dense_view(), along, out);
    return differentiable(
        name, {x}, out,
        [kind, name, along, result = Saved::result(out)](const GradientContext& context) {
            const Tensor& g = context.gradient();
            if (grad_enabled()) {
                const Tensor y = context.output(result, name);
                return std::vector{kind == SoftmaxKind::softmax ? y * (g - sum(g * y, {along}, true))
                                                                : g - exp(y) * sum(g, {along}, true)};
            }
            const ops::View y = result.get(name).view();
            const ops::View dx = ops::View::make(y.device(), y.dtype, y.shape);
            ops::softmax_backward(kind, y, g.dense_view(), along, dx);
            return std::vector{Tensor(dx)};
        },
        RuleKind::composed);
}

}  // namespace

Tensor softmax(const Tensor& x, std::int64_t axis) { return apply(SoftmaxKind::softmax, "softmax", x, axis); }
Tensor log_softmax(const Tensor& x, std::int64_t axis) {
    return apply(SoftmaxKind::log_softmax, "log_softmax", x, axis);
}

}  // namespace declivity
