// The gradients of a convolution's weights by register tiles, and of its bias
// (cl_kernels/conv/conv2d_tiled_weights.cl).
#include <declivity/ops/reduce.hpp>
#include <algorithm>
#include <array>
#include <limits>
#include <span>

#include <declivity/ops/copy.hpp>

#include "conv2d_tiled.hpp"
#include "ops/support/local_block.hpp"
#include "ops/support/work.hpp"
#include "ops/support/work_split.hpp"

namespace declivity::ops {
namespace tiled {
namespace {

// The images of a chunk stay in a core's private cache while all its work-groups pass over them.
constexpr std::int64_t kSimdCache = 512 * 1024;  // bytes
constexpr std::int64_t kSimdGroups = 4;          // target number of work-groups for each compute unit
constexpr std::int64_t kSimtGroups = 32;
constexpr std::int64_t kMaxPartials = 64 << 20;  // bytes

/// Output channels and streams (a channel and an element of the filter) of a register tile.
struct TileSize {
    std::int64_t filters, streams;
};
// The candidates of the cost model; few, since each is a kernel to compile.
constexpr std::array kSimdTiles{TileSize{4, 6}, TileSize{3, 9}, TileSize{6, 4}, TileSize{4, 3},
                                TileSize{2, 6}, TileSize{1, 9}, TileSize{1, 3}};
constexpr std::array kSimtTiles{TileSize{6, 6}, TileSize{2, 9}, TileSize{4, 2}, TileSize{1, 1}};

/// Layout of the kernel's struct; must match cl_kernels/conv/conv2d_tiled_weights.cl.
struct Streams {
    std::int64_t x_image, x_channel, g_image, g_channel, partial;
    std::int32_t channels, filters, filter_blocks, stream_blocks, groups, taps, flat, images, images_each, across;
    std::array<TapAxis, 2> axes;
    std::array<std::int32_t, kMaxTaps> offset;
};

/// Differs from choose_tile of the forward pass: a load of g is aligned and counts once.
TileSize choose_tile(const Form& form, std::int64_t filters, std::int64_t streams) {
    TileSize best{1, 1};
    double min_cost = std::numeric_limits<double>::infinity();
    for (const auto& [f, s] :
         form.group == 1 ? std::span<const TileSize>(kSimdTiles) : std::span<const TileSize>(kSimtTiles)) {
        if (f * s + f + 1 > form.registers) continue;
        const auto tiles = static_cast<double>(ceil_div(filters, f) * ceil_div(streams, s));
        const double cost = tiles * static_cast<double>(std::max(f * s, f + 2 * s + 4));
        if (cost >= min_cost) continue;
        min_cost = cost;
        best = {f, s};
    }
    return best;
}

/// The minimum number of chunks of images: enough work-groups for the device.
std::int64_t images_each(const Conv2dProblem& problem, const Device& device, std::int64_t groups_each,
                         std::int64_t image_bytes) {
    const bool simd = problem.style == KernelStyle::simd;
    const std::int64_t target_groups = (simd ? kSimdGroups : kSimtGroups) * std::max(1U, device.info().compute_units);
    std::int64_t chunks = std::min(problem.images, ceil_div(target_groups, groups_each));
    if (simd) chunks = std::max(chunks, std::min(problem.images, ceil_div(problem.images * image_bytes, kSimdCache)));
    const std::int64_t weights = problem.filters * problem.channels_per_group() * problem.taps();
    const auto bytes = static_cast<std::int64_t>(size_of(problem.dtype));
    chunks = std::clamp<std::int64_t>(chunks, 1, std::max<std::int64_t>(1, kMaxPartials / (weights * bytes)));
    return ceil_div(problem.images, chunks);
}

}  // namespace

View bias_partials(const Conv2dOperands& operands, std::int64_t chunks) {
    if (!operands.bias) return operands.weight;
    return chunks == 1 ? *operands.bias
                       : View::make(operands.weight.device(), operands.weight.dtype, {chunks, operands.bias->numel()});
}

void backward_weights(const Conv2dProblem& problem, const Conv2dOperands& operands) {
    const auto& [x, weight, out, bias, epilogue, sums] = operands;
    const Device device = x.device();
    const Form form = form_of(device, problem.style, problem.dtype);
    const Windows windows = windows_of(problem);
    const std::int64_t pitch = windows.axes[1].size;
    const std::int64_t flat = static_cast<std::int64_t>(
        round_up(static_cast<std::size_t>((problem.output[0] - 1) * pitch + problem.output[1]),
                 static_cast<std::size_t>(form.run())));
    const Padded input = pad(x, windows.axes, form, problem.style, 1, form.run());
    const std::array<PadAxis, 2> same_pitch{PadAxis{.size = problem.output[0]}, PadAxis{.size = pitch}};
    const Padded gradient = pad(out, same_pitch, form, problem.style, form.run(), 0);

    const std::int64_t streams = problem.channels_per_group() * problem.taps();
    const TileSize size = choose_tile(form, problem.filters_per_group(), streams);
    const std::int64_t filter_blocks = ceil_div(problem.filters_per_group(), size.filters);
    const std::int64_t stream_blocks = ceil_div(streams, size.streams);
    const std::int64_t groups_each = problem.groups * filter_blocks * stream_blocks;
    const std::int64_t each =
        images_each(problem, device, groups_each,
                    (input.image + gradient.image) * static_cast<std::int64_t>(size_of(problem.dtype)));
    const std::int64_t chunks = ceil_div(problem.images, each);
    const View partials = chunks == 1 ? reshaped(weight, {1, weight.numel()})
                                      : View::make(device, problem.dtype, {chunks, weight.numel()});
    const Streams arguments{.x_image = input.image,
                            .x_channel = input.channel,
                            .g_image = gradient.image,
                            .g_channel = gradient.channel,
                            .partial = weight.numel(),
                            .channels = narrow(problem.channels_per_group()),
                            .filters = narrow(problem.filters_per_group()),
                            .filter_blocks = narrow(filter_blocks),
                            .stream_blocks = narrow(stream_blocks),
                            .groups = narrow(problem.groups),
                            .taps = narrow(problem.taps()),
                            .flat = narrow(flat),
                            .images = narrow(problem.images),
                            .images_each = narrow(each),
                            .across = narrow(problem.filter[1]),
                            .axes = windows.taps,
                            .offset = windows.offset};
    Defines defines = defines_of(form, problem.dtype);
    defines.set("TILE_CHANNELS", size.filters).set("TILE_STREAMS", size.streams);
    const Kernel kernel(device, {"conv2d_tiled_weights.cl", "conv2d_tiled_backward_weights", defines});
    const auto group = static_cast<std::size_t>(form.group);
    launch(kernel, {{static_cast<std::size_t>(groups_each * chunks) * group, 1, 1}, {group, 1, 1}},
           {arguments, input.copy.argument(), gradient.copy.argument(), partials.argument()});
    if (chunks > 1) reduce_partials(problem, operands, partials, weight);
}

}  // namespace tiled

void conv2d_backward_bias(const View& out_gradient, const View& bias_gradient) {
    constexpr auto function = "conv2d_backward_bias";
    if (is_16bit_float(out_gradient.dtype)) return reduce(Reduce::sum, out_gradient, {0, 2, 3}, bias_gradient);
    require_floating(function, "out_gradient", out_gradient);
    require_rank(function, "out_gradient", out_gradient, 4, "N,O,P,Q");
    require_alike(function, "out_gradient", out_gradient, "bias_gradient", bias_gradient);
    require_shape(function, "bias_gradient", bias_gradient, {out_gradient.shape[1]});
    require_dense(function, "out_gradient", out_gradient);
    require_dense(function, "bias_gradient", bias_gradient);
    if (out_gradient.numel() == 0) return fill(bias_gradient, 0);
    const Device device = out_gradient.device();
    const KernelStyle style = kernel_style_of(device);
    const tiled::Form form = tiled::form_of(device, style, out_gradient.dtype);
    const View partials = View::make(device, out_gradient.dtype, {out_gradient.shape[0], out_gradient.shape[1]});
    const WorkScope work(function, work_each(1, out_gradient, bias_gradient));
    const Kernel kernel(
        device, {"conv2d_backward_bias.cl", "conv2d_backward_bias", tiled::defines_of(form, out_gradient.dtype)});
    const auto group = static_cast<std::size_t>(form.group);
    launch(kernel, {{static_cast<std::size_t>(partials.numel()) * group, 1, 1}, {group, 1, 1}},
           {out_gradient.shape[2] * out_gradient.shape[3], out_gradient.argument(), partials.argument()});
    reduce_partials(std::array{SplitKPartial{partials, bias_gradient}}, style);
}

}  // namespace declivity::ops
