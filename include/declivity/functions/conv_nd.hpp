// Layer 5. 3-D convolution, 1-D and 3-D transposed convolution, and sliding windows (im2col). Shapes, types and errors:
// conv.hpp.
#pragma once

#include <cstdint>

#include <declivity/functions/conv.hpp>
#include <declivity/tensor/spatial.hpp>
#include <declivity/tensor/tensor.hpp>

namespace declivity {

/// @addtogroup functions_conv
/// @{

/// Hyperparameters of conv3d. Triples are depth, vertical, horizontal.
struct Conv3dParameters {
    Size3 stride = 1;         ///< distance between adjacent windows, at least 1
    ConvPadding padding = 0;  ///< zeros around x
    Size3 dilation = 1;       ///< distance between adjacent filter elements, at least 1
    std::int64_t groups = 1;
};
/// 3-D convolution: x (N, C, D, H, W), weight (O, C / groups, Q, R, S), bias (O) or undefined -> (N, O, E, F, G), with
/// sizes as for conv2d. Computed as the sum of one conv2d of all slices for each of the Q depth slices of the filter.
/// Example: for x = `[[[[1, 2]], [[3, 4]]]]` and weight = `[[[[[1]], [[10]]]]]`, `conv3d(x, weight)` is
/// `[[[[31, 42]]]]`.
DECLIVITY_API Tensor conv3d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                            const Conv3dParameters& options = {});

/// Hyperparameters of conv_transpose1d.
struct ConvTranspose1dParameters {
    std::int64_t stride = 1;          ///< distance between the positions of adjacent elements of x
    std::int64_t padding = 0;         ///< elements to crop on both sides
    std::int64_t output_padding = 0;  ///< additional elements at the end, less than the stride or the dilation
    std::int64_t dilation = 1;
    std::int64_t groups = 1;
};
/// 1-D transposed convolution: x (N, C, L), weight (C, O / groups, R), bias (O) or undefined -> (N, O, P), with P = (L
/// - 1) stride - 2 padding + dilation (R - 1) + output_padding + 1, computed by conv_transpose2d with height 1.
/// Examples: for x = `[[1, 2]]` and weight = `[[[1, 10]]]`, `conv_transpose1d(x, weight)` is `[[1, 12, 20]]`;
/// `conv_transpose1d(x, weight, {}, {.stride = 2})` is `[[1, 10, 2, 20]]`.
DECLIVITY_API Tensor conv_transpose1d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                                      const ConvTranspose1dParameters& options = {});

/// Hyperparameters of conv_transpose3d. Triples are depth, vertical, horizontal.
struct ConvTranspose3dParameters {
    Size3 stride = 1;          ///< distance between the positions of adjacent elements of x
    Size3 padding = 0;         ///< elements to crop on both sides
    Size3 output_padding = 0;  ///< additional elements at the ends, less than the stride or the dilation
    Size3 dilation = 1;
    std::int64_t groups = 1;
};
/// 3-D transposed convolution: x (N, C, D, H, W), weight (C, O / groups, Q, R, S), bias (O) or undefined -> (N, O, E,
/// F, G), with sizes as for conv_transpose1d.
/// Example: for x = `[[[[1, 2]]]]` and weight = `[[[[[1]], [[10]]]]]`, `conv_transpose3d(x, weight)` is
/// `[[[[1, 2]], [[10, 20]]]]`.
DECLIVITY_API Tensor conv_transpose3d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                                      const ConvTranspose3dParameters& options = {});

/// Sliding windows of `size` elements, `step` apart, along one axis, as Tensor.unfold of PyTorch: the axis becomes the
/// number of windows, and a new last axis has their elements. A copy.
/// Example: for x = `[1, 2, 3, 4, 5]`, `unfold_axis(x, 0, 3, 2)` is `[[1, 2, 3], [3, 4, 5]]`.
/// @throws ValueError for a size below 0 or above that of the axis, or a step below 1
DECLIVITY_API Tensor unfold_axis(const Tensor& x, std::int64_t axis, std::int64_t size, std::int64_t step);

/// Hyperparameters of unfold and fold.
struct UnfoldParameters {
    Size2 kernel_size;
    Size2 stride = 1;
    Size2 padding = 0;  ///< zeros on both sides
    Size2 dilation = 1;
};
/// im2col: x (N, C, H, W) -> (N, C R S, windows) for a kernel size of R x S, the windows row by row.
/// Example: for x = `[[[1, 2, 3], [4, 5, 6]]]`, `unfold(x, {.kernel_size = 2})` is `[[1, 2], [2, 3], [4, 5], [5, 6]]`.
/// @throws ShapeError for x of another number of axes, or smaller than a window; ValueError for a kernel size, stride
/// or dilation below 1, or a negative padding
DECLIVITY_API Tensor unfold(const Tensor& x, const UnfoldParameters& options);
/// col2im, the gradient of unfold: sums windows into images of `output_size`: x (N, C R S, windows) -> (N, C, H, W).
/// Example: for x = `[[1, 2], [2, 3], [4, 5], [5, 6]]`, `fold(x, {2, 3}, {.kernel_size = 2})` is
/// `[[[1, 4, 3], [4, 10, 6]]]` (overlaps are summed).
/// @throws ShapeError for another number of elements or windows than unfold() gives; ValueError as unfold()
DECLIVITY_API Tensor fold(const Tensor& x, Size2 output_size, const UnfoldParameters& options);

/// @}

}  // namespace declivity
