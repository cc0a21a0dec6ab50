#include <declivity/nn/conv1d.hpp>

#include <cmath>

#include "conv_checks.hpp"

namespace declivity::nn {

Conv1d::Conv1d(std::int64_t in_channels, std::int64_t out_channels, std::int64_t kernel_size,
               const Conv1dOptions& options)
    : conv_{.stride = options.stride,
            .padding = options.padding,
            .dilation = options.dilation,
            .groups = options.groups},
      padding_mode_(options.padding_mode) {
    check_conv("Conv1d", in_channels, out_channels, options.groups, {kernel_size});
    const TensorOptions tensor{options.dtype, options.device};
    const Shape shape{out_channels, in_channels / options.groups, kernel_size};
    const double bound = 1 / std::sqrt(static_cast<double>(shape.numel() / out_channels));
    weight_ = parameter("weight", uniform(shape, -bound, bound, tensor));
    bias_ = parameter("bias", options.bias ? uniform({out_channels}, -bound, bound, tensor) : Tensor());
}

Tensor Conv1d::forward(Tensor x) {
    if (padding_mode_ == PadMode::zeros) return conv1d(x, weight_, bias_, conv_);
    Conv1dParameters unpadded = conv_;
    unpadded.padding = 0;
    return conv1d(padded_for("Conv1d", x, weight_, conv_, padding_mode_), weight_, bias_, unpadded);
}

std::int64_t Conv1d::multiply_adds(const std::vector<Tensor>&, const std::vector<Tensor>& outputs) const {
    const Shape weight = weight_.shape();
    return outputs.at(0).numel() * weight.numel() / weight[0];
}

}  // namespace declivity::nn
