// Convolution with 3 x 3 filters by Winograd's minimal filtering, F(2 x 2, 3 x 3)
// (cl_kernels/conv/conv2d_winograd2.cl), simd kernels.
#include <algorithm>

#include "conv2d_winograd.hpp"
#include "conv2d_upcast.hpp"
#include "ops/support/local_block.hpp"
#include "ops/matmul/panels.hpp"
#include "ops/support/vector_form.hpp"
#include "ops/support/work_split.hpp"

namespace declivity::ops {
namespace winograd2 {
namespace {

constexpr std::int64_t kTile = 2, kElements = 16;
constexpr std::int64_t kTransformedBytes = 4
                                           << 20;  // of inputs and products at a time, to stay in the last-level cache
constexpr std::int64_t kMinColumns = 96;           // tiles at a time, so that the weights are reused enough
constexpr std::int64_t kSpread = 16;               // elements, about a cache line
constexpr std::int64_t kWork = 1 << 14;            // minimum transformed elements of a work-item

/// Layout of the kernels' struct; must match cl_kernels/conv/conv2d_winograd2.cl.
struct Winograd {
    std::int64_t x_image, x_channel, x_count, out_image, out_channel, element = 0, first = 0;
    std::int32_t channels, filters, height, width, rows, columns, pad_top, pad_left, tiles_h, tiles_w,
        count = 0, panels = 0, each = 0, flip, has_bias, unused = 0;
};

/// Plan of a problem for a device.
struct LaunchConfig {
    RegisterTile tile;
    std::int64_t vector, tiles, row_panels;
    [[nodiscard]] std::int64_t columns() const { return tile.vectors * vector; }
};

// The distance is no multiple of the page size, to avoid conflicts in the same cache sets.
std::int64_t spread(std::int64_t value) { return ceil_div(value, kSpread) * kSpread + kSpread; }

/// The number of channels of a work-group, of `all`, that gives it enough work, with `work` transformed elements each.
std::int64_t each_of(std::int64_t all, std::int64_t work) { return std::clamp<std::int64_t>(kWork / work, 1, all); }

Winograd arguments_of(const Conv2dProblem& problem, const View& x, const View& out, bool has_bias) {
    const bool forward = problem.direction == Conv2dDirection::forward;
    const auto& in = forward ? problem.input : problem.output;
    const auto& to = forward ? problem.output : problem.input;
    const auto before = [&](std::size_t i) { return narrow(forward ? problem.padding[i] : 2 - problem.padding[i]); };
    return {.x_image = x.shape[1] * in[0] * in[1],
            .x_channel = in[0] * in[1],
            .x_count = x.numel(),
            .out_image = out.shape[1] * to[0] * to[1],
            .out_channel = to[0] * to[1],
            .channels = narrow(x.shape[1]),
            .filters = narrow(out.shape[1]),
            .height = narrow(in[0]),
            .width = narrow(in[1]),
            .rows = narrow(to[0]),
            .columns = narrow(to[1]),
            .pad_top = before(0),
            .pad_left = before(1),
            .tiles_h = narrow(ceil_div(to[0], kTile)),
            .tiles_w = narrow(ceil_div(to[1], kTile)),
            .flip = forward ? 0 : 1,
            .has_bias = has_bias ? 1 : 0};
}

enum class Stage : std::int64_t { weights, input, output };

Kernel kernel_of(const Device& device, DType dtype, const LaunchConfig& config, Stage stage, const char* name) {
    Defines defines = real_defines(dtype);
    defines.set("VW", config.vector).set("ROWS", config.tile.rows).set("COLUMNS", config.columns());
    return {device, {"conv2d_winograd2.cl", name, defines.set("STAGE", static_cast<std::int64_t>(stage))}};
}

View transformed(const LaunchConfig& config, Winograd d, const View& weight) {
    const View packed = View::make(weight.device(), weight.dtype,
                                   {kElements, spread(config.row_panels * d.channels * config.tile.rows)});
    d.element = packed.shape[1];
    // All but the last work-item store whole vectors.
    d.each = narrow(ceil_div(each_of(d.channels, kElements * config.tile.rows), config.vector) * config.vector);
    launch(kernel_of(weight.device(), weight.dtype, config, Stage::weights, "conv2d_winograd2_weights"),
           {{to_size(ceil_div(d.channels, d.each)), to_size(config.row_panels), 1}, {1, 1, 1}},
           {d, weight.argument(), packed.argument()});
    return packed;
}

void convolve(const Conv2dProblem& problem, const Conv2dOperands& operands) {
    const bool forward = problem.direction == Conv2dDirection::forward;
    const View &x = forward ? operands.x : operands.out, &out = forward ? operands.out : operands.x;
    const Device device = out.device();
    const DType dtype = problem.dtype;
    Winograd d = arguments_of(problem, x, out, operands.bias.has_value());
    const std::int64_t tiles = problem.images * d.tiles_h * d.tiles_w;
    const RegisterTile tile = choose_panel_tile(device, dtype, d.filters, tiles);
    const LaunchConfig config{tile, vector_form(device, dtype).vector, tiles, ceil_div(d.filters, tile.rows)};
    const std::int64_t columns = config.columns();
    const View weights = transformed(config, d, operands.weight);

    // The tiles of a pass fit the last-level cache.
    const std::int64_t fitting = std::max(kMinColumns, kTransformedBytes / ((d.channels + d.filters) * kElements *
                                                                            static_cast<std::int64_t>(size_of(dtype))));
    const std::int64_t all_panels = ceil_div(tiles, columns),
                       max_panels = std::clamp<std::int64_t>(fitting / columns, 1, all_panels);
    const std::int64_t panels = ceil_div(all_panels, ceil_div(all_panels, max_panels));
    const std::int64_t input_element = spread(panels * d.channels * columns),
                       product_element = spread(d.filters * panels * columns);
    const View inputs = View::make(device, dtype, {kElements, input_element}),
               products = View::make(device, dtype, {kElements * product_element});
    const auto around = [&](std::int64_t side) { return local_memory(side * side * (columns + config.vector), dtype); };
    const Kernel input_kernel = kernel_of(device, dtype, config, Stage::input, "conv2d_winograd2_input"),
                 output_kernel = kernel_of(device, dtype, config, Stage::output, "conv2d_winograd2_output");
    for (; d.first < tiles; d.first += panels * columns) {
        d.count = narrow(std::min(tiles - d.first, panels * columns));
        d.panels = narrow(ceil_div(d.count, columns));
        d.element = input_element;
        d.each = narrow(each_of(d.channels, kElements * columns));
        launch(input_kernel, {{to_size(ceil_div(d.channels, d.each)), to_size(d.panels), 1}, {1, 1, 1}},
               {d, around(kTile + 2), x.argument(), inputs.argument()});
        View product = products;
        product.shape = {kElements, d.filters, d.panels * columns};
        product.strides = {product_element, d.panels * columns, 1};
        multiply_panels(weights, inputs, product, d.channels, tile);
        d.element = product_element;
        d.each = narrow(each_of(d.filters, kElements * columns));
        launch(output_kernel, {{to_size(ceil_div(d.filters, d.each)), to_size(d.panels), 1}, {1, 1, 1}},
               {d, around(kTile), products.argument(), out.argument(),
                (operands.bias ? *operands.bias : operands.weight).argument()});
    }
}

class Conv2dWinograd2 final : public Conv2dStrategy {
  public:
    [[nodiscard]] std::string_view name() const override { return "winograd2"; }
    [[nodiscard]] bool error_is_relative_to_norm() const override { return true; }
    [[nodiscard]] bool is_applicable(const Conv2dProblem& problem, const Device&) const override {
        return problem.direction != Conv2dDirection::backward_weights && winograd::is_applicable(problem);
    }
    [[nodiscard]] bool is_profitable(const Conv2dProblem& problem, const Device&) const override {
        return winograd::cheapest(problem) == kTile;
    }
    void run(const Conv2dProblem& problem, const Conv2dOperands& operands, std::string_view) const override {
        convolve(problem, operands);
    }
};

}  // namespace
}  // namespace winograd2

const Conv2dStrategy& conv2d_winograd2() {
    static const winograd2::Conv2dWinograd2 strategy;
    static const Conv2dUpcast upcast(strategy, Conv2dUpcast::When::measured);
    return upcast;
}

}  // namespace declivity::ops
