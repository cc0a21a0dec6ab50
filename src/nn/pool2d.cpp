#include <declivity/nn/pool2d.hpp>

#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

namespace declivity::nn {
namespace {

Pool2dOptions joined(Size2 window, const PoolOptions& options) {
    return {.window = window, .stride = options.stride, .padding = options.padding, .count_padding = options.count_padding};
}

}  // namespace

MaxPool2d::MaxPool2d(Size2 window, const PoolOptions& options) : options_(joined(window, options)) {}
Tensor MaxPool2d::forward(const Tensor& x) { return max_pool2d(x, options_); }

AvgPool2d::AvgPool2d(Size2 window, const PoolOptions& options) : options_(joined(window, options)) {}
Tensor AvgPool2d::forward(const Tensor& x) { return avg_pool2d(x, options_); }

Tensor GlobalAvgPool2d::forward(const Tensor& x) { return global_avg_pool2d(x); }

AdaptiveAvgPool2d::AdaptiveAvgPool2d(Size2 output) {
    if (output[0] != 1 || output[1] != 1) throw Unsupported(fmt::format("AdaptiveAvgPool2d: wants an output of 1 x 1, got {} x {}", output[0], output[1]));
}

}  // namespace declivity::nn
