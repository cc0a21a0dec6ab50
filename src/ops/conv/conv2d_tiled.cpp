// Convolution by register tiles over padded copies (cl_kernels/conv/conv2d_tiled.cl): forward and backward_input.
#include <algorithm>
#include <limits>
#include <span>
#include <vector>

#include "conv2d_tiled.hpp"
#include "conv2d_upcast.hpp"
#include "ops/support/local_block.hpp"

namespace declivity::ops {
namespace tiled {
namespace {

// A simd work-item processes tiles until it has done this many vector multiply-adds, some microseconds, so that its
// start-up cost is negligible.
constexpr std::int64_t kSimdWork = 30000;
/// Output channels and vectors of positions of a register tile.
struct TileSize {
    std::int64_t filters, vectors;
};
// The candidates of the cost model. Few, since each is a kernel to compile: for 32 registers, for 16, for few channels,
// and for small images.
constexpr std::array kSimdTiles{TileSize{8, 3}, TileSize{6, 4}, TileSize{4, 6}, TileSize{6, 2}, TileSize{4, 3},
                                TileSize{2, 6}, TileSize{1, 8}, TileSize{8, 1}, TileSize{2, 2}};
constexpr std::array kSimtTiles{TileSize{8, 4}, TileSize{8, 1}, TileSize{2, 4}, TileSize{1, 1}};
constexpr std::int64_t kMaxVectors = 8;

/// Layout of the kernels' structs; must match cl_kernels/conv/conv2d_tiled.cl.
struct Pack {
    std::int64_t group_step, filter_step, channel_step;
    std::int32_t channels, filters, blocks, taps, first, step_h, step_w, across;
    std::array<std::int32_t, kMaxTaps> source;
};
struct Tile {
    std::int64_t x_image, x_channel, out_image, out_channel, out_first;
    std::int32_t channels, filters, blocks, groups, taps, pitch, columns, flat, tiles_each, parts, out_row_step,
        out_column_step, has_bias, across;
    std::array<TapAxis, 2> axes;
    std::array<std::int32_t, kMaxTaps> offset;
};

/// Returns the tile of least cost, by counting multiply-adds and loads (a load of x mostly crosses a cache line, so it
/// counts twice), of which a core executes as many at once; work beyond the edges is wasted.
TileSize choose_tile(const Form& form, std::int64_t filters, std::int64_t flat) {
    TileSize best{1, 1};
    double min_cost = std::numeric_limits<double>::infinity();
    for (const auto& [f, v] :
         form.group == 1 ? std::span<const TileSize>(kSimdTiles) : std::span<const TileSize>(kSimtTiles)) {
        if (f * v + v + 1 > form.registers) continue;
        const auto tiles = static_cast<double>(ceil_div(filters, f) * ceil_div(flat, v * form.run()));
        const double cost = tiles * static_cast<double>(std::max(f * v, f + 2 * v + 3));
        if (cost >= min_cost) continue;
        min_cost = cost;
        best = {f, v};
    }
    return best;
}

/// One sum over channels and taps, for the positions of `out` that it covers.
struct Sum {
    std::int64_t channels, filters;                      ///< input and output channels of a group
    std::int64_t channel_step, filter_step, group_step;  ///< in the weights
    std::int64_t rows, columns;                          ///< positions
    std::int64_t pitch;                                  ///< of the padded input
    std::int64_t out_first, out_row_step, out_column_step;
    std::int64_t taps = 0;
    std::array<std::int32_t, kMaxTaps> source{};  ///< in the filter
    std::array<std::int32_t, kMaxTaps> offset{};  ///< in the padded input
    // The same offsets by arithmetic.
    std::int64_t across = 1;  ///< taps along the horizontal axis
    std::int64_t first = 0, step_h = 0, step_w = 0;
    std::array<TapAxis, 2> axes{};
};

/// Packs the weights in the order in which tiles read them. @param blocks of output channels
View packed_weights(const Sum& sum, const Conv2dProblem& problem, const View& weight, std::int64_t blocks,
                    std::int64_t filters_each, std::size_t group, const Defines& defines) {
    const Device device = weight.device();
    const std::int64_t packs = problem.groups * blocks * sum.channels;
    const View packed = View::make(device, problem.dtype, {std::max<std::int64_t>(1, packs * sum.taps * filters_each)});
    const Pack pack{.group_step = sum.group_step,
                    .filter_step = sum.filter_step,
                    .channel_step = sum.channel_step,
                    .channels = narrow(sum.channels),
                    .filters = narrow(sum.filters),
                    .blocks = narrow(blocks),
                    .taps = narrow(sum.taps),
                    .first = narrow(sum.first),
                    .step_h = narrow(sum.step_h),
                    .step_w = narrow(sum.step_w),
                    .across = narrow(sum.across),
                    .source = sum.source};
    const Kernel kernel(device, {"conv2d_tiled.cl", "conv2d_tiled_pack", defines});
    launch(kernel, {{round_up(static_cast<std::size_t>(packs), group), 1, 1}, {group, 1, 1}},
           {pack, packs, weight.argument(), packed.argument()});
    return packed;
}

void run(const Sum& sum, const Conv2dProblem& problem, const Form& form, const Padded& input, const View& weight,
         const View& out, const std::optional<View>& bias) {
    const Device device = out.device();
    const std::int64_t flat = (sum.rows - 1) * sum.pitch + sum.columns;
    const TileSize size = choose_tile(form, sum.filters, flat);
    const std::int64_t blocks = ceil_div(sum.filters, size.filters);
    Defines defines = defines_of(form, problem.dtype);
    defines.set("TILE_CHANNELS", size.filters).set("VECTORS", size.vectors);

    const auto group = static_cast<std::size_t>(form.group);
    const View packed = packed_weights(sum, problem, weight, blocks, size.filters, group, defines);

    const std::int64_t tiles = ceil_div(flat, size.vectors * form.run());
    std::int64_t tiles_each = 1;
    if (problem.style == KernelStyle::simd) {
        const std::int64_t work = std::max<std::int64_t>(1, sum.channels * sum.taps * size.filters * size.vectors);
        tiles_each = std::clamp<std::int64_t>(kSimdWork / work, 1, tiles);
    }
    const std::int64_t parts = ceil_div(tiles, tiles_each);
    const Tile tile{.x_image = input.image,
                    .x_channel = input.channel,
                    .out_image = out.shape[1] * out.shape[2] * out.shape[3],
                    .out_channel = out.shape[2] * out.shape[3],
                    .out_first = sum.out_first,
                    .channels = narrow(sum.channels),
                    .filters = narrow(sum.filters),
                    .blocks = narrow(blocks),
                    .groups = narrow(problem.groups),
                    .taps = narrow(sum.taps),
                    .pitch = narrow(sum.pitch),
                    .columns = narrow(sum.columns),
                    .flat = narrow(flat),
                    .tiles_each = narrow(tiles_each),
                    .parts = narrow(parts),
                    .out_row_step = narrow(sum.out_row_step),
                    .out_column_step = narrow(sum.out_column_step),
                    .has_bias = bias ? 1 : 0,
                    .across = narrow(sum.across),
                    .axes = sum.axes,
                    .offset = sum.offset};
    const Kernel kernel(device, {"conv2d_tiled.cl", "conv2d_tiled", defines});
    const auto groups = static_cast<std::size_t>(problem.images * parts * problem.groups * blocks);
    launch(
        kernel, {{groups * group, 1, 1}, {group, 1, 1}},
        {tile, input.copy.argument(), packed.argument(), out.argument(), bias ? bias->argument() : packed.argument()});
}

/// Elements that the last vectors may read past the last plane.
std::int64_t tail_of(const Form& form) { return kMaxVectors * form.run(); }

void forward(const Conv2dProblem& problem, const Conv2dOperands& operands) {
    const Form form = form_of(operands.x.device(), problem.style, problem.dtype);
    const Windows windows = windows_of(problem);
    Sum sum{.channels = problem.channels_per_group(),
            .filters = problem.filters_per_group(),
            .channel_step = problem.taps(),
            .filter_step = problem.channels_per_group() * problem.taps(),
            .group_step = problem.filters_per_group() * problem.channels_per_group() * problem.taps(),
            .rows = problem.output[0],
            .columns = problem.output[1],
            .pitch = windows.axes[1].size,
            .out_first = 0,
            .out_row_step = problem.output[1],
            .out_column_step = 1,
            .taps = problem.taps(),
            .offset = windows.offset,
            .across = problem.filter[1],
            .step_h = problem.filter[1],
            .step_w = 1,
            .axes = windows.taps};
    for (std::int64_t t = 0; t < sum.taps; ++t) sum.source[static_cast<std::size_t>(t)] = narrow(t);
    const Padded input = pad(operands.x, windows.axes, form, problem.style, 1, tail_of(form));
    run(sum, problem, form, input, operands.weight, operands.out, operands.bias);
}

// ---- backward_input: h = p * stride + r * dilation - padding. Positions h = stride * i + phase of x use the filter
// elements r for which stride divides phase + padding - r * dilation; then p = i + shift.

struct PhaseTap {
    std::int64_t element, shift;
};
struct Phase {
    std::int64_t size = 0;
    std::vector<PhaseTap> taps = {};
};

std::vector<Phase> phases_of(const Conv2dProblem& problem, std::size_t axis) {
    const std::int64_t stride = problem.stride[axis];
    std::vector<Phase> phases;
    for (std::int64_t phase = 0; phase < std::min(stride, problem.input[axis]); ++phase) {
        phases.push_back({ceil_div(problem.input[axis] - phase, stride)});
        for (std::int64_t r = 0; r < problem.filter[axis]; ++r) {
            const std::int64_t distance = phase + problem.padding[axis] - r * problem.dilation[axis];
            if (distance % stride == 0) phases.back().taps.push_back({r, distance / stride});
        }
    }
    return phases;
}

/// The common difference of successive taps; `member` is either number.
std::int64_t step_of(const Phase& phase, std::int64_t PhaseTap::*member) {
    return phase.taps.size() > 1 ? phase.taps[1].*member - phase.taps[0].*member : 0;
}

/// @param unit elements of a step along the axis
TapAxis taps_of(const Phase& phase, const PadAxis& axis, std::int64_t unit) {
    if (phase.taps.empty()) return {};
    return {.dilation = narrow(step_of(phase, &PhaseTap::shift)),
            .unit = narrow(unit),
            .first = narrow((phase.taps[0].shift + axis.origin) * unit)};
}

/// The part of the output's gradient, including zero padding, that all phases together read.
PadAxis reach_of(const std::vector<Phase>& phases) {
    std::int64_t first = std::numeric_limits<std::int64_t>::max(), end = std::numeric_limits<std::int64_t>::min();
    for (const Phase& phase : phases)
        for (const PhaseTap& tap : phase.taps) {
            first = std::min(first, tap.shift);
            end = std::max(end, tap.shift + phase.size);
        }
    if (first > end) return {};
    return {.size = end - first, .origin = -first};
}

void backward_input(const Conv2dProblem& problem, const Conv2dOperands& operands) {
    const Form form = form_of(operands.x.device(), problem.style, problem.dtype);
    const std::array phases{phases_of(problem, 0), phases_of(problem, 1)};
    const std::array axes{reach_of(phases[0]), reach_of(phases[1])};
    const Padded input = pad(operands.out, axes, form, problem.style, 1, tail_of(form));
    for (std::size_t a = 0; a < phases[0].size(); ++a)
        for (std::size_t b = 0; b < phases[1].size(); ++b) {
            const Phase &rows = phases[0][a], &columns = phases[1][b];
            Sum sum{.channels = problem.filters_per_group(),
                    .filters = problem.channels_per_group(),
                    .channel_step = problem.channels_per_group() * problem.taps(),
                    .filter_step = problem.taps(),
                    .group_step = problem.filters_per_group() * problem.channels_per_group() * problem.taps(),
                    .rows = rows.size,
                    .columns = columns.size,
                    .pitch = axes[1].size,
                    .out_first = static_cast<std::int64_t>(a) * problem.input[1] + static_cast<std::int64_t>(b),
                    .out_row_step = problem.stride[0] * problem.input[1],
                    .out_column_step = problem.stride[1]};
            for (const PhaseTap& row : rows.taps)
                for (const PhaseTap& column : columns.taps) {
                    const auto t = static_cast<std::size_t>(sum.taps++);
                    sum.source[t] = narrow(row.element * problem.filter[1] + column.element);
                    sum.offset[t] = narrow((row.shift + axes[0].origin) * axes[1].size + column.shift + axes[1].origin);
                }
            if (sum.taps > 0) {
                sum.across = static_cast<std::int64_t>(columns.taps.size());
                sum.first = sum.source[0];
                sum.step_h = step_of(rows, &PhaseTap::element) * problem.filter[1];
                sum.step_w = step_of(columns, &PhaseTap::element);
                sum.axes = {taps_of(rows, axes[0], axes[1].size), taps_of(columns, axes[1], 1)};
            }
            run(sum, problem, form, input, operands.weight, operands.x, std::nullopt);
        }
}

class Conv2dTiled final : public Conv2dStrategy {
  public:
    [[nodiscard]] std::string_view name() const override { return "tiled"; }

