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
    std::int32_t images, channels, filters, height, width, rows, columns, before_h, before_w, images_each, tile_rows,
        tile_columns;
    std::int32_t units_h, units_w, units, pitch, held, padded_channels, weight_element, input_element, product_element,
        slice, parts, block, flat, flip, has_bias, unused = 0;
};

/// Plan of a problem for a device.
struct Plan {
    VectorForm form;
    RegisterTile tile;
    std::int64_t channels, filters;  ///< summed over, and computed
    std::int64_t block, blocks, padded;
    Units cut;
    std::int64_t parts, groups;
    bool own_weights;  ///< each work-item transforms the weights for itself, in its slice
    std::int64_t weight_element, input_element, product_element, slice;
    bool flat;  ///< a unit has whole rows
};

/// Variants "own" and "apart": each work-item transforms the weights for itself, or a separate launch does before.
constexpr std::string_view kOwn = "own", kApart = "apart";

/// Returns whether transformed weights fit into a work-item's slice.
bool may_own_weights(const Plan& plan, const Conv2dProblem& problem) {
    return fuses() && !problem.constant_weight && plan.blocks * plan.block * plan.channels <= kNear / kElements;
}

Plan plan_of(const Conv2dProblem& problem, const Device& device, std::string_view variant) {
    const bool forward = problem.direction == Conv2dDirection::forward;
    const auto& in = forward ? problem.input : problem.output;
    const auto& to = forward ? problem.output : problem.input;
    const std::int64_t bytes = static_cast<std::int64_t>(size_of(problem.dtype)), units = device.info().compute_units;
    Plan plan{};
    plan.form = vector_form(device, problem.dtype);
    plan.channels = forward ? problem.channels : problem.filters;
    plan.filters = forward ? problem.filters : problem.channels;
    plan.tile = cheapest_tile(kRegisterTiles, plan.form, kMaxTiles, plan.filters, kGain);
    plan.block = plan.tile.vectors * plan.form.vector;
    plan.blocks = ceil_div(plan.filters, plan.block);
    plan.padded = ceil_div(plan.channels, plan.form.vector) * plan.form.vector;

    const bool far = kElements * plan.blocks * plan.block * plan.channels > kNear;
    const std::int64_t least = far ? kMinTiles : kMinTilesNear;
    const std::int64_t fitting =
        std::clamp(kScratchBytes / (bytes * kElements * (plan.padded + plan.block)), least, kMaxTiles);
    const std::int64_t grid = block_elements(device, problem.dtype, kGridBytes) / plan.form.vector;
    // Weights that exceed the cache are read as rarely as possible: few units, whose filters are shared among compute
    // units.
    std::int64_t cuts = units * 2;
    if (far) {
        cuts = ceil_div(problem.images * ceil_div(to[0], 4) * ceil_div(to[1], 4), kMaxTiles);
        if (cuts > 1) cuts = ceil_div(cuts, units) * units;
    }
    plan.cut = cut_units(to, problem.images, ceil_div(problem.images, cuts), fitting, grid);
    plan.parts = std::clamp<std::int64_t>(ceil_div(units, plan.cut.count), 1, plan.blocks);
    const std::int64_t all = plan.cut.count * plan.parts;
    plan.own_weights =
        may_own_weights(plan, problem) && variant != kApart && (variant == kOwn || all >= units * kMinUnits);
    plan.groups = std::min(all, plan.own_weights ? units : units * kGroupsPerUnit);
    plan.weight_element = spread(plan.blocks * plan.channels * plan.block);
    plan.input_element = spread(plan.cut.tiles() * plan.padded);
    plan.product_element = spread(plan.cut.tiles() * plan.block);
    plan.slice = kElements * (plan.input_element + plan.product_element + (plan.own_weights ? plan.weight_element : 0));
    plan.flat = plan.cut.units_w == 1 && in[1] <= Units::held(plan.cut.wide);
    return plan;
}

Winograd arguments_of(const Conv2dProblem& problem, const Plan& plan, std::int64_t weights, bool has_bias) {
    const bool forward = problem.direction == Conv2dDirection::forward;
    const auto& in = forward ? problem.input : problem.output;
    const auto& to = forward ? problem.output : problem.input;
    const auto before = [&](std::size_t i) { return narrow(forward ? problem.padding[i] : 2 - problem.padding[i]); };
    return {.weight_channel = forward ? 9 : plan.filters * 9,
            .weight_filter = forward ? plan.channels * 9 : 9,
            .weight_count = weights,
            .images = narrow(problem.images),
            .channels = narrow(plan.channels),
            .filters = narrow(plan.filters),
            .height = narrow(in[0]),
            .width = narrow(in[1]),
            .rows = narrow(to[0]),
            .columns = narrow(to[1]),
            .before_h = before(0),
            .before_w = before(1),
            .images_each = narrow(plan.cut.images_each),
            .tile_rows = narrow(plan.cut.high),
            .tile_columns = narrow(plan.cut.wide),
            .units_h = narrow(plan.cut.units_h),
            .units_w = narrow(plan.cut.units_w),
            .units = narrow(plan.cut.count),
            .pitch = narrow(Units::held(plan.cut.wide)),
            .held = narrow(Units::held(plan.cut.high)),
            .padded_channels = narrow(plan.padded),
            .weight_element = narrow(plan.weight_element),
            .input_element = narrow(plan.input_element),
            .product_element = narrow(plan.product_element),
            .slice = narrow(plan.slice),
            .parts = narrow(plan.parts),
            .block = narrow(plan.block),
            .flat = plan.flat ? 1 : 0,
            .flip = forward ? 0 : 1,
            .has_bias = has_bias ? 1 : 0};
}

