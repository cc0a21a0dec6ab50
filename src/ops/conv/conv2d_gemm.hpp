// What the parts of the convolution as a matrix product share.
#pragma once

#include "conv2d_strategy.hpp"
#include "ops/support/vector_form.hpp"

namespace declivity::ops::gemm {

/// The tile for a product of so many rows and columns. A variant "8x3" names it instead.
RegisterTile choose_tile(Conv2dDirection direction, const VectorForm& form, std::int64_t rows, std::int64_t columns,
                         std::string_view variant);

/// Whether local memory holds the sums of a tile for each tap.
bool is_applicable_to_weights(const Conv2dProblem& problem, const Device& device);
void backward_weights(const Conv2dProblem& problem, const Conv2dOperands& operands, std::string_view variant);

}  // namespace declivity::ops::gemm
