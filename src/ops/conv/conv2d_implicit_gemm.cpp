// Convolution as an implicit GEMM by tiles in local memory (cl_kernels/conv/conv2d_implicit_gemm.cl), simt kernels.
#include <algorithm>

#include "conv2d_strategy.hpp"
#include "conv_gemm.hpp"
#include "ops/support/local_block.hpp"
#include "ops/support/local_tile.hpp"
#include "ops/support/work_split.hpp"

namespace declivity::ops {
namespace {

enum class Stage : std::uint8_t { sum, backward_weights, flip, reduce };

/// Layout of the kernels' structs; must match cl_kernels/conv/conv2d_implicit_gemm.cl.
struct Conv {
    std::int64_t x_image, x_channel, out_image, out_channel, out_first, a_group = 0, a_across = 0, a_along = 0,
                                                                        partial = 0;
    std::int32_t inner, each = 0, parts = 1, positions, groups, channels, filters, height, width, rows, columns;
    std::int32_t stride_h, stride_w, first_h, first_w, dilation_h, dilation_w, taps_h, taps_w;
    std::int32_t out_row_step, out_column_step, row_tiles = 0, column_tiles = 0, jump_c = 0, jump_h = 0, jump_w = 0,
                                                has_bias = 0, unused = 0;
};

struct Flip {
    std::int32_t channels, filters, taps, taps_h, taps_w, first, stride_h, stride_w;
};

Kernel kernel_of(const Device& device, const char* name, Stage stage, Defines defines) {
    return {device, {"conv2d_implicit_gemm.cl", name, defines.set("STAGE", static_cast<std::int64_t>(stage))}};
}

/// The arguments of a product that do not depend on the tile.
Conv arguments_of(const ConvGemm& gemm, const Conv2dProblem& problem, const View& x, const View& out) {
    Conv d = gemm_arguments<Conv>(gemm, problem, x, out);
    d.inner = narrow(gemm.channels * gemm.taps());
    d.groups = narrow(problem.groups);
    return d;
}

void set_tile_config(Conv& d, const TileConfig& config, std::int64_t rows, std::int64_t columns) {
    d.each = narrow(config.each);
    d.parts = narrow(config.parts);
    d.row_tiles = narrow(ceil_div(rows, config.tile.rows()));
    d.column_tiles = narrow(ceil_div(columns, config.tile.columns()));
}

/// Increments of the digits of a mixed-radix number with the given sizes for an addition of `step`.
void set_jump(Conv& d, std::int64_t step, std::int64_t middle, std::int64_t inner) {
    d.jump_c = narrow(step / (middle * inner));
    d.jump_h = narrow(step % (middle * inner) / inner);
    d.jump_w = narrow(step % inner);
}

Range range_of(const Conv& d, const TileConfig& config) {
    const std::int64_t groups = std::int64_t{d.row_tiles} * d.column_tiles * d.groups * d.parts;
    return {to_size(groups * config.tile.items()), to_size(config.tile.items())};
}

Range items_of(const Kernel& kernel, std::int64_t count) {
    const std::size_t group = std::min(to_size(kSimtGroup), kernel.max_work_group());
    return {round_up(to_size(count), group), group};
}

/// The flipped weights of a phase of backward_input, [group][k][row].
View flip_weights(const Conv2dProblem& problem, const ConvGemm& gemm, const View& weight) {
    const auto& [vertical, horizontal] = gemm.axes;
    const std::int64_t count = problem.groups * gemm.channels * gemm.taps() * gemm.filters;
    const View packed = View::make(weight.device(), weight.dtype, {count});
    const Flip flip{.channels = narrow(gemm.filters),
                    .filters = narrow(gemm.channels),
                    .taps = narrow(problem.taps()),
                    .taps_h = narrow(vertical.taps),
                    .taps_w = narrow(horizontal.taps),
                    .first = narrow(vertical.filter_first * problem.filter[1] + horizontal.filter_first),
                    .stride_h = narrow(vertical.filter_step * problem.filter[1]),
                    .stride_w = narrow(horizontal.filter_step)};
    const Kernel kernel = kernel_of(weight.device(), "conv2d_implicit_gemm_flip", Stage::flip,
                                    storage_defines(weight.dtype, weight.dtype));
    launch(kernel, items_of(kernel, count), {flip, count, weight.argument(), packed.argument()});
    return packed;
}

/// The shape of a product. Split-K only for products that cover the whole result.
TiledGemm product_of(const ConvGemm& gemm, const Conv2dProblem& problem) {
    const auto& [vertical, horizontal] = gemm.axes;
    return {.rows = gemm.filters,
            .columns = problem.images * vertical.size * horizontal.size,
            .k = gemm.channels * gemm.taps(),
            .batch = problem.groups,
            .may_split = gemm.out_column_step == 1 && gemm.out_row_step == horizontal.size};
}

void run_gemm(const ConvGemm& gemm, const Conv2dProblem& problem, const View& x, const View& weight, const View& out,
              const std::optional<View>& bias, const KernelEpilogue& epilogue, std::string_view variant) {
    const Device device = out.device();
    const DType compute = compute_type(problem.dtype);
    const TiledGemm product = product_of(gemm, problem);
    Conv d = arguments_of(gemm, problem, x, out);
    const bool forward = problem.direction == Conv2dDirection::forward;
    const View a = forward || problem.taps() == 1 || product.k == 0 ? weight : flip_weights(problem, gemm, weight);
    d.a_group = gemm.filters * product.k;
    d.a_across = forward ? product.k : 1;
    d.a_along = forward ? 1 : gemm.filters;
    const bool a_4 = begins_aligned(a) && (forward ? product.k : gemm.filters) % 4 == 0;
    const bool flat = product.may_split, out_4 = flat && d.rows * d.columns % 4 == 0;
    const auto make = [&](const TileConfig& config) {
        Defines defines = storage_defines(problem.dtype, config.parts > 1 ? compute : problem.dtype);
        set_tile(defines, config.tile);
        defines.set("A_FORM", (forward ? 2 : 0) + (a_4 ? 1 : 0))
            .set("OUT_4", out_4 && (config.parts > 1 || begins_aligned(out)) ? 1 : 0);
        if (config.parts == 1) set_activation(defines, epilogue);
        return kernel_of(device, "conv2d_implicit_gemm", Stage::sum, defines);
    };
    const auto [kernel, config] = kernel_for(tile_configs(device, compute, product, variant), make);
    set_tile_config(d, config, product.rows, product.columns);
    set_jump(d, config.tile.items() / config.tile.columns(), d.taps_h, d.taps_w);
    const View to = config.parts == 1 ? out : View::make(device, compute, {config.parts, out.numel()});
    d.partial = out.numel();
    d.has_bias = bias && config.parts == 1 ? 1 : 0;
    const View& any = bias ? *bias : a;
    const EpilogueArguments none({}, a), arguments(epilogue, a);
    launch(kernel, range_of(d, config),
           (config.parts == 1 ? arguments : none)
               .append_to({d, x.argument(), a.argument(), to.argument(), any.argument()}));
    if (config.parts == 1) return;
    Defines defines = storage_defines(problem.dtype, problem.dtype);
    set_activation(defines, epilogue);
    const Kernel join = kernel_of(device, "conv2d_implicit_gemm_reduce", Stage::reduce, defines);
    launch(join, items_of(join, out.numel()),
           arguments.append_to({out.numel(), config.parts, d.out_channel, narrow(out.shape[1]), bias ? 1 : 0,
                                to.argument(), out.argument(), any.argument()}));
}

/// The matrix product of backward_weights: rows are filters, columns are streams, k are positions.
TiledGemm weights_product(const Conv2dProblem& problem) {
    return {.rows = problem.filters_per_group(),
            .columns = problem.channels_per_group() * problem.taps(),
            .k = problem.images * problem.output[0] * problem.output[1],
            .batch = problem.groups};
}

Conv2dProblem as_forward(Conv2dProblem problem) {
    problem.direction = Conv2dDirection::forward;
    return problem;
}

void backward_weights(const Conv2dProblem& problem, const Conv2dOperands& operands, std::string_view variant) {
    const auto& [x, weight, g, bias, epilogue, sums] = operands;
    const Device device = x.device();
    const DType compute = compute_type(problem.dtype);
    const TiledGemm product = weights_product(problem);
    Conv d = arguments_of(conv_gemms(as_forward(problem)).front(), problem, x, g);
    const auto make = [&](const TileConfig& config) {
        Defines defines = storage_defines(problem.dtype, config.parts > 1 ? compute : problem.dtype);
        set_tile(defines, config.tile);
        defines.set("OUT_4", product.columns % 4 == 0 && (config.parts > 1 || begins_aligned(weight)) ? 1 : 0);
        return kernel_of(device, "conv2d_implicit_gemm_backward_weights", Stage::backward_weights, defines);
    };
    const auto [kernel, config] = kernel_for(tile_configs(device, compute, product, variant), make);
    set_tile_config(d, config, product.rows, product.columns);
    set_jump(d, 8, d.rows, d.columns);
    const View to = config.parts == 1 ? weight : View::make(device, compute, {config.parts, weight.numel()});
    d.partial = weight.numel();
    launch(kernel, range_of(d, config), {d, x.argument(), g.argument(), to.argument()});
    if (config.parts > 1) reduce_partials(problem, operands, to, weight);
}

class Conv2dImplicitGemm final : public Conv2dStrategy {
  public:
    [[nodiscard]] std::string_view name() const override { return "implicit_gemm"; }

