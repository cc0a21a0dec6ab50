// Convolution with 3 x 3 filters by Winograd's minimal filtering, F(4 x 4, 3 x 3)
// (cl_kernels/conv/conv2d_winograd4.cl), simd kernels.
#include <algorithm>
#include <array>

#include "ops/engine/packed_weights.hpp"
#include "conv2d_winograd.hpp"
#include "conv2d_upcast.hpp"
#include "ops/support/local_block.hpp"
#include "ops/support/vector_form.hpp"
#include "ops/support/work_split.hpp"
#include "ops/engine/lazy_array.hpp"

namespace declivity::ops {
namespace winograd4 {
namespace {

using namespace winograd;

constexpr std::int64_t kScratchBytes = 768 * 1024;          // of a unit, to stay in the L2 cache
constexpr std::int64_t kMinTilesNear = 16, kMinTiles = 48;  // of a unit: all weights are read for each
constexpr std::int64_t kNear = 1 << 18;                     // elements of weights that stay in the L2 cache
constexpr std::int64_t kChannels = 7;                       // CHANNELS
constexpr std::int64_t kMinUnits = 3;                       // of a work-item that transforms the weights for itself

/// Layout of the kernels' struct; must match cl_kernels/conv/conv2d_winograd4.cl.
struct Winograd {
    std::int64_t weight_channel, weight_filter, weight_count;
    std::int32_t images, channels, filters, height, width, rows, columns, pad_top, pad_left, images_each, tile_rows,
        tile_columns;
    std::int32_t units_h, units_w, units, pitch, grid_rows, padded_channels, weight_element, input_element,
        product_element, slice, parts, block, flat, flip, has_bias, unused = 0;
};

/// Plan of a problem for a device.
struct LaunchConfig {
    VectorForm form;
    RegisterTile tile;
    std::int64_t channels, filters;  ///< summed over, and computed
    std::int64_t block, blocks, padded;
    Units unit_config;
    std::int64_t parts, groups;
    bool own_weights;  ///< each work-item transforms the weights for itself, in its slice
    std::int64_t weight_element, input_element, product_element, slice;
    bool flat;  ///< a unit has whole rows
};

/// Variants "own" and "apart": each work-item transforms the weights for itself, or a separate launch does before.
constexpr std::string_view kInlineTransform = "own", kSeparateTransform = "apart";

/// Returns whether transformed weights fit into a work-item's slice.
bool may_own_weights(const LaunchConfig& config, const Conv2dProblem& problem) {
    return fuses() && !problem.constant_weight && config.blocks * config.block * config.channels <= kNear / kElements;
}

LaunchConfig launch_config_of(const Conv2dProblem& problem, const Device& device, std::string_view variant) {
    const bool forward = problem.direction == Conv2dDirection::forward;
    const auto& in = forward ? problem.input : problem.output;
    const auto& to = forward ? problem.output : problem.input;
    const std::int64_t bytes = static_cast<std::int64_t>(size_of(problem.dtype)), units = device.info().compute_units;
    LaunchConfig config{};
    config.form = vector_form(device, problem.dtype);
    config.channels = forward ? problem.channels : problem.filters;
    config.filters = forward ? problem.filters : problem.channels;
    config.tile = cheapest_tile(kRegisterTiles, config.form, kMaxTiles, config.filters, kGain);
    config.block = config.tile.vectors * config.form.vector;
    config.blocks = ceil_div(config.filters, config.block);
    config.padded = ceil_div(config.channels, config.form.vector) * config.form.vector;

    const bool is_far = kElements * config.blocks * config.block * config.channels > kNear;
    const std::int64_t min_tiles = is_far ? kMinTiles : kMinTilesNear;
    const std::int64_t fitting =
        std::clamp(kScratchBytes / (bytes * kElements * (config.padded + config.block)), min_tiles, kMaxTiles);
    const std::int64_t grid = block_elements(device, problem.dtype, kGridBytes) / config.form.vector;
    // Weights that exceed the cache are read as rarely as possible: few units, whose filters are shared among compute
    // units.
    std::int64_t target_units = units * 2;
    if (is_far) {
        target_units = ceil_div(problem.images * ceil_div(to[0], 4) * ceil_div(to[1], 4), kMaxTiles);
        if (target_units > 1) target_units = ceil_div(target_units, units) * units;
    }
    config.unit_config = split_into_units(to, problem.images, ceil_div(problem.images, target_units), fitting, grid);
    config.parts = std::clamp<std::int64_t>(ceil_div(units, config.unit_config.count), 1, config.blocks);
    const std::int64_t items = config.unit_config.count * config.parts;
    config.own_weights = may_own_weights(config, problem) && variant != kSeparateTransform &&
                         (variant == kInlineTransform || items >= units * kMinUnits);
    config.groups = std::min(items, config.own_weights ? units : units * winograd::kGroupsPerUnit);
    config.weight_element = spread(config.blocks * config.channels * config.block);
    config.input_element = spread(config.unit_config.tiles() * config.padded);
    config.product_element = spread(config.unit_config.tiles() * config.block);
    config.slice =
        kElements * (config.input_element + config.product_element + (config.own_weights ? config.weight_element : 0));
    config.flat = config.unit_config.units_w == 1 && in[1] <= Units::grid_size(config.unit_config.tiles_w_each);
    return config;
}

Winograd arguments_of(const Conv2dProblem& problem, const LaunchConfig& config, std::int64_t weights, bool has_bias) {
    const bool forward = problem.direction == Conv2dDirection::forward;
    const auto& in = forward ? problem.input : problem.output;
    const auto& to = forward ? problem.output : problem.input;
    const auto before = [&](std::size_t i) { return narrow(forward ? problem.padding[i] : 2 - problem.padding[i]); };
    return {.weight_channel = forward ? 9 : config.filters * 9,
            .weight_filter = forward ? config.channels * 9 : 9,
            .weight_count = weights,
            .images = narrow(problem.images),
            .channels = narrow(config.channels),
            .filters = narrow(config.filters),
            .height = narrow(in[0]),
            .width = narrow(in[1]),
            .rows = narrow(to[0]),
            .columns = narrow(to[1]),
            .pad_top = before(0),
            .pad_left = before(1),
            .images_each = narrow(config.unit_config.images_each),
            .tile_rows = narrow(config.unit_config.tiles_h_each),
            .tile_columns = narrow(config.unit_config.tiles_w_each),
            .units_h = narrow(config.unit_config.units_h),
            .units_w = narrow(config.unit_config.units_w),
            .units = narrow(config.unit_config.count),
            .pitch = narrow(Units::grid_size(config.unit_config.tiles_w_each)),
            .grid_rows = narrow(Units::grid_size(config.unit_config.tiles_h_each)),
            .padded_channels = narrow(config.padded),
            .weight_element = narrow(config.weight_element),
            .input_element = narrow(config.input_element),
            .product_element = narrow(config.product_element),
            .slice = narrow(config.slice),
            .parts = narrow(config.parts),
            .block = narrow(config.block),
            .flat = config.flat ? 1 : 0,
            .flip = forward ? 0 : 1,
            .has_bias = has_bias ? 1 : 0};
}

enum class Stage : std::int64_t { weights, packed, own_weights };

Kernel kernel_of(const Device& device, const Conv2dProblem& problem, const LaunchConfig& config, Stage stage,
                 const KernelEpilogue& epilogue = {}) {
    Defines defines = real_defines(problem.dtype);
    defines.set("VW", config.form.vector).set("STAGE", static_cast<std::int64_t>(stage));
    // One program transforms weights for all tiles.
    if (stage == Stage::weights) return {device, {"conv2d_winograd4.cl", "conv2d_winograd4_weights", defines}};
    set_epilogue_stored(defines.set("ROWS", config.tile.rows).set("COLUMNS", config.block), epilogue);
    return {device, {"conv2d_winograd4.cl", "conv2d_winograd4", defines}};
}

LocalMemory integers(std::int64_t count) { return {to_size(count) * sizeof(std::int32_t)}; }

/// Elements of local memory for the weights of a vector of filters.
std::int64_t taps_of(const LaunchConfig& config) { return kChannels * 9 + config.form.vector; }

View transformed(const Conv2dProblem& problem, const LaunchConfig& config, const Winograd& d, const View& weight) {
    const Device device = weight.device();
    const std::int64_t units = device.info().compute_units, taps = taps_of(config);
    const View packed = View::make(device, problem.dtype, {kElements * config.weight_element});
    const std::int64_t each =
        ceil_div(ceil_div(config.channels, ceil_div(units * winograd::kGroupsPerUnit * 2, config.blocks)), kChannels) *
        kChannels;
    launch(kernel_of(device, problem, config, Stage::weights),
           {{to_size(config.blocks), to_size(ceil_div(config.channels, each))}, {1, 1}},
           {d, narrow(each), local_memory(taps * config.form.vector, problem.dtype), integers(taps), weight.argument(),
            packed.argument()});
    return packed;
}

/// The kind of the PackedCopy of transformed weights.
std::string kind_of(const LaunchConfig& config, bool forward) {
    return fmt::format("winograd4 {} {}", config.block, forward);
}

void convolve(const Conv2dProblem& problem, const Conv2dOperands& operands, std::string_view variant) {
    const bool forward = problem.direction == Conv2dDirection::forward;
    const View &x = forward ? operands.x : operands.out, &out = forward ? operands.out : operands.x,
               &weight = operands.weight;
    const Device device = out.device();
    const LaunchConfig config = launch_config_of(problem, device, variant);
    const Winograd d = arguments_of(problem, config, weight.numel(), operands.bias.has_value());
    const View weights = config.own_weights ? weight
                                            : packed_once(weight, problem.constant_weight, kind_of(config, forward),
                                                          [&] { return transformed(problem, config, d, weight); });
    const std::int64_t grid_rows = Units::grid_size(config.unit_config.tiles_h_each),
                       across = Units::grid_size(config.unit_config.tiles_w_each);
    const std::int64_t offsets = config.flat ? grid_rows * d.width : across,
                       own_weights = config.own_weights ? taps_of(config) : 0;
    const View scratch = View::make(device, problem.dtype, {config.groups * config.slice});
    const EpilogueArguments arguments(operands.epilogue, weight);
    launch(
        kernel_of(device, problem, config, config.own_weights ? Stage::own_weights : Stage::packed, operands.epilogue),
        {{to_size(config.groups)}, {1}},
        arguments.append_to_if_any(
            {d, local_memory(std::max(grid_rows * across + 1, own_weights) * config.form.vector, problem.dtype),
             integers(std::max(offsets, own_weights)), x.argument(), weights.argument(), scratch.argument(),
             out.argument(), (operands.bias ? *operands.bias : weight).argument()}));
}

class Conv2dWinograd4 final : public Conv2dStrategy {
  public:
    [[nodiscard]] std::string_view name() const override { return "winograd4"; }
    [[nodiscard]] bool error_is_relative_to_norm() const override { return true; }
    [[nodiscard]] bool is_applicable(const Conv2dProblem& problem, const Device&) const override {
        return winograd::is_applicable(problem);
    }
    [[nodiscard]] bool is_profitable(const Conv2dProblem& problem, const Device&) const override {
        return cheapest(problem) == 4;
    }
    [[nodiscard]] bool keeps_constants(const Conv2dProblem& problem) const override { return problem.constant_weight; }
    [[nodiscard]] std::optional<PackedCopy> packed_copy(const Conv2dProblem& problem, const Device& device,
                                                        std::string_view variant) const override {
        if (!problem.constant_weight) return std::nullopt;
        const LaunchConfig config = launch_config_of(problem, device, variant);
        return PackedCopy{
            .kind = kind_of(config, problem.direction == Conv2dDirection::forward),
            .bytes = kElements * config.weight_element * static_cast<std::int64_t>(size_of(problem.dtype))};
    }
    [[nodiscard]] std::vector<std::string> variants(const Conv2dProblem& problem, const Device& device) const override {
        if (problem.direction == Conv2dDirection::backward_weights ||
            !may_own_weights(launch_config_of(problem, device, {}), problem))
            return {""};
        return {std::string(kInlineTransform), std::string(kSeparateTransform)};
    }

    [[nodiscard]] bool gives_bias_gradient() const override { return true; }
    [[nodiscard]] bool fuses_epilogue(const Conv2dProblem&, const Device&, std::string_view) const override {
        return true;
    }

    void run(const Conv2dProblem& problem, const Conv2dOperands& operands, std::string_view variant) const override {
        if (problem.direction == Conv2dDirection::backward_weights) winograd::backward_weights(problem, operands);
        else convolve(problem, operands, variant);
    }
};

}  // namespace
}  // namespace winograd4

const Conv2dStrategy& conv2d_winograd4() {
    static const winograd4::Conv2dWinograd4 strategy;
    static const Conv2dUpcast upcast(strategy, Conv2dUpcast::When::measured);
    return upcast;
}

}  // namespace declivity::ops
