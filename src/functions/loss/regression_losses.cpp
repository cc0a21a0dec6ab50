// Losses of regression and of distributions.
#include <cmath>
#include <numbers>

#include <declivity/functions/functions.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <declivity/tensor/function_call.hpp>
#include <fmt/format.h>

#include "reduction.hpp"
#include "tensor/reduced_precision.hpp"

namespace declivity {

using detail::upcast;

Tensor l1_loss(const Tensor& x, const Tensor& target, Reduction reduction, const Tensor& weight) {
    const FunctionCall call("l1_loss", {{"x", x}, {"target", target}, {"weight", weight}}, {{"reduction", reduction}});
    call.require_defined({"x", "target"});
    const DType type = detail::pair_type("l1_loss", x, target, {weight});
    const Tensor losses = abs(upcast(x) - upcast(target));
    if (!weight.defined()) return call.result(detail::reduced(losses, reduction).to(type));
    ops::require_shape("l1_loss", "the weight", weight.shape(), x.shape());
    return call.result(detail::weighted(losses, upcast(weight), reduction).to(type));
}

Tensor smooth_l1_loss(const Tensor& x, const Tensor& target, Reduction reduction, double beta) {
    const FunctionCall call("smooth_l1_loss", {{"x", x}, {"target", target}},
                            {{"reduction", reduction}, {"beta", beta}});
    call.require_defined({"x", "target"});
    const DType type = detail::pair_type("smooth_l1_loss", x, target);
    if (!(beta >= 0)) throw ValueError(fmt::format("smooth_l1_loss: expected a beta of at least 0, got {}", beta));
    const Tensor error = upcast(x) - upcast(target), d = abs(error);
    // A function of the error, not of its magnitude: the second derivative at 0 is 1 / beta. Infinite errors are masked
    // from the square, whose gradient would be NaN. NaN takes the square, so that the gradient is NaN.
    const Tensor quadratic = !(d >= beta);
    const Tensor losses =
        beta > 0 ? where(quadratic, square(where(quadratic, error, 0)) * (0.5 / beta), d - 0.5 * beta) : d;
    return call.result(detail::reduced(losses, reduction).to(type));
}

Tensor huber_loss(const Tensor& x, const Tensor& target, Reduction reduction, double delta, const Tensor& weight) {
    const FunctionCall call("huber_loss", {{"x", x}, {"target", target}, {"weight", weight}},
                            {{"reduction", reduction}, {"delta", delta}});
    call.require_defined({"x", "target"});
    const DType type = detail::pair_type("huber_loss", x, target, {weight});
    if (weight.defined()) ops::require_shape("huber_loss", "the weight", weight.shape(), x.shape());
    if (!(delta > 0)) throw ValueError(fmt::format("huber_loss: expected a delta above 0, got {}", delta));
    const Tensor error = upcast(x) - upcast(target), d = abs(error);
    const Tensor quadratic = !(d >= delta);  // includes NaN
    Tensor losses = where(quadratic, square(where(quadratic, error, 0)) * 0.5, (d - 0.5 * delta) * delta);
    if (weight.defined()) losses = losses * upcast(weight);
    return call.result(detail::reduced(losses, reduction).to(type));
}

Tensor kl_div(const Tensor& x, const Tensor& target, Reduction reduction, bool log_target) {
    const FunctionCall call("kl_div", {{"x", x}, {"target", target}},
                            {{"reduction", reduction}, {"log_target", log_target}});
    call.require_defined({"x", "target"});
    const DType type = detail::pair_type("kl_div", x, target);
    const Tensor upcast_x = upcast(x), t = upcast(target).to(compute_type(type));
    // 0 log(0) is 0.
    const Tensor losses = log_target ? exp(t) * (t - upcast_x) : t * log(where(t == 0, 1, t)) - t * upcast_x;
    return call.result(detail::reduced(losses, reduction).to(type));
}

Tensor poisson_nll_loss(const Tensor& x, const Tensor& target, const PoissonNllLossOptions& options) {
    const FunctionCall call("poisson_nll_loss", {{"x", x}, {"target", target}},
                            {{"log_input", options.log_input},
                             {"full", options.full},
                             {"eps", options.eps},
                             {"reduction", options.reduction}});
    call.require_defined({"x", "target"});
    const DType type = detail::pair_type("poisson_nll_loss", x, target);
    const Tensor upcast_x = upcast(x), t = upcast(target).to(compute_type(type));
    Tensor losses = options.log_input ? exp(upcast_x) - t * upcast_x : upcast_x - t * log(upcast_x + options.eps);
    if (options.full) {
        const Tensor above = t > 1, n = where(above, t, 2);
        losses = losses + where(above, n * log(n) - n + 0.5 * log(2 * std::numbers::pi * n), 0);
    }
    return call.result(detail::reduced(losses, options.reduction).to(type));
}

Tensor gaussian_nll_loss(const Tensor& x, const Tensor& target, const Tensor& var,
                         const GaussianNllLossOptions& options) {
    const FunctionCall call("gaussian_nll_loss", {{"x", x}, {"target", target}, {"var", var}},
                            {{"full", options.full}, {"eps", options.eps}, {"reduction", options.reduction}});
    call.require_defined({"x", "target", "var"});
    detail::require_broadcastable("gaussian_nll_loss", "a target", target, x.shape());
    const DType type = detail::loss_type("gaussian_nll_loss", "x", x, {target, var});
    ops::require_real("gaussian_nll_loss", "var", var.dtype());
    if (!(options.eps > 0))
        throw ValueError(fmt::format("gaussian_nll_loss: expected an eps above 0, got {}", options.eps));
    Shape per_row_shape = x.shape();
    if (per_row_shape.rank() > 0) per_row_shape[-1] = 1;
    Shape reduced_shape = x.shape();
    if (reduced_shape.rank() > 0) reduced_shape.erase(reduced_shape.rank() - 1);
    if (var.shape() != x.shape() && var.shape() != per_row_shape && var.shape() != reduced_shape)
        throw ShapeError(fmt::format("gaussian_nll_loss: expected var of shape {}, {} or {}, got {}", x.shape().str(),
                                     per_row_shape.str(), reduced_shape.str(), var.shape().str()));
    const Tensor variance = upcast(var.shape() == x.shape() ? var : reshape(var, per_row_shape));
    // eps, with the gradient of var.
    const Tensor v = where(variance < options.eps, variance - variance.detach() + options.eps, variance);
    Tensor losses = 0.5 * (log(v) + square(upcast(x) - upcast(target)) / v);
    if (options.full) losses = losses + 0.5 * std::log(2 * std::numbers::pi);
    return call.result(detail::reduced(losses, options.reduction).to(type));
}

}  // namespace declivity
