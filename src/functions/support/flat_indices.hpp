// Layer 5, private. Conversion of indices to row indices of a table.
#pragma once

#include <declivity/ops/shape.hpp>
#include <declivity/tensor/tensor.hpp>

namespace declivity::detail {

/// @throws TypeError unless the index is of an integer type; DeviceError unless it is on x's device
void require_index(const char* function, const Tensor& index, const Tensor& x);

/// -1 where an index (i64) is outside of [0, size), 0 otherwise: `or` with an index gives the index, or -1. By shifts,
/// which compilers vectorise better than bools next to 64-bit integers.
Tensor out_of_range_mask(const Tensor& index, std::int64_t size);
/// Converts negative indices, which count from the end.
Tensor wrap_negative(const Tensor& index, std::int64_t size);

struct FlatIndices {
    /// Flat indices of elements: that of [i][index[i][j][k]][k] for axis 1 of three, or -1 where the index is out of
    /// range. @return (numel of index), i64
    static Tensor along(const Shape& shape, int axis, const Tensor& index);
    /// x reshaped to (outer, size, inner) around an axis, for indices whose other axes have the sizes of x's.
    static Tensor around(const Tensor& x, int axis);
    /// x as a table of the slices behind an axis: (outer * size, inner).
    static Tensor table(const Tensor& x, int axis);
    /// Row indices in that table for index (N) along the axis, out of range where the index is: (outer * N), integers.
    static Tensor rows(const Shape& shape, int axis, const Tensor& index);
};

/// index (..., K) over the first K axes of a shape.
struct NdIndices {
    std::int64_t rows = 1, row_size = 1;  ///< number of elements of the K axes, and of the other axes
    Tensor row_indices;
    Shape result_shape;

    NdIndices(const char* function, const Shape& shape, const Tensor& index);
};

}  // namespace declivity::detail
