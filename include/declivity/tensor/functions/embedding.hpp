// Floor 3. Rows of a table by their numbers.
#pragma once

#include <declivity/tensor/tensor.hpp>

namespace declivity {

/// Rows of weight (V, D) by their numbers: indices of any shape S, i32 or i64, each in [0, V), give (S..., D). A number
/// outside gives a row of NaN. The gradient is the sum of those of equal numbers, the same to the bit in every run.
DECLIVITY_API Tensor embedding(const Tensor& indices, const Tensor& weight);

}  // namespace declivity
