// Layer 5, private. Gradients of conv2d as differentiable functions (conv2d.cpp).
#pragma once

#include <string_view>

#include <declivity/ops/conv2d.hpp>
#include <declivity/tensor/tensor.hpp>

namespace declivity::detail {

/// Gradient of conv2d for an x of this shape, from that of the result: a transposed convolution. @param name in the
/// graph
Tensor conv2d_input_gradient(std::string_view name, const Tensor& g, const Tensor& weight, const Shape& x,
                             const ops::Conv2dParameters& options);

}  // namespace declivity::detail
