// Convolution with 3 x 3 filters by Winograd's minimal filtering, F(4 x 4, 3 x 3)
// (cl_kernels/conv/conv2d_winograd4.cl), on CPU-like devices.
#include <algorithm>
#include <array>

#include "ops/engine/constant.hpp"
#include "conv2d_winograd.hpp"
#include "ops/support/local_block.hpp"
#include "ops/support/vector_form.hpp"

namespace declivity::ops {
namespace {

using namespace winograd;

constexpr std::int64_t kScratchBytes = 768 * 1024;              // of a unit, that stay in the second cache
constexpr std::int64_t kLeastTilesNear = 16, kLeastTiles = 48;  // of a unit: all weights are read for each
constexpr std::int64_t kNear = 1 << 18;                         // elements of weights that stay in the second cache
constexpr std::int64_t kChannels = 7;                           // CHANNELS
constexpr std::int64_t kLeastUnits = 3;                         // of a work-item that transforms the weights for itself

/// As the struct of the kernels.
struct Winograd {
    std::int64_t weight_channel, weight_filter, weight_count;
    std::int32_t images, channels, filters, height, width, rows, columns, before_h, before_w, images_each, tile_rows,
        tile_columns;
    std::int32_t units_h, units_w, units, pitch, held, padded_channels, weight_element, input_element, product_element,
        slice, parts, block, flat, flip, has_bias, unused = 0;
};

class Conv2dWinograd4 final : public Conv2dStrategy {
  public:
    [[nodiscard]] std::string_view name() const override { return "winograd4"; }
    [[nodiscard]] bool can_serve(const Conv2dProblem& problem) const override { return winograd::can_serve(problem); }
    [[nodiscard]] bool pays(const Conv2dProblem& problem) const override { return cheapest(problem) == 4; }

    [[nodiscard]] bool gives_bias_gradient() const override { return true; }
    [[nodiscard]] bool takes_epilogue(const Conv2dProblem&, const Device&, std::string_view) const override {
        return true;
    }

