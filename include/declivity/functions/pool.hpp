// Layer 5. Pooling of images. For sequences and volumes see pool_nd.hpp.
//
// A single image without the axis N is accepted as well, but not by global_avg_pool2d().
#pragma once

#include <concepts>
#include <cstdint>

#include <declivity/tensor/spatial.hpp>
#include <declivity/tensor/tensor.hpp>

namespace declivity {

/// Hyperparameters of pooling over N spatial axes; one number for all axes, or one for each.
template <int N>
struct PoolParameters {
    SpatialSize<N> kernel_size = 2;     ///< at least 1
    SpatialSize<N> stride = 0;          ///< 0: kernel_size
    SpatialSize<N> padding = 0;         ///< on both sides, at most half the window: (kernel_size - 1) * dilation + 1
    SpatialSize<N> dilation = 1;        ///< max pooling: distance between adjacent elements of a window
    bool ceil_mode = false;             ///< a last window may extend beyond the end if it begins before it
    bool count_include_pad = true;      ///< average pooling: padded zeros count
    std::int64_t divisor_override = 0;  ///< average pooling: divisor of the sums; 0: number of elements that count
};
using Pool1dParameters = PoolParameters<1>;
using Pool2dParameters = PoolParameters<2>;
using Pool3dParameters = PoolParameters<3>;

/// Maximum of each window; NaN counts as the largest, and ties go to the first.
/// Examples: for x = `[[[1, 2, 3, 4], [5, 6, 7, 8]]]`, `max_pool2d(x)` is `[[[6, 8]]]`;
/// `max_pool2d(x, {.kernel_size = {1, 2}, .stride = 1})` is `[[[2, 3, 4], [6, 7, 8]]]`.
DECLIVITY_API Tensor max_pool2d(const Tensor& x, const Pool2dParameters& options = {});
/// Mean of each window; see max_pool2d(). Example: for x = `[[[1, 2, 3, 4], [5, 6, 7, 8]]]`, `avg_pool2d(x)` is
/// `[[[3.5, 5.5]]]`.
DECLIVITY_API Tensor avg_pool2d(const Tensor& x, const Pool2dParameters& options = {});
/// Overloads for square windows, adjacent or `stride` apart.
/// Example: for x = `[[[1, 2, 3], [4, 5, 6]]]`, `max_pool2d(x, 2, 1)` is `[[[5, 6]]]`.
inline Tensor max_pool2d(const Tensor& x, std::integral auto kernel_size, std::int64_t stride = 0) {
    return max_pool2d(x, {.kernel_size = kernel_size, .stride = stride});
}
/// Mean of each window; see max_pool2d(). Example: for x = `[[[1, 2, 3], [4, 5, 6]]]`, `avg_pool2d(x, 2)` is `[[[3]]]`.
inline Tensor avg_pool2d(const Tensor& x, std::integral auto kernel_size, std::int64_t stride = 0) {
    return avg_pool2d(x, {.kernel_size = kernel_size, .stride = stride});
}
/// Mean over H and W: (N, C, H, W) -> (N, C, 1, 1).
/// Example: for x = `[[[[1, 2], [3, 6]]]]`, `global_avg_pool2d(x)` is `[[[[3]]]]`.
DECLIVITY_API Tensor global_avg_pool2d(const Tensor& x);

}  // namespace declivity
