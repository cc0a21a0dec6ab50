// Layer 2, private. Sorts rows.
#pragma once

#include <declivity/ops/view.hpp>

namespace declivity::ops {

/// Returns whether radix_sort() supports rows of n elements, and is profitable if the first k are needed.
bool radix_sort_is_profitable(const View& x, std::int64_t k);

/// values[row][i], indices[row][i] = the i-th of x[row] (rows, n) in ascending or descending order, stable, and its
/// index, for i < k. NaN is ordered above all other values. Dense; x of any type but f16 and bf16; values (rows, k) of
/// its type, indices i64.
void radix_sort(const View& x, bool descending, const View& values, const View& indices);

}  // namespace declivity::ops
