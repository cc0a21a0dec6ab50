#include <declivity/ops/dropout.hpp>

#include <declivity/runtime/error.hpp>
#include <declivity/runtime/scope.hpp>
#include <declivity/tensor/autograd.hpp>
#include <declivity/tensor/functions.hpp>

#include "halves.hpp"
#include "tensor_state.hpp"

namespace declivity {

Tensor dropout(const Tensor& x, double probability) {
    detail::require_defined("dropout", x);
    if (is_half(x.dtype())) return dropout(detail::widened(x), probability).to(x.dtype());
    const Span span("dropout");
    const ops::View in = x.dense_view();
    const ops::RandomCall random = ops::take_random(x.device(), x.dtype(), x.numel());
    const ops::View out = ops::View::make(x.device(), x.dtype(), x.shape());
    ops::dropout(in, out, probability, random);
    return differentiable("dropout", {x}, out, [probability, random](const GradientContext& context) {
        const ops::View g = context.gradient().dense_view();
        const ops::View result = ops::View::make(g.device(), g.dtype, g.shape);
        ops::dropout(g, result, probability, random);
        return std::vector{Tensor(result)};
    });
}

}  // namespace declivity
