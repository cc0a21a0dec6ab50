// Layer 3. State dicts: named tensors, in which modules and optimizers are saved.
#pragma once

#include <string>
#include <vector>

#include <declivity/tensor/tensor.hpp>

namespace declivity {

/// @addtogroup tensor
/// @{

/// A tensor with its name in a state dict, such as "features.0.weight".
struct NamedTensor {
    std::string name;
    Tensor tensor;
};
using StateDict = std::vector<NamedTensor>;

/// Keys in which a loaded state differs from its target.
struct LoadedState {
    std::vector<std::string> missing;     ///< keys without a value in the state; their tensors are unchanged
    std::vector<std::string> unexpected;  ///< keys of the state that the target does not have; ignored
    [[nodiscard]] bool complete() const noexcept { return missing.empty() && unexpected.empty(); }
};

/// @}

}  // namespace declivity
