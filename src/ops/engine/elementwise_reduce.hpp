// Layer 2, private. Reductions fused with the chain of elementwise functions they read, whose results are never stored.
#pragma once

#include <optional>

#include <declivity/ops/reduce.hpp>

#include "expression.hpp"

namespace declivity::ops {

struct ElementwiseReduced {
    View parts;  // dense; `axes` are the axes still to be reduced, if any
    Dims axes;
    bool done = false;  // no axis is left, and a mean is divided
};

/// Returns whether elementwise_reduce() may be applicable to this shape.
bool may_reduce_rows(const Shape& shape, const Dims& axes, const Device& device);

/// Reduces an expression over views along `axes` by one kernel over its elements, and returns the partial results with
/// the remaining axes. Empty if the layout of the axes does not form rows to be reduced: the elements must be stored
/// first.
/// @param accumulate type of the sums
std::optional<ElementwiseReduced> elementwise_reduce(Reduce kind, const Expression& expression, const Dims& axes,
                                                     DType accumulate, const Device& device);

}  // namespace declivity::ops
