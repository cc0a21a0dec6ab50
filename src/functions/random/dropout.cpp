#include <cmath>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/runtime/scope.hpp>
#include <declivity/tensor/function_call.hpp>
#include <fmt/format.h>

#include "functions/support/dropout.hpp"
#include "ops/engine/expression.hpp"
#include "ops/engine/lazy_array.hpp"
#include "ops/random/random.hpp"
#include "tensor/tensor_state.hpp"

namespace declivity {

/// The mask is regenerated from the same random call in backward, so only the call is saved for the gradient.
Tensor detail::apply_dropout(const Tensor& x, double probability, const ops::RandomCall& random) {
    const DType dtype = x.dtype(), compute = compute_type(dtype);
    const auto cast_to = [](const ops::Expression& from, DType to) {
        return from.dtype() == to ? from : ops::Expression::cast(from, to);
    };
    const ops::Expression inputs[] = {cast_to(x.value(), compute),
                                      ops::random_bernoulli(compute, x.shape(), probability, random)};
    const Scalar scale[] = {probability < 1 ? 1 / (1 - probability) : 0};
    const ops::LazyArray result =
        ops::make_lazy(cast_to(ops::Expression::apply(Function::dropout, inputs, scale), dtype), x.device());
    return attach_backward(
        "dropout", {x}, result,
        [probability, random](const GradientContext& context) {
            return std::vector{detail::apply_dropout(context.gradient(), probability, random)};
        },
        RuleKind::differentiable);
}

Tensor dropout(const Tensor& x, double p, const std::optional<Generator>& generator) {
    const FunctionCall call("dropout", {{"x", x}}, {{"p", p}});
    call.require_defined({"x"});
    if (!(p >= 0 && p <= 1)) throw ValueError(fmt::format("dropout: expected p in [0, 1], got {}", p));
    if (!is_floating(x.dtype()))
        throw TypeError(fmt::format("dropout: expected f32, f64, f16 or bf16, got {}", name_of(x.dtype())));
    if (generator && !(generator->device() == x.device()))
        throw DeviceError(fmt::format("dropout: expected a generator on x's device, '{}', got one on '{}'",
                                      x.device().name(), generator->device().name()));
    if (p == 0) return call.result(x);
    const DType compute = compute_type(x.dtype());
    return call.result(detail::apply_dropout(
        x, p,
        generator ? generator->take("dropout", compute, x.shape()) : ops::take_random(x.device(), compute, x.numel())));
}

}  // namespace declivity
