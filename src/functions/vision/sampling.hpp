// Layer 5, private. Sampling of images between pixels: differentiable weighted sums of a few pixels.
#pragma once

#include <cstdint>
#include <vector>

#include <declivity/tensor/tensor.hpp>

namespace declivity::detail {

/// Samples along one axis of an image: the tensors have one shape or broadcast to one.
struct AxisSamples {
    Tensor positions;  ///< positions in a floating-point type, within the axis wherever they are valid
    Tensor valid;      ///< bool: false outside of the image; undefined: all are valid
    Tensor weights;    ///< undefined: 1
};

/// The two neighbours of the coordinates (...), along a new axis (..., 2); those outside of [0, size) are invalid, as
/// in zero padding.
AxisSamples linear_samples(const Tensor& coordinates, std::int64_t size);

/// x (B, C, axes...) as rows of C channels, one per pixel: (B axes, C).
Tensor pixel_rows(const Tensor& x);

/// Row indices and weights of samples in an image of sizes `sizes`; the samples of the axes are shaped to broadcast,
/// and the results have the broadcast shape.
struct PixelSamples {
    Tensor row_indices, weights;

    /// @param image index of the image of each sample, i64, broadcast with the others
    PixelSamples(const std::vector<AxisSamples>& axes, const std::vector<std::int64_t>& sizes, const Tensor& image);
};

/// Weighted sums of gathered rows over the last axis of the samples (N, K), (N, C), by kernels;
/// differentiable to any order. Without weights K is 1. Out-of-range indices are ignored; rows of f32 or f64.
Tensor gather_weighted_sum(const char* name, const Tensor& rows, const Tensor& indices, const Tensor& weights);

}  // namespace declivity::detail
