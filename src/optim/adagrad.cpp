#include <declivity/optim/adagrad.hpp>

#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

#include "formulas.hpp"

namespace declivity::optim {

Adagrad::Adagrad(const Parameters& parameters, const AdagradOptions& options) : Optimizer("Adagrad") {
    add_group(parameters, options);
}

void Adagrad::add_group(const Parameters& parameters, const AdagradOptions& options) {
    const auto& [lr, lr_decay, weight_decay, initial, eps, maximize] = options;
    if (!(lr_decay >= 0) || !(weight_decay >= 0) || !(initial >= 0) || !(eps >= 0))
        throw ValueError(
            fmt::format("Adagrad: expected lr_decay, weight decay, initial_accumulator_value and eps of at least 0, "
                        "got {}, {}, {}, {}",
                        lr_decay, weight_decay, initial, eps));
    add(parameters, lr, {{"s", initial}});
    options_.push_back(options);
}

void Adagrad::update(std::size_t group, Update& x) const {
    const AdagradOptions& options = options_[group];
    const Tensor g = gradient_of(x, options.weight_decay, options.maximize);
    x["s"] = x["s"] + square(g);
    const Tensor rate = x.lr / ((x.step - 1) * options.lr_decay + 1);
    x.parameter = x.parameter - rate * g / (sqrt(x["s"]) + options.eps);
}

}  // namespace declivity::optim
