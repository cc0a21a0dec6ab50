// Layer 2. Two-dimensional pooling and its gradients: deferred operations. All views are dense, of a floating
// type, on one device.
#pragma once

#include <cstdint>

#include <declivity/ops/shape.hpp>
#include <declivity/ops/lazy_array.hpp>
#include <declivity/ops/view.hpp>

namespace declivity::ops {

/// @addtogroup ops
/// @{

/// Hyperparameters of 2-D pooling. Pairs are vertical, horizontal.
struct Pool2dParameters {
    Size2 kernel_size = 2;          ///< at least 1
    Size2 stride = 0;               ///< 0: kernel_size
    Size2 padding = 0;              ///< on both sides, at most half the kernel size
    bool count_include_pad = true;  ///< average: padded zeros count

    /// Stride, with 0 replaced by the kernel size.
    [[nodiscard]] Size2 step() const {
        return {stride[0] == 0 ? kernel_size[0] : stride[0], stride[1] == 0 ? kernel_size[1] : stride[1]};
    }
};

/// Output shape (N, C, P, Q) from x (N, C, H, W), P = (H + 2 padding - kernel_size) / stride + 1, rounded down.
/// @throws ShapeError naming `function` when the shape does not match or the output would be empty, ValueError for
/// parameters out of range
DECLIVITY_API Shape pool2d_shape(std::string_view function, const Shape& x, const Pool2dParameters& parameters);

/// Results of max_pool2d(): (N, C, P, Q).
struct MaxPool2dResults {
    LazyArray out;      ///< largest element of each window; NaN counts as the largest, ties go to the first
    LazyArray indices;  ///< its position h * W + w, i32; not computed if unused
};
/// Maximum of each window of x (N, C, H, W).
DECLIVITY_API MaxPool2dResults max_pool2d(const View& x, const Pool2dParameters& parameters);
/// Gradient (N, C, H, W) of x, whose shape is `x`: each window's gradient is added to its largest element. out_gradient
/// and indices (N, C, P, Q), from max_pool2d() with the same parameters.
/// @throws ShapeError for other shapes; TypeError for a gradient of integers, and indices that are not i32; DeviceError
/// for views on different devices; ValueError as pool2d_shape()
DECLIVITY_API LazyArray max_pool2d_backward(const View& out_gradient, const View& indices, const Shape& x,
                                            const Pool2dParameters& parameters);

/// Mean of each window of x (N, C, H, W), over the whole window or over the part inside x (count_include_pad): (N, C,
/// P, Q).
DECLIVITY_API LazyArray avg_pool2d(const View& x, const Pool2dParameters& parameters);
/// Gradient (N, C, H, W) of x, whose shape is `x`: each window's gradient (N, C, P, Q), divided by the number of
/// elements that avg_pool2d() counts, is added to its elements inside x.
/// @throws ShapeError for other shapes; TypeError for a gradient of integers; ValueError as pool2d_shape()
DECLIVITY_API LazyArray avg_pool2d_backward(const View& out_gradient, const Shape& x,
                                            const Pool2dParameters& parameters);

/// @}

}  // namespace declivity::ops
