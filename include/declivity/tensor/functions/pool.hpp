// Layer 3. Pooling of images. Those of sequences and volumes: pool_nd.hpp.
//
// One image without the axis N in front is taken as well.
#pragma once

#include <concepts>
#include <cstdint>

#include <declivity/tensor/spatial.hpp>
#include <declivity/tensor/tensor.hpp>

namespace declivity {

/// How windows move over N spatial axes; numbers are for all axes, or one for each.
template <int N>
struct PoolParameters {
    SpatialSize<N> kernel_size = 2;     ///< of the window, at least 1
    SpatialSize<N> stride = 0;          ///< 0: as the kernel size
    SpatialSize<N> padding = 0;         ///< on both sides, at most half the kernel size
    SpatialSize<N> dilation = 1;        ///< maxima: distance between neighbouring elements of a window
    bool ceil_mode = false;             ///< a last window may reach over the end, where it begins before
    bool count_include_pad = true;      ///< averages: padded zeros count
    std::int64_t divisor_override = 0;  ///< averages: what sums are divided by; 0: the number of elements that count
};
using Pool1dParameters = PoolParameters<1>;
using Pool2dParameters = PoolParameters<2>;
using Pool3dParameters = PoolParameters<3>;

/// Largest of each window; ties go to the first.
DECLIVITY_API Tensor max_pool2d(const Tensor& x, const Pool2dParameters& options = {});
DECLIVITY_API Tensor avg_pool2d(const Tensor& x, const Pool2dParameters& options = {});
/// Of square windows, beside each other or `stride` apart.
inline Tensor max_pool2d(const Tensor& x, std::integral auto kernel_size, std::int64_t stride = 0) {
    return max_pool2d(x, {.kernel_size = kernel_size, .stride = stride});
}
inline Tensor avg_pool2d(const Tensor& x, std::integral auto kernel_size, std::int64_t stride = 0) {
    return avg_pool2d(x, {.kernel_size = kernel_size, .stride = stride});
}
/// Mean over H and W: (N, C, H, W) -> (N, C, 1, 1).
DECLIVITY_API Tensor global_avg_pool2d(const Tensor& x);

}  // namespace declivity
