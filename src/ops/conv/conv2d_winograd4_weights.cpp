// The gradient of 3 x 3 filters by Winograd's minimal filtering (cl_kernels/conv/conv2d_winograd4_weights.cl).
#include <algorithm>
#include <array>

#include "conv2d_tiled.hpp"
#include "conv2d_winograd.hpp"
#include "ops/support/local_block.hpp"
#include "ops/support/vector_form.hpp"
#include "ops/support/work_split.hpp"

namespace declivity::ops::winograd {
namespace {

constexpr std::int64_t kScratchBytes = 960 * 1024;  // of a work-item, to stay in the L2 cache
constexpr std::int64_t kMinTiles = 12;              // of a unit: all sums are read and written for each

/// Layout of the kernel's struct; must match cl_kernels/conv/conv2d_winograd4_weights.cl.
struct Gradient {
    std::int64_t partial;
    std::int32_t images, channels, filters, height, width, rows, columns, pad_top, pad_left, images_each, tile_rows,
        tile_columns, units_h, units_w, units, units_each, chunks;
    std::int32_t filters_each, channels_each, channel_parts, parts, flat, x_row, g_row, sum_row, x_element, g_element,
        sum_element, slice, has_bias;
};

/// Parts of the filters and channels whose sums fit together.
struct Parts {
    std::int64_t filters_each, channels_each, filter_parts, channel_parts;
    [[nodiscard]] std::int64_t count() const { return filter_parts * channel_parts; }
};

/// Divides the longer side until the sums fit.
Parts cut_parts(const Conv2dProblem& problem, std::int64_t rows, std::int64_t columns) {
    Parts parts{0, 0, 1, 1};
    for (;;) {
        parts.filters_each = ceil_div(ceil_div(problem.filters, parts.filter_parts), rows) * rows;
        parts.channels_each = ceil_div(ceil_div(problem.channels, parts.channel_parts), columns) * columns;
        const bool filters_more = parts.filters_each > rows, channels_more = parts.channels_each > columns;
        if (parts.filters_each * parts.channels_each <= kMaxPairs || (!filters_more && !channels_more)) break;
        const bool of_filters = filters_more && (parts.filters_each > parts.channels_each || !channels_more);
        ++(of_filters ? parts.filter_parts : parts.channel_parts);
    }
    parts.filter_parts = ceil_div(problem.filters, parts.filters_each);
    parts.channel_parts = ceil_div(problem.channels, parts.channels_each);
    return parts;
}

/// Plan of a problem for a device.
struct LaunchConfig {
    VectorForm form;
    RegisterTile tile;
    Parts parts;
    Units unit_config;
    std::int64_t units_each, chunks, groups;
    std::int64_t x_row, g_row, sum_element, x_element, g_element;
    bool flat;  ///< a unit has whole rows
    [[nodiscard]] std::int64_t columns() const { return tile.vectors * form.vector; }
};

LaunchConfig launch_config_of(const Conv2dProblem& problem, const Device& device) {
    const std::int64_t bytes = static_cast<std::int64_t>(size_of(problem.dtype)),
                       target_groups = std::int64_t{device.info().compute_units} * kGroupsPerUnit;
    LaunchConfig config{};
    config.form = vector_form(device, problem.dtype);
    config.tile = cheapest_tile(kRegisterTiles, config.form, problem.filters, problem.channels, kGain);
    config.parts = cut_parts(problem, config.tile.rows, config.columns());
    const std::int64_t pairs = config.parts.filters_each * config.parts.channels_each, parts = config.parts.count();
    config.x_row = config.parts.channels_each;
    config.g_row = ceil_div(config.parts.filters_each, config.form.vector) * config.form.vector;
    const std::int64_t fitting =
        std::clamp((kScratchBytes / (bytes * kElements) - pairs) / (config.x_row + config.g_row), kMinTiles, kMaxTiles);
    const std::int64_t grid = block_elements(device, problem.dtype, kGridBytes) / config.form.vector;
    config.unit_config = split_into_units(problem.output, problem.images, problem.images, fitting, grid);
    const std::int64_t units = config.unit_config.count, tiles = config.unit_config.tiles();
    config.units_each = ceil_div(units, std::clamp<std::int64_t>(ceil_div(target_groups, parts), 1, units));
    config.chunks = ceil_div(units, config.units_each);
    config.groups = std::min(parts * config.chunks, target_groups);
    config.sum_element = spread(pairs);
    config.x_element = spread(tiles * config.x_row);
    config.g_element = spread(tiles * config.g_row);
    config.flat =
        config.unit_config.units_w == 1 && problem.input[1] <= Units::grid_size(config.unit_config.tiles_w_each);
    return config;
}

Gradient arguments_of(const Conv2dProblem& problem, const LaunchConfig& config, std::int64_t weights, bool has_bias) {
    return {.partial = weights,
            .images = narrow(problem.images),
            .channels = narrow(problem.channels),
            .filters = narrow(problem.filters),
            .height = narrow(problem.input[0]),
            .width = narrow(problem.input[1]),
            .rows = narrow(problem.output[0]),
            .columns = narrow(problem.output[1]),
            .pad_top = narrow(problem.padding[0]),
            .pad_left = narrow(problem.padding[1]),
            .images_each = narrow(config.unit_config.images_each),
            .tile_rows = narrow(config.unit_config.tiles_h_each),
            .tile_columns = narrow(config.unit_config.tiles_w_each),
            .units_h = narrow(config.unit_config.units_h),
            .units_w = narrow(config.unit_config.units_w),
            .units = narrow(config.unit_config.count),
            .units_each = narrow(config.units_each),
            .chunks = narrow(config.chunks),
            .filters_each = narrow(config.parts.filters_each),
            .channels_each = narrow(config.parts.channels_each),
            .channel_parts = narrow(config.parts.channel_parts),
            .parts = narrow(config.parts.count()),
            .flat = config.flat ? 1 : 0,
            .x_row = narrow(config.x_row),
            .g_row = narrow(config.g_row),
            .sum_row = narrow(config.parts.channels_each),
            .x_element = narrow(config.x_element),
            .g_element = narrow(config.g_element),
            .sum_element = narrow(config.sum_element),
            .slice = narrow(kElements * (config.sum_element + config.x_element + config.g_element)),
            .has_bias = has_bias ? 1 : 0};
}

}  // namespace

void backward_weights(const Conv2dProblem& problem, const Conv2dOperands& operands) {
    const Device device = operands.x.device();
    const LaunchConfig config = launch_config_of(problem, device);
    const std::int64_t weights = operands.weight.numel();
    const Gradient d = arguments_of(problem, config, weights, operands.bias.has_value());
    const View partials = config.chunks == 1 ? reshaped(operands.weight, {1, weights})
                                             : View::make(device, problem.dtype, {config.chunks, weights});
    const View scratch = View::make(device, problem.dtype, {config.groups * d.slice});
    const View biases = tiled::bias_partials(operands, config.chunks);
    Defines defines = real_defines(problem.dtype);
    defines.set("VW", config.form.vector).set("ROWS", config.tile.rows).set("COLUMNS", config.columns());
    const Kernel kernel(device, {"conv2d_winograd4_weights.cl", "conv2d_winograd4_backward_weights", defines});
    const std::int64_t tiles_h_each = config.unit_config.tiles_h_each, tiles_w_each = config.unit_config.tiles_w_each,
                       grid_size = Units::grid_size(tiles_h_each), across = Units::grid_size(tiles_w_each);
    const auto offset_table = [&](std::int64_t rows, std::int64_t row, std::int64_t pitch) {
        return LocalMemory{to_size(config.flat ? rows * row : pitch) * sizeof(std::int32_t)};
    };
    launch(kernel, {{to_size(config.groups)}, {1}},
           {d, local_memory((grid_size * across + 1) * config.form.vector, problem.dtype),
            offset_table(grid_size, problem.input[1], across),
            offset_table(tiles_h_each * 4, problem.output[1], tiles_w_each * 4), operands.x.argument(),
            operands.out.argument(), scratch.argument(), partials.argument(), biases.argument()});
    if (config.chunks == 1) return;
    reduce_partials(problem, operands, partials, operands.weight);
    if (operands.bias) reduce_partials(problem, operands, biases, *operands.bias);
}

}  // namespace declivity::ops::winograd
