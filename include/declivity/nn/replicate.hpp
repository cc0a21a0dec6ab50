// Layer 4. Copies of a network on several devices.
#pragma once

#include <concepts>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include <declivity/nn/module.hpp>

namespace declivity::nn {

/// Gives `replica` the parameters and buffers of `model`, copied to a device: their values, types, and whether they
/// require a gradient; and the mode, train() or eval(), of each module in it. Tensors that are tied in it stay tied.
/// @throws ValueError or ShapeError, naming a parameter, buffer or module that only one of them has, or that differs
DECLIVITY_API void copy_to_device(const Module& model, Module& replica, const Device& device);

/// A copy of `model` for each of the devices, on it. Modules cannot be copied, so `build` builds another one each time:
///
///     const auto build = [] { return Net(28, 10); };
///     Net model = build();
///     const auto replicas = nn::replicate(build, model, devices);  // a std::vector<std::unique_ptr<Net>>
///
/// They share nothing with the model, nor with each other. Weights that `build` draws move the random numbers of the
/// default device on.
/// @param build gives a module, or a std::unique_ptr to one that cannot be moved; with the parametrisations of `model`
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

}  // namespace declivity::nn
