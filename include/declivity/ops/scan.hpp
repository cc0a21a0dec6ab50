// Layer 2. Scans (cumulative sums, products and extremes) along an axis.
#pragma once

#include <cstdint>
#include <string_view>

#include <declivity/ops/view.hpp>

namespace declivity::ops {

/// @addtogroup ops
/// @{

enum class Scan : std::uint8_t {
    sum,
    product,
    log_sum_exp,  ///< floating types only
    largest,      ///< NaN propagates; ties go to the last
    smallest,
};

/// out[o][j][i] = the reduction of x[o][0][i] ... x[o][j][i]: x (outer, n, inner), dense, any type but bool; out of its
/// shape and type. Always divided in the same way on the same device.
/// @param indices for largest and smallest: positions along the axis, of the shape of x, i64; otherwise nullptr
/// @throws ShapeError, TypeError, DeviceError naming `function`
DECLIVITY_API void scan(std::string_view function, Scan kind, const View& x, const View& out,
                        const View* indices = nullptr);

/// @}

}  // namespace declivity::ops
