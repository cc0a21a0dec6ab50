// Floor 3. Convolutions.
#pragma once

#include <cstdint>

#include <declivity/ops/conv2d.hpp>
#include <declivity/tensor/tensor.hpp>

namespace declivity {

/// How the filter moves: stride, padding, dilation, groups.
using ops::Conv2dParameters;
/// x (N, C, H, W), weight (O, C / groups, R, S), bias (O) or undefined -> (N, O, P, Q) with
/// P = (H + 2 padding - dilation (R - 1) - 1) / stride + 1. A cross-correlation: the filter is not flipped.
DECLIVITY_API Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                            const Conv2dParameters& options = {});

struct Conv1dParameters {
    std::int64_t stride = 1;
    std::int64_t padding = 0;  ///< zeros on both sides
    std::int64_t dilation = 1;
    std::int64_t groups = 1;
};
/// x (N, C, L), weight (O, C / groups, R), bias (O) or undefined -> (N, O, P): conv2d of images of one line.
DECLIVITY_API Tensor conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                            const Conv1dParameters& options = {});

struct ConvTranspose2dParameters {
    Size2 stride = 1;          ///< distance between the places of neighbouring elements of x
    Size2 padding = 0;         ///< rows and columns that are cut off on both sides
    Size2 output_padding = 0;  ///< further ones at the far sides, less than the stride
    Size2 dilation = 1;
    std::int64_t groups = 1;
};
/// The gradient of conv2d for its input, as a function: x (N, C, H, W), weight (C, O / groups, R, S), bias (O) or
/// undefined -> (N, O, P, Q) with P = (H - 1) stride - 2 padding + dilation (R - 1) + output_padding + 1 (Zeiler et al.
/// 2010; also called deconvolution).
DECLIVITY_API Tensor conv_transpose2d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                                      const ConvTranspose2dParameters& options = {});

}  // namespace declivity
