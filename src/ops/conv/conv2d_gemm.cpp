// Convolution as a matrix product with windows copied on demand (cl_kernels/conv/conv2d_gemm.cl): forward and
// backward_input, simd kernels.
#include <algorithm>
#include <array>
#include <limits>
#include <span>

#include <fmt/format.h>

#include "conv2d_gemm.hpp"
#include "conv_gemm.hpp"
#include "ops/engine/reduced_precision.hpp"
#include "ops/support/local_block.hpp"
#include "ops/matmul/panels.hpp"
#include "ops/support/work_split.hpp"

namespace declivity::ops {
namespace gemm {
namespace {

constexpr std::int64_t kBlockBytes = 256 * 1024;  // of windows, to stay in the L2 cache
constexpr std::int64_t kBlockK = 256;             // a panel of windows and one of weights then stay in the L1 cache
constexpr std::int64_t kFlipChannels = 16, kFlipPanels = 4;  // FLIP_CHANNELS, FLIP_PANELS
constexpr std::int64_t kFewPositions = 1024;  // up to this, packing the weights costs more than using them in place
constexpr double kGain = 0.92;                // relative cost that a later tile must reach
constexpr std::int64_t kMaxTaps = 128;        // of backward_weights: local memory for the sums of a tile for each tap
constexpr std::int64_t kMaxPanels = 16;       // of a work-group

// Few, since each is a kernel to compile: for 32 registers, and for 16.
constexpr std::array kTiles{RegisterTile{6, 4},  RegisterTile{8, 3}, RegisterTile{12, 2},
                            RegisterTile{12, 1}, RegisterTile{6, 2}, RegisterTile{4, 3}};
// For backward_weights: each row has a pointer, and processors have 16 general registers.
constexpr std::array kWeightTiles{RegisterTile{8, 3}, RegisterTile{6, 4}, RegisterTile{8, 2},
                                  RegisterTile{8, 1}, RegisterTile{4, 3}, RegisterTile{4, 2}};

std::span<const RegisterTile> tiles_for(Conv2dDirection direction) {
    return direction == Conv2dDirection::backward_weights ? std::span<const RegisterTile>(kWeightTiles)
                                                          : std::span<const RegisterTile>(kTiles);
}

/// Layout of the kernels' structs; must match cl_kernels/conv/conv2d_gemm.cl.
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

/// Suffixes of the tile's name in a variant: whether backward_input packs the weights, where it may do either.
constexpr std::string_view kPacked = " packed", kInPlace = " in_place";

std::string name_of(const RegisterTile& tile) { return fmt::format("{}x{}", tile.rows, tile.vectors); }

/// Packs the weights of forward into panels; rows are filters. Only f16 and bf16, which are upcast to f32; others are
/// read in place.
View packed_filters(const Conv2dProblem& problem, const View& weight, std::int64_t rows) {
    const std::int64_t filters = problem.filters_per_group();
    return pack_panels(reshaped(weight, {problem.groups, filters, weight.numel() / problem.filters}), 1, 2, rows);
}

/// Packs the weights of backward_input into panels; rows are the channels of x.
View flip_weights(const Conv2dProblem& problem, const ConvGemm& gemm, const View& weight, std::int64_t rows,
                  Defines defines) {
    if (problem.taps() == 1)
        return pack_panels(reshaped(weight, {problem.groups, problem.filters_per_group(), gemm.filters}), 2, 1, rows);
    const auto& [vertical, horizontal] = gemm.axes;
    const std::int64_t panels = ceil_div(gemm.filters, rows);
    const View packed = View::make(
        weight.device(), compute_type(weight.dtype),
        {problem.groups, std::max<std::int64_t>(1, panels * gemm.channels * vertical.taps * horizontal.taps * rows)});
    const Flip flip{.rows = narrow(gemm.filters),
                    .panels = narrow(panels),
                    .channels = narrow(gemm.channels),
                    .taps = narrow(problem.taps()),
                    .first = narrow(vertical.filter_first * problem.filter[1] + horizontal.filter_first),
                    .stride_h = narrow(vertical.filter_step * problem.filter[1]),
                    .stride_w = narrow(horizontal.filter_step)};
    defines.set("TAPS_H", vertical.taps)
        .set("TAPS_W", horizontal.taps)
        .set("FLIP_CHANNELS", kFlipChannels)
        .set("FLIP_PANELS", kFlipPanels);
    const Kernel kernel(weight.device(), {"conv2d_gemm.cl", "conv2d_gemm_flip", defines});
    const auto groups = [](std::int64_t value) { return static_cast<std::size_t>(std::max<std::int64_t>(1, value)); };
    launch(kernel,
           {{groups(ceil_div(gemm.channels, kFlipChannels)), groups(ceil_div(panels, kFlipPanels)),
             groups(problem.groups)},
            {1, 1, 1}},
           {flip, weight.argument(), packed.argument()});
    return packed;
}

struct Split {
    std::int64_t panels_each, row_panels_each;
};

/// Searches the partition into work-groups whose last unit finishes first. Cost in cycles for each k: a group copies
/// the windows of its panels, reads its weights, and multiplies each with each.
Split search_split(std::int64_t positions, std::int64_t filters, std::int64_t k, std::int64_t groups,
                   const RegisterTile& tile, std::int64_t lanes, std::int64_t max_panels, std::int64_t units) {
    constexpr double copied_vector = 4, read_weight = 0.4;
    const std::int64_t vectors = ceil_div(positions, lanes), panels = ceil_div(vectors, tile.vectors),
                       row_panels = ceil_div(filters, tile.rows);
    const auto cycles = [&](std::int64_t columns, std::int64_t rows) {
        return static_cast<double>(k) * (static_cast<double>(columns) * (copied_vector + static_cast<double>(rows)) +
                                         static_cast<double>(rows) * read_weight);
    };
    Split best{.panels_each = 1, .row_panels_each = row_panels};
    double min_cost = std::numeric_limits<double>::infinity();
    for (std::int64_t row_groups = 1; row_groups <= std::min(row_panels, units * 2); ++row_groups)
        for (std::int64_t each = 1; each <= std::min(panels, max_panels); ++each) {
            const std::int64_t rows_each = ceil_div(row_panels, row_groups), across = ceil_div(panels, each),
                               down = ceil_div(row_panels, rows_each);
            const std::int64_t width = std::min(each * tile.vectors, vectors),
                               height = std::min(rows_each * tile.rows, filters),
                               last_width = vectors - (across - 1) * width, last_height = filters - (down - 1) * height;
            const double cost = GroupGrid{across,
                                          down * groups,
                                          cycles(width, height),
                                          cycles(last_width, height),
                                          cycles(width, last_height),
                                          cycles(last_width, last_height)}
                                    .cycles(units);
            if (cost < min_cost) min_cost = cost, best = {.panels_each = each, .row_panels_each = rows_each};
        }
    return best;
}

Split choose_split(std::int64_t positions, std::int64_t filters, std::int64_t k, std::int64_t groups,
                   const RegisterTile& tile, std::int64_t lanes, std::int64_t max_panels, std::int64_t units) {
    const std::array key{positions, filters,    k,    groups, std::int64_t{tile.rows}, std::int64_t{tile.vectors},
                         lanes,     max_panels, units};
    return memoize<Split>(key,
                          [&] { return search_split(positions, filters, k, groups, tile, lanes, max_panels, units); });
}

/// The launch of one product on a device.
struct LaunchConfig {
    RegisterTile tile;
    std::int64_t lanes, block;  ///< elements of a vector, and of local memory
    bool packed;                ///< the weights are copied into panels
    std::int64_t k_block, panels, row_panels;
    Split split;
    [[nodiscard]] std::int64_t columns() const { return tile.vectors * lanes; }
};

/// Steps of k that fit into a block of local memory for a tile.
std::int64_t max_steps(const RegisterTile& tile, std::int64_t lanes, std::int64_t block) {
    return std::min(kBlockK, block / (tile.vectors * lanes) - 1);
}

/// Returns whether weights of backward_input can be used in place, flipped.
bool may_flip_in_place(const Conv2dProblem& problem, std::int64_t max_k) {
    return problem.direction == Conv2dDirection::backward_input && !is_16bit_float(problem.dtype) &&
           problem.taps() > 1 && problem.taps() <= max_k && problem.stride[0] * problem.stride[1] == 1;
}

bool packs_weights(const ConvGemm& gemm, const Conv2dProblem& problem, std::int64_t positions, std::int64_t max_k,
                   std::string_view variant) {
    if (gemm.channels == 0) return false;
    if (problem.direction == Conv2dDirection::forward) return is_16bit_float(problem.dtype);
    if (!may_flip_in_place(problem, max_k)) return true;
    if (variant.ends_with(kPacked) || variant.ends_with(kInPlace)) return variant.ends_with(kPacked);
    return positions > kFewPositions;
}

LaunchConfig launch_config_of(const ConvGemm& gemm, const Conv2dProblem& problem, const Device& device,
                              std::string_view variant) {
    const VectorForm form = vector_form(device, problem.dtype);
    const bool forward = problem.direction == Conv2dDirection::forward;
    const std::int64_t inner = gemm.channels * gemm.taps(),
                       positions = problem.images * gemm.axes[0].size * gemm.axes[1].size;
    const RegisterTile tile = choose_tile(problem.direction, form, gemm.filters, positions, variant);
    LaunchConfig config{.tile = tile,
                        .lanes = form.vector,
                        .block = block_elements(device, compute_type(problem.dtype), kBlockBytes),
                        .packed = false,
                        .k_block = 0,
                        .panels = 0,
                        .row_panels = ceil_div(gemm.filters, tile.rows),
                        .split = {}};
    const std::int64_t max_k = max_steps(tile, config.lanes, config.block);
    config.packed = packs_weights(gemm, problem, positions, max_k, variant);
    config.panels = ceil_div(positions, config.columns());
    // Blocks of equal length, since a short last one wastes time; flipped weights are read in whole channels.
    const std::int64_t unit = forward || config.packed ? 1 : gemm.taps(),
                       units_of_k = std::max<std::int64_t>(1, inner / unit);
    config.k_block = unit * ceil_div(units_of_k, ceil_div(units_of_k, std::max<std::int64_t>(1, max_k / unit)));
    config.split =
        choose_split(positions, gemm.filters, std::max<std::int64_t>(1, inner), problem.groups, tile, form.vector,
                     std::min(kMaxPanels, config.block / (config.k_block * config.columns() + form.vector)),
                     device.info().compute_units);
    return config;
}

Conv arguments_of(const ConvGemm& gemm, const Conv2dProblem& problem, const LaunchConfig& config, const View& x,
                  const View& weight, const View& out) {
    const auto& [vertical, horizontal] = gemm.axes;
    const bool forward = problem.direction == Conv2dDirection::forward;
    const std::int64_t inner = gemm.channels * gemm.taps();
    Conv d = gemm_arguments<Conv>(gemm, problem, x, out);
    d.x_count = x.numel();
    d.a_group = config.packed ? config.row_panels * config.tile.rows * inner : weight.numel() / problem.groups;
    d.a_row = config.packed ? inner * config.tile.rows : forward ? inner : problem.taps();
    d.a_channel = forward ? gemm.taps() : gemm.filters * problem.taps();
    d.a_first = config.packed || forward ? 0 : vertical.filter_first * problem.filter[1] + horizontal.filter_first;
    d.a_h = narrow(vertical.filter_step * problem.filter[1]);
    d.a_w = narrow(horizontal.filter_step);
    d.panels = narrow(config.panels);
    d.panels_each = narrow(config.split.panels_each);
    d.row_panels = narrow(config.row_panels);
    d.row_panels_each = narrow(config.split.row_panels_each);
    d.k_block = narrow(config.k_block);
    return d;
}

/// Returns whether the sums are accumulated in memory, one block of k after the other.
bool needs_partial_sums(const ConvGemm& gemm, const LaunchConfig& config) {
    return config.k_block < gemm.channels * gemm.taps();
}

/// @param out f32 if sums of f16 or bf16 are rounded after all blocks
void run_gemm(const ConvGemm& gemm, const Conv2dProblem& problem, const View& x, const View& weight, const View& out,
              const std::optional<View>& bias, const KernelEpilogue& epilogue, std::string_view variant) {
    const Device device = out.device();
    const bool forward = problem.direction == Conv2dDirection::forward;
    const LaunchConfig config = launch_config_of(gemm, problem, device, variant);
    Conv d = arguments_of(gemm, problem, config, x, weight, out);
    d.has_bias = bias ? 1 : 0;
    Defines defines = storage_defines(problem.dtype, out.dtype);
    defines.set("VW", config.lanes)
        .set("ROWS", config.tile.rows)
        .set("COLUMNS", config.columns())
        .set("PANELS", kMaxPanels)
        .set("A_FORM", config.packed ? 1
                       : forward     ? 0
                                     : 2);
    const View a = !config.packed ? weight
                   : forward      ? packed_filters(problem, weight, config.tile.rows)
                                  : flip_weights(problem, gemm, weight, config.tile.rows, defines);
    set_epilogue_stored(defines, epilogue);
    const bool partial_sums = is_16bit_float(out.dtype) && needs_partial_sums(gemm, config);
    if (partial_sums) defines.set("PARTIAL_SUMS", 1);
    const View sums = partial_sums ? View::make(device, compute_type(out.dtype), out.shape) : out;
    const Kernel kernel(device, {"conv2d_gemm.cl", "conv2d_gemm", defines});
    const EpilogueArguments arguments(epilogue, a);
    const Range range{{to_size(ceil_div(config.panels, config.split.panels_each)),
                       to_size(ceil_div(config.row_panels, config.split.row_panels_each)), to_size(problem.groups)},
                      {1, 1, 1}};
    const LocalMemory block = local_memory(config.block, compute_type(problem.dtype));
    const BufferArgument biases = (bias ? *bias : a).argument();
    if (!partial_sums)
        launch(kernel, range,
               arguments.append_to_if_any({d, block, x.argument(), a.argument(), out.argument(), biases}));
    else
        launch(kernel, range,
               arguments.append_to_if_any(
                   {d, block, x.argument(), a.argument(), sums.argument(), biases, out.argument()}));
}

}  // namespace

RegisterTile choose_tile(Conv2dDirection direction, const VectorForm& form, std::int64_t rows, std::int64_t columns,
                         std::string_view variant) {
    const std::string_view name = variant.substr(0, variant.find(' '));
    for (const RegisterTile& tile : tiles_for(direction))
        if (!name.empty() && name == name_of(tile)) return tile;
    return cheapest_tile(tiles_for(direction), form, rows, columns, kGain,
                         direction != Conv2dDirection::backward_weights);
}

namespace {

class Conv2dGemm final : public Conv2dStrategy {
  public:
    [[nodiscard]] std::string_view name() const override { return "gemm"; }

