#include <declivity/optim/adam.hpp>

#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

namespace declivity::optim {

Adam::Adam(const std::vector<Tensor>& parameters, const AdamOptions& options) : Adam(parameters, options, false) {}

Adam::Adam(const std::vector<Tensor>& parameters, const AdamOptions& options, bool decoupled) : decoupled_(decoupled) {
    add_group(parameters, options);
}

void Adam::add_group(const std::vector<Tensor>& parameters, const AdamOptions& options) {
    const auto& [lr, beta1, beta2, epsilon, weight_decay] = options;
    // A beta of 0 would need the logarithm of 0 in the kernel.
    if (!(beta1 > 0 && beta1 < 1) || !(beta2 > 0 && beta2 < 1) || !(epsilon >= 0) || !(weight_decay >= 0))
        throw ValueError(fmt::format("Adam: wants betas in (0, 1), epsilon and weight decay of at least 0, got {}, {}, {}, {}", beta1, beta2,
                                     epsilon, weight_decay));
    add(parameters, lr, {"m", "v"});
    settings_.push_back({{.beta1 = beta1, .beta2 = beta2, .epsilon = epsilon, .weight_decay = weight_decay, .decoupled = decoupled_}, ops::MultiTensor(4)});
}

void Adam::update(std::size_t group, const std::vector<std::vector<ops::View>>& roles, const ops::View& progress, const ops::View& guard) {
    Settings& settings = settings_[group];
    const ops::ReleaseTensors release{settings.tensors};  // the gradients
    settings.tensors.set(roles);
    ops::adam_step(settings.tensors, progress, guard, settings.parameters);
}

}  // namespace declivity::optim
