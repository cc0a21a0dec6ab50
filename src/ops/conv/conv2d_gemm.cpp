// Convolution as a matrix product over windows that are copied as they are needed (cl_kernels/conv/conv2d_gemm.cl):
// forward and backward_input, on CPU-like devices.
#include <algorithm>
#include <array>
#include <limits>
#include <span>

#include <fmt/format.h>

#include "conv2d_gemm.hpp"
#include "conv2d_sum.hpp"
#include "ops/support/local_block.hpp"
#include "ops/matmul/panels.hpp"
#include "ops/support/work_split.hpp"

namespace declivity::ops {
namespace gemm {
namespace {

constexpr std::int64_t kBlockBytes = 256 * 1024;  // of windows, that stay in the second cache
constexpr std::int64_t kBlockK = 256;             // a panel of windows and one of weights then stay in the first cache
constexpr std::int64_t kFlipChannels = 16, kFlipPanels = 4;  // FLIP_CHANNELS, FLIP_PANELS
constexpr std::int64_t kFewPositions = 1024;  // with so few, packing the weights costs more than their use in place
constexpr double kGain = 0.92;                // that a later tile must promise
constexpr std::int64_t kMostTaps = 128;       // of backward_weights: the sums of a tile lie in local memory for each
constexpr std::int64_t kMostPanels = 16;      // of a work-group

// Few, because each is a kernel to compile: for 32 registers, and for 16.
constexpr std::array kTiles{RegisterTile{6, 4},  RegisterTile{8, 3}, RegisterTile{12, 2},
                            RegisterTile{12, 1}, RegisterTile{6, 2}, RegisterTile{4, 3}};
// For backward_weights: each row has a pointer, and processors have 16.
constexpr std::array kWeightTiles{RegisterTile{8, 3}, RegisterTile{6, 4}, RegisterTile{8, 2},
                                  RegisterTile{8, 1}, RegisterTile{4, 3}, RegisterTile{4, 2}};

std::span<const RegisterTile> tiles_for(Conv2dDirection direction) {
    return direction == Conv2dDirection::backward_weights ? std::span<const RegisterTile>(kWeightTiles)
                                                          : std::span<const RegisterTile>(kTiles);
}

/// As the structs of the kernels.
struct Conv {
    std::int64_t x_image, x_channel, x_count, out_image, out_channel, out_first, a_group, a_row, a_channel, a_first,
        positions;
    std::int32_t channels, filters, height, width, rows, columns, stride_h, stride_w, first_h, first_w, dilation_h,
        dilation_w, taps_h, taps_w, a_h, a_w;
    std::int32_t out_row_step, out_column_step, panels, panels_each, row_panels, row_panels_each, k_block, has_bias;
};

struct Flip {
    std::int32_t rows, panels, channels, taps, first, stride_h, stride_w;
};

std::string name_of(const RegisterTile& tile) { return fmt::format("{}x{}", tile.rows, tile.vectors); }

/// The weights of backward_input in panels: rows are the channels of x.
View flipped(const Conv2dProblem& problem, const Conv2dSum& sum, const View& weight, std::int64_t rows,
             Defines defines) {
    if (problem.taps() == 1)
        return pack_panels(reshaped(weight, {problem.groups, problem.filters_per_group(), sum.filters}), 2, 1, rows);
    const auto& [vertical, horizontal] = sum.axes;
    const std::int64_t panels = ceil_div(sum.filters, rows);
    const View packed = View::make(
        weight.device(), weight.dtype,
        {problem.groups, std::max<std::int64_t>(1, panels * sum.channels * vertical.taps * horizontal.taps * rows)});
    const Flip flip{.rows = narrow(sum.filters),
                    .panels = narrow(panels),
                    .channels = narrow(sum.channels),
                    .taps = narrow(problem.taps()),
                    .first = narrow(vertical.at * problem.filter[1] + horizontal.at),
                    .stride_h = narrow(vertical.by * problem.filter[1]),
                    .stride_w = narrow(horizontal.by)};
    defines.set("TAPS_H", vertical.taps)
        .set("TAPS_W", horizontal.taps)
        .set("FLIP_CHANNELS", kFlipChannels)
        .set("FLIP_PANELS", kFlipPanels);
    const Kernel kernel(weight.device(), {"conv2d_gemm.cl", "conv2d_gemm_flip", defines});
    const auto groups = [](std::int64_t value) { return static_cast<std::size_t>(std::max<std::int64_t>(1, value)); };
    launch(
        kernel,
        {{groups(ceil_div(sum.channels, kFlipChannels)), groups(ceil_div(panels, kFlipPanels)), groups(problem.groups)},
         {1, 1, 1}},
        {flip, weight.argument(), packed.argument()});
    return packed;
}

struct Split {
    std::int64_t panels_each, row_panels_each;
};

/// The work-groups, cut so that the last unit ends first: in cycles for each k, a group copies the windows of its
/// panels, reads its weights, and multiplies each with each.
Split search_split(std::int64_t positions, std::int64_t filters, std::int64_t k, std::int64_t groups,
                   const RegisterTile& tile, std::int64_t lanes, std::int64_t most_panels, std::int64_t units) {
    constexpr double copied_vector = 4, read_weight = 0.4;
    const std::int64_t vectors = ceil_div(positions, lanes), panels = ceil_div(vectors, tile.vectors),
                       row_panels = ceil_div(filters, tile.rows);
    const auto cycles = [&](std::int64_t columns, std::int64_t rows) {
        return static_cast<double>(k) * (static_cast<double>(columns) * (copied_vector + static_cast<double>(rows)) +
                                         static_cast<double>(rows) * read_weight);
    };
    Split best{.panels_each = 1, .row_panels_each = row_panels};
    double least = std::numeric_limits<double>::infinity();
    for (std::int64_t cut = 1; cut <= std::min(row_panels, units * 2); ++cut)
        for (std::int64_t each = 1; each <= std::min(panels, most_panels); ++each) {
            const std::int64_t rows_each = ceil_div(row_panels, cut), across = ceil_div(panels, each),
                               down = ceil_div(row_panels, rows_each);
            const std::int64_t wide = std::min(each * tile.vectors, vectors),
                               high = std::min(rows_each * tile.rows, filters), narrow = vectors - (across - 1) * wide,
                               low = filters - (down - 1) * high;
            const double cost = GroupGrid{across,
                                          down * groups,
                                          cycles(wide, high),
                                          cycles(narrow, high),
                                          cycles(wide, low),
                                          cycles(narrow, low)}
                                    .cycles(units);
            if (cost < least) least = cost, best = {.panels_each = each, .row_panels_each = rows_each};
        }
    return best;
}

Split choose_split(std::int64_t positions, std::int64_t filters, std::int64_t k, std::int64_t groups,
                   const RegisterTile& tile, std::int64_t lanes, std::int64_t most_panels, std::int64_t units) {
    const std::array key{positions, filters,     k,    groups, std::int64_t{tile.rows}, std::int64_t{tile.vectors},
                         lanes,     most_panels, units};
    return remembered<Split>(
        key, [&] { return search_split(positions, filters, k, groups, tile, lanes, most_panels, units); });
}

void run_sum(const Conv2dSum& sum, const Conv2dProblem& problem, const View& x, const View& weight, const View& out,
             const std::optional<View>& bias, const KernelEpilogue& epilogue, std::string_view variant) {
    const Device device = out.device();
    const VectorForm form = vector_form(device, problem.dtype);
    const bool forward = problem.direction == Conv2dDirection::forward;
    const auto& [vertical, horizontal] = sum.axes;
    const std::int64_t taps = vertical.taps * horizontal.taps, inner = sum.channels * taps,
                       positions = problem.images * vertical.size * horizontal.size;
    const RegisterTile tile = choose_tile(problem.direction, form, sum.filters, positions, variant);
    const std::int64_t columns = tile.vectors * form.vector;
    const std::int64_t block = block_elements(device, problem.dtype, kBlockBytes);

    const std::int64_t most_k = std::min(kBlockK, block / columns - 1);
    const bool packed = !forward && sum.channels > 0 &&
                        (problem.taps() == 1 || taps > most_k || positions > kFewPositions ||
                         problem.stride[0] * problem.stride[1] > 1);
    Defines defines = real_defines(problem.dtype);
    defines.set("VW", form.vector)
        .set("ROWS", tile.rows)
        .set("COLUMNS", columns)
        .set("PANELS", kMostPanels)
        .set("A_FORM", forward  ? 0
                       : packed ? 1
                                : 2);
    // Blocks of equal length, since a short last one would only cost; weights that are read flipped come by whole
    // channels.
    const std::int64_t unit = forward || packed ? 1 : taps, units_of_k = std::max<std::int64_t>(1, inner / unit);
    const std::int64_t k_block =
        unit * ceil_div(units_of_k, ceil_div(units_of_k, std::max<std::int64_t>(1, most_k / unit)));
    const std::int64_t panels = ceil_div(positions, columns), row_panels = ceil_div(sum.filters, tile.rows);
    const auto [panels_each, row_panels_each] =
        choose_split(positions, sum.filters, std::max<std::int64_t>(1, inner), problem.groups, tile, form.vector,
                     std::min(kMostPanels, block / (k_block * columns + form.vector)), device.info().compute_units);
    const Conv arguments{.x_image = x.shape[1] * x.shape[2] * x.shape[3],
                         .x_channel = x.shape[2] * x.shape[3],
                         .x_count = x.numel(),
                         .out_image = out.shape[1] * out.shape[2] * out.shape[3],
                         .out_channel = out.shape[2] * out.shape[3],
                         .out_first = sum.out_first,
                         .a_group = packed ? row_panels * tile.rows * inner : weight.numel() / problem.groups,
                         .a_row = forward  ? inner
                                  : packed ? inner * tile.rows
                                           : problem.taps(),
                         .a_channel = forward ? taps : sum.filters * problem.taps(),
                         .a_first = packed || forward ? 0 : vertical.at * problem.filter[1] + horizontal.at,
                         .positions = positions,
                         .channels = narrow(sum.channels),
                         .filters = narrow(sum.filters),
                         .height = narrow(sum.input[0]),
                         .width = narrow(sum.input[1]),
                         .rows = narrow(vertical.size),
                         .columns = narrow(horizontal.size),
                         .stride_h = narrow(vertical.step),
                         .stride_w = narrow(horizontal.step),
                         .first_h = narrow(vertical.first),
                         .first_w = narrow(horizontal.first),
                         .dilation_h = narrow(vertical.dilation),
                         .dilation_w = narrow(horizontal.dilation),
                         .taps_h = narrow(vertical.taps),
                         .taps_w = narrow(horizontal.taps),
                         .a_h = narrow(vertical.by * problem.filter[1]),
                         .a_w = narrow(horizontal.by),
                         .out_row_step = narrow(sum.out_row_step),
                         .out_column_step = narrow(sum.out_column_step),
                         .panels = narrow(panels),
                         .panels_each = narrow(panels_each),
                         .row_panels = narrow(row_panels),
                         .row_panels_each = narrow(row_panels_each),
                         .k_block = narrow(k_block),
                         .has_bias = bias ? 1 : 0};
    const View a = packed ? flipped(problem, sum, weight, tile.rows, defines) : weight;
    set_epilogue_stored(defines, epilogue);
    const Kernel kernel(device, {"conv2d_gemm.cl", "conv2d_gemm", defines});
    const EpilogueArguments epilogue_arguments(epilogue, a);
    const auto size = [](std::int64_t value) { return static_cast<std::size_t>(value); };
    launch(kernel,
           {{size(ceil_div(panels, panels_each)), size(ceil_div(row_panels, row_panels_each)), size(problem.groups)},
            {1, 1, 1}},
           epilogue_arguments.if_any_behind({arguments, local_memory(block, problem.dtype), x.argument(), a.argument(),
                                             out.argument(), (bias ? *bias : a).argument()}));
}

}  // namespace

RegisterTile choose_tile(Conv2dDirection direction, const VectorForm& form, std::int64_t rows, std::int64_t columns,
                         std::string_view variant) {
    for (const RegisterTile& tile : tiles_for(direction))
        if (!variant.empty() && variant == name_of(tile)) return tile;
    return cheapest_tile(tiles_for(direction), form, rows, columns, kGain,
                         direction != Conv2dDirection::backward_weights);
}

namespace {

class Conv2dGemm final : public Conv2dStrategy {
  public:
    [[nodiscard]] std::string_view name() const override { return "gemm"; }

