// What the parts of the convolution as a matrix product share.
#pragma once

#include "conv2d_strategy.hpp"
#include "vector_form.hpp"

namespace declivity::ops::gemm {

/// Rows and vectors of columns of a register tile.
struct TileSize {
    std::int64_t rows, vectors;
};

/// The tile of least cost: multiply-adds of vectors, two at a time, and loads of numbers and vectors, two at a time; what a
/// tile covers beyond the edges is lost.
/// A variant "8x3" names the tile instead.
TileSize choose_tile(const VectorForm& form, std::int64_t rows, std::int64_t columns, std::string_view variant);

void backward_weights(const Conv2dProblem& problem, const Conv2dOperands& operands, std::string_view variant);

}  // namespace declivity::ops::gemm
