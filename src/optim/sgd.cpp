#include <declivity/optim/sgd.hpp>

#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

namespace declivity::optim {

SGD::SGD(const std::vector<Tensor>& parameters, const SGDOptions& options) { add_group(parameters, options); }

void SGD::add_group(const std::vector<Tensor>& parameters, const SGDOptions& options) {
    const auto& [lr, momentum, dampening, weight_decay, nesterov] = options;
    if (!(momentum >= 0 && momentum <= 1) || !(dampening >= 0 && dampening <= 1) || !(weight_decay >= 0))
        throw ValueError(
            fmt::format("SGD: wants momentum and dampening in [0, 1] and a weight decay of at least 0, got {}, {}, {}",
                        momentum, dampening, weight_decay));
    if (nesterov && (momentum == 0 || dampening != 0))
        throw ValueError(
            fmt::format("SGD: nesterov wants a momentum above 0 and no dampening, got {} and {}", momentum, dampening));
    add(parameters, lr, momentum != 0 ? std::vector<std::string>{"m"} : std::vector<std::string>{});
    settings_.push_back(
        {{.momentum = momentum, .dampening = dampening, .weight_decay = weight_decay, .nesterov = nesterov},
         ops::MultiTensor(momentum != 0 ? 3 : 2)});
}

void SGD::update(std::size_t group, const std::vector<std::vector<ops::View>>& roles, const ops::View& progress,
                 const ops::View& guard) {
    Settings& settings = settings_[group];
    const ops::ReleaseTensors release{settings.tensors};  // the gradients
    settings.tensors.set(roles);
    ops::sgd_step(settings.tensors, progress, guard, settings.parameters);
}

}  // namespace declivity::optim
