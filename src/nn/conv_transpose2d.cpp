#include <declivity/nn/conv_transpose2d.hpp>

#include <cmath>

#include "conv_checks.hpp"

namespace declivity::nn {

ConvTranspose2d::ConvTranspose2d(std::int64_t in_channels, std::int64_t out_channels, Size2 kernel_size,
                                 const ConvTranspose2dOptions& options)
    : conv_{.stride = options.stride,
            .padding = options.padding,
            .output_padding = options.output_padding,
            .dilation = options.dilation,
            .groups = options.groups} {
    check_conv("ConvTranspose2d", in_channels, out_channels, options.groups, {kernel_size[0], kernel_size[1]});
    const TensorOptions tensor{options.dtype, options.device};
    const Shape shape{in_channels, out_channels / options.groups, kernel_size[0], kernel_size[1]};
    const double bound = 1 / std::sqrt(static_cast<double>(shape.numel() / in_channels));
    weight_ = parameter("weight", uniform(shape, -bound, bound, tensor));
    bias_ = parameter("bias", options.bias ? uniform({out_channels}, -bound, bound, tensor) : Tensor());
}

Tensor ConvTranspose2d::forward(Tensor x) { return conv_transpose2d(x, weight_, bias_, conv_); }

std::int64_t ConvTranspose2d::multiply_adds(const std::vector<Tensor>& inputs, const std::vector<Tensor>&) const {
    const Shape weight = weight_.shape();
    return inputs.at(0).numel() * weight.numel() / weight[0];
}

}  // namespace declivity::nn
