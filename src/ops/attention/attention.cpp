#include <declivity/ops/attention.hpp>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include <declivity/ops/operation.hpp>
#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

#include "ops/engine/partial_sums.hpp"
#include "ops/engine/real_arguments.hpp"
#include "ops/support/local_block.hpp"
#include "ops/support/row_launch.hpp"
#include "ops/support/vector_form.hpp"
#include "ops/support/work.hpp"
#include "ops/support/work_split.hpp"

namespace declivity::ops {
namespace {

// Values of MASK in cl_kernels/attention/attention.clh.
constexpr int kMaskNone = 0, kMaskBool = 1, kMaskAdditive = 2;

/// Attributes of the operations.
struct Attention {
    double scale, dropout;
    std::int64_t low, high, shift, random_first, random_index;
};

/// Layout of the kernels' struct; must match cl_kernels/attention/.
struct Sizes {
    std::int64_t q_batch, q_head, k_batch, k_head, v_batch, v_head, mask_batch = 0, mask_head = 0;
    std::int32_t q_row, k_row, v_row, mask_row = 0, mask_key = 0;
    std::int32_t queries, keys, heads, group, low, high, shift;

    [[nodiscard]] std::int64_t rows() const { return std::int64_t{queries} * group; }
};

/// Partition of the work of simd kernels: attention_blocks.clh.
struct Blocks {
    std::int64_t vector, rows, keys, columns, block;

    [[nodiscard]] std::int64_t length() const { return rows * vector; }
};

Blocks blocks_of(const Device& device, DType dtype, std::int64_t rows, std::int64_t width) {
    const VectorForm form = vector_form(device, dtype);
    Blocks blocks{.vector = form.vector, .rows = rows > form.vector ? 2 : 1, .keys = 0, .columns = 0, .block = 0};
    const bool many_registers = form.registers >= 32;
    blocks.keys = many_registers ? 24 / blocks.rows : 12 / blocks.rows;
    // Divides evenly where possible, so that the last tile is a full one.
    blocks.columns = std::min(width, blocks.keys);
    while (blocks.columns > 4 && width % blocks.columns != 0) --blocks.columns;
    if (width % blocks.columns != 0) blocks.columns = std::min(width, blocks.keys);
    blocks.block = 48;
    return blocks;
}

struct Operands {
    const View &q, &k, &v, &mask, &slopes, &random;
};

Operands operands_of(const OperationViews& views) {
    return {views.in(0), views.in(1), views.in(2), views.in(3), views.in(4), views.in(5)};
}

Sizes sizes_of(const Operands& in, const Attention& call) {
    const auto& [q, k, v, mask, slopes, random] = in;
    Sizes sizes{.q_batch = q.strides[0],
                .q_head = q.strides[1],
                .k_batch = k.strides[0],
                .k_head = k.strides[1],
                .v_batch = v.strides[0],
                .v_head = v.strides[1],
                .q_row = narrow(q.strides[2]),
                .k_row = narrow(k.strides[2]),
                .v_row = narrow(v.strides[2]),
                .queries = narrow(q.shape[2]),
                .keys = narrow(k.shape[2]),
                .heads = narrow(k.shape[1]),
                .group = narrow(q.shape[1] / k.shape[1]),
                .low = narrow(call.low),
                .high = narrow(call.high),
                .shift = narrow(call.shift)};
    if (mask.buffer) {
        sizes.mask_batch = mask.strides[0];
        sizes.mask_head = mask.strides[1];
        sizes.mask_row = narrow(mask.strides[2]);
        sizes.mask_key = narrow(mask.strides[3]);
    }
    return sizes;
}

Defines defines_of(const Operands& in, const Attention& call) {
    Defines defines = real_defines(in.q.dtype);
    defines.set("D", in.q.shape[3]).set("E", in.v.shape[3]);
    defines.set("MASK", !in.mask.buffer ? kMaskNone : in.mask.dtype == DType::boolean ? kMaskBool : kMaskAdditive);
    return defines.set("ALIBI", in.slopes.buffer ? 1 : 0).set("DROPOUT", call.dropout > 0 ? 1 : 0);
}

/// Defines of the kernels in tiles.
Defines tile_defines(const Operands& in, const Attention& call) {
    return defines_of(in, call).set("GROUPED_QUERIES", in.q.shape[1] == in.k.shape[1] ? 0 : 1);
}

std::vector<Argument> arguments_of(const Operands& in, const Attention& call, const Sizes& sizes) {
    const auto& [q, k, v, mask, slopes, random] = in;
    return {sizes,
            real_argument(q.dtype, call.scale),
            q.argument(),
            k.argument(),
            v.argument(),
            or_else(mask, q),
            or_else(slopes, q),
            or_else(random, q),
            call.random_first,
            call.random_index,
            real_argument(q.dtype, call.dropout)};
}

/// Packs a matrix of each head, (B, heads, L, D), into panels of `rows` rows: panels[z][panel][d][row].
View packed(const View& from, const Blocks& blocks) {
    Defines defines = real_defines(from.dtype);
    defines.set("KEYS", blocks.keys);
    const std::int64_t panels = ceil_div(from.shape[2], blocks.keys), depth = from.shape[3];
    const View to = View::make(from.device(), from.dtype, {from.shape[0] * from.shape[1], panels, depth, blocks.keys});
    launch({from.device(), {"attention_pack.cl", "attention_pack", defines}},
           {{to_size(panels), to_size(from.shape[1]), to_size(from.shape[0])}, {1, 1, 1}},
           {from.shape[2], narrow(depth), from.argument(), from.strides[0], from.strides[1], from.strides[2],
            to.argument()});
    return to;
}

Defines defines_of(const Operands& in, const Attention& call, const Blocks& blocks) {
    return defines_of(in, call)
        .set("VW", blocks.vector)
        .set("ROWS", blocks.rows)
        .set("KEYS", blocks.keys)
        .set("BLOCK", blocks.block);
}

std::int64_t width_of(const Operands& in) { return std::max(in.q.shape[3], in.v.shape[3]); }

/// A kernel of attention_tiles.cl or attention_tiles_backward.cl.
struct TileKernel {
    Kernel kernel;
    std::int64_t tile;
    LocalMemory shared;

