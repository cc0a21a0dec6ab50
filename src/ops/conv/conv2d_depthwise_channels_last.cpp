// Depthwise convolution with channels in the lanes of a vector (cl_kernels/conv/conv2d_depthwise_channels_last.cl),
// simd kernels.
#include <algorithm>
#include <array>
#include <optional>

#include "conv2d_strategy.hpp"
#include "conv2d_upcast.hpp"
#include "conv2d_tiled.hpp"
#include "ops/support/local_block.hpp"
#include "ops/support/vector_form.hpp"

namespace declivity::ops {
namespace depthwise_channels_last {
namespace {

constexpr std::int64_t kBlockBytes = 64 * 1024;  // of local memory: a band, tables, filters
constexpr std::int64_t kMaxTaps = 49;
constexpr std::int64_t kGroupsPerUnit = 4;   // to balance the load
constexpr std::int64_t kMaxWidth = 1 << 15;  // numbers are 32 bits wide

/// Layout of the kernels' struct; must match cl_kernels/conv/conv2d_depthwise_channels_last.cl.
struct ChannelsLast {
    std::int32_t images, channels, height, width, rows, columns, stride_h, stride_w, first_h, first_w, dilation_h,
        dilation_w;
    std::int32_t pitch, grid_rows, band, each = 1, flip, has_bias, point_table, filter_table, filter_offset,
                                         tile_offset;
};

enum class Kind : std::int64_t { gather = 1, scatter, correlate };

Kind mode_of(const Conv2dProblem& problem) {
    if (problem.direction == Conv2dDirection::backward_weights) return Kind::correlate;
    const bool strided = problem.stride[0] * problem.stride[1] > 1;
    return problem.direction == Conv2dDirection::backward_input && strided ? Kind::scatter : Kind::gather;
}

struct LaunchConfig {
    ChannelsLast arguments;
    std::int64_t elements, integers;  ///< of local memory
};

/// Plans the longest bands that fit into `bytes` of local memory; empty if not even one row fits.
std::optional<LaunchConfig> launch_config_of(const Conv2dProblem& problem, std::int64_t vector, std::int64_t bytes,
                                             bool has_bias) {
    const Kind kind = mode_of(problem);
    const bool flip = kind == Kind::gather && problem.direction == Conv2dDirection::backward_input;
    const auto& grid = flip ? problem.output : problem.input;
    const auto& points = flip ? problem.input : problem.output;
    const auto longest = [&](std::size_t axis) { return (problem.filter[axis] - 1) * problem.dilation[axis]; };
    const auto first = [&](std::size_t axis) {
        return flip ? longest(axis) - problem.padding[axis] : problem.padding[axis];
    };
    const std::int64_t stride_h = problem.stride[0], stride_w = problem.stride[1], taps = problem.taps(),
                       margin = longest(0);
    const std::int64_t reached = (points[1] - 1) * stride_w + longest(1) + 1;
    const std::int64_t pitch = kind == Kind::scatter ? std::max(reached, first(1) + grid[1]) : reached;
    const std::int64_t filter_table_size = std::max(taps, vector) + vector;
    const auto config = [&](std::int64_t band) {
        const std::int64_t grid_rows = kind == Kind::scatter ? band + 2 * margin : (band - 1) * stride_h + margin + 1;
        const std::int64_t point_rows =
            kind == Kind::scatter ? std::min(points[0], (band + margin - 1) / stride_h + 1) : band;
        const std::int64_t point_table = (kind == Kind::scatter ? band : grid_rows) * grid[1],
                           filter_table = point_table + point_rows * points[1];
        const std::int64_t filter_offset = (grid_rows * pitch + 1) * vector,
                           tile_offset = filter_offset + (taps + 1) * vector;
        return LaunchConfig{{.images = narrow(problem.images),
                             .channels = narrow(problem.channels),
                             .height = narrow(grid[0]),
                             .width = narrow(grid[1]),
                             .rows = narrow(points[0]),
                             .columns = narrow(points[1]),
                             .stride_h = narrow(stride_h),
                             .stride_w = narrow(stride_w),
                             .first_h = narrow(first(0)),
                             .first_w = narrow(first(1)),
                             .dilation_h = narrow(problem.dilation[0]),
                             .dilation_w = narrow(problem.dilation[1]),
                             .pitch = narrow(pitch),
                             .grid_rows = narrow(grid_rows),
                             .band = narrow(band),
                             .flip = flip ? 1 : 0,
                             .has_bias = has_bias ? 1 : 0,
                             .point_table = narrow(point_table),
                             .filter_table = narrow(filter_table),
                             .filter_offset = narrow(filter_offset),
                             .tile_offset = narrow(tile_offset)},
                            tile_offset + vector * vector,
                            filter_table + filter_table_size};
    };
    const std::int64_t rows = kind == Kind::scatter ? grid[0] : points[0],
                       size = static_cast<std::int64_t>(size_of(problem.dtype));
    const auto fits = [&](std::int64_t band) {
        const LaunchConfig p = config(band);
        return p.elements * size + p.integers * static_cast<std::int64_t>(sizeof(std::int32_t)) <= bytes;
    };
    if (!fits(1)) return std::nullopt;
    std::int64_t low = 1, high = rows;  // binary search for the longest band that fits
    while (low < high) {
        const std::int64_t middle = (low + high + 1) / 2;
        if (fits(middle)) low = middle;
        else high = middle - 1;
    }
    return config(ceil_div(rows, ceil_div(rows, low)));
}

std::optional<LaunchConfig> launch_config_on(const Device& device, const Conv2dProblem& problem, bool has_bias) {
    const std::int64_t bytes =
        block_elements(device, problem.dtype, kBlockBytes) * static_cast<std::int64_t>(size_of(problem.dtype));
    return launch_config_of(problem, vector_form(device, problem.dtype).vector, bytes, has_bias);
}

class Conv2dDepthwiseChannelsLast final : public Conv2dStrategy {
  public:
    [[nodiscard]] std::string_view name() const override { return "depthwise_channels_last"; }

