// Layer 3, private. From indices to numbers of rows of a table.
#pragma once

#include <declivity/ops/shape.hpp>
#include <declivity/tensor/tensor.hpp>

namespace declivity::detail {

/// @throws TypeError unless the index is of integers; DeviceError unless it is where x is
void require_index(const char* function, const Tensor& index, const Tensor& x);

/// -1 where a place (i64) lies outside of [0, size), 0 elsewhere: `or` with a number gives it, or -1. By shifts, since
/// compilers make better vectors of these than of bools beside numbers of 64 bits.
Tensor out_of_range_mask(const Tensor& places, std::int64_t size);
/// Places that may count from the end, from the beginning.
Tensor from_front(const Tensor& places, std::int64_t size);

struct FlatIndices {
    /// Elements of a tensor as one long row: that of [i][index[i][j][k]][k] for axis 1 of three, or -1 where the index
    /// lies outside. @return (numel of index), i64
    static Tensor along(const Shape& shape, int axis, const Tensor& index);
    /// x as (outer, size, inner) around an axis, for indices as long as x along the others.
    static Tensor around(const Tensor& x, int axis);
    /// x as rows of what lies behind an axis: (outer * size, inner).
    static Tensor table(const Tensor& x, int axis);
    /// Of that table those of index (N) along the axis, or one outside: (outer * N), integers.
    static Tensor rows(const Shape& shape, int axis, const Tensor& index);
};

/// index (..., K) over the first K axes of a shape.
struct NdIndices {
    std::int64_t rows = 1, each = 1;  ///< the elements of the K axes, and those of the others
    Tensor numbers;
    Shape result;

    NdIndices(const char* function, const Shape& shape, const Tensor& index);
};

}  // namespace declivity::detail
