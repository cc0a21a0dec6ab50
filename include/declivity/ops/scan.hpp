// Layer 2. Sums, products and extremes of all elements up to each, along an axis.
#pragma once

#include <cstdint>
#include <string_view>

#include <declivity/ops/view.hpp>

namespace declivity::ops {

enum class Scan : std::uint8_t {
    sum,
    product,
    log_sum_exp,  ///< of floating numbers
    largest,      ///< a NaN stays from where it stands on; of equal elements the last
    smallest,
};

/// out[o][j][i] = what x[o][0][i] ... x[o][j][i] come to: x (outer, n, inner), dense, of any type but bool; out of its
/// shape and type. Always cut in the same way on the same device.
/// @param places of largest and smallest: where along the axis they stand, of its shape, i64; otherwise nothing
/// @throws ShapeError, TypeError, DeviceError naming `function`
DECLIVITY_API void scan(std::string_view function, Scan kind, const View& x, const View& out,
                        const View* places = nullptr);

}  // namespace declivity::ops
