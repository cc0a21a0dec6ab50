#include <declivity/optim/adam.hpp>

#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

#include "formulas.hpp"

namespace declivity::optim {

Adam::Adam(const Parameters& parameters, const AdamOptions& options) : Adam("Adam") { add_group(parameters, options); }

void Adam::add_group(const Parameters& parameters, const AdamOptions& options) {
    add_group_of("Adam", parameters, options, false);
}

AdamW::AdamW(const Parameters& parameters, const AdamWOptions& options) : Adam("AdamW") {
    add_group(parameters, options);
}

void AdamW::add_group(const Parameters& parameters, const AdamWOptions& options) {
    const auto& [lr, beta1, beta2, eps, weight_decay, amsgrad, maximize] = options;
    add_group_of("AdamW", parameters, {lr, beta1, beta2, eps, weight_decay, amsgrad, maximize}, true);
}

void Adam::add_group_of(std::string_view name, const Parameters& parameters, const AdamOptions& options,
                        bool decoupled) {
    check_moments(name, options.beta1, options.beta2, options.eps, options.weight_decay);
    add(parameters, options.lr, options.amsgrad ? std::vector<Slot>{"m", "v", "v_max"} : std::vector<Slot>{"m", "v"});
    settings_.push_back({options, decoupled});
}

void Adam::update(std::size_t group, Update& x) const {
    const auto& [options, decoupled] = settings_[group];
    const Tensor g = gradient_of(x, decoupled ? 0 : options.weight_decay, options.maximize);
    Tensor &m = x["m"], &v = x["v"];
    m = options.beta1 * m + (1 - options.beta1) * g;
    v = options.beta2 * v + (1 - options.beta2) * square(g);
    if (options.amsgrad) x["v_max"] = maximum(x["v_max"], v);
    const Tensor root = 1 / sqrt(bias_correction(x, options.beta2)),
                 step_size = x.lr / bias_correction(x, options.beta1);
    const Tensor decayed = decoupled ? x.parameter * (1 - x.lr * options.weight_decay) : x.parameter;
    x.parameter = decayed - step_size * m / (sqrt(options.amsgrad ? x["v_max"] : v) * root + options.eps);
}

}  // namespace declivity::optim
