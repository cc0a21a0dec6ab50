// Layer 3, private. Images at places between pixels: sums of a few pixels each, by weights that gradients flow through.
#pragma once

#include <cstdint>
#include <vector>

#include <declivity/tensor/tensor.hpp>

namespace declivity::detail {

/// Along one axis of an image, the pixels that count for each place: all of one shape, or stretched over each other.
struct AxisSamples {
    Tensor places;   ///< in floating numbers, within the axis wherever they count
    Tensor counts;   ///< bool: false where there is nothing; undefined: all count
    Tensor weights;  ///< undefined: 1
};

/// The two neighbours of `at` (...), in axes (..., 2), those outside of [0, size) as nothing: zeros around the image.
AxisSamples linear_samples(const Tensor& at, std::int64_t size);

/// x (B, C, axes...) as rows of C pixels at one place: (B axes, C).
Tensor pixel_rows(const Tensor& x);

/// The rows of pixels of an image of sizes `sizes` at these samples, whose axes have been put side by side so that they
/// stretch over each other: numbers, weights and whether they count all have the stretched shape.
struct PixelSamples {
    Tensor numbers, weights;

    /// @param image which image each is of, i64, stretching over the others
    PixelSamples(const std::vector<AxisSamples>& axes, const std::vector<std::int64_t>& sizes, const Tensor& image);
};

/// Sums over the last axis of samples (places, K) of weights times rows, (places, C), by kernels; differentiable to any
/// order. Without weights K is 1. Numbers outside count for nothing; rows of f32 or f64.
Tensor gather_weighted_sum(const char* name, const Tensor& rows, const Tensor& numbers, const Tensor& weights);

}  // namespace declivity::detail
