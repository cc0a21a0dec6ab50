// Convolution by register tiles over bands of rows in local memory, simd kernels: forward and backward_input
// (cl_kernels/conv/conv2d_banded.cl); backward_weights is in conv2d_banded_weights.cpp.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "conv2d_banded.hpp"
#include "conv2d_upcast.hpp"
#include "ops/support/vector_form.hpp"
#include "ops/support/work_split.hpp"

namespace declivity::ops {
namespace banded {
namespace {

constexpr std::int64_t kMaxTaps = 49, kMaxPhases = 16;
constexpr std::int64_t kFewFilters = 8, kManyChannels = 64;
constexpr double kGain = 0.95;  // relative cost that a later tile must reach

// Few, since each is a kernel to compile. The last ones are for few filters.
constexpr std::array kTiles{RegisterTile{8, 3}, RegisterTile{6, 4}, RegisterTile{3, 7}, RegisterTile{1, 12},
                            RegisterTile{4, 2}};

/// Layout of the kernel's struct; must match cl_kernels/conv/conv2d_banded.cl.
struct Banded {
    std::int64_t x_image, x_channel, x_count, out_image, out_channel, a_group, a_row, a_channel;
    std::int32_t channels, filters, height, width, rows, columns, stride_h, stride_w, pad_top, pad_left, dilation_h,
        dilation_w, padding_h, padding_w;
    std::int32_t pitch, band, bands, halo_rows, phase_size, copy_size, staged, staged_size, row_panels, row_panels_each,
        has_bias, backward;
};

std::string name_of(const RegisterTile& tile) { return fmt::format("{}x{}", tile.rows, tile.vectors); }

/// Properties of a problem that do not depend on the tile.
struct Layout {
    std::array<std::int64_t, 2> in, out, step, phases, zeros;  // zeros: padding above and to the left of x
    std::int64_t channels, filters;                            // of a group: summed over, and computed
    std::int64_t pitch, halo_rows, slack;  // slack: elements that the last vectors may read past the copies
    [[nodiscard]] std::int64_t phases_in() const { return step[0] * step[1]; }
    [[nodiscard]] std::int64_t phases_out() const { return phases[0] * phases[1]; }
    [[nodiscard]] std::int64_t phase_rows() const { return ceil_div(out[0], phases[0]); }
};

Layout layout_of(const Conv2dProblem& problem) {
    const bool backward = problem.direction == Conv2dDirection::backward_input;
    constexpr std::array<std::int64_t, 2> unit_stride{1, 1};
    Layout layout{.in = backward ? problem.output : problem.input,
                  .out = backward ? problem.input : problem.output,
                  .step = backward ? unit_stride : problem.stride,
                  .phases = backward ? problem.stride : unit_stride,
                  .zeros = problem.padding,
                  .channels = backward ? problem.filters_per_group() : problem.channels_per_group(),
                  .filters = backward ? problem.channels_per_group() : problem.filters_per_group(),
                  .pitch = 0,
                  .halo_rows = 0,
                  .slack = 0};
    std::array<std::int64_t, 2> halo{};
    for (std::size_t i = 0; i < 2; ++i) {
        const std::int64_t longest = (problem.filter[i] - 1) * problem.dilation[i];
        if (backward)
            layout.zeros[i] = longest < problem.padding[i] ? -1 : (longest - problem.padding[i]) / layout.phases[i];
        halo[i] = backward ? (layout.phases[i] - 1 + problem.padding[i]) / layout.phases[i] + layout.zeros[i]
                           : longest / layout.step[i];
    }
    layout.pitch = ceil_div(layout.out[1], layout.phases[1]) + halo[1];
    layout.halo_rows = halo[0];
    layout.slack = halo[1];
    return layout;
}

struct LaunchConfig {
    RegisterTile tile;
    std::int64_t band, phase_size = 0, staged_size = 0, staged = 0, local_size = 0;
};

/// Layout of a band of `band` rows in `block` elements of local memory.
LaunchConfig launch_config_of(const Layout& layout, const RegisterTile& tile, std::int64_t vector, std::int64_t band) {
    const std::int64_t columns = tile.vectors * vector, size = ceil_div(band * layout.pitch, columns) * columns;
    LaunchConfig config{.tile = tile, .band = band};
    config.phase_size = ceil_div((band + layout.halo_rows) * layout.pitch, vector) * vector + 2 * vector;
    config.staged_size = size + vector;
    // The tiles of the last channel extend past its rows.
    config.staged = layout.channels * layout.phases_in() * config.phase_size +
                    ceil_div(size - band * layout.pitch + layout.slack, vector) * vector + vector;
    config.local_size = config.staged + tile.rows * layout.phases_out() * config.staged_size;
    return config;
}

RegisterTile choose_tile(const VectorForm& form, const Layout& layout, std::int64_t band, std::string_view variant) {
    for (const RegisterTile& tile : kTiles)
        if (!variant.empty() && variant == name_of(tile)) return tile;
    return cheapest_tile(kTiles, form, layout.filters, band * layout.pitch, kGain, true);
}

/// Divides an image into bands: enough to keep all units busy, each of at most `block` elements; empty if not even one
/// row fits.
std::optional<LaunchConfig> cut_bands(const Conv2dProblem& problem, const Layout& layout, const VectorForm& form,
                                      std::int64_t units, std::int64_t block, std::string_view variant) {
    const std::int64_t rows = layout.phase_rows();
    for (std::int64_t bands =
             std::clamp<std::int64_t>(ceil_div(units * kGroupsPerUnit, problem.images * problem.groups), 1,
                                      std::max<std::int64_t>(1, rows / kMinBand));
         bands <= rows;) {
        const std::int64_t band = ceil_div(rows, bands);
        const LaunchConfig config =
            launch_config_of(layout, choose_tile(form, layout, band, variant), form.vector, band);
        if (config.local_size <= block) return config;
        bands = band == 1 ? rows + 1 : ceil_div(rows, band - 1);
    }
    return std::nullopt;
}

/// Returns the plan for a device; a variant that does not fit is ignored.
std::optional<LaunchConfig> launch_config_on(const Device& device, const Conv2dProblem& problem, const Layout& layout,
                                             std::string_view variant = {}) {
    const VectorForm form = vector_form(device, problem.dtype);
    const std::int64_t block = block_elements(device, problem.dtype, kBlockBytes);
    const std::int64_t units = device.info().compute_units;
    const std::optional<LaunchConfig> config = cut_bands(problem, layout, form, units, block, variant);
    return config || variant.empty() ? config : cut_bands(problem, layout, form, units, block, {});
}

Banded arguments_of(const Conv2dProblem& problem, const Layout& layout, const LaunchConfig& config, const View& x,
                    const View& weight, const View& out, bool has_bias) {
    const bool backward = problem.direction == Conv2dDirection::backward_input;
    const std::int64_t units = out.device().info().compute_units;
    const std::int64_t bands = ceil_div(layout.phase_rows(), config.band),
                       row_panels = ceil_div(layout.filters, config.tile.rows);
    const std::int64_t column_groups = problem.images * bands * problem.groups;
    // Few groups of filters, since each copies the bands again.
    const std::int64_t row_groups =
        std::min(row_panels, ceil_div(units, column_groups) * (column_groups < units * 2 ? 2 : 1));
    const std::int64_t row_panels_each = ceil_div(row_panels, row_groups);
    return {.x_image = x.shape[1] * x.shape[2] * x.shape[3],
            .x_channel = x.shape[2] * x.shape[3],
            .x_count = x.numel(),
            .out_image = out.shape[1] * out.shape[2] * out.shape[3],
            .out_channel = out.shape[2] * out.shape[3],
            .a_group = weight.numel() / problem.groups,
            .a_row = backward ? problem.taps() : problem.channels_per_group() * problem.taps(),
            .a_channel = backward ? problem.channels_per_group() * problem.taps() : problem.taps(),
            .channels = narrow(layout.channels),
            .filters = narrow(layout.filters),
            .height = narrow(layout.in[0]),
            .width = narrow(layout.in[1]),
            .rows = narrow(layout.out[0]),
            .columns = narrow(layout.out[1]),
            .stride_h = narrow(layout.step[0]),
            .stride_w = narrow(layout.step[1]),
            .pad_top = narrow(layout.zeros[0]),
            .pad_left = narrow(layout.zeros[1]),
            .dilation_h = narrow(problem.dilation[0]),
            .dilation_w = narrow(problem.dilation[1]),
            .padding_h = narrow(problem.padding[0]),
            .padding_w = narrow(problem.padding[1]),
            .pitch = narrow(layout.pitch),
            .band = narrow(config.band),
            .bands = narrow(bands),
            .halo_rows = narrow(layout.halo_rows),
            .phase_size = narrow(config.phase_size),
            .copy_size = narrow(layout.phases_in() * config.phase_size),
            .staged = narrow(config.staged),
            .staged_size = narrow(config.staged_size),
            .row_panels = narrow(row_panels),
            .row_panels_each = narrow(row_panels_each),
            .has_bias = has_bias ? 1 : 0,
            .backward = backward ? 1 : 0};
}

void convolve(const Conv2dProblem& problem, const Conv2dOperands& operands, std::string_view variant) {
    const bool backward = problem.direction == Conv2dDirection::backward_input;
    const View &x = backward ? operands.out : operands.x, &out = backward ? operands.x : operands.out,
               &weight = operands.weight;
    const Device device = out.device();
    const std::int64_t vector = vector_form(device, problem.dtype).vector;
    const Layout layout = layout_of(problem);
    const LaunchConfig config = launch_config_on(device, problem, layout, variant).value();
    const Banded d = arguments_of(problem, layout, config, x, weight, out, operands.bias.has_value());
    Defines defines = real_defines(problem.dtype);
    defines.set("VW", vector)
        .set("ROWS", config.tile.rows)
        .set("COLUMNS", config.tile.vectors * vector)
        .set("TAPS_H", problem.filter[0])
        .set("TAPS_W", problem.filter[1]);
    defines.set("PHASES_H", layout.phases[0]).set("PHASES_W", layout.phases[1]);
    set_epilogue_stored(defines, operands.epilogue);
    const Kernel kernel(device, {"conv2d_banded.cl", "conv2d_banded", defines});
    const EpilogueArguments arguments(operands.epilogue, weight);
    launch(
        kernel,
        {{to_size(problem.images * d.bands), to_size(ceil_div(d.row_panels, d.row_panels_each)),
          to_size(problem.groups)},
         {1, 1, 1}},
        arguments.append_to_if_any({d, local_memory(config.local_size, problem.dtype), x.argument(), weight.argument(),
                                    out.argument(), (operands.bias ? *operands.bias : weight).argument()}));
}

class Conv2dBanded final : public Conv2dStrategy {
  public:
    [[nodiscard]] std::string_view name() const override { return "banded"; }

