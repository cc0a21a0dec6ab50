#include <declivity/nn/conv2d.hpp>

#include <cmath>

#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

namespace declivity::nn {

Conv2d::Conv2d(std::int64_t in, std::int64_t out, Size2 window, const Conv2dOptions& options)
    : options_{.stride = options.stride,
               .padding = options.padding,
               .dilation = options.dilation,
               .groups = options.groups} {
    if (in < 1 || out < 1 || options.groups < 1 || in % options.groups != 0 || out % options.groups != 0 ||
        window[0] < 1 || window[1] < 1)
        throw ValueError(fmt::format(
            "Conv2d: wants groups that divide the channels and a window of at least 1 x 1, got {} to {} channels, "
            "{} groups, window {} x {}",
            in, out, options.groups, window[0], window[1]));
    const std::int64_t group_in = in / options.groups;
    const double bound = 1 / std::sqrt(static_cast<double>(group_in * window[0] * window[1]));
    weight_ = parameter("weight", uniform({out, group_in, window[0], window[1]}, -bound, bound, options.tensor));
    bias_ = parameter("bias", options.bias ? uniform({out}, -bound, bound, options.tensor) : Tensor());
}

Tensor Conv2d::forward(const Tensor& x) { return conv2d(x, weight_, bias_, options_); }

std::int64_t Conv2d::multiply_adds(const Shape&, const Shape& output) const {
    return output.numel() * weight_.numel() / weight_.size(0);
}

}  // namespace declivity::nn
