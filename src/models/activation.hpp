// Layer 5, private. Activations by the names that config.json has for them.
#pragma once

#include <string>

#include <declivity/tensor/tensor.hpp>

namespace declivity::models {

using Activation = Tensor (*)(Tensor x);

/// Null for a name that there is not.
Activation find_activation(const std::string& name);
/// @throws ValueError naming `field`
Activation activation_of(const char* field, const std::string& name);

}  // namespace declivity::models
