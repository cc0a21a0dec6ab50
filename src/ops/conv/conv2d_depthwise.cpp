// Depthwise convolution (cl_kernels/conv/conv2d_depthwise.cl), simd kernels.
#include <algorithm>
#include <array>
#include <optional>

#include "conv2d_strategy.hpp"
#include "conv2d_upcast.hpp"
#include "conv2d_tiled.hpp"
#include "ops/support/local_block.hpp"
#include "ops/support/vector_form.hpp"
#include "ops/support/work_split.hpp"

namespace declivity::ops {
namespace depthwise {
namespace {

constexpr std::int64_t kBlockBytes = 24 * 1024;  // rows, to stay in the L1 cache
constexpr std::int64_t kMaxTaps = 49, kMaxPhases = 16, kMaxPlanesAtOnce = 16;
constexpr std::int64_t kWork = 1 << 16;     // minimum multiply-adds of a work-item
constexpr std::int64_t kGroupsPerUnit = 4;  // to balance the load

/// Layout of the kernels' struct; must match cl_kernels/conv/conv2d_depthwise.cl.
struct Depthwise {
    std::int64_t planes;
    std::int32_t channels, images, height, width, rows, columns, stride_h, stride_w, first_h, first_w, dilation_h,
        dilation_w, pad_top, pitch;
    std::int32_t band, halo_rows, phase_size, planes_at_once, copy_size, margin, local_size, staged, staged_size, sums,
        channel_blocks_each = 1, each = 0, flip, has_bias;
};

std::int64_t floor_div(std::int64_t a, std::int64_t b) { return a >= 0 ? a / b : -ceil_div(-a, b); }

struct LaunchConfig {
    Depthwise arguments;
    std::array<std::int64_t, 2> phases;  ///< phases of the result
};

/// Input and result of a direction, and the layout of the input's copy.
struct Geometry {
    std::array<std::int64_t, 2> in, out, step;
    std::array<std::int64_t, 2> phases;  ///< phases of the result
    std::array<std::int64_t, 2> first;   ///< offset of the filter's first tap before a position
    bool flip, staged;                   ///< staged: the result is assembled in local memory
    std::int64_t pad_top, halo_rows, pitch, margin, tail;
};

Geometry geometry_of(const Conv2dProblem& problem, std::int64_t vector) {
    const bool backward = problem.direction == Conv2dDirection::backward_input;
    const auto& in = backward ? problem.output : problem.input;
    const auto& out = backward ? problem.input : problem.output;
    constexpr std::array<std::int64_t, 2> unit_stride{1, 1};
    const auto& step = backward ? unit_stride : problem.stride;
    const auto& phases = backward ? problem.stride : unit_stride;
    const bool flip = backward && phases == unit_stride;
    const auto longest = [&](std::size_t axis) { return (problem.filter[axis] - 1) * problem.dilation[axis]; };
    const auto first = [&](std::size_t axis) {
        return flip ? longest(axis) - problem.padding[axis] : problem.padding[axis];
    };
    const bool interleaved = backward && !flip;
    const std::int64_t pad_top = interleaved ? floor_div(longest(0) - problem.padding[0], phases[0]) : first(0);
    const std::int64_t pitch = std::max(ceil_div(in[1], step[1]), ceil_div(out[1], phases[1]));
    const std::int64_t left = interleaved ? ceil_div(longest(1), phases[1]) : first(1),
                       right = interleaved ? problem.padding[1] + phases[1] : longest(1) - first(1);
    const auto whole_vectors = [&](std::int64_t elements) {
        return ceil_div(std::clamp<std::int64_t>(ceil_div(elements, step[1]), 0, pitch), vector) * vector;
    };
    return {
        .in = in,
        .out = out,
        .step = step,
        .phases = phases,
        .first = {first(0), first(1)},
        .flip = flip,
        .staged = out[1] != pitch || interleaved,
        .pad_top = pad_top,
        .halo_rows = interleaved ? (phases[0] - 1 + problem.padding[0]) / phases[0] + pad_top : longest(0) / step[0],
        .pitch = pitch,
        .margin = whole_vectors(left),
        .tail = whole_vectors(right) + vector};
}

/// Partition of `block` elements of local memory; empty if not even one row fits.
std::optional<LaunchConfig> launch_config_of(const Conv2dProblem& problem, std::int64_t vector, std::int64_t block,
                                             bool has_bias) {
    const bool weights = problem.direction == Conv2dDirection::backward_weights;
    const Geometry at = geometry_of(problem, vector);
    const std::int64_t phases_in = at.step[0] * at.step[1], phases_out = at.staged ? at.phases[0] * at.phases[1] : 0,
                       rows = ceil_div(at.out[0], at.phases[0]);
    // Each phase needs its rows, plus up to two vectors of padding.
    const std::int64_t sums = weights ? problem.taps() * vector : 0;
    const std::int64_t fixed = at.margin + at.tail + sums + vector +
                               phases_in * (std::max<std::int64_t>(0, at.halo_rows) * at.pitch + 2 * vector) +
                               phases_out * 2 * vector;
    std::int64_t band = (block - fixed) / ((phases_in + phases_out) * at.pitch);
    if (block <= fixed || band < 1) return std::nullopt;
    band = ceil_div(rows, ceil_div(rows, std::min(band, rows)));
    const auto size_of_phase = [&](std::int64_t count) { return (ceil_div(count * at.pitch, vector) + 1) * vector; };
    const std::int64_t phase_size = size_of_phase(band + at.halo_rows), staged_size = size_of_phase(band),
                       copy_size = phases_in * phase_size;
    // Planes that are not divided into bands leave room for several.
    const std::int64_t each = copy_size + phases_out * staged_size + sums;
    const std::int64_t planes_at_once =
        band < rows ? 1
                    : std::clamp<std::int64_t>(std::min((block - at.margin - at.tail - vector) / each,
                                                        weights ? ceil_div(problem.channels, 4) : kMaxPlanesAtOnce),
                                               1, kMaxPlanesAtOnce);
    const std::int64_t before = at.margin + planes_at_once * copy_size + at.tail,
                       before_sums = before + planes_at_once * phases_out * staged_size;
    return LaunchConfig{{.planes = problem.images * problem.channels,
                         .channels = narrow(problem.channels),
                         .images = narrow(problem.images),
                         .height = narrow(at.in[0]),
                         .width = narrow(at.in[1]),
                         .rows = narrow(at.out[0]),
                         .columns = narrow(at.out[1]),
                         .stride_h = narrow(at.step[0]),
                         .stride_w = narrow(at.step[1]),
                         .first_h = narrow(at.first[0]),
                         .first_w = narrow(at.first[1]),
                         .dilation_h = narrow(problem.dilation[0]),
                         .dilation_w = narrow(problem.dilation[1]),
                         .pad_top = narrow(at.pad_top),
                         .pitch = narrow(at.pitch),
                         .band = narrow(band),
                         .halo_rows = narrow(at.halo_rows),
                         .phase_size = narrow(phase_size),
                         .planes_at_once = narrow(planes_at_once),
                         .copy_size = narrow(copy_size),
                         .margin = narrow(at.margin),
                         .local_size = narrow(before_sums + planes_at_once * sums + (weights ? vector : 0)),
                         .staged = narrow(at.staged ? before : -1),
                         .staged_size = narrow(staged_size),
                         .sums = narrow(before_sums),
                         .flip = at.flip ? 1 : 0,
                         .has_bias = has_bias ? 1 : 0},
                        weights ? std::array<std::int64_t, 2>{1, 1} : at.phases};
}

std::optional<LaunchConfig> launch_config_on(const Device& device, const Conv2dProblem& problem, bool has_bias) {
    return launch_config_of(problem, vector_form(device, problem.dtype).vector,
                            block_elements(device, problem.dtype, kBlockBytes), has_bias);
}

Kernel kernel_of(const Device& device, const Conv2dProblem& problem, const LaunchConfig& config, const char* name,
                 bool weights, const KernelEpilogue& epilogue = {}) {
    Defines defines = real_defines(problem.dtype);
    defines.set("VW", vector_form(device, problem.dtype).vector)
        .set("TAPS_H", problem.filter[0])
        .set("TAPS_W", problem.filter[1])
        .set("PHASES_H", config.phases[0])
        .set("PHASES_W", config.phases[1]);
    set_epilogue_stored(defines, epilogue);
    return {device, {"conv2d_depthwise.cl", name, defines.set("WEIGHTS", std::int64_t{weights ? 1 : 0})}};
}

std::int64_t target_items(const Device& device) { return std::int64_t{device.info().compute_units} * kGroupsPerUnit; }

void backward_weights(const Conv2dProblem& problem, const Conv2dOperands& operands) {
    const auto& [x, weight, out, bias, epilogue, sums] = operands;
    const Device device = x.device();
    const LaunchConfig config = launch_config_on(device, problem, false).value();
    Depthwise d = config.arguments;
    const std::int64_t target_groups = target_items(device),
                       channel_blocks = ceil_div(problem.channels, d.planes_at_once);
    d.channel_blocks_each = narrow(ceil_div(channel_blocks, target_groups));
    const std::int64_t lots = ceil_div(channel_blocks, d.channel_blocks_each),
                       chunks = std::clamp<std::int64_t>(target_groups / lots, 1, problem.images);
    d.each = narrow(ceil_div(problem.images, chunks));
    const std::int64_t parts = ceil_div(problem.images, d.each);
    const View partials =
        parts == 1 ? reshaped(weight, {1, weight.numel()}) : View::make(device, problem.dtype, {parts, weight.numel()});
    launch(kernel_of(device, problem, config, "conv2d_depthwise_backward_weights", true),
           {{to_size(lots), to_size(parts)}, {1, 1}},
           {d, local_memory(d.local_size, problem.dtype), x.argument(), out.argument(), partials.argument()});
    if (parts > 1) reduce_partials(problem, operands, partials, weight);
}

void convolve(const Conv2dProblem& problem, const Conv2dOperands& operands) {
    const auto& [x, weight, out, bias, epilogue, sums] = operands;
    const Device device = x.device();
    const bool forward = problem.direction == Conv2dDirection::forward;
    const View &from = forward ? x : out, &to = forward ? out : x;
    const LaunchConfig config = launch_config_on(device, problem, bias.has_value()).value();
    Depthwise d = config.arguments;
    const std::int64_t work = std::max<std::int64_t>(1, std::int64_t{d.rows} * d.columns * problem.taps());
    d.each = narrow(std::clamp<std::int64_t>(std::min(kWork / work, d.planes / target_items(device)), 1, d.planes));
    const EpilogueArguments arguments(epilogue, weight);
    launch(kernel_of(device, problem, config, "conv2d_depthwise", false, epilogue),
           {{to_size(ceil_div(d.planes, d.each))}, {1}},
           arguments.append_to_if_any({d, local_memory(d.local_size, problem.dtype), from.argument(), weight.argument(),
                                       to.argument(), (bias ? *bias : weight).argument()}));
}

class Conv2dDepthwise final : public Conv2dStrategy {
  public:
    [[nodiscard]] std::string_view name() const override { return "depthwise"; }

