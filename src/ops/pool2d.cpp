#include <declivity/ops/pool2d.hpp>

#include <algorithm>

#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

#include "work_split.hpp"

namespace declivity::ops {
namespace {

constexpr std::size_t kPoolGroup = 64;  // work-items of a group on GPU-like devices

struct Launch {
    Kernel kernel;
    Range range;
    std::int64_t rows;
    std::int32_t h, w, p, q;
};

/// @param result whose rows and columns the work-items compute
Launch prepare(const char* name, const Shape& x, const Shape& out, const View& result, const Pool2dParameters& parameters) {
    const Device device = result.device();
    const bool cpu = family_of(device) == Family::cpu_like;
    const std::int64_t columns = result.shape[3], rows = result.numel() / columns;
    Defines defines = real_defines(result.dtype);
    defines.set("WINDOW_H", parameters.window[0]).set("WINDOW_W", parameters.window[1]);
    defines.set("STRIDE_H", parameters.stride[0]).set("STRIDE_W", parameters.stride[1]);
    defines.set("PADDING_H", parameters.padding[0]).set("PADDING_W", parameters.padding[1]);
    defines.set("COUNT_PADDING", parameters.count_padding ? "1" : "0");
    // A constant far above any width rather than the width: one program for all sizes.
    defines.set("CHUNK", cpu ? 65536 : 1);
    Kernel kernel(device, {"pool2d.cl", name, defines});
    Range range{.global = {static_cast<std::size_t>(cpu ? ceil_div(columns, 65536) : columns), static_cast<std::size_t>(rows), 1}, .local = {1, 1, 1}};
    if (!cpu) {
        std::size_t wide = 1;
        while (wide * 2 <= std::min(kPoolGroup, kernel.max_work_group()) && wide < static_cast<std::size_t>(columns)) wide *= 2;
        const std::size_t tall = std::max<std::size_t>(1, std::min(kPoolGroup, kernel.max_work_group()) / wide);
        range.local = {wide, tall, 1};
        range.global = {round_up(range.global[0], wide), round_up(range.global[1], tall), 1};
    }
    const auto narrow = [](std::int64_t size) { return static_cast<std::int32_t>(size); };
    return {std::move(kernel), range, rows, narrow(x[2]), narrow(x[3]), narrow(out[2]), narrow(out[3])};
}

void check(std::string_view function, const View& x, const View& out, const Pool2dParameters& parameters) {
    require_floating(function, "x", x);
    require_dense(function, "x", x);
    require_dense(function, "out", out);
    require_alike(function, "x", x, "out", out);
    require_shape(function, "out", out, pool2d_shape(function, x.shape, parameters));
}

void check_winners(std::string_view function, const View& winners, const View& out) {
    require_dense(function, "winners", winners);
    require_shape(function, "winners", winners, out.shape);
    if (winners.dtype != DType::i32) throw TypeError(fmt::format("{}: wants winners of i32, got {}", function, name_of(winners.dtype)));
    require_same_device(function, winners, out);
}

}  // namespace

Shape pool2d_shape(std::string_view function, const Shape& x, const Pool2dParameters& parameters) {
    const auto& [window, stride, padding, count_padding] = parameters;
    for (std::size_t i = 0; i < 2; ++i)
        if (window[i] < 1 || stride[i] < 1 || padding[i] < 0 || padding[i] > window[i] / 2)
            throw ValueError(fmt::format("{}: wants a window and stride of at least 1 and a padding of 0 to half the window, got window {} x {}, "
                                         "stride {} x {}, padding {} x {}", function, window[0], window[1], stride[0], stride[1], padding[0], padding[1]));
    if (x.rank() != 4) throw ShapeError(fmt::format("{}: wants x (N, C, H, W), got {}", function, x.str()));
    Shape out = x;
    for (std::size_t i = 0; i < 2; ++i) {
        const std::int64_t room = x[static_cast<int>(2 + i)] + 2 * padding[i] - window[i];
        if (room < 0 || x[static_cast<int>(2 + i)] < 1)
            throw ShapeError(fmt::format("{}: wants an image of at least the window {} x {}, got x {} with padding {} x {}", function, window[0], window[1],
                                         x.str(), padding[0], padding[1]));
        out[static_cast<int>(2 + i)] = room / stride[i] + 1;
    }
    // Positions within a plane are i32 in the kernels.
    if (x[2] * x[3] > (std::int64_t{1} << 31) - 1) throw ShapeError(fmt::format("{}: wants images of fewer than 2^31 pixels, got {}", function, x.str()));
    return out;
}

void max_pool2d_forward(const View& x, const View& out, const View& winners, const Pool2dParameters& parameters) {
    check("max_pool2d_forward", x, out, parameters);
    check_winners("max_pool2d_forward", winners, out);
    if (out.numel() == 0) return;
    const auto [kernel, range, rows, h, w, p, q] = prepare("max_pool2d_forward", x.shape, out.shape, out, parameters);
    launch(kernel, range, {rows, h, w, p, q, x.argument(), out.argument(), winners.argument()});
}

void max_pool2d_backward(const View& out_gradient, const View& winners, const View& x_gradient, const Pool2dParameters& parameters) {
    check("max_pool2d_backward", x_gradient, out_gradient, parameters);
    check_winners("max_pool2d_backward", winners, out_gradient);
    if (x_gradient.numel() == 0) return;
    const auto [kernel, range, rows, h, w, p, q] = prepare("max_pool2d_backward", x_gradient.shape, out_gradient.shape, x_gradient, parameters);
    launch(kernel, range, {rows, h, w, p, q, out_gradient.argument(), winners.argument(), x_gradient.argument()});
}

void avg_pool2d_forward(const View& x, const View& out, const Pool2dParameters& parameters) {
    check("avg_pool2d_forward", x, out, parameters);
    if (out.numel() == 0) return;
    const auto [kernel, range, rows, h, w, p, q] = prepare("avg_pool2d_forward", x.shape, out.shape, out, parameters);
    launch(kernel, range, {rows, h, w, p, q, x.argument(), out.argument()});
}

void avg_pool2d_backward(const View& out_gradient, const View& x_gradient, const Pool2dParameters& parameters) {
    check("avg_pool2d_backward", x_gradient, out_gradient, parameters);
    if (x_gradient.numel() == 0) return;
    const auto [kernel, range, rows, h, w, p, q] = prepare("avg_pool2d_backward", x_gradient.shape, out_gradient.shape, x_gradient, parameters);
    launch(kernel, range, {rows, h, w, p, q, out_gradient.argument(), x_gradient.argument()});
}

}  // namespace declivity::ops
