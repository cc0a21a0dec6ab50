#include <declivity/optim/adadelta.hpp>

#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

#include "formulas.hpp"

namespace declivity::optim {

Adadelta::Adadelta(const Parameters& parameters, const AdadeltaOptions& options) : Optimizer("Adadelta") {
    add_group(parameters, options);
}

void Adadelta::add_group(const Parameters& parameters, const AdadeltaOptions& options) {
    const auto& [lr, rho, eps, weight_decay, maximize] = options;
    if (!(rho >= 0 && rho <= 1) || !(eps >= 0) || !(weight_decay >= 0))
        throw ValueError(
            fmt::format("Adadelta: expected rho in [0, 1], eps and weight decay of at least 0, got {}, {}, {}", rho,
                        eps, weight_decay));
    add(parameters, lr, {"v", "d"});
    options_.push_back(options);
}

void Adadelta::update(std::size_t group, Update& x) const {
    const AdadeltaOptions& options = options_[group];
    const Tensor g = gradient_of(x, options.weight_decay, options.maximize);
    Tensor &v = x["v"], &d = x["d"];
    v = options.rho * v + (1 - options.rho) * square(g);
    const Tensor u = sqrt(d + options.eps) / sqrt(v + options.eps) * g;
    d = options.rho * d + (1 - options.rho) * square(u);
    x.parameter = x.parameter - x.lr * u;
}

}  // namespace declivity::optim
