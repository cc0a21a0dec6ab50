// Layer 6. Replicas of a model on several devices.
#pragma once

#include <concepts>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include <declivity/nn/module.hpp>

namespace declivity::nn {

/// @addtogroup nn_module
/// @{

/// Copies the parameters and buffers of `model` to `replica` on a device: values, types, and requires_grad; and the
/// mode, train() or eval(), of each module. Tied tensors stay tied.
/// @throws ValueError or ShapeError, naming a parameter, buffer or module that exists in only one of them, or that
/// differs
DECLIVITY_API void copy_to_device(const Module& model, Module& replica, const Device& device);

/// Creates a replica of `model` on each of the devices. Modules cannot be copied, so `build` constructs each replica:
///
///     const auto build = [] { return Net(28, 10); };
///     Net model = build();
///     const auto replicas = nn::replicate(build, model, devices);  // a std::vector<std::unique_ptr<Net>>
///
/// Replicas share no memory with the model or with each other. Random initialisation in `build` advances the generator
/// of the default device.
/// @param build returns a module, or a std::unique_ptr to one that cannot be moved; with the parametrizations of
/// `model`
template <std::invocable Build>
auto replicate(Build build, const Module& model, const std::vector<Device>& devices) {
    const auto build_one = [&] {
        using Built = std::invoke_result_t<Build&>;
        if constexpr (std::is_base_of_v<Module, Built>) return std::make_unique<Built>(build());
        else return build();
    };
    std::vector<decltype(build_one())> replicas;
    for (const Device& device : devices) {
        replicas.push_back(build_one());
        copy_to_device(model, *replicas.back(), device);
    }
    return replicas;
}

/// @}

}  // namespace declivity::nn
