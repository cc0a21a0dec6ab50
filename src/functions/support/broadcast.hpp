// Layer 5, private. Gradient of a broadcast.
#pragma once

#include <declivity/functions/functions.hpp>

namespace declivity::detail {

/// Sums the gradient over the axes along which `shape` was broadcast.
inline Tensor sum_to(const Tensor& gradient, const Shape& shape) {
    if (gradient.shape() == shape) return gradient;
    const int added = gradient.rank() - shape.rank();
    Dims axes;
    for (int axis = 0; axis < gradient.rank(); ++axis)
        if (axis < added || (shape[axis - added] == 1 && gradient.shape()[axis] != 1)) axes.push_back(axis);
    return reshape(sum(gradient, axes, true), shape);
}

}  // namespace declivity::detail
