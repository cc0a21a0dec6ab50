#include <declivity/optim/rmsprop.hpp>

#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

#include "formulas.hpp"

namespace declivity::optim {

RMSprop::RMSprop(const Parameters& parameters, const RMSpropOptions& options) : Optimizer("RMSprop") {
    add_group(parameters, options);
}

void RMSprop::add_group(const Parameters& parameters, const RMSpropOptions& options) {
    const auto& [lr, alpha, eps, weight_decay, momentum, centered, maximize] = options;
    if (!(alpha >= 0 && alpha <= 1) || !(eps >= 0) || !(weight_decay >= 0) || !(momentum >= 0))
        throw ValueError(
            fmt::format("RMSprop: expected alpha in [0, 1], eps, weight decay and momentum of at least 0, got {}, {}, "
                        "{}, {}",
                        alpha, eps, weight_decay, momentum));
    std::vector<Slot> slots{"v"};
    if (centered) slots.emplace_back("a");
    if (momentum != 0) slots.emplace_back("m");
    add(parameters, lr, slots);
    options_.push_back(options);
}

void RMSprop::update(std::size_t group, Update& x) const {
    const RMSpropOptions& options = options_[group];
    const Tensor g = gradient_of(x, options.weight_decay, options.maximize);
    Tensor& v = x["v"];
    v = options.alpha * v + (1 - options.alpha) * square(g);
    Tensor mean_square = v;
    if (options.centered) {
        x["a"] = options.alpha * x["a"] + (1 - options.alpha) * g;
        mean_square = v - square(x["a"]);
    }
    Tensor u = g / (sqrt(mean_square) + options.eps);
    if (options.momentum != 0) u = x["m"] = options.momentum * x["m"] + u;
    x.parameter = x.parameter - x.lr * u;
}

}  // namespace declivity::optim
