// Layer 5. Pooling of images. For sequences and volumes see pool_nd.hpp.
#pragma once

#include <concepts>
#include <cstdint>

#include <declivity/tensor/spatial.hpp>
#include <declivity/tensor/tensor.hpp>

namespace declivity {

/// @defgroup functions_pool Pooling
/// @ingroup functions
/// Pooling of sequences (N, C, L), images (N, C, H, W) and volumes (N, C, D, H, W), each also without the axis N,
/// except by global_avg_pool2d().
///
/// - Shapes: N and C are unchanged. A size L becomes (L + 2 padding - dilation (kernel_size - 1) - 1) / stride + 1,
///   rounded down, or with ceil_mode up unless the last window would begin after the end.
/// - Types: the result has the type of x. max_pool...() and avg_pool...() accept floating types and integers (of
///   average pooling except u64), the other functions floating types. Indices are i64.
/// - Values: NaN propagates; in max pooling it counts as the largest element.
/// - Errors: ShapeError for x of another number of axes, or smaller than a window with its padding; ValueError for a
///   kernel size below 1, a negative stride, a dilation below 1, a padding outside of 0 to half the window, and options
///   that a function does not have; TypeError for types that a function does not support.
///
/// @{

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

/// Maximum of each window of x (N, C, H, W) or (C, H, W), with windows along H and W; NaN counts as the largest, and
/// ties go to the first.
/// Examples: for x = `[[[1, 2, 3, 4], [5, 6, 7, 8]]]`, `max_pool2d(x)` is `[[[6, 8]]]`;
/// `max_pool2d(x, {.kernel_size = {1, 2}, .stride = 1})` is `[[[2, 3, 4], [6, 7, 8]]]`.
DECLIVITY_API Tensor max_pool2d(const Tensor& x, const Pool2dParameters& options = {});
/// Mean of each window of x (N, C, H, W) or (C, H, W), with windows along H and W; rounded towards 0 for integers.
/// Example: for x = `[[[1, 2, 3, 4], [5, 6, 7, 8]]]`, `avg_pool2d(x)` is `[[[3.5, 5.5]]]`.
/// @throws ValueError for a dilation other than 1
DECLIVITY_API Tensor avg_pool2d(const Tensor& x, const Pool2dParameters& options = {});
/// max_pool2d() with square windows, adjacent or `stride` apart.
/// Example: for x = `[[[1, 2, 3], [4, 5, 6]]]`, `max_pool2d(x, 2, 1)` is `[[[5, 6]]]`.
inline Tensor max_pool2d(const Tensor& x, std::integral auto kernel_size, std::int64_t stride = 0) {
    return max_pool2d(x, {.kernel_size = kernel_size, .stride = stride});
}
/// avg_pool2d() with square windows, adjacent or `stride` apart.
/// Example: for x = `[[[1, 2, 3], [4, 5, 6]]]`, `avg_pool2d(x, 2)` is `[[[3]]]`.
inline Tensor avg_pool2d(const Tensor& x, std::integral auto kernel_size, std::int64_t stride = 0) {
    return avg_pool2d(x, {.kernel_size = kernel_size, .stride = stride});
}
/// Mean over H and W: (N, C, H, W) -> (N, C, 1, 1), of a floating type.
/// Example: for x = `[[[[1, 2], [3, 6]]]]`, `global_avg_pool2d(x)` is `[[[[3]]]]`.
DECLIVITY_API Tensor global_avg_pool2d(const Tensor& x);

/// @}

}  // namespace declivity
