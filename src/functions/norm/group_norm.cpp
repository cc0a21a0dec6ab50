// Normalisation over parts of each sample: groups of channels, and single channels. Both are rows for layer_norm.
#include <algorithm>
#include <limits>
#include <string_view>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/function_call.hpp>
#include <fmt/format.h>

#include "autograd/graph.hpp"
#include "functions/support/axes.hpp"
#include "tensor/reduced_precision.hpp"

namespace declivity {

using detail::upcast;

namespace {

std::int64_t elements_from(const Shape& shape, int axis) {
    std::int64_t count = 1;
    for (; axis < shape.rank(); ++axis) count *= shape[axis];
    return count;
}

/// Reshapes a per-channel tensor (C) to broadcast with x (N, C, ...).
Tensor as_channels(const Tensor& channels, const Tensor& x) {
    Shape shape{channels.numel()};
    for (int axis = 2; axis < x.rank(); ++axis) shape.push_back(1);
    return reshape(channels, shape);
}

void require_channels(std::string_view function, const Tensor& x, std::string_view name, const Tensor& channels,
                      bool same_type = true) {
    if (!channels.defined()) return;
    ops::require_shape(function, name, channels.shape(), {x.size(1)});
    if (same_type || channels.dtype() != compute_type(x.dtype()))
        ops::require_alike(function, "x", x.dtype(), x.device(), name, channels.dtype(), channels.device());
    ops::require_same_device(function, x.device(), channels.device());
}

/// Normalises the elements of x as rows, with a weight and a bias for each channel.
Tensor normalise_rows(const Tensor& x, std::int64_t rows, const Tensor& weight, const Tensor& bias, double eps) {
    const std::int64_t row_size = rows == 0 ? 0 : x.numel() / rows;
    const DType type = x.dtype();
    const bool affine = weight.defined() || bias.defined();
    // Rounded once, after the affine function.
    const Tensor in = reshape(affine ? upcast(x) : x, {rows, row_size});
    Tensor y = reshape(layer_norm(in, {row_size}, {}, {}, eps), x.shape());
    if (weight.defined()) y = y * as_channels(upcast(weight), x);
    if (bias.defined()) y = y + as_channels(upcast(bias), x);
    return affine ? y.to(type) : y;
}

void require_input(std::string_view function, const Tensor& x, double eps) {
    ops::require_real(function, "x", x.dtype());
    if (x.rank() < 2)
        throw ShapeError(
            fmt::format("{}: expected at least 2 axes (N, C, ...) as x, got {}", function, x.shape().str()));
    if (!(eps >= 0)) throw ValueError(fmt::format("{}: expected eps of at least 0, got {}", function, eps));
}

/// running = (1 - momentum) running + momentum (mean over N of the statistics of x's channels).
void update(const Tensor& x, const Tensor& running_mean, const Tensor& running_var, double momentum) {
    const NoGrad no_grad;
    const std::int64_t row_size = elements_from(x.shape(), 2);
    const Tensor rows = upcast(reshape(x.detach(), {x.size(0), x.size(1), row_size})), means = mean(rows, {2}, true);
    const auto update_running = [&](const Tensor& running, const Tensor& batch_values) {
        if (running.defined())
            Tensor(running).copy_(
                (upcast(running) * (1 - momentum) + mean(batch_values, {0}) * momentum).to(running.dtype()));
    };
    if (running_var.defined())
        update_running(running_var,
                       sum(square(rows - means), {2}) / static_cast<double>(std::max<std::int64_t>(1, row_size - 1)));
    update_running(running_mean, reshape(means, {x.size(0), x.size(1)}));
}

}  // namespace

Tensor group_norm(const Tensor& x, std::int64_t num_groups, const Tensor& weight, const Tensor& bias, double eps) {
    const FunctionCall call("group_norm", {{"x", x}, {"weight", weight}, {"bias", bias}},
                            {{"num_groups", num_groups}, {"eps", eps}});
    call.require_defined({"x"});
    require_input("group_norm", x, eps);
    if (num_groups < 1 || x.size(1) % num_groups != 0)
        throw ValueError(fmt::format("group_norm: expected num_groups that divide the {} channels of x, got {}",
                                     x.size(1), num_groups));
    require_channels("group_norm", x, "weight", weight);
    require_channels("group_norm", x, "bias", bias);
    return call.result(normalise_rows(x, x.size(0) * num_groups, weight, bias, eps));
}

Tensor instance_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
                     const Tensor& running_var, const InstanceNormParameters& options) {
    constexpr auto* name = "instance_norm";
    const FunctionCall call(
        name,
        {{"x", x}, {"weight", weight}, {"bias", bias}, {"running_mean", running_mean}, {"running_var", running_var}},
        {{"use_input_stats", options.use_input_stats}, {"momentum", options.momentum}, {"eps", options.eps}});
    call.require_defined({"x"});
    require_input(name, x, options.eps);
    if (!(options.momentum >= 0 && options.momentum <= 1))
        throw ValueError(fmt::format("{}: expected a momentum in [0, 1], got {}", name, options.momentum));
    require_channels(name, x, "weight", weight);
    require_channels(name, x, "bias", bias);
    require_channels(name, x, "the running mean", running_mean, false);
    require_channels(name, x, "the running variance", running_var, false);
    if (!options.use_input_stats) {
        if (!running_mean.defined() || !running_var.defined())
            throw ValueError(
                "instance_norm: expected running statistics where use_input_stats is not set, got an "
                "undefined tensor");
        return call.result(batch_norm(x, weight, bias, running_mean, running_var,
                                      {.training = false, .momentum = options.momentum, .eps = options.eps}));
    }
    if (elements_from(x.shape(), 2) == 1)
        throw ShapeError(fmt::format("{}: expected more than one element per channel in x (N, C, ...), got {}", name,
                                     x.shape().str()));
    // A checkpoint's recomputation does not update them again.
    if ((running_mean.defined() || running_var.defined()) && x.numel() > 0 && !detail::is_recomputing())
        update(x, running_mean, running_var, options.momentum);
    return call.result(normalise_rows(x, x.size(0) * x.size(1), weight, bias, options.eps));
}