    [[nodiscard]] bool is_applicable(const Conv2dProblem& problem, const Device& device) const override {
        if (problem.style != KernelStyle::simd || problem.taps() > kMaxTaps) return false;
        constexpr std::int64_t max_size = 1 << 20;
        for (std::size_t i = 0; i < 2; ++i)
            if (std::max({problem.input[i] * problem.stride[i], problem.output[i] * problem.stride[i],
                          problem.padding[i], problem.filter[i] * problem.dilation[i]}) > max_size)
                return false;
        if (std::max(problem.channels, problem.filters) * problem.taps() > max_size ||
            problem.stride[0] * problem.stride[1] > kMaxPhases)
            return false;
        if (problem.direction == Conv2dDirection::backward_weights) return is_applicable_to_weights(problem, device);
        const Layout layout = layout_of(problem);
        if (layout.zeros[0] < 0 || layout.zeros[1] < 0) return false;
        // The widest vectors are assumed, so that applicability depends little on the processor.
        const VectorForm widest = problem.dtype == DType::f64 ? VectorForm{8, 32} : VectorForm{16, 32};
        const std::int64_t block = kBlockBytes / static_cast<std::int64_t>(size_of(problem.dtype));
        return cut_bands(problem, layout, widest, 1, block, {}) && launch_config_on(device, problem, layout);
    }

