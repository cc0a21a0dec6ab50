#include <declivity/nn/pool2d.hpp>

#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

namespace declivity::nn {
namespace {

/// @throws ValueError as the function would later
Pool2dOptions joined(const char* layer, Size2 window, const PoolOptions& options) {
    for (std::size_t axis = 0; axis < 2; ++axis)
        if (window[axis] < 1 || options.stride[axis] < 0 || options.padding[axis] < 0 ||
            options.padding[axis] > window[axis] / 2)
            throw ValueError(
                fmt::format("{}: wants a window of at least 1, a stride of at least 0 (0: the window) and a padding of "
                            "0 to half the window, got window {} x {}, "
                            "stride {} x {}, padding {} x {}",
                            layer, window[0], window[1], options.stride[0], options.stride[1], options.padding[0],
                            options.padding[1]));
    return {
        .window = window, .stride = options.stride, .padding = options.padding, .count_padding = options.count_padding};
}

}  // namespace

MaxPool2d::MaxPool2d(Size2 window, const PoolOptions& options) : options_(joined("MaxPool2d", window, options)) {}
Tensor MaxPool2d::forward(const Tensor& x) { return max_pool2d(x, options_); }

AvgPool2d::AvgPool2d(Size2 window, const PoolOptions& options) : options_(joined("AvgPool2d", window, options)) {}
Tensor AvgPool2d::forward(const Tensor& x) { return avg_pool2d(x, options_); }

Tensor GlobalAvgPool2d::forward(const Tensor& x) { return global_avg_pool2d(x); }

AdaptiveAvgPool2d::AdaptiveAvgPool2d(Size2 output) {
    if (output[0] != 1 || output[1] != 1)
        throw Unsupported(
            fmt::format("AdaptiveAvgPool2d: wants an output of 1 x 1, got {} x {}", output[0], output[1]));
}

}  // namespace declivity::nn
