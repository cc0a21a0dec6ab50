// Floor 3, private. The gradients of conv2d as differentiable functions (conv2d.cpp).
#pragma once

#include <string_view>

#include <declivity/tensor/functions/conv.hpp>

namespace declivity::detail {

/// The gradient for x of this shape, from that of the result: a transposed convolution. @param name for the graph
Tensor conv2d_input_gradient(std::string_view name, const Tensor& g, const Tensor& weight, const Shape& x,
                             const Conv2dParameters& options);

}  // namespace declivity::detail