    /// Positions within a plane are 32-bit numbers here.
    [[nodiscard]] bool can_serve(const Conv2dProblem& problem) const override {
        if (problem.family != Family::cpu_like ||
            (problem.direction == Conv2dDirection::backward_weights && problem.taps() > kMostTaps))
            return false;
        std::array<std::int64_t, 2> reach{};
        for (std::size_t i = 0; i < 2; ++i) {
            reach[i] = problem.input[i] + 2 * problem.padding[i] + problem.filter[i] * problem.dilation[i] +
                       2 * problem.stride[i];
            if (reach[i] > kMost) return false;
        }
        return reach[0] * reach[1] <= kMost && std::max(problem.channels, problem.filters) * problem.taps() <= kMost &&
               problem.images * reach[0] * reach[1] <= kMost * 16;
    }

    [[nodiscard]] std::vector<std::string> variants(const Device& device, const Conv2dProblem& problem) const override {
        std::vector<std::string> names;
        const VectorForm form = vector_form(device, problem.dtype);
        for (const RegisterTile& tile : tiles_for(
                 problem
                     .direction))  // those that leave most registers unused are for other devices, or for few columns
            if (tile.fits(form) && (tile.vectors == 1 || tile.rows * tile.vectors * 2 > form.registers - 8))
                names.push_back(name_of(tile));
        return names;
    }