    /// Positions within a plane are 32-bit numbers.
    [[nodiscard]] bool is_applicable(const Conv2dProblem& problem, const Device& device) const override {
        if (problem.style != KernelStyle::simd ||
            (problem.direction == Conv2dDirection::backward_weights &&
             (problem.taps() > kMaxTaps || !is_applicable_to_weights(problem, device))))
            return false;
        std::array<std::int64_t, 2> extent{};
        for (std::size_t i = 0; i < 2; ++i) {
            extent[i] = problem.input[i] + 2 * problem.padding[i] + problem.filter[i] * problem.dilation[i] +
                        2 * problem.stride[i];
            if (extent[i] > kMax) return false;
        }
        return extent[0] * extent[1] <= kMax && std::max(problem.channels, problem.filters) * problem.taps() <= kMax &&
               problem.images * extent[0] * extent[1] <= kMax * 16;
    }

    [[nodiscard]] std::vector<std::string> variants(const Conv2dProblem& problem, const Device& device) const override {
        std::vector<std::string> names;
        const VectorForm form = vector_form(device, problem.dtype);
        const std::int64_t block = block_elements(device, compute_type(problem.dtype), kBlockBytes);
        for (const RegisterTile& tile : tiles_for(problem.direction)) {
            // Tiles that leave most registers unused are for other devices, or for few columns.
            if (!tile.fits(form) || (tile.vectors > 1 && tile.rows * tile.vectors * 2 <= form.registers - 8)) continue;
            if (may_flip_in_place(problem, max_steps(tile, form.vector, block)))
                for (const std::string_view use : {kPacked, kInPlace}) names.push_back(name_of(tile).append(use));
            else names.push_back(name_of(tile));
        }
        return names;
    }

