// Depthwise convolution (cl_kernels/conv2d_depthwise.cl), on CPU-like devices.
#include <algorithm>

#include "conv2d_strategy.hpp"
#include "conv2d_tiled.hpp"
#include "vector_form.hpp"

namespace declivity::ops {
namespace {

constexpr std::int64_t kBlockBytes = 32 * 1024;  // rows that stay in the first cache
constexpr std::int64_t kMostRows = 256, kMostTaps = 49;
constexpr std::int64_t kWork = 1 << 16;          // multiply-adds that are worth a work-item
constexpr std::int64_t kGroupsPerUnit = 4;       // so that all compute units end at about the same time

/// As the struct of the kernels.
struct Depthwise {
    std::int64_t planes;
    std::int32_t channels, images, height, width, rows, columns, step_h, step_w, up_h, up_w, first_h, first_w, hop_h, hop_w;
    std::int32_t part, band = 0, each = 0, begin = 0, end = 0, flip, has_bias;
};

std::int32_t narrow(std::int64_t value) { return static_cast<std::int32_t>(value); }

/// Elements of a part of a padded row.
std::int64_t part_of(const Conv2dProblem& problem, std::int64_t vector) {
    const bool back = problem.direction == Conv2dDirection::backward_input;
    const std::int64_t columns = back ? problem.input[1] : problem.output[1], step = back ? 1 : problem.stride[1];
    const std::int64_t reach = ceil_div((problem.filter[1] - 1) * problem.dilation[1], step) + 1;
    return ceil_div(ceil_div(columns, vector) * vector + reach, vector) * vector + vector;  // and what vectors that hold the last ones may overwrite
}

struct Plan {
    Depthwise arguments;
    Defines defines;
};

std::int64_t block_of(const Device& device, DType dtype) {
    return std::min<std::int64_t>(kBlockBytes, static_cast<std::int64_t>(device.info().local_memory)) / static_cast<std::int64_t>(size_of(dtype));
}

/// Rows of the result whose rows of the input fit into the local memory; 0 when not even one does.
std::int64_t band_of(const Conv2dProblem& problem, std::int64_t row_size, std::int64_t block) {
    const std::int64_t step = problem.direction == Conv2dDirection::backward_input ? 1 : problem.stride[0];
    const std::int64_t rows = std::min(block / row_size, kMostRows), reach = (problem.filter[0] - 1) * problem.dilation[0] + 1;
    return rows < reach ? 0 : (rows - reach) / step + 1;
}

Plan plan_of(const Conv2dProblem& problem, const Device& device, bool has_bias) {
    const bool back = problem.direction == Conv2dDirection::backward_input;
    const VectorForm form = vector_form(device, problem.dtype);
    const auto& in = back ? problem.output : problem.input;
    const auto& out = back ? problem.input : problem.output;
    Depthwise d{.planes = problem.images * problem.channels, .channels = narrow(problem.channels), .images = narrow(problem.images),
                .height = narrow(in[0]), .width = narrow(in[1]), .rows = narrow(out[0]), .columns = narrow(out[1]),
                .step_h = narrow(back ? 1 : problem.stride[0]), .step_w = narrow(back ? 1 : problem.stride[1]),
                .up_h = narrow(back ? problem.stride[0] : 1), .up_w = narrow(back ? problem.stride[1] : 1),
                .first_h = narrow(back ? (problem.filter[0] - 1) * problem.dilation[0] - problem.padding[0] : problem.padding[0]),
                .first_w = narrow(back ? (problem.filter[1] - 1) * problem.dilation[1] - problem.padding[1] : problem.padding[1]),
                .hop_h = narrow(problem.dilation[0]), .hop_w = narrow(problem.dilation[1]), .part = narrow(part_of(problem, form.vector)),
                .flip = back ? 1 : 0, .has_bias = has_bias ? 1 : 0};
    d.begin = d.first_w >= 0 ? 0 : narrow(ceil_div(-d.first_w, d.up_w));
    d.end = narrow(std::clamp<std::int64_t>(ceil_div(std::int64_t{d.part} * d.step_w - form.vector - d.first_w, d.up_w), 0, d.width));
    const std::int64_t block = block_of(device, problem.dtype);
    d.band = narrow(std::min<std::int64_t>(d.rows, band_of(problem, std::int64_t{d.part} * d.step_w, block)));
    Defines defines = real_defines(problem.dtype);
    defines.set("VW", form.vector).set("TAPS_H", problem.filter[0]).set("TAPS_W", problem.filter[1]).set("BLOCK", block).set("MOST_ROWS", kMostRows).set("DENSE", d.up_h == 1 ? 1 : 0);
    return {d, defines};
}

class Conv2dDepthwise final : public Conv2dStrategy {
  public:
    [[nodiscard]] std::string_view name() const override { return "depthwise"; }

