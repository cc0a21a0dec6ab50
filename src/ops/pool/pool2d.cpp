#include <declivity/ops/pool2d.hpp>

#include <algorithm>

#include <declivity/ops/operation.hpp>
#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

#include "ops/engine/reduced_precision.hpp"
#include "ops/support/local_block.hpp"
#include "ops/support/row_launch.hpp"
#include "ops/support/work.hpp"
#include "ops/support/work_split.hpp"

namespace declivity::ops {
namespace {

/// Layout of the kernel's struct; must match cl_kernels/pool/pool2d.clh.
struct Sizes {
    std::int64_t rows, each, elements;
    std::int32_t h, w, p, q;
    std::int32_t band, unused = 0;
};

struct Launch {
    Kernel kernel;
    Range range;
    Sizes sizes;
};

bool is_global(const Shape& x, const Shape& out, const Pool2dParameters& parameters) {
    return out[2] == 1 && out[3] == 1 && parameters.kernel_size[0] == x[2] && parameters.kernel_size[1] == x[3] &&
           parameters.padding[0] == 0 && parameters.padding[1] == 0;
}

Defines window_defines(const Pool2dParameters& parameters) {
    Defines defines;
    defines.set("WINDOW_H", parameters.kernel_size[0]).set("WINDOW_W", parameters.kernel_size[1]);
    defines.set("STRIDE_H", parameters.step()[0]).set("STRIDE_W", parameters.step()[1]);
    defines.set("PADDING_H", parameters.padding[0]).set("PADDING_W", parameters.padding[1]);
    return defines.set("COUNT_PADDING", parameters.count_include_pad ? "1" : "0");
}

enum class Direction : std::uint8_t { forward, backward };
enum class Indices : bool { none, stored };

/// @param in,dtype type of the input, and of the result
Launch prepare(std::string name, Direction direction, const Shape& x, const Shape& out, DType in, DType dtype,
               const Device& device, const Pool2dParameters& parameters, Indices indices = Indices::stored) {
    const bool simd = is_simd(device), forward = direction == Direction::forward;
    const std::int64_t planes = x[0] * x[1];
    Sizes sizes{.rows = planes * (forward ? out[2] : x[2]),
                .each = 1,
                .elements = forward ? x.numel() : out.numel(),
                .h = narrow(x[2]),
                .w = narrow(x[3]),
                .p = narrow(out[2]),
                .q = narrow(out[3]),
                .band = 0};
    Defines defines = storage_defines(in, dtype);
    if (simd) defines.set("LANES", vector_lanes(dtype));
    if (indices == Indices::none) defines.set("NO_INDICES", 1);
    if (!simd) {
        const std::int64_t columns = forward ? out[3] : x[3];
        Kernel kernel(device, {"pool2d_simt.cl", name, defines.append(window_defines(parameters))});
        const std::size_t group = item_group(kernel);
        std::size_t group_columns = 1;
        while (group_columns * 2 <= group && group_columns < to_size(columns)) group_columns *= 2;
        const std::size_t group_rows = std::max<std::size_t>(1, group / group_columns);
        return {std::move(kernel),
                {.global = {round_up(to_size(columns), group_columns), round_up(to_size(sizes.rows), group_rows), 1},
                 .local = {group_columns, group_rows, 1}},
                sizes};
    }
    const bool by_indices = name == "max_pool2d_backward";
    const bool by_planes = by_indices || is_global(x, out, parameters);
    if (by_planes) sizes.rows = planes;
    if (by_indices) sizes.band = narrow(std::clamp<std::int64_t>(kSimdWork / x[3], 1, x[2]));
    // Forward and backward kernels are in one file, so that a step of training compiles one program.
    std::string file = name.starts_with("max") ? "max_pool2d.cl" : "avg_pool2d.cl";
    if (by_planes && !by_indices) file = "pool2d_whole.cl", name += "_whole";
    else defines.append(window_defines(parameters));
    const std::int64_t height = by_indices ? sizes.band : by_planes ? x[2] : forward ? parameters.kernel_size[0] : 1;
    sizes.each = rows_each(device, sizes.rows, height * x[3]);
    const std::size_t bands = by_indices ? to_size(ceil_div(x[2], sizes.band)) : 1;
    return {{device, {file, name, defines}},
            {.global = {to_size(ceil_div(sizes.rows, sizes.each)), bands, 1}, .local = {1, 1, 1}},
            sizes};
}

double taps(const Pool2dParameters& parameters) {
    return static_cast<double>(parameters.kernel_size[0] * parameters.kernel_size[1]);
}

void check(std::string_view function, std::string_view name, const View& x) {
    require_real(function, name, x.dtype);
    require_dense(function, name, x);
}

EpilogueFused launch_max(const OperationViews& views, const Pool2dParameters& parameters) {
    const View &x = views.in(0), &out = views.out(0), &indices = views.out(1);
    if (out.numel() == 0) return EpilogueFused::no;
    const auto [kernel, range, sizes] =
        prepare("max_pool2d_forward", Direction::forward, x.shape, out.shape, x.dtype, out.dtype, x.device(),
                parameters, indices.buffer ? Indices::stored : Indices::none);
    const WorkScope work("max_pool2d", work_each(taps(parameters), out, x, indices));
    launch(kernel, range, {sizes, x.argument(), out.argument(), or_else(indices, out)});
    return EpilogueFused::no;
}

EpilogueFused launch_max_backward(const OperationViews& views, const Pool2dParameters& parameters) {
    const View &g = views.in(0), &indices = views.in(1), &out = views.out(0);
    if (out.numel() == 0) return EpilogueFused::no;
    // If windows overlap, sums are accumulated in the result.
    const bool overlap =
        parameters.step()[0] < parameters.kernel_size[0] || parameters.step()[1] < parameters.kernel_size[1];
    const RoundedOutput rounded(out, overlap && is_simd(out.device()));
    const auto [kernel, range, sizes] = prepare("max_pool2d_backward", Direction::backward, out.shape, g.shape, g.dtype,
                                                rounded.exact().dtype, out.device(), parameters);
    const WorkScope work("max_pool2d_backward", work_each(1, g, indices, out));
    launch(kernel, range, {sizes, g.argument(), indices.argument(), rounded.exact().argument()});
    rounded.round();
    return EpilogueFused::no;
}

EpilogueFused launch_average(const OperationViews& views, const Pool2dParameters& parameters) {
    const View& out = views.out(0);
    if (out.numel() == 0) return EpilogueFused::no;
    const bool upcasts = is_simd(out.device()) && is_global(views.in(0).shape, out.shape, parameters);
    const View x = upcasts ? upcast(views.in(0)) : views.in(0);
    const auto [kernel, range, sizes] = prepare("avg_pool2d_forward", Direction::forward, x.shape, out.shape, x.dtype,
                                                out.dtype, x.device(), parameters);
    const WorkScope work("avg_pool2d", work_each(taps(parameters), out, x));
    launch(kernel, range, {sizes, x.argument(), out.argument()});
    return EpilogueFused::no;
}

EpilogueFused launch_average_backward(const OperationViews& views, const Pool2dParameters& parameters) {
    const View &g = views.in(0), &out = views.out(0);
    if (out.numel() == 0) return EpilogueFused::no;
    const auto [kernel, range, sizes] = prepare("avg_pool2d_backward", Direction::backward, out.shape, g.shape, g.dtype,
                                                out.dtype, out.device(), parameters);
    const WorkScope work("avg_pool2d_backward", work_each(taps(parameters), g, out));
    launch(kernel, range, {sizes, g.argument(), out.argument()});
    return EpilogueFused::no;
}

}  // namespace

Shape pool2d_shape(std::string_view function, const Shape& x, const Pool2dParameters& parameters) {
    const Size2 &window = parameters.kernel_size, &padding = parameters.padding, stride = parameters.step();
    for (std::size_t i = 0; i < 2; ++i)
        if (window[i] < 1 || stride[i] < 1 || padding[i] < 0 || padding[i] > window[i] / 2)
            throw ValueError(fmt::format(
                "{}: expected a kernel size of at least 1, a stride of at least 0 (0: the kernel size) and a "
                "padding of 0 to half the kernel size, got kernel size {} x {}, "
                "stride {} x {}, padding {} x {}",
                function, window[0], window[1], parameters.stride[0], parameters.stride[1], padding[0], padding[1]));
    if (x.rank() != 4) throw ShapeError(fmt::format("{}: expected x of shape (N, C, H, W), got {}", function, x.str()));
    Shape out = x;
    for (std::size_t i = 0; i < 2; ++i) {
        const std::int64_t room = x[static_cast<int>(2 + i)] + 2 * padding[i] - window[i];
        if (room < 0 || x[static_cast<int>(2 + i)] < 1)
            throw ShapeError(
                fmt::format("{}: expected an image of at least the window {} x {}, got x {} with padding {} x {}",
                            function, window[0], window[1], x.str(), padding[0], padding[1]));
        out[static_cast<int>(2 + i)] = room / stride[i] + 1;
    }
    // Positions within a plane are i32 in the kernels.
    if (x[2] * x[3] > (std::int64_t{1} << 31) - 1)
        throw ShapeError(fmt::format("{}: expected images of fewer than 2^31 pixels, got {}", function, x.str()));
    return out;
}

MaxPool2dResults max_pool2d(const View& x, const Pool2dParameters& parameters) {
    check("max_pool2d", "x", x);
    const Shape shape = pool2d_shape("max_pool2d", x.shape, parameters);
    const OperationResults results = operation(
        "max_pool2d", launch_max, parameters, {.reads = {x}, .outputs = {{x.dtype, shape}, {DType::i32, shape, true}}});
    return {results[0], results[1]};
}

LazyArray max_pool2d_backward(const View& out_gradient, const View& indices, const Shape& x,
                              const Pool2dParameters& parameters) {
    constexpr std::string_view function = "max_pool2d_backward";
    check(function, "the gradient", out_gradient);
    require_shape(function, "the gradient", out_gradient, pool2d_shape(function, x, parameters));
    require_dense(function, "indices", indices);
    require_shape(function, "indices", indices, out_gradient.shape);
    if (indices.dtype != DType::i32)
        throw TypeError(fmt::format("{}: expected indices of i32, got {}", function, name_of(indices.dtype)));
    require_same_device(function, indices, out_gradient);
    return operation(function, launch_max_backward, parameters,
                     {.reads = {out_gradient, indices}, .outputs = {{out_gradient.dtype, x}}})[0];
}

LazyArray avg_pool2d(const View& x, const Pool2dParameters& parameters) {
    check("avg_pool2d", "x", x);
    const Shape shape = pool2d_shape("avg_pool2d", x.shape, parameters);
    return operation("avg_pool2d", launch_average, parameters, {.reads = {x}, .outputs = {{x.dtype, shape}}})[0];
}

LazyArray avg_pool2d_backward(const View& out_gradient, const Shape& x, const Pool2dParameters& parameters) {
    constexpr std::string_view function = "avg_pool2d_backward";
    check(function, "the gradient", out_gradient);
    require_shape(function, "the gradient", out_gradient, pool2d_shape(function, x, parameters));
    return operation(function, launch_average_backward, parameters,
                     {.reads = {out_gradient}, .outputs = {{out_gradient.dtype, x}}})[0];
}

}  // namespace declivity::ops
