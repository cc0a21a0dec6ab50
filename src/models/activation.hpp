// Layer 7, private. Activations by their names in config.json.
#pragma once

#include <string>

#include <declivity/tensor/tensor.hpp>

namespace declivity::models {

using Activation = Tensor (*)(Tensor x);

/// Null for an unknown name.
Activation find_activation(const std::string& name);
/// @throws ValueError naming `field`
Activation activation_of(const char* field, const std::string& name);

}  // namespace declivity::models