    /// Positions, and elements of an image, are 32-bit numbers.
    [[nodiscard]] bool is_applicable(const Conv2dProblem& problem, const Device& device) const override {
        if (problem.style != KernelStyle::simt || !local_tiles_fit(device, compute_type(problem.dtype))) return false;
        std::array<std::int64_t, 2> extent{};
        for (std::size_t i = 0; i < 2; ++i) {
            extent[i] = problem.input[i] + 2 * problem.padding[i] + problem.filter[i] * problem.dilation[i] +
                        2 * problem.stride[i];
            if (extent[i] > kMax) return false;
        }
        const std::int64_t plane = extent[0] * extent[1];
        return plane <= kMax && problem.images * plane <= kMax &&
               std::max(problem.channels, problem.filters) * problem.taps() <= kMax;
    }

    /// Tiles of a group with few rows are mostly empty.
    [[nodiscard]] bool is_profitable(const Conv2dProblem& problem, const Device&) const override {
        return problem.groups == 1 || std::min(problem.channels_per_group(), problem.filters_per_group()) >= kFewRows;
    }

    [[nodiscard]] std::vector<std::string> variants(const Conv2dProblem& problem, const Device& device) const override {
        const bool weights = problem.direction == Conv2dDirection::backward_weights;
        return local_variants(device, compute_type(problem.dtype),
                              weights ? weights_product(problem) : product_of(conv_gemms(problem).front(), problem));
    }

    [[nodiscard]] bool fuses_epilogue(const Conv2dProblem&, const Device&, std::string_view) const override {
        return true;
    }

    void run(const Conv2dProblem& problem, const Conv2dOperands& operands, std::string_view variant) const override {
        if (problem.direction == Conv2dDirection::backward_weights) return backward_weights(problem, operands, variant);
        for_each_gemm(problem, operands,
                      [&](const ConvGemm& gemm, const View& x, const View& out, const std::optional<View>& bias) {
                          run_gemm(gemm, problem, x, operands.weight, out, bias, operands.epilogue, variant);
                      });
    }

  private:
    static constexpr std::int64_t kMax = std::int64_t{1} << 30, kFewRows = 8;
};

}  // namespace

const Conv2dStrategy& conv2d_implicit_gemm() {
    static const Conv2dImplicitGemm strategy;
    return strategy;
}

}  // namespace declivity::ops
