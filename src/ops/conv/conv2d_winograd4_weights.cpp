// The gradient of 3 x 3 filters by Winograd's minimal filtering (cl_kernels/conv/conv2d_winograd4_weights.cl).
#include <algorithm>
#include <array>

#include "conv2d_tiled.hpp"
#include "conv2d_winograd.hpp"
#include "ops/support/local_block.hpp"
#include "ops/support/vector_form.hpp"

namespace declivity::ops::winograd {
namespace {

constexpr std::int64_t kScratchBytes = 960 * 1024;  // of a work-item, that stay in the second cache
constexpr std::int64_t kLeastTiles = 12;            // of a unit: all sums are read and written for each

/// As the struct of the kernel.
struct Gradient {
    std::int64_t partial;
    std::int32_t images, channels, filters, height, width, rows, columns, pad_top, pad_left, images_each, tile_rows,
        tile_columns, units_h, units_w, units, units_each, chunks;
    std::int32_t filters_each, channels_each, channel_parts, parts, flat, x_row, dout_row, sum_row, x_element,
        dout_element, sum_element, slice, has_bias;
};

}  // namespace

void backward_weights(const Conv2dProblem& problem, const Conv2dOperands& operands) {
    const Device device = operands.x.device();
    const VectorForm form = vector_form(device, problem.dtype);
    const std::int64_t bytes = static_cast<std::int64_t>(size_of(problem.dtype)),
                       compute_units = device.info().compute_units;
    const RegisterTile tile = cheapest_tile(kRegisterTiles, form, problem.filters, problem.channels, kGain);
    const std::int64_t columns = tile.vectors * form.vector;

    // Parts of the filters and channels, the longer side halved until their sums fit.
    std::int64_t filter_parts = 1, channel_parts = 1;
    const auto filters_each = [&] { return ceil_div(ceil_div(problem.filters, filter_parts), tile.rows) * tile.rows; };
    const auto channels_each = [&] { return ceil_div(ceil_div(problem.channels, channel_parts), columns) * columns; };
    while (filters_each() * channels_each() > kMostPairs && (filters_each() > tile.rows || channels_each() > columns))
        ++(filters_each() > channels_each() && filters_each() > tile.rows ? filter_parts
           : channels_each() > columns                                    ? channel_parts
                                                                          : filter_parts);
    const std::int64_t part_filters = filters_each(), part_channels = channels_each();
    filter_parts = ceil_div(problem.filters, part_filters);
    channel_parts = ceil_div(problem.channels, part_channels);
    const std::int64_t x_row = part_channels, dout_row = ceil_div(part_filters, form.vector) * form.vector,
                       parts = filter_parts * channel_parts;

    const std::int64_t fitting =
        std::clamp((kScratchBytes / (bytes * kElements) - part_filters * part_channels) / (x_row + dout_row),
                   kLeastTiles, kMostTiles);
    const std::int64_t grid = block_elements(device, problem.dtype, kGridBytes) / form.vector;
    const auto held = Units::held;
    const Units cut = cut_units(problem.output, problem.images, problem.images, fitting, grid);
    const auto& [wide, high, units_w, units_h, images_each, units] = cut;
    const std::int64_t tiles = cut.tiles();
    const std::int64_t units_each = ceil_div(
                           units, std::clamp<std::int64_t>(ceil_div(compute_units * kGroupsPerUnit, parts), 1, units)),
                       chunks = ceil_div(units, units_each);
    const std::int64_t groups = std::min(parts * chunks, compute_units * kGroupsPerUnit);
    const std::int64_t sum_element = spread(part_filters * part_channels), x_element = spread(tiles * x_row),
                       dout_element = spread(tiles * dout_row);
    const bool flat = units_w == 1 && problem.input[1] <= held(wide);
    const std::int64_t weights = operands.weight.numel();
    const Gradient d{.partial = weights,
                     .images = narrow(problem.images),
                     .channels = narrow(problem.channels),
                     .filters = narrow(problem.filters),
                     .height = narrow(problem.input[0]),
                     .width = narrow(problem.input[1]),
                     .rows = narrow(problem.output[0]),
                     .columns = narrow(problem.output[1]),
                     .pad_top = narrow(problem.padding[0]),
                     .pad_left = narrow(problem.padding[1]),
                     .images_each = narrow(images_each),
                     .tile_rows = narrow(high),
                     .tile_columns = narrow(wide),
                     .units_h = narrow(units_h),
                     .units_w = narrow(units_w),
                     .units = narrow(units),
                     .units_each = narrow(units_each),
                     .chunks = narrow(chunks),
                     .filters_each = narrow(part_filters),
                     .channels_each = narrow(part_channels),
                     .channel_parts = narrow(channel_parts),
                     .parts = narrow(parts),
                     .flat = flat ? 1 : 0,
                     .x_row = narrow(x_row),
                     .dout_row = narrow(dout_row),
                     .sum_row = narrow(part_channels),
                     .x_element = narrow(x_element),
                     .dout_element = narrow(dout_element),
                     .sum_element = narrow(sum_element),
                     .slice = narrow(kElements * (sum_element + x_element + dout_element)),
                     .has_bias = operands.bias ? 1 : 0};

    const View partials =
        chunks == 1 ? reshaped(operands.weight, {1, weights}) : View::make(device, problem.dtype, {chunks, weights});
    const View scratch = View::make(device, problem.dtype, {groups * d.slice});
    const View biases = tiled::bias_partials(operands, chunks);
    Defines defines = real_defines(problem.dtype);
    defines.set("VW", form.vector).set("ROWS", tile.rows).set("COLUMNS", columns);
    const Kernel kernel(device, {"conv2d_winograd4_weights.cl", "conv2d_winograd4_backward_weights", defines});
    const auto size = [](std::int64_t value) { return static_cast<std::size_t>(value); };
    const auto places = [&](std::int64_t held_rows, std::int64_t row, std::int64_t pitch) {
        return LocalMemory{size(flat ? held_rows * row : pitch) * sizeof(std::int32_t)};
    };
    launch(
        kernel, {{size(groups)}, {1}},
        {d, local_memory((held(high) * held(wide) + 1) * form.vector, problem.dtype),
         places(held(high), problem.input[1], held(wide)), places(high * 4, problem.output[1], wide * 4),
         operands.x.argument(), operands.out.argument(), scratch.argument(), partials.argument(), biases.argument()});
    if (chunks == 1) return;
    reduce_partials(problem, operands, partials, operands.weight);
    if (operands.bias) reduce_partials(problem, operands, biases, *operands.bias);
}

}  // namespace declivity::ops::winograd
