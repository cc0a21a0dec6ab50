// Layer 2, private. Rows along one axis of a dense view.
#pragma once

#include <declivity/ops/view.hpp>

namespace declivity::ops {

/// Decomposition along an axis: element (o, c, k) of the view is at offset (o * n + c) * inner + k; c is the index on
/// the axis.
struct AxisRows {
    std::int64_t outer = 1, n = 1, inner = 1;

    AxisRows(const Shape& shape, int axis) : n(shape[axis]) {
        for (int i = 0; i < axis; ++i) outer *= shape[i];
        for (int i = axis + 1; i < shape.rank(); ++i) inner *= shape[i];
    }
    [[nodiscard]] std::int64_t rows() const { return outer * inner; }
};

}  // namespace declivity::ops