enum class Stage : std::int64_t { weights, packed, own_weights };

Kernel kernel_of(const Device& device, const Conv2dProblem& problem, const Plan& plan, Stage stage,
                 const KernelEpilogue& epilogue = {}) {
    Defines defines = real_defines(problem.dtype);
    defines.set("VW", plan.form.vector).set("STAGE", static_cast<std::int64_t>(stage));
    // One program transforms weights for all tiles.
    if (stage == Stage::weights) return {device, {"conv2d_winograd4.cl", "conv2d_winograd4_weights", defines}};
    set_epilogue_stored(defines.set("ROWS", plan.tile.rows).set("COLUMNS", plan.block), epilogue);
    return {device, {"conv2d_winograd4.cl", "conv2d_winograd4", defines}};
}

LocalMemory integers(std::int64_t count) { return {to_size(count) * sizeof(std::int32_t)}; }

/// Elements of local memory for the weights of a vector of filters.
std::int64_t taps_of(const Plan& plan) { return kChannels * 9 + plan.form.vector; }

View transformed(const Conv2dProblem& problem, const Plan& plan, const Winograd& d, const View& weight) {
    const Device device = weight.device();
    const std::int64_t units = device.info().compute_units, taps = taps_of(plan);
    const View made = View::make(device, problem.dtype, {kElements * plan.weight_element});
    const std::int64_t each =
        ceil_div(ceil_div(plan.channels, ceil_div(units * kGroupsPerUnit * 2, plan.blocks)), kChannels) * kChannels;
    launch(kernel_of(device, problem, plan, Stage::weights),
           {{to_size(plan.blocks), to_size(ceil_div(plan.channels, each))}, {1, 1}},
           {d, narrow(each), local_memory(taps * plan.form.vector, problem.dtype), integers(taps), weight.argument(),
            made.argument()});
    return made;
}

/// The kind of the PackedCopy of transformed weights.
std::string kind_of(const Plan& plan, bool forward) { return fmt::format("winograd4 {} {}", plan.block, forward); }

void convolve(const Conv2dProblem& problem, const Conv2dOperands& operands, std::string_view variant) {
    const bool forward = problem.direction == Conv2dDirection::forward;
    const View &x = forward ? operands.x : operands.out, &out = forward ? operands.out : operands.x,
               &weight = operands.weight;
    const Device device = out.device();
    const Plan plan = plan_of(problem, device, variant);
    const Winograd d = arguments_of(problem, plan, weight.numel(), operands.bias.has_value());
    const View weights = plan.own_weights ? weight
                                          : packed_once(weight, problem.constant_weight, kind_of(plan, forward),
                                                        [&] { return transformed(problem, plan, d, weight); });
    const std::int64_t held = Units::held(plan.cut.high), across = Units::held(plan.cut.wide);
    const std::int64_t places = plan.flat ? held * d.width : across, own = plan.own_weights ? taps_of(plan) : 0;
    const View scratch = View::make(device, problem.dtype, {plan.groups * plan.slice});
    const EpilogueArguments arguments(operands.epilogue, weight);
    launch(
        kernel_of(device, problem, plan, plan.own_weights ? Stage::own_weights : Stage::packed, operands.epilogue),
        {{to_size(plan.groups)}, {1}},
        arguments.if_any_behind({d, local_memory(std::max(held * across + 1, own) * plan.form.vector, problem.dtype),
                                 integers(std::max(places, own)), x.argument(), weights.argument(), scratch.argument(),
                                 out.argument(), (operands.bias ? *operands.bias : weight).argument()}));
}

class Conv2dWinograd4 final : public Conv2dStrategy {
  public:
    [[nodiscard]] std::string_view name() const override { return "winograd4"; }
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
        const Plan plan = plan_of(problem, device, variant);
        return PackedCopy{.kind = kind_of(plan, problem.direction == Conv2dDirection::forward),
                          .bytes = kElements * plan.weight_element * static_cast<std::int64_t>(size_of(problem.dtype))};
    }
    [[nodiscard]] std::vector<std::string> variants(const Conv2dProblem& problem, const Device& device) const override {
        if (problem.direction == Conv2dDirection::backward_weights ||
            !may_own_weights(plan_of(problem, device, {}), problem))
            return {""};
        return {std::string(kOwn), std::string(kApart)};
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

const Conv2dStrategy& conv2d_winograd4() {
    static const Conv2dWinograd4 strategy;
    static const Conv2dUpcast upcast(strategy, Conv2dUpcast::When::measured);
    return upcast;
}

}  // namespace declivity::ops