    /// Positions within a plane are 32-bit numbers.
    [[nodiscard]] bool is_applicable(const Conv2dProblem& problem, const Device&) const override {
        if (problem.taps() > kMaxTaps) return false;
        std::array<std::int64_t, 2> extent{};
        for (std::size_t i = 0; i < 2; ++i) {
            extent[i] = problem.input[i] + 2 * problem.padding[i] + problem.filter[i] * problem.dilation[i] +
                        2 * problem.stride[i];
            if (extent[i] > kMaxPositions) return false;
        }
        return extent[0] * extent[1] * problem.stride[0] * problem.stride[1] <= kMaxPositions;
    }

    void run(const Conv2dProblem& problem, const Conv2dOperands& operands, std::string_view) const override {
        switch (problem.direction) {
            case Conv2dDirection::forward:
                return forward(problem, operands);
            case Conv2dDirection::backward_input:
                return backward_input(problem, operands);
            case Conv2dDirection::backward_weights:
                return backward_weights(problem, operands);
        }
    }

  private:
    static constexpr std::int64_t kMaxPositions = std::int64_t{1} << 30;
};

}  // namespace
}  // namespace tiled

const Conv2dStrategy& conv2d_tiled() {
    static const tiled::Conv2dTiled strategy;
    static const Conv2dUpcast upcast(strategy, Conv2dUpcast::When::profitable);
    return upcast;
}

}  // namespace declivity::ops
