#include <declivity/ops/recurrent.hpp>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include <declivity/ops/copy.hpp>
#include <declivity/ops/operation.hpp>
#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

#include "ops/support/local_block.hpp"
#include "ops/support/row_launch.hpp"
#include "ops/support/vector_form.hpp"
#include "ops/support/work.hpp"
#include "ops/support/work_split.hpp"

namespace declivity::ops {
namespace {

/// Attributes of the operations.
struct Recurrence {
    RecurrentCell cell;
    bool reverse;
};

/// Layout of the kernels' struct; must match cl_kernels/recurrent/.
struct Sizes {
    std::int32_t steps, rows, units, slots, reverse, save;
};

struct Operands {
    const View &gates, &weight, &hidden, &cell, &bias, &lengths;
};

constexpr std::size_t kOperands = 6;

std::vector<View> reads_of(const RecurrentOperands& in) {
    return {in.gates, in.weight, in.hidden, in.cell, in.bias, in.lengths};
}
Operands operands_of(const OperationViews& views) {
    return {views.in(0), views.in(1), views.in(2), views.in(3), views.in(4), views.in(5)};
}

Sizes sizes_of(const Operands& in, const Recurrence& call) {
    return {.steps = narrow(in.gates.shape[0]),
            .rows = narrow(in.gates.shape[1]),
            .units = narrow(in.weight.shape[1]),
            .slots = narrow(in.gates.shape[0]),
            .reverse = call.reverse ? 1 : 0,
            .save = 1};
}

Defines defines_of(const Operands& in, const Recurrence& call) {
    Defines defines = real_defines(in.gates.dtype);
    return defines.set("CELL", static_cast<int>(call.cell)).set("LENGTHS", in.lengths.buffer ? 1 : 0);
}

/// Parameters of a direction (forward or backward) of the kernels.
struct Direction {
    const char *kernel, *pack, *tiles;
    std::int64_t steps;            ///< launches, or steps of one
    std::int64_t vectors, depth;   ///< simd: vectors of a panel for each vector of units; length of a sum
    std::int64_t tile_rows_depth;  ///< simt: gates whose weights are in local memory
};

/// Partition of the work of simd kernels.
struct RecurrentTiling {
    std::int64_t vector, rows, panel_vectors;  ///< VW, ROWS, PANEL_VECTORS
    std::int64_t each, panels_each, panels;
    bool single_launch;  ///< all steps in one launch
};

RecurrentTiling tiling_of(const Device& device, DType dtype, const Sizes& sizes, const Direction& direction) {
    // Multiply-adds of a step that justify a launch per step: a launch takes some 20 microseconds.
    constexpr double worth_launch = 1 << 20;
    const VectorForm form = vector_form(device, dtype);
    RecurrentTiling tiling{.vector = form.vector,
                           .rows = 1,
                           .panel_vectors = 1,
                           .each = 0,
                           .panels_each = 0,
                           .panels = 0,
                           .single_launch = true};
    const std::int64_t units = sizes.units, rows = sizes.rows, compute_units = device.info().compute_units;
    const std::int64_t vectors = ceil_div(units, form.vector);
    // Panels of about four vectors, and at most as many as there are.
    const std::int64_t max_vectors = std::max<std::int64_t>(1, 4 / direction.vectors);
    tiling.panel_vectors = std::min(max_vectors, vectors);
    while (tiling.panel_vectors > 1 &&
           ceil_div(vectors, tiling.panel_vectors) * tiling.panel_vectors > vectors + vectors / 8)
        --tiling.panel_vectors;
    tiling.panels = ceil_div(vectors, tiling.panel_vectors);
    // Registers: sums, a row of a panel, and a number.
    const std::int64_t sums_per_row = tiling.panel_vectors * direction.vectors;
    const std::int64_t max_rows = std::min<std::int64_t>(8, (form.registers - 1 - sums_per_row) / sums_per_row);
    const double work = static_cast<double>(rows) * static_cast<double>(units) * static_cast<double>(direction.depth) *
                        static_cast<double>(direction.vectors);
    tiling.single_launch = rows >= compute_units || work < worth_launch;
    const std::int64_t rows_per_item = tiling.single_launch ? ceil_div(rows, compute_units) : rows;
    tiling.rows = ceil_div(rows_per_item, ceil_div(rows_per_item, max_rows));
    tiling.each = round_up(rows_per_item, tiling.rows);
    tiling.panels_each =
        tiling.single_launch ? tiling.panels : std::max<std::int64_t>(1, tiling.panels / (compute_units * 4));
    return tiling;
}

void launch_simd(const Operands& in, const Recurrence& call, const Sizes& sizes, const Direction& direction,
                 const std::vector<Argument>& others) {
    const Device device = in.gates.device();
    const DType dtype = in.gates.dtype;
    const RecurrentTiling tiling = tiling_of(device, dtype, sizes, direction);
    const std::int64_t gates = gates_of(call.cell), lanes = tiling.panel_vectors * tiling.vector;
    const View panels = View::make(device, dtype, {tiling.panels, gates * sizes.units, lanes});
    Defines pack_defines = real_defines(dtype);
    pack_defines.set("VW", tiling.vector).set("GATES", gates).set("UNITS", lanes);
    launch({device, {"recurrent_pack.cl", direction.pack, pack_defines}}, {{to_size(tiling.panels), 1, 1}, {1, 1, 1}},
           {sizes.units, in.weight.argument(), panels.argument()});
    Defines defines = defines_of(in, call);
    defines.set("VW", tiling.vector).set("ROWS", tiling.rows).set("PANEL_VECTORS", tiling.panel_vectors);
    const Kernel kernel(device, {"recurrent.cl", direction.kernel, defines});
    const std::int64_t steps = tiling.single_launch ? direction.steps : 1;
    const Range range{{to_size(ceil_div(std::int64_t{sizes.rows}, tiling.each)),
                       to_size(ceil_div(tiling.panels, tiling.panels_each)), 1},
                      {1, 1, 1}};
    for (std::int64_t first = 0; first < direction.steps; first += steps) {
        std::vector<Argument> arguments{
            sizes, narrow(first), narrow(steps), narrow(tiling.each), narrow(tiling.panels_each), panels.argument()};
        arguments.insert(arguments.end(), others.begin(), others.end());
        launch(kernel, range, arguments);
    }
}

void launch_simt(const Operands& in, const Recurrence& call, const Sizes& sizes, const Direction& direction,
                 const std::vector<Argument>& others) {
    constexpr std::int64_t max_lanes = 16, max_local = std::int64_t{47} << 10;
    const Device device = in.gates.device();
    const DType dtype = in.gates.dtype;
    const std::int64_t units = device.info().compute_units;
    const auto lanes_of = [&](std::size_t group) { return std::min(max_lanes, static_cast<std::int64_t>(group)); };
    std::int64_t each = 1, chunk = 64;
    const auto elements = [&](std::size_t group) {
        const std::int64_t lanes = lanes_of(group), lines = static_cast<std::int64_t>(group) / lanes;
        return (lines * each + direction.tile_rows_depth * lanes) * (chunk + 4);
    };
    const GroupKernel kernel = kernel_of_group(device, 256, [&](std::size_t group) {
        const std::int64_t lanes = lanes_of(group), lines = static_cast<std::int64_t>(group) / lanes;
        // A step takes as long as its longest group: several rows per work-item only if all compute units are busy.
        each = 4;
        const auto groups = [&] {
            return ceil_div(std::int64_t{sizes.units}, lanes) * ceil_div(std::int64_t{sizes.rows}, lines * each);
        };
        while (each > 1 && groups() < 2 * units) each /= 2;
        chunk = 64;
        while (chunk > 16 &&
               (elements(group) > block_elements(device, dtype, max_local) || chunk >= 2 * direction.depth))
            chunk /= 2;
        Defines defines = defines_of(in, call);
        defines.set("CHUNK", chunk).set("ROWS_PER_ITEM", each).set("LANES", lanes).set("LINES", lines);
        return Kernel(device, {"recurrent_tiles.cl", direction.tiles, defines});
    });
    const std::int64_t lanes = lanes_of(kernel.group), lines = static_cast<std::int64_t>(kernel.group) / lanes;
    const LocalMemory shared = local_memory(elements(kernel.group), dtype);
    const Range range{{round_up(to_size(sizes.units), to_size(lanes)),
                       to_size(ceil_div(std::int64_t{sizes.rows}, lines * each) * lines), 1},
                      {to_size(lanes), to_size(lines), 1}};
    for (std::int64_t step = 0; step < direction.steps; ++step) {
        std::vector<Argument> arguments{sizes, narrow(step), in.weight.argument()};
        arguments.insert(arguments.end(), others.begin(), others.end());
        arguments.emplace_back(shared);
        launch(kernel.kernel, range, arguments);
    }
}

void launch_steps(const Operands& in, const Recurrence& call, const Sizes& sizes, const Direction& direction,
                  const std::vector<Argument>& others) {
    if (is_simd(in.gates.device())) launch_simd(in, call, sizes, direction, others);
    else launch_simt(in, call, sizes, direction, others);
}

Work work_of(const Operands& in, std::initializer_list<const View*> others) {
    Work work{.flops = static_cast<double>(in.gates.numel()) * static_cast<double>(2 * in.weight.shape[1]),
              .bytes = bytes_of(in.gates) + bytes_of(in.weight),
              .f64 = in.gates.dtype == DType::f64};
    for (const View* other : others) work.bytes += bytes_of(*other);
    return work;
}

EpilogueFused launch_recurrent(const OperationViews& views, const Recurrence& call) {
    const Operands in = operands_of(views);
    const bool lstm = call.cell == RecurrentCell::lstm;
    const View &y = views.out(0), &hidden = views.out(1);
    const View cell = lstm ? views.out(3) : View();
    View saved = workspace_size(call.cell) > 0 ? views.out(2) : View();
    if (y.numel() == 0) return EpilogueFused::no;
    const WorkScope scope("recurrent", work_of(in, {&y}));
    Sizes sizes = sizes_of(in, call);
    if (!saved.buffer) {  // the cell state only, of a step and the previous one
        sizes.save = 0;
        sizes.slots = 2;
        if (lstm)
            saved = View::make(y.device(), y.dtype, {sizes.slots, sizes.rows, workspace_size(call.cell), sizes.units});
    }
    const std::int64_t gates = gates_of(call.cell);
    launch_steps(
        in, call, sizes,
        {.kernel = "recurrent_forward",
         .pack = "recurrent_pack_forward",
         .tiles = "recurrent_forward_tiles",
         .steps = sizes.steps,
         .vectors = gates,
         .depth = sizes.units,
         .tile_rows_depth = gates},
        {in.gates.argument(), or_else(in.bias, in.hidden), or_else(in.lengths, in.hidden), in.hidden.argument(),
         or_else(in.cell, in.hidden), y.argument(), hidden.argument(), or_else(cell, hidden), or_else(saved, hidden)});
    return EpilogueFused::no;
}

EpilogueFused launch_backward(const OperationViews& views, const Recurrence& call) {
    const Operands in = operands_of(views);
    const View &y = views.in(kOperands), &saved = views.in(kOperands + 1), &g = views.in(kOperands + 2),
               &hidden_gradient = views.in(kOperands + 3), &cell_gradient = views.in(kOperands + 4);
    const View &gates = views.out(0), &hidden = views.out(1);
    const View cell = call.cell == RecurrentCell::lstm ? views.out(2) : View(),
               products = call.cell == RecurrentCell::gru ? views.out(2) : View();
    if (y.numel() == 0) return EpilogueFused::no;
    const WorkScope scope("recurrent_backward", work_of(in, {&y, &g, &gates}));
    // Sums accumulated from step to step start as the gradients of the last states.
    copy(hidden_gradient, hidden);
    if (cell.buffer) copy(cell_gradient, cell);
    const Sizes sizes = sizes_of(in, call);
    const std::int64_t count = gates_of(call.cell);
    launch_steps(
        in, call, sizes,
        {.kernel = "recurrent_backward",
         .pack = "recurrent_pack_backward",
         .tiles = "recurrent_backward_tiles",
         .steps = sizes.steps + 1,
         .vectors = 1,
         .depth = count * sizes.units,
         .tile_rows_depth = 1},
        {g.argument(), or_else(in.lengths, in.hidden), in.hidden.argument(), or_else(in.cell, in.hidden), y.argument(),
         or_else(saved, y), gates.argument(), or_else(products, gates), hidden.argument(), or_else(cell, hidden)});
    return EpilogueFused::no;
}

void check(std::string_view function, RecurrentCell cell, const RecurrentOperands& in) {
    require_real(function, "the gates", in.gates.dtype);
    require_rank(function, "the gates", in.gates, 3, "T, N, G H");
    require_rank(function, "the weight", in.weight, 2, "G H, H");
    const std::int64_t steps = in.gates.shape[0], rows = in.gates.shape[1], units = in.weight.shape[1],
                       gates = gates_of(cell) * units;
    constexpr std::int64_t max_size = std::int64_t{1} << 30;
    if (steps == 0 || units == 0 || steps > max_size || rows > max_size || gates > max_size)
        throw ShapeError(fmt::format("{}: expected 1 to 2^30 steps and units, got {}", function, in.gates.shape.str()));
    const auto require = [&](std::string_view what, const View& view, const Shape& shape) {
        require_shape(function, what, view, shape);
        require_dense(function, what, view);
        require_alike(function, "the gates", in.gates, what, view);
    };
    require("the gates", in.gates, {steps, rows, gates});
    require("the weight", in.weight, {gates, units});
    require("the hidden state", in.hidden, {rows, units});
    if (cell == RecurrentCell::lstm) require("the cell", in.cell, {rows, units});
    if (cell == RecurrentCell::gru) require("the bias", in.bias, {units});
    if (in.lengths.buffer) {
        require_shape(function, "the lengths", in.lengths, {rows});
        require_dense(function, "the lengths", in.lengths);
        require_same_device(function, in.gates, in.lengths);
        if (in.lengths.dtype != DType::i32)
            throw TypeError(fmt::format("{}: expected lengths of i32, got {}", function, name_of(in.lengths.dtype)));
    }
}

}  // namespace

RecurrentResults recurrent(RecurrentCell cell, const RecurrentOperands& in, bool reverse) {
    check("recurrent", cell, in);
    const Shape &gates = in.gates.shape, &state = in.hidden.shape;
    const DType dtype = in.gates.dtype;
    std::vector<OperationOutput> outputs{{dtype, {gates[0], gates[1], state[1]}}, {dtype, state}};
    if (const std::int64_t saved = workspace_size(cell); saved > 0)
        outputs.push_back({compute_type(dtype), {gates[0], gates[1], saved, state[1]}, true});
    if (cell == RecurrentCell::lstm) outputs.push_back({dtype, state});
    const OperationResults results =
        operation("recurrent", launch_recurrent, Recurrence{cell, reverse},
                  {.reads = reads_of(in), .outputs = std::move(outputs), .upcasts_to_f32 = true});
    return {results[0], results[1], results[2], results[3]};
}

RecurrentGradients recurrent_backward(RecurrentCell cell, const RecurrentOperands& in, bool reverse, const View& y,
                                      const View& saved, const View& y_gradient, const View& hidden_gradient,
                                      const View& cell_gradient) {
    constexpr std::string_view name = "recurrent_backward";
    check(name, cell, in);
    const Shape &gates = in.gates.shape, &state = in.hidden.shape;
    const DType dtype = in.gates.dtype;
    const auto require = [&](std::string_view what, const View& view, const Shape& shape) {
        require_shape(name, what, view, shape);
        require_dense(name, what, view);
    };
    require("y", y, {gates[0], gates[1], state[1]});
    require("the gradient of y", y_gradient, y.shape);
    require("the gradient of the hidden state", hidden_gradient, state);
    if (cell == RecurrentCell::lstm) require("the gradient of the cell", cell_gradient, state);
    std::vector<View> reads = reads_of(in);
    reads.insert(reads.end(), {y, saved, y_gradient, hidden_gradient, cell_gradient});
    const bool lstm = cell == RecurrentCell::lstm, gru = cell == RecurrentCell::gru;
    std::vector<OperationOutput> outputs{{dtype, gates}, {dtype, state}};
    if (lstm) outputs.push_back({dtype, state});
    if (gru) outputs.push_back({dtype, gates});
    const OperationResults results =
        operation(name, launch_backward, Recurrence{cell, reverse},
                  {.reads = std::move(reads), .outputs = std::move(outputs), .upcasts_to_f32 = true});
    return {results[0], results[1], lstm ? results[2] : LazyArray(), gru ? results[2] : results[0]};
}

}  // namespace declivity::ops
