#include <declivity/ops/batch_norm.hpp>

#include <optional>
#include <utility>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/runtime/scope.hpp>
#include <declivity/tensor/function_call.hpp>
#include <fmt/format.h>

#include "autograd/graph.hpp"
#include "ops/engine/reduced_precision.hpp"
#include "tensor/reduced_precision.hpp"

namespace declivity {
namespace {

ops::View view_or_none(const Tensor& tensor) { return tensor.defined() ? tensor.view() : ops::View(); }

void check_options(const BatchNormParameters& options) {
    if (!(options.eps > 0)) throw ValueError(fmt::format("batch_norm: expected eps above 0, got {}", options.eps));
    if (options.momentum && !(*options.momentum >= 0 && *options.momentum <= 1))
        throw ValueError(fmt::format("batch_norm: expected a momentum in [0, 1], or none, got {}", *options.momentum));
}

/// Checked by the shape of x, which is the caller's mistake: a layer's own tensors are consistent.
void require_channels(const Tensor& x, std::string_view name, const Tensor& channels) {
    if (channels.defined() && !(channels.shape() == Shape{x.size(1)}))
        throw ShapeError(fmt::format(
            "batch_norm: expected x of shape (N, C, ...) with as many channels as {} has elements, got x of shape {} "
            "and {} of shape {}",
            name, x.shape().str(), name, channels.shape().str()));
}

/// Per-channel parameter of x (N, C, ...): of x's type, or f32 with f16 and bf16.
ops::View channel_view(const Tensor& x, std::string_view name, const Tensor& channels) {
    const ops::View view = channels.dense_view();
    if (view.dtype != compute_type(x.dtype()))
        ops::require_alike("batch_norm", "x", x.dtype(), x.device(), name, view.dtype, view.device());
    ops::require_same_device("batch_norm", x.device(), view.device());
    return view;
}

void check_running(const Tensor& x, const Tensor& mean, const Tensor& variance) {
    if (!mean.defined() || !variance.defined())
        throw ValueError("batch_norm: expected running statistics to evaluate with, got an undefined tensor");
    (void)channel_view(x, "the running mean", mean);
    (void)channel_view(x, "the running variance", variance);
}

/// Gradients as a decomposition. @param statistics mean and scale for evaluation; if undefined, those of x
std::vector<Tensor> decomposed_gradients(const Tensor& x, const Tensor& weight, const Tensor& g, Tensor mean,
                                         Tensor scale, double eps) {
    Dims axes{0};
    Shape channels{1, x.size(1)};
    for (int axis = 2; axis < x.rank(); ++axis) {
        axes.push_back(axis);
        channels.push_back(1);
    }
    const bool uses_batch_statistics = !mean.defined();
    const auto channel_mean = [&](const Tensor& values) { return declivity::mean(values, axes, true); };
    mean = uses_batch_statistics ? channel_mean(x) : reshape(mean, channels);
    const Tensor centred = x - mean;
    scale = uses_batch_statistics ? pow(channel_mean(square(centred)) + eps, -0.5) : reshape(scale, channels);
    const Tensor normal = centred * scale, factor = weight.defined() ? scale * reshape(weight, channels) : scale;
    return {uses_batch_statistics ? factor * (g - channel_mean(g) - normal * channel_mean(g * normal)) : factor * g,
            sum(g * normal, axes), sum(g, axes)};
}

/// Evaluation without gradients: scale and offset of each channel, which can be fused into a preceding convolution.
Tensor evaluated(Tensor x, const Tensor& weight, const Tensor& bias, const Tensor& mean, const Tensor& variance,
                 double eps) {
    check_running(x, mean, variance);
    const auto or_none = [&](std::string_view name, const Tensor& tensor) {
        return tensor.defined() ? channel_view(x, name, tensor) : ops::View();
    };
    const auto use = grad_enabled() ? ops::OperandUse::variable : ops::OperandUse::constant;
    return Tensor(ops::batch_norm(
        x.value(), ops::batch_norm_fold(mean.dense_view(), variance.dense_view(), or_none("the weight", weight),
                                        or_none("the bias", bias), eps, use)));
}

/// Backward rule of one call.
struct Rule {
    Saved x, weight, running;  // running: for evaluation, detects in-place writes by training
    ops::LazyArray mean, scale;
    DType bias_type;  // type of x if there is no bias
    bool has_bias, uses_batch_statistics;
    double eps;

