// Layer 3. Convolutions of volumes, transposed ones of sequences and volumes, and sliding windows as elements.
//
// Functions of batches take one example as well, without the axis N in front, and then give one.
#pragma once

#include <cstdint>

#include <declivity/tensor/functions/conv.hpp>
#include <declivity/tensor/spatial.hpp>
#include <declivity/tensor/tensor.hpp>

namespace declivity {

struct Conv3dParameters {
    Size3 stride = 1;         ///< distance between neighbouring windows, at least 1
    ConvPadding padding = 0;  ///< zeros around x
    Size3 dilation = 1;       ///< distance between neighbouring elements of the filter, at least 1
    std::int64_t groups = 1;
};
/// x (N, C, D, H, W), weight (O, C / groups, Q, R, S), bias (O) or undefined -> (N, O, E, F, G), each of the sizes as
/// conv2d has it: the sum of one conv2d of all slices for each layer of the filter.
DECLIVITY_API Tensor conv3d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                            const Conv3dParameters& options = {});

struct ConvTranspose1dParameters {
    std::int64_t stride = 1;          ///< distance between the places of neighbouring elements of x
    std::int64_t padding = 0;         ///< elements that are cut off on both sides
    std::int64_t output_padding = 0;  ///< further ones at the end, less than the stride or the dilation
    std::int64_t dilation = 1;
    std::int64_t groups = 1;
};
/// x (N, C, L), weight (C, O / groups, R), bias (O) or undefined -> (N, O, P), with
/// P = (L - 1) stride - 2 padding + dilation (R - 1) + output_padding + 1: conv_transpose2d of images of one line.
DECLIVITY_API Tensor conv_transpose1d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                                      const ConvTranspose1dParameters& options = {});

struct ConvTranspose3dParameters {
    Size3 stride = 1;          ///< distance between the places of neighbouring elements of x
    Size3 padding = 0;         ///< elements that are cut off on both sides
    Size3 output_padding = 0;  ///< further ones at the far sides, less than the stride or the dilation
    Size3 dilation = 1;
    std::int64_t groups = 1;
};
/// x (N, C, D, H, W), weight (C, O / groups, Q, R, S), bias (O) or undefined -> (N, O, E, F, G), each of the sizes as
/// conv_transpose1d has it.
DECLIVITY_API Tensor conv_transpose3d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                                      const ConvTranspose3dParameters& options = {});

/// Windows of one axis, `size` elements each, `step` apart: the axis then counts windows, and a new last axis their
/// elements, as Tensor.unfold of PyTorch. A copy.
DECLIVITY_API Tensor unfold_axis(const Tensor& x, std::int64_t axis, std::int64_t size, std::int64_t step);

/// How the windows of unfold and fold lie.
struct UnfoldParameters {
    Size2 kernel_size;
    Size2 stride = 1;
    Size2 padding = 0;  ///< zeros on both sides
    Size2 dilation = 1;
};
/// The windows of images as columns (im2col): x (N, C, H, W) -> (N, C R S, windows), the windows row by row.
DECLIVITY_API Tensor unfold(const Tensor& x, const UnfoldParameters& options);
/// The sum of windows at their places in images of `output_size` (col2im): x (N, C R S, windows) -> (N, C, H, W).
/// The gradient of unfold.
DECLIVITY_API Tensor fold(const Tensor& x, Size2 output_size, const UnfoldParameters& options);

}  // namespace declivity
