// Layer 2, private. What shapes convolutions of any number of spatial axes take and give.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include <declivity/ops/shape.hpp>

namespace declivity::ops {

/// A number for each spatial axis.
struct ConvWindow {
    std::span<const std::int64_t> stride, padding, dilation;
    std::int64_t groups;
};

/// The shape of the convolution of x (N, C, spatial...) with a weight (O, C / groups, window...).
/// @throws ShapeError, ValueError naming the function
Shape conv_shape(std::string_view function, const Shape& x, const Shape& weight, const ConvWindow& window);

}  // namespace declivity::ops
