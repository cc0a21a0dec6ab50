// Layer 2. Binary search in sorted rows.
#pragma once

#include <string_view>

#include <declivity/ops/view.hpp>

namespace declivity::ops {

/// @addtogroup ops
/// @{

/// out[row][i] = first position in sorted[row] whose element is not less than values[row][i] (`right`: greater than).
/// sorted (rows, n), ascending, or (1, n) for all rows; values (rows, taken) of its type, any but f16 and bf16; out
/// (rows, taken), i64. Dense. NaN counts as the largest.
/// @throws ShapeError, TypeError, DeviceError naming `function`
DECLIVITY_API void search(std::string_view function, const View& sorted, const View& values, bool right,
                          const View& out);

/// @}

}  // namespace declivity::ops
