#include "pool_windows.hpp"

#include <algorithm>
#include <limits>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/ops/view.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "functions/support/conv_input.hpp"
#include "functions/support/windows.hpp"
#include "ops/support/work_split.hpp"

namespace declivity::detail {
namespace {

constexpr const char* kAxes[] = {"C, L", "C, H, W", "C, D, H, W"};

std::string sizes(const Dims& dims) { return fmt::format("{}", fmt::join(dims.begin(), dims.end(), " x ")); }

Tensor index_range(std::int64_t count, const Device& device) { return arange(0, count, 1, {DType::i64, device}); }

}  // namespace

bool PoolWindows::dilated() const {
    return std::ranges::any_of(dilation, [](std::int64_t number) { return number != 1; });
}

bool PoolWindows::is_padded() const {
    return std::ranges::any_of(padding, [](std::int64_t number) { return number != 0; });
}

void require_windows(std::string_view name, const PoolWindows& windows) {
    for (int axis = 0; axis < windows.axes(); ++axis) {
        const std::int64_t kernel = windows.kernel_size[axis], padding = windows.padding[axis];
        if (kernel < 1 || windows.stride[axis] < 1 || windows.dilation[axis] < 1 || padding < 0 ||
            padding > windows.extent(axis) / 2)
            throw ValueError(
                fmt::format("{}: expected a kernel size of at least 1, a stride of at least 0 (0: the kernel size){} "
                            "and a padding of "
                            "0 to half the kernel size, got kernel size {}, stride {}{}, padding {}",
                            name, windows.dilated() ? ", a dilation of at least 1" : "", sizes(windows.kernel_size),
                            sizes(windows.stride), windows.dilated() ? ", dilation " + sizes(windows.dilation) : "",
                            sizes(windows.padding)));
    }
}

Tensor pool_input(std::string_view name, const Tensor& x, int axes) {
    if (x.rank() != axes + 1 && x.rank() != axes + 2)
        throw ShapeError(fmt::format("{}: expected x of shape (N, {}) or ({}), got {}", name, kAxes[axes - 1],
                                     kAxes[axes - 1], x.shape().str()));
    return as_batch(x, axes);
}

Shape pooled_shape(std::string_view name, const Shape& x, const PoolWindows& windows) {
    require_windows(name, windows);
    Shape out = x;
    std::int64_t plane = 1;
    for (int axis = 0; axis < windows.axes(); ++axis) {
        const std::int64_t size = x[2 + axis], stride = windows.stride[axis], padding = windows.padding[axis];
        const std::int64_t last_start =
            size + 2 * padding - windows.extent(axis) + (windows.ceil_mode ? stride - 1 : 0);
        out[2 + axis] = last_start < 0 ? 0 : last_start / stride + 1;
        // The last window starts within x or the padding before it.
        if (windows.ceil_mode && (out[2 + axis] - 1) * stride >= size + padding) --out[2 + axis];
        if (size < 1 || out[2 + axis] < 1)
            throw ShapeError(fmt::format("{}: expected an image of at least the window {}, got x {} with padding {}",
                                         name, sizes(windows.kernel_size), x.str(), sizes(windows.padding)));
        plane *= size + 2 * windows.kernel_size[axis];
    }
    // Indices within a plane are i32 in the kernels.
    if (plane > std::numeric_limits<std::int32_t>::max())
        throw ShapeError(fmt::format("{}: expected images of fewer than 2^31 pixels, got {}", name, x.str()));
    return out;
}

WindowTable strided_windows(const PoolWindows& windows, int axis, std::int64_t length, std::int64_t count,
                            const Device& device) {
    const std::int64_t size = windows.kernel_size[axis], spacing = windows.dilation[axis];
    const Tensor indices = window_indices(count, windows.stride[axis], size, spacing, device) - windows.padding[axis];
    const Tensor valid = (indices >= 0) & (indices < length);
    // The first valid index of a window.
    const Tensor begin = slice(indices, 1, 0, 1);
    const Tensor first = begin + floor_divide(maximum(-begin, 0) + (spacing - 1), spacing) * spacing;
    return {where(valid, indices, clamp(first, 0, length - 1)), valid, count, size};
}

WindowTable adaptive_windows(std::int64_t length, std::int64_t count, const Device& device) {
    std::int64_t size = 1;
    for (std::int64_t i = 0; i < count; ++i)
        size = std::max(size, ceil_div((i + 1) * length, count) - i * length / count);
    const Tensor window = reshape(index_range(count, device), {count, 1});
    const Tensor begin = floor_divide(window * length, count);
    const Tensor end = floor_divide((window + 1) * length + (count - 1), count);
    const Tensor indices = begin + reshape(index_range(size, device), {1, size});
    return {minimum(indices, end - 1), indices < end, count, size};
}

Tensor gather_windows(const Tensor& x, int axis, const WindowTable& table) {
    Shape shape;
    for (int i = 0; i < x.rank(); ++i) {
        shape.push_back(i == axis ? table.windows : x.shape()[i]);
        if (i == axis) shape.push_back(table.size);
    }
    return reshape(index_select(x, axis, reshape(table.indices, {table.windows * table.size})), shape);
}

Tensor gather_at(const Tensor& x, const Tensor& indices) {
    std::int64_t size = 1, count = 1;
    for (int axis = 2; axis < x.rank(); ++axis) {
        size *= x.shape()[axis];
        count *= indices.shape()[axis];
    }
    const std::int64_t planes = x.size(0) * x.size(1);
    return reshape(gather(reshape(x, {planes, size}), 1, reshape(indices, {planes, count})), indices.shape());
}

MaxPooled max_by_tables(const Tensor& x, const std::vector<WindowTable>& tables) {
    Tensor indices;
    {
        const NoGrad no_grad;
        Shape plane{1, 1};
        for (int axis = 2; axis < x.rank(); ++axis) plane.push_back(x.shape()[axis]);
        Tensor values = x.detach();
        indices = expand(reshape(index_range(plane.numel(), x.device()), plane), x.shape());
        // The last axis first, so that the first of equal elements in memory order is found.
        for (int axis = x.rank() - 1; axis >= 2; --axis) {
            const WindowTable& table = tables[static_cast<std::size_t>(axis - 2)];
            const Tensor elements = gather_windows(values, axis, table);
            const Tensor best = argmax(elements, axis + 1, true);
            values = squeeze(gather(elements, axis + 1, best), {axis + 1});
            indices = squeeze(gather(gather_windows(indices, axis, table), axis + 1, best), {axis + 1});
        }
    }
    return {gather_at(x, indices), indices};
}

}  // namespace declivity::detail
