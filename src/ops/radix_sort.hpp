// Layer 2, private. Rows in order.
#pragma once

#include <declivity/ops/view.hpp>

namespace declivity::ops {

/// Whether radix_sort() takes rows of n elements, and pays where the first k are wanted.
bool radix_sort_is_profitable(const View& x, std::int64_t k);

/// values[row][i], places[row][i] = the i-th of x[row] (rows, n) in rising or falling order, stable, and where it
/// stood, for i < k. NaN counts as larger than all else. Dense; x of any type but f16 and bf16; values (rows, k) of its
/// type, places i64.
void radix_sort(const View& x, bool falling, const View& values, const View& places);

}  // namespace declivity::ops
