#include <declivity/optim/adam.hpp>

#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

namespace declivity::optim {

Adam::Adam(const std::vector<Tensor>& parameters, const AdamOptions& options) { add_group(parameters, options); }

void Adam::add_group(const std::vector<Tensor>& parameters, const AdamOptions& options) {
    add_group_of("Adam", parameters, options.lr,
                 {.beta1 = options.beta1,
                  .beta2 = options.beta2,
                  .epsilon = options.epsilon,
                  .weight_decay = options.weight_decay});
}

AdamW::AdamW(const std::vector<Tensor>& parameters, const AdamWOptions& options) { add_group(parameters, options); }

void AdamW::add_group(const std::vector<Tensor>& parameters, const AdamWOptions& options) {
    add_group_of("AdamW", parameters, options.lr,
                 {.beta1 = options.beta1,
                  .beta2 = options.beta2,
                  .epsilon = options.epsilon,
                  .weight_decay = options.weight_decay,
                  .decoupled = true});
}

void Adam::add_group_of(const char* name, const std::vector<Tensor>& parameters, double lr,
                        const ops::AdamParameters& settings) {
    const double beta1 = settings.beta1, beta2 = settings.beta2;
    // A beta of 0 would need the logarithm of 0 in the kernel.
    if (!(beta1 > 0 && beta1 < 1) || !(beta2 > 0 && beta2 < 1) || !(settings.epsilon >= 0) ||
        !(settings.weight_decay >= 0))
        throw ValueError(
            fmt::format("{}: wants betas in (0, 1), epsilon and weight decay of at least 0, got {}, {}, {}, {}", name,
                        beta1, beta2, settings.epsilon, settings.weight_decay));
    add(parameters, lr, {"m", "v"});
    settings_.push_back({settings, ops::MultiTensor(4)});
}

void Adam::update(std::size_t group, const std::vector<std::vector<ops::View>>& roles, const ops::View& progress,
                  const ops::View& guard) {
    Settings& settings = settings_[group];
    const ops::ReleaseTensors release{settings.tensors};  // the gradients
    settings.tensors.set(roles);
    ops::adam_step(settings.tensors, progress, guard, settings.parameters);
}

}  // namespace declivity::optim
