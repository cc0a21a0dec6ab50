#include <declivity/ops/softmax.hpp>

#include <utility>
#include <vector>

#include <declivity/ops/copy.hpp>
#include <declivity/ops/operation.hpp>

#include "ops/engine/row_fusion.hpp"
#include "ops/support/axis_rows.hpp"
#include "ops/support/row_launch.hpp"
#include "ops/support/work.hpp"

namespace declivity::ops {
namespace {

struct Softmax {
    SoftmaxKind kind;
    int axis;
};

std::string_view name_of(SoftmaxKind kind) { return kind == SoftmaxKind::softmax ? "softmax" : "log_softmax"; }
std::string_view name_of_backward(SoftmaxKind kind) {
    return kind == SoftmaxKind::softmax ? "softmax_backward" : "log_softmax_backward";
}

Defines defines_of(const Softmax& call, DType dtype) {
    Defines defines = real_defines(dtype);
    defines.set("T", cl_type(dtype)).set("LOG", call.kind == SoftmaxKind::log_softmax ? 1 : 0);
    return defines.set("LANES", vector_lanes(dtype)).set("COLUMNS", kSimdColumns);
}

/// The kernel file for a style. @param columns inner > 1: rows are not contiguous
const char* file_of(bool simd, bool columns) {
    return !simd ? "softmax_simt.cl" : columns ? "softmax_columns.cl" : "softmax.cl";
}

/// @param buffers forward x, out; backward result, gradient, x_gradient
void run(const Softmax& call, const char* kernel_name, const View& like, const std::vector<Argument>& buffers) {
    const AxisRows rows(like.shape, call.axis);
    const Device device = like.device();
    const bool simd = is_simd(device), columns = rows.inner > 1;
    Defines defines = defines_of(call, like.dtype);
    // Without it, the backward kernel and a forward kernel that fuses nothing are in one program.
    if (columns) defines.set("INNER", 1);
    RowGrid grid = row_grid(device, like.dtype, rows.rows(), rows.n);
    grid.columns = columns;
    if (simd && columns) {
        const std::int64_t blocks = ceil_div(rows.inner, kSimdColumns);
        grid.each = rows_each(device, rows.outer * blocks, rows.n * std::min(rows.inner, kSimdColumns));
        grid.simd_global = {to_size(blocks), to_size(ceil_div(rows.outer, grid.each))};
    }
    // Blocks of columns run along the outer axes; the other forms take all rows alike.
    const std::int64_t count = simd && columns ? rows.outer : rows.rows();
    launch_rows({device, {file_of(simd, columns), kernel_name, defines}}, grid, {rows.inner, count, rows.n}, buffers);
}

EpilogueFused launch_softmax(const OperationViews& views, const Softmax& call) {
    constexpr double flops = 4;  // maximum, exp and sum, quotient
    const View &x = views.in(0), &out = views.out(0);
    if (out.numel() == 0) return EpilogueFused::no;
    if (AxisRows(out.shape, call.axis).inner > 1) {
        const WorkScope work(name_of(call.kind), work_each(flops, x, out));
        run(call, "softmax", x, {x.argument(), out.argument()});
        return EpilogueFused::no;
    }
    const View& like = views.prologue() ? out : x;
    const DType dtype = views.prologue() ? views.prologue().dtype() : x.dtype;
    return launch_row_kernel(views, call.axis,
                             {.file = file_of(is_simd(like.device()), false),
                              .name = "softmax",
                              .shown_as = name_of(call.kind),
                              .defines = defines_of(call, dtype),
                              .arguments = {std::int64_t{1}},
                              .flops = flops,
                              .needs_row = call.kind == SoftmaxKind::softmax});
}

EpilogueFused launch_backward(const OperationViews& views, const Softmax& call) {
    const View &result = views.in(0), &g = views.in(1), &out = views.out(0);
    if (result.numel() == 0) return EpilogueFused::no;
    const WorkScope work(name_of_backward(call.kind), work_each(4, result, g, out));
    run(call, "softmax_backward", result, {result.argument(), g.argument(), out.argument()});
    return EpilogueFused::no;
}

}  // namespace

LazyArray softmax(SoftmaxKind kind, LazyArray x, int axis) {
    const std::string_view function = name_of(kind);
    const DType dtype = x.dtype();
    const Shape shape = x.shape();
    require_real(function, "x", dtype);
    const Softmax call{kind, normalize_axis(function, axis, shape.rank())};
    const bool side_by_side = AxisRows(shape, call.axis).inner == 1;
    RowInput in = side_by_side ? row_input(std::move(x), call.axis) : RowInput{dense_copy_if_needed(x.view()), {}};
    return operation(function, launch_softmax, call,
                     {.reads = {std::move(in.view)},
                      .outputs = {{dtype, shape}},
                      .prologue = std::move(in.pending),
                      .fuses_output_cast = side_by_side,
                      .upcasts_to_f32 = true})[0];
}

LazyArray softmax_backward(SoftmaxKind kind, const View& result, const View& result_gradient, int axis) {
    const std::string_view function = name_of_backward(kind);
    require_real(function, "the result", result.dtype);
    require_dense(function, "the result", result);
    require_alike(function, "the result", result, "the gradient", result_gradient);
    require_shape(function, "the gradient", result_gradient, result.shape);
    require_dense(function, "the gradient", result_gradient);
    const Softmax call{kind, normalize_axis(function, axis, result.rank())};
    return operation(
        function, launch_backward, call,
        {.reads = {result, result_gradient}, .outputs = {{result.dtype, result.shape}}, .upcasts_to_f32 = true})[0];
}

}  // namespace declivity::ops
