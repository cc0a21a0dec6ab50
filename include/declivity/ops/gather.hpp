// Layer 2. Elements by their places along an axis, and rows of a table by their numbers.
#pragma once

#include <string_view>

#include <declivity/ops/view.hpp>

namespace declivity::ops {

/// out[o][i][k] = x[o][places[o][i][k]][k]: along the middle axis, as torch.gather. x (outer, size, inner), of any
/// type; places (outer, taken, inner), i32 or i64; out (outer, taken, inner); or all without the inner axis. A place
/// outside of [0, size) gives `missing`, or 0 in tensors of integers. Dense, on one device.
/// @throws ShapeError, TypeError, DeviceError naming `function`
DECLIVITY_API void gather(std::string_view function, const View& x, const View& places, const View& out,
                          double missing = 0);

/// out[i] = table[numbers[i]], rows of D elements: table (V, D), of any type; numbers (N), i32 or i64; out (N, D). A
/// number outside of [0, V) gives elements that are `missing`, 0 where they are no floating numbers.
DECLIVITY_API void gather_rows(std::string_view function, const View& table, const View& numbers, const View& out,
                               double missing);

}  // namespace declivity::ops
