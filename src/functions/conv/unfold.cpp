// Sliding windows as elements, and their overlap-add.
#include <algorithm>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <declivity/tensor/function_call.hpp>
#include <fmt/format.h>

#include "autograd/alias.hpp"
#include "functions/support/conv_input.hpp"
#include "functions/support/rows.hpp"
#include "functions/support/windows.hpp"
#include "ops/engine/expression.hpp"
#include "ops/engine/lazy_array.hpp"

namespace declivity {
namespace detail {

Tensor window_indices(std::int64_t windows, std::int64_t step, std::int64_t size, std::int64_t spacing,
                      const Device& device) {
    const TensorOptions index_options{DType::i64, device};
    return reshape(arange(0, windows, 1, index_options) * step, {windows, 1}) +
           reshape(arange(0, size, 1, index_options) * spacing, {1, size});
}

Tensor sliding_windows(const Tensor& x, int axis, std::int64_t size, std::int64_t step, std::int64_t spacing) {
    ops::refuse_in_formula();
    const std::int64_t length = x.shape()[axis], extent = std::max<std::int64_t>(0, (size - 1) * spacing + 1);
    const ops::LazyArray result = ops::view_of(x.value(), [&](const ops::View& view) {
        ops::View out = view;
        out.shape[axis] = (length - extent) / step + 1;
        out.strides[axis] = view.strides[axis] * step;
        out.shape.push_back(size);
        out.strides.push_back(view.strides[axis] * spacing);
        return out;
    });
    return alias("unfold_axis", x, result, [axis, length, step, spacing](const GradientContext& context) {
        return std::vector{sum_of_windows(context.gradient(), axis, length, step, spacing)};
    });
}

Tensor sum_of_windows(const Tensor& x, int axis, std::int64_t length, std::int64_t step, std::int64_t spacing) {
    const std::int64_t windows = x.shape()[axis], size = x.shape().back();
    Dims order{axis, x.rank() - 1}, inverse_order;
    Shape shape{length};
    for (int i = 0; i + 1 < x.rank(); ++i) {
        inverse_order.push_back(i == axis ? 0 : i < axis ? i + 1 : i);
        if (i == axis) continue;
        order.push_back(i);
        shape.push_back(x.shape()[i]);
    }
    const std::int64_t row_size = shape.numel() / std::max<std::int64_t>(1, length);
    const Tensor rows = reshape(permute(x, order), {windows * size, row_size});
    const Tensor indices = reshape(window_indices(windows, step, size, spacing, x.device()), {windows * size});
    return permute(reshape(scatter_add_rows("unfold_axis", rows, indices, length), shape), inverse_order);
}

}  // namespace detail

Tensor unfold_axis(const Tensor& x, std::int64_t axis, std::int64_t size, std::int64_t step) {
    const FunctionCall call("unfold_axis", {{"x", x}}, {{"axis", axis}, {"size", size}, {"step", step}});
    call.require_defined({"x"});
    const bool scalar = x.rank() == 0;
    const int along = normalize_axis("unfold_axis", axis, scalar ? 1 : x.rank());
    const std::int64_t length = scalar ? 1 : x.shape()[along];
    if (size < 0 || size > length || step < 1)
        throw ValueError(fmt::format(
            "unfold_axis: expected a size of 0 to {}, the elements of axis {}, and a step of at least 1, got {} and {}",
            length, along, size, step));
    if (x.rank() == Dims::kMaxRank)
        throw ShapeError(
            fmt::format("unfold_axis: expected at most {} axes, got {}", Dims::kMaxRank - 1, x.shape().str()));
    if (scalar) return call.result(size == 1 ? reshape(x, {1}) : slice(reshape(x, {1}), 0, 0, 0));
    return call.result(detail::sliding_windows(x, along, size, step).clone());
}

namespace {

void check(const char* name, const UnfoldParameters& options) {
    const auto at_least = [](const Size2& sizes, std::int64_t minimum) {
        return sizes[0] >= minimum && sizes[1] >= minimum;
    };
    if (!at_least(options.kernel_size, 1) || !at_least(options.stride, 1) || !at_least(options.dilation, 1) ||
        !at_least(options.padding, 0))
        throw ValueError(
            fmt::format("{}: expected a kernel size, stride and dilation of at least 1 and a padding of at least 0, "
                        "got kernel size "
                        "{} x {}, stride {} x {}, padding {} x {}, dilation {} x {}",
                        name, options.kernel_size[0], options.kernel_size[1], options.stride[0], options.stride[1],
                        options.padding[0], options.padding[1], options.dilation[0], options.dilation[1]));
}

/// Number of windows along both axes of an image.
Size2 windows_of(const char* name, const Size2& image, const UnfoldParameters& options) {
    Size2 windows = 0;
    for (std::size_t i = 0; i < 2; ++i) {
        const std::int64_t last_start =
            image[i] + 2 * options.padding[i] - options.dilation[i] * (options.kernel_size[i] - 1) - 1;
        if (image[i] < 1 || last_start < 0)
            throw ShapeError(
                fmt::format("{}: expected an image at least as large as a window, got {} x {} with padding {} x {} and "
                            "windows of {} "
                            "x {} with dilation {} x {}",
                            name, image[0], image[1], options.padding[0], options.padding[1], options.kernel_size[0],
                            options.kernel_size[1], options.dilation[0], options.dilation[1]));
        windows[i] = last_start / options.stride[i] + 1;
    }
    return windows;
}

}  // namespace

Tensor unfold(const Tensor& x, const UnfoldParameters& options) {
    const auto& [kernel, stride, padding, dilation] = options;
    const FunctionCall call(
        "unfold", {{"x", x}},
        {{"kernel_size", kernel}, {"stride", stride}, {"padding", padding}, {"dilation", dilation}});
    call.require_defined({"x"});
    check("unfold", options);
    if (x.rank() != 3 && x.rank() != 4)
        throw ShapeError(fmt::format("unfold: expected x of shape (N, C, H, W) or (C, H, W), got {}", x.shape().str()));
    const Tensor in = detail::as_batch(x, 2);
    const Size2 windows = windows_of("unfold", {in.size(2), in.size(3)}, options);
    const Tensor padded = padding[0] + padding[1] == 0 ? in : pad(in, {padding[1], padding[1], padding[0], padding[0]});
    // (N, C, P, Q, R, S): one copy of all windows.
    const Tensor patches = detail::sliding_windows(
        detail::sliding_windows(padded, 2, kernel[0], stride[0], dilation[0]), 3, kernel[1], stride[1], dilation[1]);
    const Tensor columns = reshape(permute(patches, {0, 1, 4, 5, 2, 3}),
                                   {in.size(0), in.size(1) * kernel[0] * kernel[1], windows[0] * windows[1]});
    return call.result(detail::drop_batch_if(columns, x.rank() == 3));
}

Tensor fold(const Tensor& x, Size2 output_size, const UnfoldParameters& options) {
    const auto& [kernel, stride, padding, dilation] = options;
    const FunctionCall call("fold", {{"x", x}},
                            {{"output_size", output_size},
                             {"kernel_size", kernel},
                             {"stride", stride},
                             {"padding", padding},
                             {"dilation", dilation}});
    call.require_defined({"x"});
    check("fold", options);
    if (x.rank() != 2 && x.rank() != 3)
        throw ShapeError(
            fmt::format("fold: expected x of shape (N, C R S, windows) or (C R S, windows), got {}", x.shape().str()));
    const Size2 windows = windows_of("fold", output_size, options);
    const Tensor in = x.rank() == 2 ? unsqueeze(x, 0) : x;
    const std::int64_t area = kernel[0] * kernel[1], channels = in.size(1) / area;
    if (in.size(1) % area != 0 || in.size(2) != windows[0] * windows[1])
        throw ShapeError(fmt::format("fold: expected x of shape (N, C x {}, {}) for images of {} x {}, got {}", area,
                                     windows[0] * windows[1], output_size[0], output_size[1], x.shape().str()));
    const Tensor patches =
        permute(reshape(in, {in.size(0), channels, kernel[0], kernel[1], windows[0], windows[1]}), {0, 1, 4, 5, 2, 3});
    const Tensor columns =
        detail::sum_of_windows(patches, 3, output_size[1] + 2 * padding[1], stride[1], dilation[1]);  // (N, C, P, W, R)
    const Tensor images = detail::sum_of_windows(columns, 2, output_size[0] + 2 * padding[0], stride[0], dilation[0]);
    const Tensor cropped =
        padding[0] + padding[1] == 0 ? images : pad(images, {-padding[1], -padding[1], -padding[0], -padding[0]});
    return call.result(detail::drop_batch_if(cropped, x.rank() == 2));
}

}  // namespace declivity
