#include <declivity/optim/radam.hpp>

#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

#include "formulas.hpp"

namespace declivity::optim {

namespace {

/// Length of the approximated simple moving average: r - 2 t beta^t / (1 - beta^t) with r = 2 / (1 - beta) - 1, a small
/// difference of large numbers. With k = -log(beta) and z = k t it equals coth(k / 2) - 2 / k + (2 / k) h(z), where
/// h(z) = 1 - z / (e^z - 1), for small z by its series.
Tensor length_of_average(const Update& x, double beta) {
    if (beta == 0) return 0 * x.step + 1;
    const double k = -std::log(beta), constant = 1 / std::tanh(k / 2) - 2 / k;
    const Tensor z = k * x.step, z2 = square(z);
    const Tensor series =
        z * 0.5 -
        z2 * (1.0 / 12 - z2 * (1.0 / 720 - z2 * (1.0 / 30240 - z2 * (1.0 / 1209600 - z2 * (1.0 / 47900160)))));
    const Tensor direct = 1 - z / (exp(minimum(z, 80.0)) - 1);
    return where(z < 0.25, series, direct) * (2 / k) + constant;
}

}  // namespace

RAdam::RAdam(const Parameters& parameters, const RAdamOptions& options) : Optimizer("RAdam") {
    add_group(parameters, options);
}

void RAdam::add_group(const Parameters& parameters, const RAdamOptions& options) {
    check_moments("RAdam", options.beta1, options.beta2, options.eps, options.weight_decay);
    add(parameters, options.lr, {"m", "v"});
    options_.push_back(options);
}

void RAdam::update(std::size_t group, Update& x) const {
    const RAdamOptions& options = options_[group];
    const Tensor g = gradient_of(x, options.decoupled_weight_decay ? 0 : options.weight_decay, options.maximize);
    Tensor &m = x["m"], &v = x["v"];
    m = options.beta1 * m + (1 - options.beta1) * g;
    v = options.beta2 * v + (1 - options.beta2) * square(g);
    const Tensor correction = bias_correction(x, options.beta2);
    const Tensor length = length_of_average(x, options.beta2);
    const double max_length = 2 / (1 - options.beta2) - 1;
    const Tensor rectified =
        sqrt((length - 4) * (length - 2) / length * (max_length / ((max_length - 4) * (max_length - 2)))) *
        sqrt(correction);
    const Tensor u = m / bias_correction(x, options.beta1);
    const Tensor adaptive = where(length > 5, rectified / (sqrt(v) + options.eps), 1.0);
    const Tensor decayed =
        options.decoupled_weight_decay ? x.parameter * (1 - x.lr * options.weight_decay) : x.parameter;
    x.parameter = decayed - x.lr * u * adaptive;
}

}  // namespace declivity::optim
