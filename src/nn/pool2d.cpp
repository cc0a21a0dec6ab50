#include <declivity/nn/pool2d.hpp>

#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

namespace declivity::nn {
namespace {

/// @throws ValueError as the function would later
const Pool2dParameters& checked(const char* layer, const Pool2dParameters& pool) {
    const auto& [kernel_size, stride, padding, count_include_pad] = pool;
    for (std::size_t axis = 0; axis < 2; ++axis)
        if (kernel_size[axis] < 1 || stride[axis] < 0 || padding[axis] < 0 || padding[axis] > kernel_size[axis] / 2)
            throw ValueError(
                fmt::format("{}: wants a kernel size of at least 1, a stride of at least 0 (0: the kernel size) and a "
                            "padding of 0 to "
                            "half the kernel size, got kernel size {} x {}, stride {} x {}, padding {} x {}",
                            layer, kernel_size[0], kernel_size[1], stride[0], stride[1], padding[0], padding[1]));
    return pool;
}

}  // namespace

MaxPool2d::MaxPool2d(Size2 kernel_size, const MaxPool2dOptions& options)
    : pool_(checked("MaxPool2d", {.kernel_size = kernel_size, .stride = options.stride, .padding = options.padding})) {}
Tensor MaxPool2d::forward(Tensor x) { return max_pool2d(x, pool_); }

AvgPool2d::AvgPool2d(Size2 kernel_size, const AvgPool2dOptions& options)
    : pool_(checked("AvgPool2d", {.kernel_size = kernel_size,
                                  .stride = options.stride,
                                  .padding = options.padding,
                                  .count_include_pad = options.count_include_pad})) {}
Tensor AvgPool2d::forward(Tensor x) { return avg_pool2d(x, pool_); }

Tensor GlobalAvgPool2d::forward(Tensor x) { return global_avg_pool2d(x); }

AdaptiveAvgPool2d::AdaptiveAvgPool2d(Size2 output_size) {
    if (output_size[0] != 1 || output_size[1] != 1)
        throw Unsupported(
            fmt::format("AdaptiveAvgPool2d: wants an output of 1 x 1, got {} x {}", output_size[0], output_size[1]));
}

}  // namespace declivity::nn