    [[nodiscard]] bool takes_epilogue(const Conv2dProblem& problem, const Device&, std::string_view) const override {
        // Strided gradients are several sums, whose elements lie apart.
        return problem.direction == Conv2dDirection::forward || problem.stride[0] * problem.stride[1] == 1;
    }

    void run(const Conv2dProblem& problem, const Conv2dOperands& operands, std::string_view variant) const override {
        switch (problem.direction) {
            case Conv2dDirection::forward:
                for (const Conv2dSum& sum : conv2d_sums(problem))
                    run_sum(sum, problem, operands.x, operands.weight, operands.out, operands.bias, operands.epilogue,
                            variant);
                return;
            case Conv2dDirection::backward_input:
                for (const Conv2dSum& sum : conv2d_sums(problem))
                    run_sum(sum, problem, operands.out, operands.weight, operands.x, std::nullopt, operands.epilogue,
                            variant);
                return;
            case Conv2dDirection::backward_weights:
                return backward_weights(problem, operands, variant);
        }
    }

  private:
    static constexpr std::int64_t kMost = std::int64_t{1} << 30;
};

}  // namespace
}  // namespace gemm

const Conv2dStrategy& conv2d_gemm() {
    static const gemm::Conv2dGemm strategy;
    return strategy;
}

}  // namespace declivity::ops
