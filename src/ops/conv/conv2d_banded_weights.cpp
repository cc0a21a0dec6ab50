// The gradient of a convolution's weights over bands of rows (cl_kernels/conv/conv2d_banded_weights.cl).
#include <array>

#include "conv2d_banded.hpp"
#include "conv2d_tiled.hpp"
#include "ops/support/vector_form.hpp"

namespace declivity::ops::banded {
namespace {

constexpr std::int64_t kMaxImagesAtOnce = 16;  // images that are copied at once
constexpr std::int64_t
    kFewChannels = 16,
    kFewStrided = 8;  // above this, reducing the lanes of all sums and copies beyond the L1 cache cost too much

/// Layout of the kernel's struct; must match cl_kernels/conv/conv2d_banded_weights.cl.
struct BandedWeights {
    std::int64_t x_image, x_channel, x_count, g_image, g_channel, g_count, partial;
    std::int32_t channels, filters, images, height, width, rows, columns, stride_h, stride_w, pad_top, pad_left,
        dilation_h, dilation_w;
    std::int32_t pitch, band, bands, halo_rows, phase_size, copy_size, gradient_size, images_at_once, blocks,
        blocks_each, gradients, sums, has_bias;
};

/// Streams and filters of a register tile: sums of their products, and one vector of each filter.
constexpr std::array<std::int64_t, 2> tile_of(const VectorForm& form) {
    return form.registers >= 32 ? std::array<std::int64_t, 2>{6, 4} : std::array<std::int64_t, 2>{3, 3};
}

struct LaunchConfig {
    std::int64_t pitch, halo_rows, band, images_at_once, phase_size, copy_size, gradient_size, gradients, sums;
};

/// Plans blocks of as many rows, or images, as fit into `block` elements, but at least `target_groups` blocks; empty if
/// not even one row fits.
std::optional<LaunchConfig> launch_config_of(const Conv2dProblem& problem, const VectorForm& form, std::int64_t block,
                                             std::int64_t target_groups) {
    const std::int64_t vector = form.vector, longest_h = (problem.filter[0] - 1) * problem.dilation[0],
                       longest_w = (problem.filter[1] - 1) * problem.dilation[1];
    const std::int64_t phases = problem.stride[0] * problem.stride[1], rows = problem.output[0],
                       channels = problem.channels_per_group(), filters = problem.filters_per_group();
    const std::int64_t reach_w = longest_w / problem.stride[1],
                       sums = (tile_of(form)[0] * tile_of(form)[1] + 1) * vector;
    LaunchConfig config{.pitch = problem.output[1] + reach_w,
                        .halo_rows = longest_h / problem.stride[0],
                        .band = 0,
                        .images_at_once = 1,
                        .phase_size = 0,
                        .copy_size = 0,
                        .gradient_size = 0,
                        .gradients = 0,
                        .sums = 0};
    const auto fits = [&](std::int64_t band, std::int64_t images_at_once) {
        config.band = band;
        config.images_at_once = images_at_once;
        config.phase_size = ceil_div((band + config.halo_rows) * config.pitch, vector) * vector + 2 * vector;
        config.copy_size = phases * config.phase_size;
        config.gradient_size = ceil_div(band * config.pitch, vector) * vector + 2 * vector;
        config.gradients = channels * images_at_once * config.copy_size + ceil_div(reach_w, vector) * vector + vector;
        config.sums = config.gradients + filters * images_at_once * config.gradient_size;
        return config.sums + sums <= block;
    };
    std::int64_t bands = std::clamp<std::int64_t>(ceil_div(target_groups, problem.images * problem.groups), 1,
                                                  std::max<std::int64_t>(1, rows / kMinBand));
    while (!fits(ceil_div(rows, bands), 1)) {
        if (config.band == 1) return std::nullopt;
        bands = ceil_div(rows, config.band - 1);
    }
    if (config.band < rows) return config;
    for (std::int64_t images_at_once =
             std::clamp<std::int64_t>(problem.images * problem.groups / target_groups, 1, kMaxImagesAtOnce);
         images_at_once > 0; --images_at_once)
        if (fits(rows, images_at_once)) break;
    return config;
}

std::int64_t target_groups_of(const Device& device) {
    return std::int64_t{device.info().compute_units} * kGroupsPerUnit;
}

std::optional<LaunchConfig> launch_config_on(const Device& device, const Conv2dProblem& problem) {
    return launch_config_of(problem, vector_form(device, problem.dtype),
                            block_elements(device, problem.dtype, kBlockBytes), target_groups_of(device));
}

/// Distribution of blocks of rows and images: each chunk sums some of them.
struct Chunks {
    std::int64_t bands, blocks, blocks_each, count;
};

Chunks chunks_of(const Device& device, const Conv2dProblem& problem, const LaunchConfig& config) {
    const std::int64_t bands = ceil_div(problem.output[0], config.band),
                       blocks = ceil_div(problem.images, config.images_at_once) * bands,
                       target_groups = std::max<std::int64_t>(1, target_groups_of(device) / problem.groups),
                       blocks_each = ceil_div(blocks, std::min(blocks, target_groups));
    return {.bands = bands, .blocks = blocks, .blocks_each = blocks_each, .count = ceil_div(blocks, blocks_each)};
}

BandedWeights arguments_of(const Conv2dProblem& problem, const Conv2dOperands& operands, const LaunchConfig& config,
                           const Chunks& chunks) {
    const View &x = operands.x, &g = operands.out;
    return {.x_image = x.shape[1] * x.shape[2] * x.shape[3],
            .x_channel = x.shape[2] * x.shape[3],
            .x_count = x.numel(),
            .g_image = g.shape[1] * g.shape[2] * g.shape[3],
            .g_channel = g.shape[2] * g.shape[3],
            .g_count = g.numel(),
            .partial = operands.weight.numel(),
            .channels = narrow(problem.channels_per_group()),
            .filters = narrow(problem.filters_per_group()),
            .images = narrow(problem.images),
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
            .pitch = narrow(config.pitch),
            .band = narrow(config.band),
            .bands = narrow(chunks.bands),
            .halo_rows = narrow(config.halo_rows),
            .phase_size = narrow(config.phase_size),
            .copy_size = narrow(config.copy_size),
            .gradient_size = narrow(config.gradient_size),
            .images_at_once = narrow(config.images_at_once),
            .blocks = narrow(chunks.blocks),
            .blocks_each = narrow(chunks.blocks_each),
            .gradients = narrow(config.gradients),
            .sums = narrow(config.sums),
            .has_bias = operands.bias ? 1 : 0};
}

}  // namespace

bool is_applicable_to_weights(const Conv2dProblem& problem, const Device& device) {
    const VectorForm form{.vector = problem.dtype == DType::f64 ? 8 : 16, .registers = 32};
    return launch_config_of(problem, form, kBlockBytes / static_cast<std::int64_t>(size_of(problem.dtype)), 1) &&
           launch_config_on(device, problem);
}

bool is_profitable_for_weights(const Conv2dProblem& problem) {
    const bool strided = problem.stride[0] * problem.stride[1] > 1;
    return (problem.taps() > 1 || strided) && problem.channels_per_group() <= (strided ? kFewStrided : kFewChannels);
}

void backward_weights(const Conv2dProblem& problem, const Conv2dOperands& operands) {
    const auto& [x, weight, g, bias, epilogue, sums] = operands;
    const Device device = x.device();
    const VectorForm form = vector_form(device, problem.dtype);
    const LaunchConfig config = launch_config_on(device, problem).value();
    const auto [streams, filters] = tile_of(form);
    const Chunks chunks = chunks_of(device, problem, config);
    const View partials = chunks.count == 1 ? reshaped(weight, {1, weight.numel()})
                                            : View::make(device, problem.dtype, {chunks.count, weight.numel()});
    const View biases = tiled::bias_partials(operands, chunks.count);
    Defines defines = real_defines(problem.dtype);
    defines.set("VW", form.vector)
        .set("ROWS", streams)
        .set("COLUMNS", filters)
        .set("TAPS_H", problem.filter[0])
        .set("TAPS_W", problem.filter[1]);
    const Kernel kernel(device, {"conv2d_banded_weights.cl", "conv2d_banded_backward_weights", defines});
    launch(kernel, {{static_cast<std::size_t>(chunks.count), 1, static_cast<std::size_t>(problem.groups)}, {1, 1, 1}},
           {arguments_of(problem, operands, config, chunks),
            local_memory(block_elements(device, problem.dtype, kBlockBytes), problem.dtype), x.argument(), g.argument(),
            partials.argument(), biases.argument()});
    if (chunks.count == 1) return;
    reduce_partials(problem, operands, partials, weight);
    if (bias) reduce_partials(problem, operands, biases, *bias);
}

}  // namespace declivity::ops::banded