    /// Returns whether several taps or phases reuse elements and the channels of a tile fit the L1 cache. The strides
    /// of forward spread them too far, unless there are few filters.
    [[nodiscard]] bool is_profitable(const Conv2dProblem& problem, const Device&) const override {
        if (problem.direction == Conv2dDirection::backward_weights) return is_profitable_for_weights(problem);
        const Layout layout = layout_of(problem);
        const bool strided = problem.stride[0] * problem.stride[1] > 1;
        if (problem.direction == Conv2dDirection::forward)
            return problem.taps() > 1 &&
                   (layout.filters <= kFewFilters || (!strided && layout.channels < kManyChannels));
        return (problem.taps() > 1 || strided) &&
               (layout.filters <= kFewFilters || layout.channels <= (strided ? 2 * kManyChannels : kManyChannels));
    }

    [[nodiscard]] std::vector<std::string> variants(const Conv2dProblem& problem, const Device& device) const override {
        if (problem.direction == Conv2dDirection::backward_weights) return {""};
        std::vector<std::string> names;
        const VectorForm form = vector_form(device, problem.dtype);
        for (const RegisterTile& tile : kTiles)
            if (tile.fits(form) && (tile.rows >= 6 || layout_of(problem).filters < 8)) names.push_back(name_of(tile));
        if (names.empty()) names.emplace_back();
        return names;
    }

    [[nodiscard]] bool gives_bias_gradient() const override { return true; }
    [[nodiscard]] bool fuses_epilogue(const Conv2dProblem&, const Device&, std::string_view) const override {
        return true;
    }

    void run(const Conv2dProblem& problem, const Conv2dOperands& operands, std::string_view variant) const override {
        if (problem.direction == Conv2dDirection::backward_weights) backward_weights(problem, operands);
        else convolve(problem, operands, variant);
    }
};

}  // namespace
}  // namespace banded

const Conv2dStrategy& conv2d_banded() {
    static const banded::Conv2dBanded strategy;
    static const Conv2dUpcast upcast(strategy, Conv2dUpcast::When::measured);
    return upcast;
}

}  // namespace declivity::ops