    [[nodiscard]] bool fuses_epilogue(const Conv2dProblem& problem, const Device&, std::string_view) const override {
        // Strided gradients are several sums, whose elements are not contiguous.
        return problem.direction == Conv2dDirection::forward || problem.stride[0] * problem.stride[1] == 1;
    }

    void run(const Conv2dProblem& problem, const Conv2dOperands& operands, std::string_view variant) const override {
        if (problem.direction == Conv2dDirection::backward_weights) return backward_weights(problem, operands, variant);
        // For strided gradients, some phases may accumulate in memory and others not: all are then rounded together.
        const std::vector<ConvGemm> gemms = conv_gemms(problem);
        const Device device = operands.x.device();
        const RoundedOutput rounded(problem.direction == Conv2dDirection::forward ? operands.out : operands.x,
                                    gemms.size() > 1 && std::ranges::any_of(gemms, [&](const ConvGemm& gemm) {
                                        return needs_partial_sums(gemm,
                                                                  launch_config_of(gemm, problem, device, variant));
                                    }));
        for_each_gemm(
            problem, operands, [&](const ConvGemm& gemm, const View& x, const View&, const std::optional<View>& bias) {
                run_gemm(gemm, problem, x, operands.weight, rounded.exact(), bias, operands.epilogue, variant);
            });
        rounded.round();
    }

  private:
    static constexpr std::int64_t kMax = std::int64_t{1} << 30;
};

}  // namespace
}  // namespace gemm

const Conv2dStrategy& conv2d_gemm() {
    static const gemm::Conv2dGemm strategy;
    return strategy;
}

}  // namespace declivity::ops