    [[nodiscard]] bool is_applicable(const Conv2dProblem& problem, const Device& device) const override {
        if (problem.style != KernelStyle::simd || problem.channels_per_group() != 1 ||
            problem.filters_per_group() != 1 || problem.taps() > kMaxTaps)
            return false;
        constexpr std::int64_t max_extent = 1 << 20;
        for (std::size_t i = 0; i < 2; ++i)
            if (std::max({problem.input[i] * problem.stride[i], problem.output[i] * problem.stride[i],
                          problem.padding[i], problem.filter[i] * problem.dilation[i]}) > max_extent)
                return false;
        if (problem.direction == Conv2dDirection::backward_input && problem.stride[0] * problem.stride[1] > kMaxPhases)
            return false;
        constexpr std::int64_t vector = 16, block = kBlockBytes / 8;  // the least favourable
        return launch_config_of(problem, vector, block, false) && launch_config_on(device, problem, false);
    }

    [[nodiscard]] bool fuses_epilogue(const Conv2dProblem&, const Device&, std::string_view) const override {
        return true;
    }

    void run(const Conv2dProblem& problem, const Conv2dOperands& operands, std::string_view) const override {
        if (problem.direction == Conv2dDirection::backward_weights) backward_weights(problem, operands);
        else convolve(problem, operands);
    }
};

}  // namespace
}  // namespace depthwise

const Conv2dStrategy& conv2d_depthwise() {
    static const depthwise::Conv2dDepthwise strategy;
    static const Conv2dUpcast upcast(strategy, Conv2dUpcast::When::profitable);
    return upcast;
}

}  // namespace declivity::ops
