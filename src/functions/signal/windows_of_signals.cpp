// Window functions of signals, on the device.
#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>

#include <declivity/functions/functions.hpp>
#include <declivity/functions/signal.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/function_call.hpp>
#include <fmt/format.h>

namespace declivity {
namespace {

/// formula(i / n) of all samples.
Tensor window(const char* name, std::int64_t length, bool periodic, const TensorOptions& options,
              const std::function<Tensor(const Tensor&)>& formula) {
    if (length < 0) throw ValueError(fmt::format("{}: expected a length of at least 0, got {}", name, length));
    ops::require_real(name, "dtype", options.dtype);
    if (length <= 1) return ones({length}, options);
    const DType real = compute_type(options.dtype);
    const Tensor i = arange(0, length, 1, {real, options.device});
    return formula(i / static_cast<double>(periodic ? length : length - 1)).to(options.dtype);
}

Tensor cosine(const Tensor& turns, double times = 1) { return cos(turns * (2 * std::numbers::pi * times)); }

/// exp(-x) I0(x), for x up to `max_x`: the mean of exp(x (cos t - 1)) over a circle, which converges faster than any
/// power of the number of points.
Tensor scaled_bessel(const Tensor& x, double max_x) {
    const auto points = static_cast<std::int64_t>(32 + std::ceil(8 * std::sqrt(max_x)));
    const Tensor t =
        (arange(0, points, 1, {x.dtype(), x.device()}) + 0.5) * (std::numbers::pi / (2 * static_cast<double>(points)));
    const Tensor sines = square(sin(t));
    return mean(exp(unsqueeze(x, -1) * sines * -2.0), {-1});
}

}  // namespace

Tensor hann_window(std::int64_t length, bool periodic, const TensorOptions& options) {
    const FunctionCall call("hann_window", {}, {{"length", length}, {"periodic", periodic}});
    return call.result(window("hann_window", length, periodic, options,
                              [](const Tensor& turns) { return 0.5 - 0.5 * cosine(turns); }));
}

Tensor hamming_window(std::int64_t length, bool periodic, double alpha, double beta, const TensorOptions& options) {
    const FunctionCall call("hamming_window", {},
                            {{"length", length}, {"periodic", periodic}, {"alpha", alpha}, {"beta", beta}});
    return call.result(window("hamming_window", length, periodic, options,
                              [&](const Tensor& turns) { return alpha - beta * cosine(turns); }));
}

Tensor blackman_window(std::int64_t length, bool periodic, const TensorOptions& options) {
    const FunctionCall call("blackman_window", {}, {{"length", length}, {"periodic", periodic}});
    return call.result(window("blackman_window", length, periodic, options, [](const Tensor& turns) {
        return 0.42 - 0.5 * cosine(turns) + 0.08 * cosine(turns, 2);
    }));
}

Tensor bartlett_window(std::int64_t length, bool periodic, const TensorOptions& options) {
    const FunctionCall call("bartlett_window", {}, {{"length", length}, {"periodic", periodic}});
    return call.result(window("bartlett_window", length, periodic, options,
                              [](const Tensor& turns) { return 1 - abs(2 * turns - 1); }));
}

Tensor kaiser_window(std::int64_t length, bool periodic, double beta, const TensorOptions& options) {
    const FunctionCall call("kaiser_window", {}, {{"length", length}, {"periodic", periodic}, {"beta", beta}});
    if (!(beta >= 0) || !std::isfinite(beta))
        throw ValueError(fmt::format("kaiser_window: expected a beta of at least 0, got {}", beta));
    return call.result(window("kaiser_window", length, periodic, options, [&](const Tensor& turns) {
        const Tensor x = beta * sqrt(maximum(1 - square(2 * turns - 1), 0));
        const Tensor middle = full({1}, beta, {turns.dtype(), turns.device()});
        return exp(x - beta) * scaled_bessel(x, beta) / scaled_bessel(middle, beta);
    }));
}

}  // namespace declivity
