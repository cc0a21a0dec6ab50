// Layer 2. Gathering elements along an axis, and rows of a table.
#pragma once

#include <string_view>

#include <declivity/ops/view.hpp>

namespace declivity::ops {

/// @addtogroup ops
/// @{

/// out[o][i][k] = x[o][indices[o][i][k]][k]: torch.gather along the middle axis. x (outer, size, inner), any type;
/// indices (outer, taken, inner), i32 or i64; out (outer, taken, inner); or all without the inner axis. An index
/// outside of [0, size) gives `fill_value`, or 0 for integers. Dense, on one device.
/// @throws ShapeError, TypeError, DeviceError naming `function`
DECLIVITY_API void gather(std::string_view function, const View& x, const View& indices, const View& out,
                          double fill_value = 0);

/// out[i] = table[indices[i]], rows of D elements: table (V, D), any type; indices (N), i32 or i64; out (N, D). An
/// index outside of [0, V) gives elements `fill_value`, or 0 for types that are not floating.
DECLIVITY_API void gather_rows(std::string_view function, const View& table, const View& indices, const View& out,
                               double fill_value);

/// @}

}  // namespace declivity::ops
