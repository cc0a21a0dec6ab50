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
    const RMSpropOptions& with = options_[group];
    const Tensor g = gradient_of(x, with.weight_decay, with.maximize);
    Tensor& v = x["v"];
    v = with.alpha * v + (1 - with.alpha) * square(g);
    Tensor mean_square = v;
    if (with.centered) {
        x["a"] = with.alpha * x["a"] + (1 - with.alpha) * g;
        mean_square = v - square(x["a"]);
    }
    Tensor u = g / (sqrt(mean_square) + with.eps);
    if (with.momentum != 0) u = x["m"] = with.momentum * x["m"] + u;
    x.parameter = x.parameter - x.lr * u;
}

}  // namespace declivity::optim
