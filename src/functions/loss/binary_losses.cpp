// Losses of binary targets.
#include <limits>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <declivity/tensor/function_call.hpp>
#include <fmt/format.h>

#include "reduction.hpp"
#include "tensor/reduced_precision.hpp"
#include "tensor/tensor_state.hpp"

namespace declivity {

using detail::upcast;

namespace {

/// Logarithm clamped to at least -100, with gradient 0 at 0.
Tensor log_of(const Tensor& x) {
    const Tensor is_zero = x == 0;
    return where(is_zero, -100, clamp(log(where(is_zero, 1, x)), -100, std::numeric_limits<double>::infinity()));
}

/// Gradient computed directly: that of the logarithms would be infinite at 0 and 1.
Tensor entropy(const Tensor& x, const Tensor& t) {
    const auto value = [&] {
        const NoGrad no_grad;
        return t * -log_of(x) - (1 - t) * log_of(1 - x);
    }();
    if (!any_requires_grad({x, t})) return value;
    return attach_backward(
        "binary_cross_entropy", {x, t}, value.value(),
        [x = Saved(x), t = Saved(t)](const GradientContext& context) {
            const Tensor p = x.get("binary_cross_entropy"), target = t.get("binary_cross_entropy");
            const Tensor& g = context.gradient();
            return std::vector{
                context.needs(0) ? g * (p - target) / clamp(p * (1 - p), 1e-12, std::numeric_limits<double>::infinity())
                                 : Tensor(),
                context.needs(1) ? g * (log_of(1 - p) - log_of(p)) : Tensor()};
        },
        RuleKind::differentiable);
}

}  // namespace

Tensor binary_cross_entropy(const Tensor& x, const Tensor& target, Reduction reduction, const Tensor& weight) {
    const FunctionCall call("binary_cross_entropy", {{"x", x}, {"target", target}, {"weight", weight}},
                            {{"reduction", reduction}});
    call.require_defined({"x", "target"});
    const DType type = detail::pair_type("binary_cross_entropy", x, target, {weight}), compute = compute_type(type);
    detail::require_broadcastable("binary_cross_entropy", "a weight", weight, x.shape());
    Tensor losses = entropy(x.to(compute), target.to(compute));
    if (weight.defined()) losses = losses * upcast(weight);
    return call.result(detail::reduced(losses, reduction).to(type));
}

Tensor bce_with_logits(const Tensor& logits, const Tensor& target, Reduction reduction, const Tensor& weight,
                       const Tensor& pos_weight) {
    const FunctionCall call("bce_with_logits",
                            {{"logits", logits}, {"target", target}, {"weight", weight}, {"pos_weight", pos_weight}},
                            {{"reduction", reduction}});
    call.require_defined({"logits", "target"});
    ops::require_shape("bce_with_logits", "the target", target.shape(), logits.shape());
    if (!weight.defined() && !pos_weight.defined()) {
        if (detail::both_16bit(logits, target))
            return call.result(bce_with_logits(upcast(logits), upcast(target), reduction).to(logits.dtype()));
        return call.result(detail::reduced(
            elementwise(Function::binary_cross_entropy, {logits, target}, {}, "bce_with_logits"), reduction));
    }
    const DType type = detail::pair_type("bce_with_logits", logits, target, {weight, pos_weight}, "logits");
    detail::require_broadcastable("bce_with_logits", "a weight", weight, logits.shape());
    detail::require_broadcastable("bce_with_logits", "a pos_weight", pos_weight, logits.shape());
    const Tensor x = upcast(logits), t = upcast(target).to(compute_type(type));
    Tensor losses = pos_weight.defined() ? (1 - t) * x - ((upcast(pos_weight) - 1) * t + 1) * logsigmoid(x)
                                         : elementwise(Function::binary_cross_entropy, {x, t});
    if (weight.defined()) losses = losses * upcast(weight);
    return call.result(detail::reduced(losses, reduction).to(type));
}

Tensor binary_cross_entropy_with_logits(const Tensor& logits, const Tensor& target, Reduction reduction,
                                        const Tensor& weight, const Tensor& pos_weight) {
    const FunctionCall call("binary_cross_entropy_with_logits",
                            {{"logits", logits}, {"target", target}, {"weight", weight}, {"pos_weight", pos_weight}},
                            {{"reduction", reduction}});
    call.require_defined({"logits", "target"});
    ops::require_shape("binary_cross_entropy_with_logits", "the target", target.shape(), logits.shape());
    return call.result(bce_with_logits(logits, target, reduction, weight, pos_weight));
}

Tensor sigmoid_focal_loss(const Tensor& logits, const Tensor& target, double alpha, double gamma, Reduction reduction) {
    const FunctionCall call("sigmoid_focal_loss", {{"logits", logits}, {"target", target}},
                            {{"alpha", alpha}, {"gamma", gamma}, {"reduction", reduction}});
    call.require_defined({"logits", "target"});
    const DType type = detail::pair_type("sigmoid_focal_loss", logits, target, {}, "logits");
    if (!(alpha >= 0 && alpha <= 1) && alpha != -1)
        throw ValueError(fmt::format("sigmoid_focal_loss: expected an alpha in [0, 1], or -1 for none, got {}", alpha));
    if (!(gamma >= 0))
        throw ValueError(fmt::format("sigmoid_focal_loss: expected a gamma of at least 0, got {}", gamma));
    const Tensor x = upcast(logits), t = upcast(target).to(compute_type(type));
    // Above 0, where a power below 1 has a gradient.
    const Tensor missed = clamp(sigmoid(-x) * t + sigmoid(x) * (1 - t), 1e-37, std::numeric_limits<double>::infinity());
    Tensor losses = elementwise(Function::binary_cross_entropy, {x, t}) * pow(missed, gamma);
    if (alpha >= 0) losses = losses * (alpha * t + (1 - alpha) * (1 - t));
    return call.result(detail::reduced(losses, reduction).to(type));
}

Tensor multilabel_soft_margin_loss(const Tensor& x, const Tensor& target, Reduction reduction, const Tensor& weight) {
    const FunctionCall call("multilabel_soft_margin_loss", {{"x", x}, {"target", target}, {"weight", weight}},
                            {{"reduction", reduction}});
    call.require_defined({"x", "target"});
    const DType type = detail::pair_type("multilabel_soft_margin_loss", x, target, {weight});
    if (x.rank() == 0) throw ShapeError("multilabel_soft_margin_loss: expected x of shape (N, C), got []");
    detail::require_broadcastable("multilabel_soft_margin_loss", "a weight", weight, x.shape());
    Tensor losses = elementwise(Function::binary_cross_entropy, {upcast(x), upcast(target)});
    if (weight.defined()) losses = losses * upcast(weight);
    return call.result(detail::reduced(mean(losses, {-1}), reduction).to(type));
}

Tensor soft_margin_loss(const Tensor& x, const Tensor& target, Reduction reduction) {
    const FunctionCall call("soft_margin_loss", {{"x", x}, {"target", target}}, {{"reduction", reduction}});
    call.require_defined({"x", "target"});
    const DType type = detail::pair_type("soft_margin_loss", x, target);
    return call.result(detail::reduced(-logsigmoid(upcast(target) * upcast(x)), reduction).to(type));
}

Tensor hinge_embedding_loss(const Tensor& x, const Tensor& target, double margin, Reduction reduction) {
    const FunctionCall call("hinge_embedding_loss", {{"x", x}, {"target", target}},
                            {{"margin", margin}, {"reduction", reduction}});
    call.require_defined({"x", "target"});
    const DType type = detail::pair_type("hinge_embedding_loss", x, target);
    const Tensor upcast_x = upcast(x);
    // PyTorch: for a target that is neither 0 nor 1 both terms are used.
    const Tensor losses =
        where(target != 1, detail::at_least_zero(margin - upcast_x), 0) + where(target != -1, upcast_x, 0);
    return call.result(detail::reduced(losses, reduction).to(type));
}

}  // namespace declivity
