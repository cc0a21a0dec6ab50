// The gradient of a convolution's weights as a matrix product (cl_kernels/conv/conv2d_gemm_weights.cl).
#include <algorithm>

#include "conv2d_gemm.hpp"
#include "conv2d_tiled.hpp"
#include "ops/support/local_block.hpp"

namespace declivity::ops::gemm {
namespace {

constexpr std::int64_t kBlockBytes = 256 * 1024, kSumBytes = 256 * 1024;  // that stay in the second cache together
constexpr std::int64_t kBlockK =
    // positions: those of common images, 14 x 14, or a part of larger ones; a panel of dout then mostly stays in the
    // first cache
    200;
constexpr std::int64_t kGroupsPerUnit = 4;  // so that all compute units end at about the same time
constexpr std::int64_t kLeastRows = 96;     // of a work-group; with fewer, copying dout costs too much
constexpr std::int64_t kManyRows = 128;     // with so many, copying is cheap

/// As the struct of the kernel.
struct Gradient {
    std::int64_t x_image, x_channel, dout_image, dout_channel, partial;
    std::int32_t channels, filters, taps_h, taps_w, height, width, rows, columns, stride_h, stride_w, pad_top, pad_left,
        dilation_h, dilation_w;
    std::int32_t images, images_each = 0, positions_each = 0, blocks = 0, blocks_each = 0;
    std::int32_t panels = 0, panels_each = 0, row_panels = 0, row_panels_each = 0, swapped;
};

/// Parts of equal size: as few as `most` allows, as many as `wanted` if they stay as large as `least`.
std::int64_t part(std::int64_t all, std::int64_t most, std::int64_t least, std::int64_t wanted) {
    const std::int64_t parts = std::max(ceil_div(all, std::max<std::int64_t>(1, most)),
                                        std::min(wanted, all / std::max<std::int64_t>(1, least)));
    return ceil_div(all, std::max<std::int64_t>(1, parts));
}

}  // namespace

void backward_weights(const Conv2dProblem& problem, const Conv2dOperands& operands, std::string_view variant) {
    const Device device = operands.x.device();
    const VectorForm form = vector_form(device, problem.dtype);
    const bool single = problem.taps() == 1 && problem.stride == std::array<std::int64_t, 2>{1, 1} &&
                        problem.padding == std::array<std::int64_t, 2>{0, 0};
    // Each element of the operand that is copied is used once for each row of the product; when it is x, the result
    // needs no transposition.
    const bool swapped = single && (problem.filters > problem.channels || problem.filters_per_group() >= kManyRows);
    const std::int64_t channels = swapped ? problem.filters_per_group() : problem.channels_per_group();
    const std::int64_t filters = swapped ? problem.channels_per_group() : problem.filters_per_group();
    const View &x = swapped ? operands.out : operands.x, &dout = swapped ? operands.x : operands.out;

    const std::int64_t taps = problem.taps(), x_plane = problem.input[0] * problem.input[1],
                       plane = problem.output[0] * problem.output[1];
    Gradient d{.x_image = x.shape[1] * x_plane,
               .x_channel = x_plane,
               .dout_image = dout.shape[1] * plane,
               .dout_channel = plane,
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
               .swapped = swapped ? 1 : 0};
    const RegisterTile tile = choose_tile(problem.direction, form, channels, filters, variant);
    const std::int64_t columns = tile.vectors * form.vector, panels = ceil_div(filters, columns),
                       row_panels = ceil_div(channels, tile.rows);
    const auto element = static_cast<std::int64_t>(size_of(problem.dtype));
    const std::int64_t local = static_cast<std::int64_t>(device.info().local_memory);
    const std::int64_t block = std::min(kBlockBytes, local / 2) / element,
                       sums = std::min(kSumBytes, local / 2 - 512) / element;
    if (sums < tile.rows * columns * taps)
        return conv2d_direct().run(problem, operands, {});  // less local memory than such devices have
    // Blocks of k: parts of an image, whole rows if they are short, or several images.
    const std::int64_t most_k = std::min(kBlockK, block / columns),
                       row = problem.output[1] <= most_k ? problem.output[1] : 1, most_rows = most_k / row;
    const std::int64_t images_each = std::clamp<std::int64_t>(most_k / plane, 1, problem.images);
    const std::int64_t positions_each =
        images_each > 1 ? plane : ceil_div(plane / row, ceil_div(plane / row, most_rows)) * row;
    const std::int64_t blocks =
        images_each > 1 ? ceil_div(problem.images, images_each) : problem.images * ceil_div(plane, positions_each);
    // The work-groups: parts of the columns and rows, then of k.
    const std::int64_t wanted =
        std::max<std::int64_t>(1, std::int64_t{device.info().compute_units} * kGroupsPerUnit / problem.groups);
    const std::int64_t most_panels =
        std::min(block / (images_each * positions_each * columns), sums / (tile.rows * columns * taps));
    const std::int64_t panels_each = part(panels, most_panels, 1, 1), column_groups = ceil_div(panels, panels_each);
    const std::int64_t row_panels_each = part(row_panels, sums / (tile.rows * columns * taps * panels_each),
                                              ceil_div(kLeastRows, tile.rows * taps), ceil_div(wanted, column_groups));
    const std::int64_t tiles = column_groups * ceil_div(row_panels, row_panels_each);
    const std::int64_t blocks_each = part(blocks, blocks, 1, ceil_div(wanted, tiles)),
                       chunks = ceil_div(blocks, blocks_each);
    d.images_each = narrow(images_each);
    d.positions_each = narrow(positions_each);
    d.blocks = narrow(blocks);
    d.blocks_each = narrow(blocks_each);
    d.panels = narrow(panels);
    d.panels_each = narrow(panels_each);
    d.row_panels = narrow(row_panels);
    d.row_panels_each = narrow(row_panels_each);

    const View partials = chunks == 1 ? reshaped(operands.weight, {1, operands.weight.numel()})
                                      : View::make(device, problem.dtype, {chunks, operands.weight.numel()});
    Defines defines = real_defines(problem.dtype);
    defines.set("VW", form.vector).set("ROWS", tile.rows).set("COLUMNS", columns);
    const Kernel kernel(device, {"conv2d_gemm_weights.cl", "conv2d_gemm_backward_weights", defines});
    const auto size = [](std::int64_t value) { return static_cast<std::size_t>(value); };
    launch(kernel, {{size(tiles), size(chunks), size(problem.groups)}, {1, 1, 1}},
           {d, local_memory(block, problem.dtype), local_memory(sums, problem.dtype), x.argument(), dout.argument(),
            partials.argument()});
    if (chunks > 1) reduce_partials(problem, operands, partials, operands.weight);
}

}  // namespace declivity::ops::gemm
