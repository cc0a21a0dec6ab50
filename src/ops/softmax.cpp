#include <declivity/ops/softmax.hpp>

#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

#include "ops/support/axis_rows.hpp"
#include "ops/support/work.hpp"
#include "ops/support/work_split.hpp"

namespace declivity::ops {
namespace {

std::string_view name_of(SoftmaxKind kind) { return kind == SoftmaxKind::softmax ? "softmax" : "log_softmax"; }

/// The kernels write some elements twice, and read others meanwhile.
void require_own(std::string_view function, const View& operand, const View& out) {
    if (may_overlap(operand, out))
        throw ValueError(fmt::format("{}: wants memory of its own as out, got that of an operand", function));
}

/// Forward takes x, out; backward result, gradient, x_gradient.
void run(SoftmaxKind kind, std::string_view kernel_name, const AxisRows& rows, const View& like,
         std::initializer_list<BufferArgument> buffers) {
    const Device device = like.device();
    const bool cpu = family_of(device) == Family::cpu_like, columns = rows.inner > 1;
    Defines defines = real_defines(like.dtype);
    defines.set("T", cl_type(like.dtype)).set("LOG", kind == SoftmaxKind::log_softmax ? 1 : 0);
    defines.set("FORM", cpu ? (columns ? 1 : 0) : 2).set("LANES", vector_lanes(like.dtype)).set("COLUMNS", kCpuColumns);
    const Kernel kernel(device, {"softmax.cl", std::string(kernel_name), defines});
    std::vector<Argument> arguments{rows.outer, rows.n, rows.inner};
    if (cpu) {
        const std::int64_t blocks = columns ? ceil_div(rows.inner, kCpuColumns) : 1;
        const std::int64_t each = rows_each(device, rows.outer * blocks, rows.n * std::min(rows.inner, kCpuColumns));
        const std::size_t groups = to_size(ceil_div(rows.outer, each));
        arguments.emplace_back(each);
        arguments.insert(arguments.end(), buffers.begin(), buffers.end());
        launch(kernel,
               {.global = columns ? std::array<std::size_t, 3>{to_size(blocks), groups, 1}
                                  : std::array<std::size_t, 3>{groups, 1, 1},
                .local = {1, 1, 1}},
               arguments);
        return;
    }
    const RowGroup group = row_group(rows.rows(), rows.n, columns, kernel);
    const std::int32_t lanes = group.lanes_argument(), stride = group.stride_argument();
    const LocalMemory shared{group.items() * size_of(like.dtype)};
    arguments.insert(arguments.end(), {Argument(lanes), Argument(stride), Argument(shared)});
    arguments.insert(arguments.end(), buffers.begin(), buffers.end());
    launch(
        kernel,
        {.global = {to_size(ceil_div(rows.rows(), group.rows)) * group.items(), 1, 1}, .local = {group.items(), 1, 1}},
        arguments);
}

}  // namespace

void softmax(SoftmaxKind kind, const View& x, int axis, const View& out) {
    const std::string_view function = name_of(kind);
    require_floating(function, "x", x);
    require_alike(function, "x", x, "out", out);
    require_dense(function, "x", x);
    require_dense(function, "out", out);
    require_shape(function, "out", out, x.shape);
    require_own(function, x, out);
    const AxisRows rows(x.shape, normalize_axis(function, axis, x.rank()));
    const WorkScope work(function, work_each(4, x, out));  // largest, exp and sum, quotient
    if (x.numel() > 0) run(kind, "softmax", rows, x, {x.argument(), out.argument()});
}

void softmax_backward(SoftmaxKind kind, const View& result, const View& result_gradient, int axis,
                      const View& x_gradient) {
    const std::string_view function = kind == SoftmaxKind::softmax ? "softmax_backward" : "log_softmax_backward";
    require_floating(function, "the result", result);
    for (const View* view : {&result_gradient, &x_gradient}) {
        require_alike(function, "the result", result, "a gradient", *view);
        require_shape(function, "a gradient", *view, result.shape);
        require_dense(function, "a gradient", *view);
    }
    require_dense(function, "the result", result);
    require_own(function, result, x_gradient);
    require_own(function, result_gradient, x_gradient);
    const AxisRows rows(result.shape, normalize_axis(function, axis, result.rank()));
    const WorkScope work(function, work_each(4, result, result_gradient, x_gradient));
    if (result.numel() > 0)
        run(kind, "softmax_backward", rows, result,
            {result.argument(), result_gradient.argument(), x_gradient.argument()});
}

}  // namespace declivity::ops
