// Floor 2. Two-dimensional pooling and its gradients: operations that wait. All views are dense, f32 or f64, on one
// device.
#pragma once

#include <array>
#include <cstdint>

#include <declivity/ops/value.hpp>
#include <declivity/ops/view.hpp>

namespace declivity::ops {

/// How the window moves. Pairs are vertical, horizontal.
struct Pool2dParameters {
    std::array<std::int64_t, 2> window{2, 2};   ///< at least 1
    std::array<std::int64_t, 2> stride{2, 2};   ///< at least 1
    std::array<std::int64_t, 2> padding{0, 0};  ///< on both sides, at most half the window
    bool count_padding = true;                  ///< average: padded zeros count
};

/// (N, C, P, Q) from x (N, C, H, W), P = (H + 2 padding - window) / stride + 1, rounded down.
/// @throws ShapeError naming `function` when the shape does not fit or the output would be empty, ValueError for
/// parameters out of range
DECLIVITY_API Shape pool2d_shape(std::string_view function, const Shape& x, const Pool2dParameters& parameters);

struct MaxPool2dResults {
    Value out;      ///< the largest of each window; NaN wins, then the first
    Value winners;  ///< its position h * W + w, i32; not computed where nobody holds it
};
DECLIVITY_API MaxPool2dResults max_pool2d(const View& x, const Pool2dParameters& parameters);
/// The gradient for x of shape `x`: the sum of those of the windows that an element won.
DECLIVITY_API Value max_pool2d_backward(const View& out_gradient, const View& winners, const Shape& x,
                                        const Pool2dParameters& parameters);

/// The mean of each window, over the whole window or over the part inside x (count_padding).
DECLIVITY_API Value avg_pool2d(const View& x, const Pool2dParameters& parameters);
DECLIVITY_API Value avg_pool2d_backward(const View& out_gradient, const Shape& x, const Pool2dParameters& parameters);

}  // namespace declivity::ops
