#include <declivity/ops/resize.hpp>

#include <algorithm>

#include <declivity/ops/operation.hpp>
#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

#include "ops/support/local_block.hpp"
#include "ops/support/row_launch.hpp"
#include "ops/support/work.hpp"
#include "ops/support/work_split.hpp"

namespace declivity::ops {
namespace {

constexpr std::int64_t kMaxUnrolled = 4;  // maximum taps that are unrolled at compile time

/// Layout of the kernels' struct; must match cl_kernels/vision/resize.cl.
struct Sizes {
    std::int64_t rows, each;
    std::int32_t n, m, inner, taps;
};

enum class Direction : std::uint8_t { forward, backward };

void launch_resample(Direction direction, const OperationViews& views) {
    const View &from = views.in(0), &indices = views.in(1), &weights = views.in(2), &to = views.out(0);
    if (to.numel() == 0) return;
    const bool forward = direction == Direction::forward;
    const std::string_view name = forward ? "resize" : "resize_backward";
    const WorkScope work(name, work_each(2 * static_cast<double>(indices.shape[1]), forward ? to : from, indices,
                                         weights, forward ? from : to));
    const Device device = from.device();
    const bool simd = is_simd(device);
    const std::int64_t outer = to.shape[0], inner = to.shape[2], taps = indices.shape[1], m = indices.shape[0];
    const std::int64_t n = (forward ? from : to).shape[1];
    Sizes sizes{.rows = outer, .each = 1, .n = narrow(n), .m = narrow(m), .inner = narrow(inner), .taps = narrow(taps)};
    Defines defines = real_defines(from.dtype);
    defines.set("T", cl_type(from.dtype)).set(form_macro(simd), 1).set("LANES", vector_lanes(from.dtype));
    defines.set("TAPS", taps <= kMaxUnrolled ? taps : 0).set("WEIGHTS", weights.buffer ? 1 : 0);
    // Type of an element of an axis: a row of adjacent elements, or a single one.
    const bool rows = inner > 1;
    const std::string kernel_name =
        std::string(forward ? "resize" : "resize_backward") + (rows || !simd ? "" : "_line");
    const Kernel kernel(device, {"resize.cl", kernel_name, defines});
    Range range;
    if (simd) {
        if (rows) sizes.rows = outer * to.shape[1];
        sizes.each = rows_each(device, sizes.rows, rows ? inner * taps : std::max(n, m) * taps);
        range = {.global = {to_size(ceil_div(sizes.rows, sizes.each)), 1, 1}, .local = {1, 1, 1}};
    } else {
        const std::size_t columns = to_size(to.shape[1] * inner), group = item_group(kernel);
        range = {.global = {round_up(columns, group), to_size(outer), 1}, .local = {group, 1, 1}};
    }
    launch(kernel, range, {sizes, from.argument(), indices.argument(), or_else(weights, from), to.argument()});
}

struct None {
    std::int32_t unused = 0;
};

EpilogueFused launch_forward(const OperationViews& views, const None&) {
    launch_resample(Direction::forward, views);
    return EpilogueFused::no;
}

EpilogueFused launch_backward(const OperationViews& views, const None&) {
    launch_resample(Direction::backward, views);
    return EpilogueFused::no;
}

void check(std::string_view function, const View& x, const View& indices, const View& weights) {
    if (x.dtype != DType::f32 && x.dtype != DType::f64)
        throw TypeError(fmt::format("{}: expected f32 or f64, got {}", function, name_of(x.dtype)));
    require_rank(function, "x", x, 3, "outer, n, inner");
    require_dense(function, "x", x);
    require_rank(function, "indices", indices, 2, "m, K");
    require_dense(function, "indices", indices);
    require_same_device(function, x, indices);
    if (indices.dtype != DType::i32)
        throw TypeError(fmt::format("{}: expected indices of i32, got {}", function, name_of(indices.dtype)));
    if (!weights.buffer) return;
    require_alike(function, "x", x, "weights", weights);
    require_shape(function, "weights", weights, indices.shape);
    require_dense(function, "weights", weights);
}

/// Offsets within an outer element are i32 in the kernels.
void check_int32_offsets(std::string_view function, std::int64_t size, std::int64_t inner) {
    if (size * inner > (std::int64_t{1} << 31) - 1)
        throw ShapeError(fmt::format("{}: expected fewer than 2^31 elements in an axis and those after it, got {} x {}",
                                     function, size, inner));
}

}  // namespace

LazyArray resample(const View& x, const View& indices, const View& weights) {
    check("resize", x, indices, weights);
    const Shape shape{x.shape[0], indices.shape[0], x.shape[2]};
    check_int32_offsets("resize", std::max(x.shape[1], shape[1]), shape[2]);
    return operation("resize", launch_forward, None{},
                     {.reads = {x, indices, weights}, .outputs = {{x.dtype, shape}}})[0];
}

LazyArray resample_backward(const View& out_gradient, const View& indices, const View& weights, std::int64_t n) {
    check("resize_backward", out_gradient, indices, weights);
    const Shape shape{out_gradient.shape[0], n, out_gradient.shape[2]};
    require_shape("resize_backward", "the gradient", out_gradient, {shape[0], indices.shape[0], shape[2]});
    check_int32_offsets("resize_backward", std::max(n, indices.shape[0]), shape[2]);
    return operation("resize_backward", launch_backward, None{},
                     {.reads = {out_gradient, indices, weights}, .outputs = {{out_gradient.dtype, shape}}})[0];
}

}  // namespace declivity::ops
