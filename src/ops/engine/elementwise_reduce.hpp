// Layer 2, private. Reductions that end a chain of elementwise functions, so that what they read is never stored.
#pragma once

#include <optional>

#include <declivity/ops/reduce.hpp>

#include "expression.hpp"

namespace declivity::ops {

struct ElementwiseReduced {
    View parts;  // dense; the reduced axes that are left, if any, are `axes`
    Dims axes;
    bool done = false;  // no axis is left, and a mean is divided
};

/// Whether elementwise_reduce() may do anything for this shape.
bool may_reduce_rows(const Shape& shape, const Dims& axes, const Device& device);

/// What is left to do of reducing an expression over views along `axes`, after one kernel went over its elements. None
/// where its axes do not lie so that rows of elements are reduced: then the elements are to be stored first.
/// @param accumulate type of the sums
std::optional<ElementwiseReduced> elementwise_reduce(Reduce kind, const Expression& expression, const Dims& axes,
                                                     DType accumulate, const Device& device);

}  // namespace declivity::ops