    [[nodiscard]] bool is_applicable(const Conv2dProblem& problem, const Device& device) const override {
        if (problem.style != KernelStyle::simd || problem.channels_per_group() != 1 ||
            problem.filters_per_group() != 1 || problem.taps() > kMaxTaps)
            return false;
        for (std::size_t i = 0; i < 2; ++i)
            if (std::max({problem.input[i], problem.output[i] * problem.stride[i], problem.padding[i],
                          problem.filter[i] * problem.dilation[i]}) > kMaxWidth)
                return false;
        constexpr std::int64_t vector = 16, min_bytes = 24 * 1024;  // the least favourable
        return launch_config_of(problem, vector, min_bytes, false) && launch_config_on(device, problem, false);
    }

    /// Transposing costs some instructions per element: less than planes as rows lose to strides and to the ends of
    /// short rows.
    [[nodiscard]] bool is_profitable(const Conv2dProblem& problem, const Device&) const override {
        constexpr std::int64_t vector = 16, short_plane = 64;
        const bool filled = problem.channels * 2 > ceil_div(problem.channels, vector) * vector;
        return filled &&
               (problem.stride[0] * problem.stride[1] > 1 || problem.output[0] * problem.output[1] <= short_plane);
    }

    [[nodiscard]] bool fuses_epilogue(const Conv2dProblem& problem, const Device&, std::string_view) const override {
        return mode_of(problem) == Kind::gather;
    }

    void run(const Conv2dProblem& problem, const Conv2dOperands& operands, std::string_view) const override {
        const auto& [x, weight, out, bias, epilogue, sums] = operands;
        const Device device = x.device();
        const VectorForm form = vector_form(device, problem.dtype);
        auto [d, elements, integers] = launch_config_on(device, problem, bias.has_value()).value();
        const Kind kind = mode_of(problem);
        Defines defines = real_defines(problem.dtype);
        defines.set("VW", form.vector)
            .set("TAPS_H", problem.filter[0])
            .set("TAPS_W", problem.filter[1])
            .set("KERNEL_KIND", static_cast<std::int64_t>(kind));
        const LocalMemory block = local_memory(elements, problem.dtype),
                          tables{static_cast<std::size_t>(integers) * sizeof(std::int32_t)};
        const std::int64_t target_groups = std::int64_t{device.info().compute_units} * kGroupsPerUnit,
                           vectors = ceil_div(problem.channels, form.vector);
        const auto size = [](std::int64_t value) { return static_cast<std::size_t>(value); };
        if (kind == Kind::correlate) {
            d.each =
                narrow(ceil_div(problem.images, std::clamp<std::int64_t>(target_groups / vectors, 1, problem.images)));
            const std::int64_t parts = ceil_div(problem.images, d.each);
            const View partials = parts == 1 ? reshaped(weight, {1, weight.numel()})
                                             : View::make(device, problem.dtype, {parts, weight.numel()});
            const Kernel kernel(device, {"conv2d_depthwise_channels_last.cl", "conv2d_depthwise_correlate", defines});
            launch(kernel, {{size(vectors), size(parts)}, {1, 1}},
                   {d, block, tables, x.argument(), out.argument(), partials.argument()});
            if (parts > 1) reduce_partials(problem, operands, partials, weight);
            return;
        }
        d.each = narrow(ceil_div(vectors * problem.images, target_groups));
        const Range items{{size(ceil_div(vectors * problem.images, d.each))}, {1}};
        if (kind == Kind::scatter) {
            const Kernel kernel(device, {"conv2d_depthwise_channels_last.cl", "conv2d_depthwise_scatter", defines});
            launch(kernel, items, {d, block, tables, out.argument(), weight.argument(), x.argument()});
            return;
        }
        const bool forward = problem.direction == Conv2dDirection::forward;
        set_epilogue_stored(defines, epilogue);
        const Kernel kernel(device, {"conv2d_depthwise_channels_last.cl", "conv2d_depthwise_gather", defines});
        const EpilogueArguments epilogue_arguments(epilogue, weight);
        launch(
            kernel, items,
            epilogue_arguments.append_to_if_any({d, block, tables, (forward ? x : out).argument(), weight.argument(),
                                                 (forward ? out : x).argument(), (bias ? *bias : weight).argument()}));
    }
};

}  // namespace
}  // namespace depthwise_channels_last

const Conv2dStrategy& conv2d_depthwise_channels_last() {
    static const depthwise_channels_last::Conv2dDepthwiseChannelsLast strategy;
    static const Conv2dUpcast upcast(strategy, Conv2dUpcast::When::profitable);
    return upcast;
}

}  // namespace declivity::ops