    [[nodiscard]] Range range(std::int64_t length, std::int64_t heads, std::int64_t batch) const {
        const std::size_t items = to_size(tile / 4 * (tile / 4));
        return {.global = {to_size(ceil_div(length, tile)) * items, to_size(heads), to_size(batch)},
                .local = {items, 1, 1}};
    }
};

/// Builds the kernel with the largest tiles that fit the device.
/// @param width the longest row of an operand
TileKernel tile_kernel(const Device& device, DType dtype, const char* source, const char* name, std::int64_t width,
                       Defines defines) {
    constexpr std::int64_t narrow_rows = 64, max_local = std::int64_t{47} << 10;
    const std::int64_t chunk = width <= 16 ? 16 : 32;
    // Large tiles of wide rows would need too many registers for the sums.
    std::int64_t tile = width <= narrow_rows ? 64 : 32;
    const auto elements = [&] {
        return tile * (std::max(2 * (chunk + 4), 4 * ceil_div(width, 4)) + tile + 4) + tile * tile / 4;
    };
    while (tile > 16 && elements() > block_elements(device, dtype, max_local)) tile /= 2;
    for (;;) {
        defines.set("TILE", tile).set("CHUNK", chunk);
        Kernel kernel(device, {source, name, defines});
        if (tile == 16 || kernel.max_work_group() >= to_size(tile / 4 * (tile / 4)))
            return {std::move(kernel), tile, local_memory(elements(), dtype)};
        tile /= 2;
    }
}

/// @param products number of query-key products, of 2 D flops each
Work work_of(const Operands& in, const Attention& call, double products, std::initializer_list<View> others) {
    const double queries = static_cast<double>(in.q.numel() / std::max<std::int64_t>(1, in.q.shape[3]));
    double keys = static_cast<double>(in.k.shape[2]);
    if (call.high < in.k.shape[2] && call.low < -in.k.shape[2]) keys = (keys + 1) / 2;  // causal
    Work work{.flops = queries * keys * products * static_cast<double>(in.q.shape[3] + in.v.shape[3]),
              .bytes = bytes_of(in.q) + bytes_of(in.k) + bytes_of(in.v),
              .f64 = in.q.dtype == DType::f64};
    for (const View& other : others) work.bytes += bytes_of(other);
    return work;
}

EpilogueFused launch_attention(const OperationViews& views, const Attention& call) {
    const Operands in = operands_of(views);
    const View &y = views.out(0), &log_sums = views.out(1);
    if (y.numel() == 0) return EpilogueFused::no;
    const WorkScope scope("attention", work_of(in, call, 2, {y}));
    const Sizes sizes = sizes_of(in, call);
    const std::int64_t rows = sizes.rows();
    if (!is_simd(y.device())) {
        Defines defines = tile_defines(in, call);
        defines.set("LOG_SUMS", log_sums.buffer ? 1 : 0);
        const TileKernel tiles =
            tile_kernel(y.device(), y.dtype, "attention_tiles.cl", "attention_tiles", width_of(in), defines);
        std::vector<Argument> arguments = arguments_of(in, call, sizes);
        for (const View& view : {y, log_sums.buffer ? log_sums : y}) arguments.emplace_back(view.argument());
        arguments.emplace_back(tiles.shared);
        launch(tiles.kernel, tiles.range(rows, sizes.heads, in.q.shape[0]), arguments);
        return EpilogueFused::no;
    }
    const Blocks blocks = blocks_of(y.device(), y.dtype, rows, in.v.shape[3]);
    Defines defines = defines_of(in, call, blocks);
    defines.set("COLUMNS", blocks.columns).set("LOG_SUMS", log_sums.buffer ? 1 : 0);
    const View panels = packed(in.k, blocks);
    std::vector<Argument> arguments = arguments_of(in, call, sizes);
    for (const Argument& item : {Argument(panels.argument()), Argument(y.argument()), Argument(or_else(log_sums, y))})
        arguments.push_back(item);
    launch({y.device(), {"attention.cl", "attention", defines}},
           {{to_size(ceil_div(rows, blocks.length())), to_size(sizes.heads), to_size(in.q.shape[0])}, {1, 1, 1}},
           arguments);
    return EpilogueFused::no;
}

/// Computes the gradients by tiles, of q and then of k and v.
void launch_tiles_backward(const OperationViews& views, const Operands& in, const Attention& call, const Sizes& sizes) {
    const View &y = views.in(6), &log_sums = views.in(7), &g = views.in(8);
    const View &q_gradient = views.out(0), &k_gradient = views.out(1), &v_gradient = views.out(2);
    const Device device = y.device();
    const Defines defines = tile_defines(in, call);
    const View inner = View::make(device, log_sums.dtype, log_sums.shape);
    constexpr const char* source = "attention_tiles_backward.cl";
    const Kernel inner_kernel(device,
                              {source, "attention_backward_dot", Defines(defines).set("TILE", 16).set("CHUNK", 16)});
    const std::size_t group = item_group(inner_kernel);
    launch(
        inner_kernel, {.global = {round_up(to_size(inner.numel()), group), 1, 1}, .local = {group, 1, 1}},
        {sizes, inner.numel(), g.argument(), g.strides[0], g.strides[1], g.strides[2], y.argument(), inner.argument()});
    std::vector<Argument> arguments = arguments_of(in, call, sizes);
    for (const View* view : {&inner, &log_sums, &g}) arguments.emplace_back(view->argument());
    for (int axis = 0; axis < 3; ++axis) arguments.emplace_back(g.strides[axis]);
    std::vector<Argument> of_rows = arguments;
    of_rows.emplace_back(q_gradient.argument());
    const TileKernel rows =
        tile_kernel(device, y.dtype, source, "attention_tiles_backward_query", width_of(in), defines);
    of_rows.emplace_back(rows.shared);
    launch(rows.kernel, rows.range(sizes.rows(), sizes.heads, in.q.shape[0]), of_rows);
    arguments.emplace_back(k_gradient.argument());
    arguments.emplace_back(v_gradient.argument());
    const TileKernel keys =
        tile_kernel(device, y.dtype, source, "attention_tiles_backward_key_value", width_of(in), defines);
    arguments.emplace_back(keys.shared);
    launch(keys.kernel, keys.range(sizes.keys, sizes.heads, in.q.shape[0]), arguments);
}

EpilogueFused launch_backward(const OperationViews& views, const Attention& call) {
    const Operands in = operands_of(views);
    const View &y = views.in(6), &log_sums = views.in(7), &g = views.in(8);
    const View &q_gradient = views.out(0), &k_gradient = views.out(1), &v_gradient = views.out(2);
    const WorkScope scope("attention_backward", work_of(in, call, 5, {y, g, q_gradient, k_gradient, v_gradient}));
    const Sizes sizes = sizes_of(in, call);
    if (!is_simd(q_gradient.device())) {
        launch_tiles_backward(views, in, call, sizes);
        return EpilogueFused::no;
    }
    const std::int64_t rows = sizes.rows();
    const Blocks blocks = blocks_of(q_gradient.device(), q_gradient.dtype, rows, in.v.shape[3]);
    Defines defines = defines_of(in, call, blocks);
    defines.set("WIDTH", vector_form(q_gradient.device(), q_gradient.dtype).registers >= 32 ? 4 : 2);
    const View k_panels = packed(in.k, blocks), v_panels = packed(in.v, blocks);
    std::vector<Argument> arguments = arguments_of(in, call, sizes);
    for (const View* view : {&k_panels, &v_panels, &y, &log_sums, &g}) arguments.emplace_back(view->argument());
    for (int axis = 0; axis < 3; ++axis) arguments.emplace_back(g.strides[axis]);
    // A few heads are split into parts, so that all compute units are busy.
    const std::int64_t heads = sizes.heads * in.q.shape[0], units = q_gradient.device().info().compute_units;
    const std::int64_t parts = std::min(ceil_div(units, heads), ceil_div(rows, blocks.length()));
    std::array<SplitKPartial, 2> sums{{{k_gradient, k_gradient}, {v_gradient, v_gradient}}};
    if (parts > 1)
        for (SplitKPartial& sum : sums)
            sum.partials = View::make(sum.result.device(), sum.result.dtype, {parts, sum.result.numel()});
    arguments.emplace_back(q_gradient.argument());
    for (const SplitKPartial& sum : sums) arguments.emplace_back(sum.partials.argument());
    launch({q_gradient.device(), {"attention_backward.cl", "attention_backward", defines}},
           {{to_size(parts), to_size(sizes.heads), to_size(in.q.shape[0])}, {1, 1, 1}}, arguments);
    if (parts > 1) reduce_partials(sums, KernelStyle::simd);
    return EpilogueFused::no;
}

void check(std::string_view function, const AttentionOperands& in) {
    require_real(function, "q", in.q.dtype);
    require_rank(function, "q", in.q, 4, "B, heads, L, D");
    require_rank(function, "k", in.k, 4, "B, heads, L, D");
    const std::int64_t heads = in.k.shape[1];
    if (heads == 0 || in.q.shape[1] % heads != 0)
        throw ShapeError(fmt::format("{}: expected heads of q that are a multiple of those of k, got {} and {}",
                                     function, in.q.shape[1], heads));
    require_shape(function, "k", in.k, {in.q.shape[0], heads, in.k.shape[2], in.q.shape[3]});
    require_rank(function, "v", in.v, 4, "B, heads, L, E");
    require_shape(function, "v", in.v, {in.q.shape[0], heads, in.k.shape[2], in.v.shape[3]});
    require_alike(function, "q", in.q, "k", in.k);
    require_alike(function, "q", in.q, "v", in.v);
    for (const View* view : {&in.q, &in.k, &in.v})
        if (view->shape[3] > 1 && view->strides[3] != 1)
            throw ShapeError(fmt::format("{}: expected a contiguous last axis", function));
    if (in.mask.buffer) {
        require_shape(function, "the mask", in.mask, {in.q.shape[0], in.q.shape[1], in.q.shape[2], in.k.shape[2]});
        if (in.mask.dtype == DType::boolean) require_same_device(function, in.q, in.mask);
        else require_alike(function, "q", in.q, "the mask", in.mask);
    }
    if (in.slopes.buffer) {
        require_shape(function, "the slopes", in.slopes, {in.q.shape[1]});
        require_dense(function, "the slopes", in.slopes);
        require_alike(function, "q", in.q, "the slopes", in.slopes);
    }
}

/// @throws ShapeError for sizes that exceed the kernels' 32-bit indices
Attention call_of(const AttentionOperands& in, const AttentionAttributes& options) {
    constexpr std::int64_t limit = std::int64_t{1} << 30;
    for (const View* view : {&in.q, &in.k, &in.v, &in.mask})
        if (view->buffer && (view->shape[1] * view->shape[2] > limit || view->strides[2] > limit))
            throw ShapeError(
                fmt::format("attention: expected heads x L and strides up to 2^30, got {}", view->shape.str()));
    const auto clamped = [&](std::int64_t distance) { return std::clamp(distance, -limit, limit); };
    return {options.scale,          options.dropped,       clamped(options.low), clamped(options.high),
            clamped(options.shift), options.random.offset, options.random.skip};
}

}  // namespace

AttentionResults attention(const AttentionOperands& in, const AttentionAttributes& options) {
    check("attention", in);
    const Shape &q = in.q.shape, &v = in.v.shape;
    const OperationResults results = operation(
        "attention", launch_attention, call_of(in, options),
        {.reads = {in.q, in.k, in.v, in.mask, in.slopes, options.random.state},
         .outputs = {{in.q.dtype, {q[0], q[2], q[1], v[3]}}, {compute_type(in.q.dtype), {q[0], q[1], q[2]}, true}},
         .upcasts_to_f32 = true});
    return {results[0], results[1]};
}

AttentionGradients attention_backward(const AttentionOperands& in, const AttentionAttributes& options, const View& y,
                                      const View& log_sums, const View& g) {
    check("attention_backward", in);
    const Shape &q = in.q.shape, &k = in.k.shape, &v = in.v.shape;
    require_shape("attention_backward", "y", y, {q[0], q[2], q[1], v[3]});
    require_dense("attention_backward", "y", y);
    require_shape("attention_backward", "log_sums", log_sums, {q[0], q[1], q[2]});
    require_dense("attention_backward", "log_sums", log_sums);
    require_shape("attention_backward", "the gradient", g, {q[0], q[1], q[2], v[3]});
    const OperationResults results =
        operation("attention_backward", launch_backward, call_of(in, options),
                  {.reads = {in.q, in.k, in.v, in.mask, in.slopes, options.random.state, y, log_sums, g},
                   .outputs = {{in.q.dtype, {q[0], q[2], q[1], q[3]}},
                               {in.q.dtype, {k[0], k[2], k[1], k[3]}},
                               {in.q.dtype, {v[0], v[2], v[1], v[3]}}},
                   .upcasts_to_f32 = true});
    return {results[0], results[1], results[2]};
}

}  // namespace declivity::ops
