// Floor 3. Dropout.
#pragma once

#include <declivity/tensor/tensor.hpp>

namespace declivity {

/// Sets elements to 0 with this probability and divides the others by 1 - probability (Srivastava et al. 2014).
DECLIVITY_API Tensor dropout(const Tensor& x, double probability = 0.5);

}  // namespace declivity
