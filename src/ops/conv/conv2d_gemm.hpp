// Declarations shared by the parts of the convolution as a matrix product.
#pragma once

#include "conv2d_strategy.hpp"
#include "ops/support/vector_form.hpp"

namespace declivity::ops::gemm {

/// Returns the tile for a product of this many rows and columns. A variant "8x3" names it instead.
RegisterTile choose_tile(Conv2dDirection direction, const VectorForm& form, std::int64_t rows, std::int64_t columns,
                         std::string_view variant);

/// Returns whether the sums of a tile for each tap fit into local memory.
bool is_applicable_to_weights(const Conv2dProblem& problem, const Device& device);
void backward_weights(const Conv2dProblem& problem, const Conv2dOperands& operands, std::string_view variant);

}  // namespace declivity::ops::gemm
