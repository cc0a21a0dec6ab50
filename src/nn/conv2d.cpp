#include <declivity/nn/conv2d.hpp>

#include <algorithm>
#include <cmath>

#include <declivity/runtime/error.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "conv_checks.hpp"

namespace declivity::nn {

void check_conv(std::string_view layer, std::int64_t in_channels, std::int64_t out_channels, std::int64_t groups,
                std::initializer_list<std::int64_t> kernel_size) {
    if (in_channels < 1 || out_channels < 1 || groups < 1 || in_channels % groups != 0 || out_channels % groups != 0 ||
        std::ranges::any_of(kernel_size, [](std::int64_t size) { return size < 1; }))
        throw ValueError(
            fmt::format("{}: expected groups that divide the channels and a kernel size of at least 1, got {} "
                        "to {} channels, {} groups, kernel size {}",
                        layer, in_channels, out_channels, groups, fmt::join(kernel_size, " x ")));
}

Conv2d::Conv2d(std::int64_t in_channels, std::int64_t out_channels, Size2 kernel_size, const Conv2dOptions& options)
    : conv_{.stride = options.stride,
            .padding = options.padding,
            .dilation = options.dilation,
            .groups = options.groups},
      padding_mode_(options.padding_mode) {
    check_conv("Conv2d", in_channels, out_channels, options.groups, {kernel_size[0], kernel_size[1]});
    const TensorOptions tensor{options.dtype, options.device};
    const Shape shape{out_channels, in_channels / options.groups, kernel_size[0], kernel_size[1]};
    const double bound = 1 / std::sqrt(static_cast<double>(shape.numel() / out_channels));
    weight_ = parameter("weight", uniform(shape, -bound, bound, tensor));
    bias_ = parameter("bias", options.bias ? uniform({out_channels}, -bound, bound, tensor) : Tensor());
}

Tensor Conv2d::forward(Tensor x) {
    if (padding_mode_ == PadMode::zeros) return conv2d(x, weight_, bias_, conv_);
    Conv2dParameters unpadded = conv_;
    unpadded.padding = 0;
    return conv2d(padded_for("Conv2d", x, weight_, conv_, padding_mode_), weight_, bias_, unpadded);
}

std::int64_t Conv2d::multiply_adds(const std::vector<Tensor>&, const std::vector<Tensor>& outputs) const {
    const Shape weight = weight_.shape();
    return outputs.at(0).numel() * weight.numel() / weight[0];
}

}  // namespace declivity::nn
