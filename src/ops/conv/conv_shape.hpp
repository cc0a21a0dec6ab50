// Layer 2, private. Shapes of convolutions with any number of spatial axes.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include <declivity/ops/shape.hpp>

namespace declivity::ops {

/// One number for each spatial axis.
struct ConvWindow {
    std::span<const std::int64_t> stride, padding, dilation;
    std::int64_t groups;
};

/// Returns the shape of the convolution of x (N, C, spatial...) with a weight (O, C / groups, window...).
/// @throws ShapeError, ValueError naming the function
Shape conv_shape(std::string_view function, const Shape& x, const Shape& weight, const ConvWindow& window);

}  // namespace declivity::ops
