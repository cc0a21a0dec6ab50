// Layer 5, private. Dropout with a given call of the random number generator.
#pragma once

#include <declivity/ops/random.hpp>
#include <declivity/tensor/tensor.hpp>

namespace declivity::detail {

/// x / (1 - probability), or 0 where random number i of the call, of x's compute type, is below `probability`.
Tensor apply_dropout(const Tensor& x, double probability, const ops::RandomCall& random);

}  // namespace declivity::detail