    [[nodiscard]] bool can_serve(const Conv2dProblem& problem) const override {
        if (problem.family != Family::cpu_like || problem.channels_per_group() != 1 || problem.filters_per_group() != 1 || problem.taps() > kMostTaps) return false;
        constexpr std::int64_t most = 1 << 20;
        for (std::size_t i = 0; i < 2; ++i)
            if (std::max({problem.input[i] * problem.stride[i], problem.output[i] * problem.stride[i], problem.padding[i], problem.dilation[i]}) > most) return false;
        constexpr std::int64_t vector = 16, block = 4096;  // the least favourable
        const std::int64_t step = problem.direction == Conv2dDirection::backward_input ? 1 : problem.stride[1];
        return band_of(problem, part_of(problem, vector) * step, block) > 0;
    }

    void run(const Conv2dProblem& problem, const Conv2dOperands& operands, std::string_view) const override {
        const auto& [x, weight, out, bias] = operands;
        const Device device = x.device();
        auto [d, defines] = plan_of(problem, device, bias.has_value());
        const std::int64_t wanted = std::int64_t{device.info().compute_units} * kGroupsPerUnit;
        if (problem.direction == Conv2dDirection::backward_weights) {
            const std::int64_t chunks = std::clamp<std::int64_t>(wanted / problem.channels, 1, problem.images);
            d.each = narrow(ceil_div(problem.images, chunks));
            const std::int64_t parts = ceil_div(problem.images, d.each);
            const View partials = parts == 1 ? reshaped(weight, {1, weight.numel()}) : View::make(device, problem.dtype, {parts, weight.numel()});
            const Kernel kernel(device, {"conv2d_depthwise.cl", "conv2d_depthwise_backward_weights", defines.set("WEIGHTS", std::int64_t{1})});
            launch(kernel, {{static_cast<std::size_t>(problem.channels), static_cast<std::size_t>(parts)}, {1, 1}}, {d, x.argument(), out.argument(), partials.argument()});
            if (parts > 1) tiled::sum_partials(partials, weight, problem.family);
            return;
        }
        const bool forward = problem.direction == Conv2dDirection::forward;
        const View &from = forward ? x : out, &to = forward ? out : x;
        const std::int64_t work = std::max<std::int64_t>(1, std::int64_t{d.rows} * d.columns * problem.taps());
        d.each = narrow(std::clamp<std::int64_t>(std::min(kWork / work, d.planes / wanted), 1, d.planes));
        const Kernel kernel(device, {"conv2d_depthwise.cl", "conv2d_depthwise", defines.set("WEIGHTS", std::int64_t{0})});
        launch(kernel, {{static_cast<std::size_t>(ceil_div(d.planes, d.each))}, {1}}, {d, from.argument(), weight.argument(), to.argument(), (bias ? *bias : weight).argument()});
    }
};

}  // namespace

const Conv2dStrategy& conv2d_depthwise() {
    static const Conv2dDepthwise strategy;
    return strategy;
}

}  // namespace declivity::ops
