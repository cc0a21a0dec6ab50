// Layer 3. Tensors by name: what modules and optimizers are saved as.
#pragma once

#include <string>
#include <vector>

#include <declivity/tensor/tensor.hpp>

namespace declivity {

/// A tensor with the name under which a state_dict keeps it, such as "features.0.weight".
struct NamedTensor {
    std::string name;
    Tensor tensor;
};
using StateDict = std::vector<NamedTensor>;

/// Names in which a state that was loaded differs from what it was loaded into.
struct LoadedState {
    std::vector<std::string> missing;     ///< there is no value for these, which keep their own
    std::vector<std::string> unexpected;  ///< there is nothing of these names, whose values were left out
    [[nodiscard]] bool complete() const noexcept { return missing.empty() && unexpected.empty(); }
};

}  // namespace declivity
