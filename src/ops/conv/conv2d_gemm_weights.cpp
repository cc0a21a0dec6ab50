// The gradient of a convolution's weights as a matrix product (cl_kernels/conv/conv2d_gemm_weights.cl).
#include <algorithm>
#include <array>
#include <optional>

#include "conv2d_gemm.hpp"
#include "conv2d_tiled.hpp"
#include "ops/engine/reduced_precision.hpp"
#include "ops/support/local_block.hpp"
#include "ops/support/work_split.hpp"

namespace declivity::ops::gemm {
namespace {

constexpr std::int64_t kBlockBytes = 256 * 1024, kSumBytes = 256 * 1024;  // stay in the L2 cache together
constexpr std::int64_t kBlockK =
    // positions: those of common images, 14 x 14, or a part of larger ones; a panel of g then mostly stays in the L1
    // cache
    200;
constexpr std::int64_t kGroupsPerUnit = 4;  // to balance the load
constexpr std::int64_t kMinRows = 96;       // of a work-group; with fewer, copying g costs too much
constexpr std::int64_t kManyRows = 128;     // with this many, copying is cheap

/// Layout of the kernel's struct; must match cl_kernels/conv/conv2d_gemm_weights.cl.
struct Gradient {
    std::int64_t x_image, x_channel, g_image, g_channel, partial;
    std::int32_t channels, filters, taps_h, taps_w, height, width, rows, columns, stride_h, stride_w, pad_top, pad_left,
        dilation_h, dilation_w;
    std::int32_t images, images_each, positions_each, blocks, blocks_each;
    std::int32_t panels, panels_each, row_panels, row_panels_each, swapped;
};

/// Returns the size of equal parts: as few parts as `max_part` allows, up to `target_parts` parts of at least
/// `min_part`.
std::int64_t part(std::int64_t total, std::int64_t max_part, std::int64_t min_part, std::int64_t target_parts) {
    const std::int64_t parts = std::max(ceil_div(total, std::max<std::int64_t>(1, max_part)),
                                        std::min(target_parts, total / std::max<std::int64_t>(1, min_part)));
    return ceil_div(total, std::max<std::int64_t>(1, parts));
}

/// Rows and columns of the product. Each element of the copied operand is used once for each row; if that is x
/// (`swapped`), the result needs no transposition.
struct Sides {
    bool swapped;
    std::int64_t channels, filters;
};

Sides sides_of(const Conv2dProblem& problem) {
    const bool single = problem.taps() == 1 && problem.stride == std::array<std::int64_t, 2>{1, 1} &&
                        problem.padding == std::array<std::int64_t, 2>{0, 0};
    const bool swapped = single && (problem.filters > problem.channels || problem.filters_per_group() >= kManyRows);
    return {swapped, swapped ? problem.filters_per_group() : problem.channels_per_group(),
            swapped ? problem.channels_per_group() : problem.filters_per_group()};
}

/// Elements of local memory for a block of the copied operand, and for sums.
struct Room {
    std::int64_t block, sums;
};

Room room_on(const Device& device, DType dtype) {
    const auto element = static_cast<std::int64_t>(size_of(compute_type(dtype))),
               local = static_cast<std::int64_t>(device.traits().local_memory);
    return {std::min(kBlockBytes, local / 2) / element, std::min(kSumBytes, local / 2) / element};
}

/// Returns the tile if the sums of each tap fit into local memory; a variant that does not fit is ignored.
std::optional<RegisterTile> tile_on(const Device& device, const Conv2dProblem& problem, std::string_view variant) {
    const VectorForm form = vector_form(device, problem.dtype);
    const Sides sides = sides_of(problem);
    const RegisterTile tile = choose_tile(problem.direction, form, sides.channels, sides.filters, variant);
    if (tile.rows * tile.vectors * form.vector * problem.taps() <= room_on(device, problem.dtype).sums) return tile;
    return variant.empty() ? std::nullopt : tile_on(device, problem, {});
}

/// Blocks of the product's k: parts of an image, whole rows if they are short, or several images.
struct Blocks {
    std::int64_t images_each, positions_each, count;
};

Blocks blocks_of(const Conv2dProblem& problem, std::int64_t max_k) {
    const std::int64_t plane = problem.output[0] * problem.output[1];
    const std::int64_t row = problem.output[1] <= max_k ? problem.output[1] : 1, max_rows = max_k / row;
    const std::int64_t images_each = std::clamp<std::int64_t>(max_k / plane, 1, problem.images);
    if (images_each > 1) return {images_each, plane, ceil_div(problem.images, images_each)};
    const std::int64_t positions_each = ceil_div(plane / row, ceil_div(plane / row, max_rows)) * row;
    return {1, positions_each, problem.images * ceil_div(plane, positions_each)};
}

/// Partition into work-groups: parts of the columns and rows, then of k.
struct SplitKConfig {
    std::int64_t panels_each, row_panels_each, tiles, blocks_each, chunks;
};

SplitKConfig split_config_of(const Conv2dProblem& problem, const Device& device, const RegisterTile& tile,
                             const Blocks& blocks, std::int64_t panels, std::int64_t row_panels) {
    const auto [block, sums] = room_on(device, problem.dtype);
    const std::int64_t columns = tile.vectors * vector_form(device, problem.dtype).vector,
                       tile_sums = tile.rows * columns * problem.taps();
    const std::int64_t target_parts =
        std::max<std::int64_t>(1, std::int64_t{device.info().compute_units} * kGroupsPerUnit / problem.groups);
    const std::int64_t max_panels =
        std::min(block / (blocks.images_each * blocks.positions_each * columns), sums / tile_sums);
    SplitKConfig config{};
    config.panels_each = part(panels, max_panels, 1, 1);
    const std::int64_t column_groups = ceil_div(panels, config.panels_each);
    config.row_panels_each =
        part(row_panels, sums / (tile_sums * config.panels_each), ceil_div(kMinRows, tile.rows * problem.taps()),
             ceil_div(target_parts, column_groups));
    config.tiles = column_groups * ceil_div(row_panels, config.row_panels_each);
    config.blocks_each = part(blocks.count, blocks.count, 1, ceil_div(target_parts, config.tiles));
    config.chunks = ceil_div(blocks.count, config.blocks_each);
    return config;
}

}  // namespace

bool is_applicable_to_weights(const Conv2dProblem& problem, const Device& device) {
    return tile_on(device, problem, {}).has_value();
}

void backward_weights(const Conv2dProblem& problem, const Conv2dOperands& operands, std::string_view variant) {
    const Device device = operands.x.device();
    const VectorForm form = vector_form(device, problem.dtype);
    const auto [swapped, channels, filters] = sides_of(problem);
    // The innermost loop reads single numbers of x, which would upcast f16 and bf16 repeatedly.
    const View x = upcast(swapped ? operands.out : operands.x), &g = swapped ? operands.x : operands.out;
    const RegisterTile tile = tile_on(device, problem, variant).value();
    const std::int64_t columns = tile.vectors * form.vector, panels = ceil_div(filters, columns),
                       row_panels = ceil_div(channels, tile.rows);
    const Room room = room_on(device, problem.dtype);
    const Blocks blocks = blocks_of(problem, std::min(kBlockK, room.block / columns));
    const SplitKConfig config = split_config_of(problem, device, tile, blocks, panels, row_panels);
    const std::int64_t x_plane = problem.input[0] * problem.input[1], plane = problem.output[0] * problem.output[1];
    const Gradient d{.x_image = x.shape[1] * x_plane,
                     .x_channel = x_plane,
                     .g_image = g.shape[1] * plane,
                     .g_channel = plane,
                     .partial = operands.weight.numel(),
                     .channels = narrow(channels),
                     .filters = narrow(filters),
                     .taps_h = narrow(problem.filter[0]),
                     .taps_w = narrow(problem.filter[1]),
                     .height = narrow(problem.input[0]),
                     .width = narrow(problem.input[1]),
                     .rows = narrow(problem.output[0]),
                     .columns = narrow(problem.output[1]),
                     .stride_h = narrow(problem.stride[0]),
                     .stride_w = narrow(problem.stride[1]),
                     .pad_top = narrow(problem.padding[0]),
                     .pad_left = narrow(problem.padding[1]),
                     .dilation_h = narrow(problem.dilation[0]),
                     .dilation_w = narrow(problem.dilation[1]),
                     .images = narrow(problem.images),
                     .images_each = narrow(blocks.images_each),
                     .positions_each = narrow(blocks.positions_each),
                     .blocks = narrow(blocks.count),
                     .blocks_each = narrow(config.blocks_each),
                     .panels = narrow(panels),
                     .panels_each = narrow(config.panels_each),
                     .row_panels = narrow(row_panels),
                     .row_panels_each = narrow(config.row_panels_each),
                     .swapped = swapped ? 1 : 0};
    const View partials = config.chunks == 1 ? reshaped(operands.weight, {1, operands.weight.numel()})
                                             : View::make(device, x.dtype, {config.chunks, operands.weight.numel()});
    Defines defines = storage_defines(problem.dtype, partials.dtype);
    defines.set("VW", form.vector).set("ROWS", tile.rows).set("COLUMNS", columns);
    const Kernel kernel(device, {"conv2d_gemm_weights.cl", "conv2d_gemm_backward_weights", defines});
    launch(kernel, {{to_size(config.tiles), to_size(config.chunks), to_size(problem.groups)}, {1, 1, 1}},
           {d, local_memory(room.block, x.dtype), local_memory(room.sums, x.dtype), x.argument(), g.argument(),
            partials.argument()});
    if (config.chunks > 1) reduce_partials(problem, operands, partials, operands.weight);
}

}  // namespace declivity::ops::gemm
