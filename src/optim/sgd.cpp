#include <declivity/optim/sgd.hpp>

#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

#include "formulas.hpp"

namespace declivity::optim {

SGD::SGD(const Parameters& parameters, const SGDOptions& options) : Optimizer("SGD") { add_group(parameters, options); }

void SGD::add_group(const Parameters& parameters, const SGDOptions& options) {
    const auto& [lr, momentum, dampening, weight_decay, nesterov, maximize] = options;
    if (!(momentum >= 0 && momentum <= 1) || !(dampening >= 0 && dampening <= 1) || !(weight_decay >= 0))
        throw ValueError(fmt::format(
            "SGD: expected momentum and dampening in [0, 1] and a weight decay of at least 0, got {}, {}, {}", momentum,
            dampening, weight_decay));
    if (nesterov && (momentum == 0 || dampening != 0))
        throw ValueError(fmt::format("SGD: expected a momentum above 0 and no dampening with nesterov, got {} and {}",
                                     momentum, dampening));
    add(parameters, lr, momentum != 0 ? std::vector<Slot>{"m"} : std::vector<Slot>{});
    options_.push_back(options);
}

void SGD::update(std::size_t group, Update& x) const {
    const SGDOptions& options = options_[group];
    Tensor g = gradient_of(x, options.weight_decay, options.maximize);
    if (options.momentum != 0) {
        Tensor& m = x["m"];
        m = where(x.step <= 1, g, options.momentum * m + (1 - options.dampening) * g);
        g = options.nesterov ? g + options.momentum * m : m;
    }
    x.parameter = x.parameter - x.lr * g;
}

}  // namespace declivity::optim
