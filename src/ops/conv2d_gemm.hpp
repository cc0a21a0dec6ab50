// What the parts of the convolution as a matrix product share.
#pragma once

#include "conv2d_strategy.hpp"
#include "vector_form.hpp"

namespace declivity::ops::gemm {

/// The tile for a product of so many rows and columns. A variant "8x3" names it instead. `narrow_ends`: see cheapest_tile.
RegisterTile choose_tile(const VectorForm& form, std::int64_t rows, std::int64_t columns, std::string_view variant, bool narrow_ends = false);

void backward_weights(const Conv2dProblem& problem, const Conv2dOperands& operands, std::string_view variant);

}  // namespace declivity::ops::gemm