    std::vector<Tensor> operator()(const GradientContext& context) const {
        constexpr auto* name = "batch_norm";
        (void)running.get(name);
        const Tensor factor = weight.get(name);
        if (grad_enabled()) {
            const Tensor in = x.get(name);
            std::vector<Tensor> gradients = decomposed_gradients(
                detail::upcast(in), detail::upcast(factor), detail::upcast(context.gradient()),
                uses_batch_statistics ? Tensor() : Tensor(mean), uses_batch_statistics ? Tensor() : Tensor(scale), eps);
            const DType channel_type = factor.defined() ? factor.dtype() : bias_type;
            gradients = {gradients[0].to(in.dtype()), gradients[1].to(channel_type), gradients[2].to(bias_type)};
            if (!factor.defined()) gradients[1] = {};
            if (!has_bias) gradients[2] = {};
            return gradients;
        }
        const ops::View g =
            context.release_gradient().dense_view();  // first, since evaluating pending operations allocates memory
        const ops::View input = x.get(name).dense_view();
        const ops::View dx = context.needs(0) ? ops::View::make(input.device(), input.dtype, input.shape) : ops::View();
        const ops::View dweight =
            ops::View::make(input.device(), factor.defined() ? factor.dtype() : input.dtype, {input.shape[1]});
        const ops::View dbias = ops::View::make(input.device(), bias_type, {input.shape[1]});
        ops::batch_norm_backward(input, mean.view(), scale.view(), detail::dense_or_none(factor), uses_batch_statistics,
                                 g, dx, dweight, dbias);
        return {context.needs(0) ? Tensor(dx) : Tensor(),
                factor.defined() && context.needs(1) ? Tensor(dweight) : Tensor(),
                has_bias && context.needs(2) ? Tensor(dbias) : Tensor()};
    }
};

/// Statistics that training updates. The same kernel counts the batches, except for the cumulative average, where every
/// channel needs the new count, which an earlier launch computes.
ops::BatchNormRunning running_of(const Tensor& mean, const Tensor& variance, const Tensor& batches,
                                 const std::optional<double>& momentum) {
    const bool average = !momentum && (mean.defined() || variance.defined());
    if (average && !batches.defined())
        throw ValueError(
            "batch_norm: expected num_batches_tracked where there is no momentum, got an undefined tensor");
    if (average) {
        const NoGrad no_grad;
        Tensor(batches).add_(1);
    }
    return {view_or_none(mean), view_or_none(variance), momentum.value_or(0), view_or_none(batches), average};
}

Tensor normalised(Tensor x, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
                  const Tensor& running_var, const BatchNormParameters& options, const Tensor& num_batches_tracked) {
    if (!options.training && !any_requires_grad({x, weight, bias}))
        return evaluated(std::move(x), weight, bias, running_mean, running_var, options.eps);
    const ops::View in = x.dense_view();
    ops::BatchNormResults forward;
    Saved running;
    if (options.training) {
        forward =
            ops::batch_norm_training(in, detail::dense_or_none(weight), detail::dense_or_none(bias), options.eps,
                                     running_of(running_mean, running_var, num_batches_tracked, options.momentum));
    } else {
        check_running(x, running_mean, running_var);
        const ops::View mean = ops::upcast(running_mean.dense_view()),
                        scale = ops::View::make(in.device(), compute_type(in.dtype), mean.shape);
        running = Saved(running_mean);
        ops::batch_norm_scale(ops::upcast(running_var.dense_view()), options.eps, scale);
        forward = {ops::batch_norm(in, mean, scale, detail::dense_or_none(weight), detail::dense_or_none(bias)), mean,
                   scale};
    }
    ops::LazyArray out = std::move(forward.out);
    if (!any_requires_grad({x, weight, bias})) return Tensor(out);
    return attach_backward("batch_norm", {x, weight, bias}, out,
                           Rule{.x = Saved(x),
                                .weight = Saved(weight),
                                .running = running,
                                .mean = forward.mean,
                                .scale = forward.scale,
                                .bias_type = bias.defined() ? bias.dtype() : x.dtype(),
                                .has_bias = bias.defined(),
                                .uses_batch_statistics = options.training,
                                .eps = options.eps},
                           RuleKind::differentiable);
}

}  // namespace

Tensor batch_norm(Tensor x, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
                  const Tensor& running_var, const BatchNormParameters& options, const Tensor& num_batches_tracked) {
    const FunctionCall call(
        "batch_norm",
        {{"x", x},
         {"weight", weight},
         {"bias", bias},
         {"running_mean", running_mean},
         {"running_var", running_var},
         {"num_batches_tracked", num_batches_tracked}},
        {{"training", options.training},
         options.momentum ? CallAttribute("momentum", *options.momentum) : CallAttribute("momentum", "None"),
         {"eps", options.eps}});
    call.require_defined({"x"});
    check_options(options);
    if (options.training && detail::is_recomputing() &&
        (running_mean.defined() || running_var.defined() || num_batches_tracked.defined()))
        return call.result(batch_norm(std::move(x), weight, bias, {}, {}, options));
    if (x.rank() < 2)
        throw ShapeError(fmt::format("batch_norm: expected at least 2 axes (N, C, ...) as x, got {}", x.shape().str()));
    require_channels(x, "the running mean", running_mean);
    require_channels(x, "the running variance", running_var);
    require_channels(x, "the weight", weight);
    require_channels(x, "the bias", bias);
    return call.result(normalised(std::move(x), weight, bias, running_mean, running_var, options, num_batches_tracked));
}

}  // namespace declivity
