#include <declivity/ops/lstm_cell.hpp>

#include <algorithm>
#include <vector>

#include <declivity/ops/operation.hpp>

#include "ops/support/work.hpp"
#include "ops/support/work_split.hpp"

namespace declivity::ops {
namespace {

/// No attributes.
struct LstmCell {};

void check(std::string_view name, const View& c, const View& view, const Shape& shape) {
    require_alike("lstm_cell", "c", c, name, view);
    require_shape("lstm_cell", name, view, shape);
    require_dense("lstm_cell", name, view);
}

void check(const View& a, const View& b, const View& c) {
    require_real("lstm_cell", "c", c.dtype);
    require_rank("lstm_cell", "c", c, 2, "N, H");
    require_dense("lstm_cell", "c", c);
    const Shape gates{c.shape[0], 4 * c.shape[1]};
    check("a", c, a, gates);
    check("b", c, b, gates);
}

/// @param name of the kernel, which takes all views that are read, and then all results
EpilogueFused launch_cell(const char* name, const OperationViews& views, std::size_t reads, double flops) {
    const View& c = views.in(2);
    if (c.numel() == 0) return EpilogueFused::no;
    const std::int64_t rows = c.shape[0], n = c.shape[1];
    const Device device = c.device();
    const bool simd = is_simd(device);
    Defines defines = real_defines(c.dtype);
    defines.set("T", cl_type(c.dtype)).set(form_macro(simd), 1).set("LANES", vector_lanes(c.dtype));
    const Kernel kernel(device, {"lstm_cell.cl", name, defines});
    std::vector<Argument> arguments{rows, n};
    Range range{.global = {1, 1, 1}, .local = {1, 1, 1}};
    if (simd) {
        const std::int64_t each = rows_each(device, rows, 16 * n);  // an element costs more than in other kernels
        arguments.emplace_back(each);
        range.global[0] = to_size(ceil_div(rows, each));
    } else {
        const std::size_t group = item_group(kernel);
        range = {.global = {round_up(to_size(rows * n), group), 1, 1}, .local = {group, 1, 1}};
    }
    for (std::size_t i = 0; i < reads; ++i) arguments.emplace_back(views.in(i).argument());
    for (std::size_t i = 0; i < 2; ++i) arguments.emplace_back(views.out(i).argument());
    const WorkScope work(name, work_each(flops, c, views.in(0), views.in(1), views.out(0), views.out(1)));
    launch(kernel, range, arguments);
    return EpilogueFused::no;
}

}  // namespace

LstmCellResults lstm_cell(const View& a, const View& b, const View& c) {
    check(a, b, c);
    const OperationResults results = operation(
        "lstm_cell",
        [](const OperationViews& views, const LstmCell&) { return launch_cell("lstm_cell", views, 3, 30); }, LstmCell{},
        {.reads = {a, b, c}, .outputs = {{c.dtype, c.shape}, {c.dtype, c.shape}}, .upcasts_to_f32 = true});
    return {results[0], results[1]};
}

LstmCellGradients lstm_cell_backward(const View& a, const View& b, const View& c, const View& hidden_gradient,
                                     const View& cell_gradient) {
    check(a, b, c);
    check("the gradient of the hidden state", c, hidden_gradient, c.shape);
    check("the gradient of the cell", c, cell_gradient, c.shape);
    const OperationResults results = operation(
        "lstm_cell_backward",
        [](const OperationViews& views, const LstmCell&) { return launch_cell("lstm_cell_backward", views, 5, 50); },
        LstmCell{},
        {.reads = {a, b, c, hidden_gradient, cell_gradient},
         .outputs = {{c.dtype, a.shape}, {c.dtype, c.shape}},
         .upcasts_to_f32 = true});
    return {results[0], results[1]};
}

}  // namespace declivity::ops