    void run(const Conv2dProblem& problem, const Conv2dOperands& operands, std::string_view) const override {
        if (problem.direction == Conv2dDirection::backward_weights)
            return winograd::backward_weights(problem, operands);
        const bool forward = problem.direction == Conv2dDirection::forward;
        const View &x = forward ? operands.x : operands.out, &out = forward ? operands.out : operands.x,
                   &weight = operands.weight;
        const Device device = out.device();
        const VectorForm form = vector_form(device, problem.dtype);
        const auto& in = forward ? problem.input : problem.output;
        const auto& to = forward ? problem.output : problem.input;
        const std::int64_t channels = x.shape[1], filters = out.shape[1],
                           bytes = static_cast<std::int64_t>(size_of(problem.dtype)),
                           units = device.info().compute_units;
        const RegisterTile tile = cheapest_tile(kRegisterTiles, form, kMostTiles, filters, kGain);
        const std::int64_t block = tile.vectors * form.vector, blocks = ceil_div(filters, block),
                           padded = ceil_div(channels, form.vector) * form.vector;

        const std::int64_t least = kElements * blocks * block * channels > kNear ? kLeastTiles : kLeastTilesNear;
        const std::int64_t fitting =
            std::clamp(kScratchBytes / (bytes * kElements * (padded + block)), least, kMostTiles);
        const std::int64_t grid = block_elements(device, problem.dtype, kGridBytes) / form.vector;
        const auto held = Units::held;
        const Units cut = cut_units(to, problem.images, ceil_div(problem.images, units * 2), fitting, grid);
        const auto& [wide, high, units_w, units_h, images_each, all] = cut;
        const std::int64_t parts = std::clamp<std::int64_t>(ceil_div(units, all), 1, blocks), tiles = cut.tiles();
        const bool own_weights = fuses() && !problem.constant_weight && all * parts >= units * kLeastUnits &&
                                 blocks * block * channels <= kNear / kElements;
        const std::int64_t groups = std::min(all * parts, own_weights ? units : units * kGroupsPerUnit);
        const std::int64_t weight_element = spread(blocks * channels * block), input_element = spread(tiles * padded),
                           product_element = spread(tiles * block);
        const std::int64_t slice = kElements * (input_element + product_element + (own_weights ? weight_element : 0));
        const bool flat = units_w == 1 && in[1] <= held(wide);
        const auto before = [&](std::size_t i) {
            return narrow(forward ? problem.padding[i] : 2 - problem.padding[i]);
        };
        const Winograd d{.weight_channel = forward ? 9 : filters * 9,
                         .weight_filter = forward ? channels * 9 : 9,
                         .weight_count = weight.numel(),
                         .images = narrow(problem.images),
                         .channels = narrow(channels),
                         .filters = narrow(filters),
                         .height = narrow(in[0]),
                         .width = narrow(in[1]),
                         .rows = narrow(to[0]),
                         .columns = narrow(to[1]),
                         .before_h = before(0),
                         .before_w = before(1),
                         .images_each = narrow(images_each),
                         .tile_rows = narrow(high),
                         .tile_columns = narrow(wide),
                         .units_h = narrow(units_h),
                         .units_w = narrow(units_w),
                         .units = narrow(all),
                         .pitch = narrow(held(wide)),
                         .held = narrow(held(high)),
                         .padded_channels = narrow(padded),
                         .weight_element = narrow(weight_element),
                         .input_element = narrow(input_element),
                         .product_element = narrow(product_element),
                         .slice = narrow(slice),
                         .parts = narrow(parts),
                         .block = narrow(block),
                         .flat = flat ? 1 : 0,
                         .flip = forward ? 0 : 1,
                         .has_bias = operands.bias ? 1 : 0};

        Defines defines = real_defines(problem.dtype);
        defines.set("VW", form.vector);
        const auto kernel = [&](int stage, const char* name) {
            Defines own = defines;
            own.set("STAGE", std::int64_t{stage});
            if (stage != 0)
                set_epilogue_stored(own.set("ROWS", tile.rows).set("COLUMNS", block),
                                    operands.epilogue);  // one program transforms weights for all tiles
            return Kernel(device, {"conv2d_winograd4.cl", name, own});
        };
        const auto size = [](std::int64_t value) { return static_cast<std::size_t>(value); };
        const auto integers = [](std::int64_t count) {
            return LocalMemory{static_cast<std::size_t>(count) * sizeof(std::int32_t)};
        };
        const View scratch = View::make(device, problem.dtype, {groups * slice});
        const EpilogueArguments epilogue_arguments(operands.epilogue, weight);
        const auto run = [&](int stage, const View& weights, std::int64_t reals, std::int64_t numbers) {
            const std::int64_t places = flat ? held(high) * in[1] : held(wide);
            launch(kernel(stage, "conv2d_winograd4"), {{size(groups)}, {1}},
                   epilogue_arguments.if_any_behind(
                       {d, local_memory(std::max((held(high) * held(wide) + 1) * form.vector, reals), problem.dtype),
                        integers(std::max(places, numbers)), x.argument(), weights.argument(), scratch.argument(),
                        out.argument(), (operands.bias ? *operands.bias : weight).argument()}));
        };
        const std::int64_t taps = kChannels * 9 + form.vector;  // of a vector of filters, in local memory
        if (own_weights) return run(2, weight, taps * form.vector, taps);
        const View packed =
            made_once(weight, problem.constant_weight, fmt::format("winograd4 {} {}", block, d.flip), [&] {
                const View made = View::make(device, problem.dtype, {kElements * weight_element});
                const std::int64_t each =
                    ceil_div(ceil_div(channels, ceil_div(units * kGroupsPerUnit * 2, blocks)), kChannels) * kChannels;
                launch(kernel(0, "conv2d_winograd4_weights"), {{size(blocks), size(ceil_div(channels, each))}, {1, 1}},
                       {d, narrow(each), local_memory(taps * form.vector, problem.dtype), integers(taps),
                        weight.argument(), made.argument()});
                return made;
            });
        run(1, packed, 0, 0);
    }
};

}  // namespace

const Conv2dStrategy& conv2d_winograd4() {
    static const Conv2dWinograd4 strategy;
    return strategy;
}

}  // namespace declivity::ops
