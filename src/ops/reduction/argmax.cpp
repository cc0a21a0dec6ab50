#include <declivity/ops/argmax.hpp>

#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

#include "ops/engine/expression.hpp"
#include "ops/support/axis_rows.hpp"
#include "ops/support/work.hpp"
#include "ops/support/work_split.hpp"

namespace declivity::ops {
namespace {

constexpr std::int64_t kBlock = 1024;  // elements, see cl_kernels/reduction/argmax.cl

Kernel kernel_for(const View& x, bool simd, bool columns) {
    Defines defines = x.dtype == DType::f64 ? real_defines(x.dtype) : Defines();
    defines.set("T", cl_type(x.dtype)).set(form_macro(simd, columns), 1);
    defines.set("LANES", vector_lanes(x.dtype)).set("BLOCK", kBlock).set("COLUMNS", kSimdColumns);
    return {x.device(), {"argmax.cl", "argmax", defines}};
}

}  // namespace

void argmax(const View& x, int signed_axis, const View& out) {
    const int axis = normalize_axis("argmax", signed_axis, x.rank());
    Shape shape_with_axis = x.shape, shape_without_axis = x.shape;
    shape_with_axis[axis] = 1;
    shape_without_axis.erase(axis);
    if (!(out.shape == shape_with_axis)) require_shape("argmax", "an output", out, shape_without_axis);
    if (out.dtype != DType::i64)
        throw TypeError(fmt::format("argmax: expected an output of type i64, got {}", name_of(out.dtype)));
    require_same_device("argmax", x, out);
    require_dense("argmax", "x", x);
    require_dense("argmax", "out", out);
    if (out.numel() == 0) return;
    const AxisRows rows(x.shape, axis);
    if (rows.n == 0)
        throw ShapeError(fmt::format("argmax: expected at least one element to choose from, got {} along axis {}",
                                     x.shape.str(), axis));

    // f16 and bf16 values are compared in f32, which preserves their order.
    if (is_16bit_float(x.dtype))
        return argmax(evaluate(Expression::cast(x, compute_type(x.dtype)), x.device()), axis, out);

    const WorkScope work("argmax", work_each(1, x, out));
    const bool simd = is_simd(x.device()), columns = rows.inner > 1;
    const Kernel kernel = kernel_for(x, simd, columns);
    if (simd) {
        const std::int64_t blocks = columns ? ceil_div(rows.inner, kSimdColumns) : 1;
        const std::int64_t each =
            rows_each(x.device(), rows.outer * blocks, rows.n * std::min(rows.inner, kSimdColumns));
        const std::size_t groups = to_size(ceil_div(rows.outer, each));
        launch(kernel, {.global = {columns ? to_size(blocks) : groups, columns ? groups : 1, 1}, .local = {1, 1, 1}},
               {rows.outer, rows.n, rows.inner, each, x.argument(), out.argument()});
    } else {
        const RowGroup group = row_group(rows.rows(), rows.n, columns, kernel);
        launch(kernel,
               {.global = {to_size(ceil_div(rows.rows(), group.rows)) * group.items(), 1, 1},
                .local = {group.items(), 1, 1}},
               {rows.outer, rows.n, rows.inner, group.lanes_argument(), group.stride_argument(),
                LocalMemory{group.items() * size_of(x.dtype)}, LocalMemory{group.items() * sizeof(std::int64_t)},
                x.argument(), out.argument()});
    }
}

}  // namespace declivity::ops
