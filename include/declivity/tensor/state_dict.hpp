// Floor 3. Tensors by name: what modules and optimizers are saved as.
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

}  // namespace declivity
