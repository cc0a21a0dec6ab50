// Layer 6, private. Code shared by the formulas of several optimizers.
#pragma once

#include <cmath>

#include <declivity/functions/functions.hpp>
#include <declivity/optim/optimizer.hpp>
#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

namespace declivity::optim {

/// @throws ValueError for settings out of range
inline void check_moments(std::string_view name, double beta1, double beta2, double eps, double weight_decay) {
    if (!(beta1 >= 0 && beta1 < 1) || !(beta2 >= 0 && beta2 < 1) || !(eps >= 0) || !(weight_decay >= 0))
        throw ValueError(
            fmt::format("{}: expected betas in [0, 1), eps and weight decay of at least 0, got {}, {}, {}, {}", name,
                        beta1, beta2, eps, weight_decay));
}

/// The gradient, including L2 weight decay.
inline Tensor gradient_of(const Update& x, double weight_decay, bool maximize) {
    Tensor g = maximize ? -x.gradient : x.gradient;
    return weight_decay != 0 ? g + weight_decay * x.parameter : g;
}

/// 1 - beta^t, computed as 1 - e^z = -2 y / (1 - y) with y = tanh(z / 2): in f32 the direct difference would lose half
/// its digits in the first steps.
inline Tensor bias_correction(const Update& x, double beta) {
    if (beta == 0) return 0 * x.step + 1;
    const Tensor y = tanh(x.step * (0.5 * std::log(beta)));
    return -2 * y / (1 - y);
}

}  // namespace declivity::optim