Tensor local_response_norm(const Tensor& x, std::int64_t size, double alpha, double beta, double k) {
    const FunctionCall call("local_response_norm", {{"x", x}},
                            {{"size", size}, {"alpha", alpha}, {"beta", beta}, {"k", k}});
    call.require_defined({"x"});
    ops::require_real("local_response_norm", "x", x.dtype());
    if (x.rank() < 2)
        throw ShapeError(
            fmt::format("local_response_norm: expected at least 2 axes (N, C, ...) as x, got {}", x.shape().str()));
    if (size < 1) throw ValueError(fmt::format("local_response_norm: expected a size of at least 1, got {}", size));
    const std::int64_t channels = x.size(1);
    const Tensor upcast_x = upcast(x);
    Dims before, after;
    for (int axis = 0; axis < x.rank(); ++axis) {
        before.push_back(axis == 1 ? std::min(size / 2, channels) : 0);
        after.push_back(axis == 1 ? std::min((size - 1) / 2, channels) : 0);
    }
    // Channels beyond the ends are zeros.
    const Tensor squares = pad(square(upcast_x), before, after);
    const std::int64_t window = std::min(size, before[1] + after[1] + 1);
    Tensor sums = slice(squares, 1, 0, channels);
    for (std::int64_t i = 1; i < window; ++i) sums = sums + slice(squares, 1, i, i + channels);
    return call.result((upcast_x * pow(sums * (alpha / static_cast<double>(size)) + k, -beta)).to(x.dtype()));
}

Tensor normalize(const Tensor& x, double p, std::int64_t axis, double eps) {
    const FunctionCall call("normalize", {{"x", x}}, {{"p", p}, {"axis", axis}, {"eps", eps}});
    call.require_defined({"x"});
    ops::require_real("normalize", "x", x.dtype());
    if (!(eps >= 0)) throw ValueError(fmt::format("normalize: expected an eps of at least 0, got {}", eps));
    const bool scalar = detail::is_axis_of_scalar(x, axis);
    const std::int64_t along = detail::normalize_axis_of("normalize", x, axis);
    const Tensor upcast_x = scalar ? reshape(upcast(x), {1}) : upcast(x);
    const Tensor norms = norm(upcast_x, p, {along}, true);
    const Tensor y = upcast_x / clamp(norms, eps, std::numeric_limits<double>::infinity());
    return call.result(reshape(y, x.shape()).to(x.dtype()));
}

}  // namespace declivity
