// Matrix products by tiles in local memory (cl_kernels/matmul/matmul_tiled.cl), simt kernels.
#include <limits>

#include "ops/support/local_tile.hpp"
#include "matmul_strategies.hpp"
#include "ops/support/work_split.hpp"

namespace declivity::ops {
namespace tiled {
namespace {

/// Layout of the kernel's structs; must match cl_kernels/matmul/matmul_tiled.cl.
struct OperandStrides {
    std::int64_t batch, across, along;
};
struct GemmShape {
    std::int64_t m, n, k, batch, each;
    OperandStrides a, b;
    std::int32_t row_tiles, column_tiles;
};

/// A_FORM and B_FORM: ACROSS, ACROSS_4, ALONG, ALONG_4.
std::int64_t form_of(const View& operand, const OperandStrides& strides, std::int64_t count, std::int64_t k) {
    const auto by_four = [](auto... sizes) { return ((sizes % 4 == 0) && ...); };
    const bool aligned = begins_aligned(operand) && strides.batch % 4 == 0;
    if (strides.along == 1 && strides.across != 1) return aligned && by_four(strides.across, k) ? 3 : 2;
    return strides.across == 1 && aligned && by_four(strides.along, count) ? 1 : 0;
}

TiledGemm sizes_of(const MatmulProblem& problem) {
    return {.rows = problem.m, .columns = problem.n, .k = problem.k, .batch = problem.batch};
}

void multiply(const MatmulProblem& problem, const MatmulOperands& operands, std::string_view variant) {
    const auto& [a, b, out, epilogue] = operands;
    const std::int64_t batch = problem.batch, m = problem.m, n = problem.n, k = problem.k;
    const Device device = out.device();
    // The stride of an axis of one element is arbitrary.
    const auto stride = [](std::int64_t size, std::int64_t size_stride) { return size == 1 ? 0 : size_stride; };
    const OperandStrides a_strides{
        .batch = stride(batch, a.strides[0]), .across = stride(m, a.strides[1]), .along = stride(k, a.strides[2])};
    const OperandStrides b_strides{
        .batch = stride(batch, b.strides[0]), .across = stride(n, b.strides[2]), .along = stride(k, b.strides[1])};
    const std::int64_t a_form = form_of(a, a_strides, m, k), b_form = form_of(b, b_strides, n, k);
    const DType compute = compute_type(out.dtype);
    const auto make = [&](const TileConfig& config) {
        Defines defines = storage_defines(a.dtype, config.parts > 1 ? compute : out.dtype);
        set_tile(defines, config.tile);
        defines.set("A_FORM", a_form)
            .set("B_FORM", b_form)
            .set("OUT_4", n % 4 == 0 && (config.parts > 1 || begins_aligned(out)) ? 1 : 0);
        if (config.parts == 1) set_activation(defines, epilogue);
        return Kernel(device, {"matmul_tiled.cl", "matmul_tiled", defines});
    };
    const auto [kernel, config] = kernel_for(tile_configs(device, compute, sizes_of(problem), variant), make);
    const GemmShape product{.m = m,
                            .n = n,
                            .k = k,
                            .batch = batch,
                            .each = config.each,
                            .a = a_strides,
                            .b = b_strides,
                            .row_tiles = static_cast<std::int32_t>(ceil_div(m, config.tile.rows())),
                            .column_tiles = static_cast<std::int32_t>(ceil_div(n, config.tile.columns()))};
    const std::size_t items = to_size(config.tile.items());
    const Range range{to_size(batch * config.parts * product.row_tiles * product.column_tiles) * items, items};
    const View to = config.parts == 1 ? out : View::make(device, compute, {config.parts, batch, m, n});
    const EpilogueArguments arguments(config.parts == 1 ? epilogue : KernelEpilogue{}, a);
    launch(kernel, range, arguments.append_to({product, a.argument(), b.argument(), to.argument()}));
    if (config.parts > 1) matmul_reduce(to, out, epilogue);
}

class MatmulTiled final : public MatmulStrategy {
  public:
    [[nodiscard]] std::string_view name() const override { return "tiled"; }

    [[nodiscard]] bool is_applicable(const MatmulProblem& problem, const Device& device) const override {
        constexpr std::int64_t max_tiles = std::numeric_limits<std::int32_t>::max() / 2;
        return problem.style == KernelStyle::simt && local_tiles_fit(device, compute_type(problem.dtype)) &&
               ceil_div(problem.m, 16) * ceil_div(problem.n, 16) <= max_tiles;
    }
    [[nodiscard]] std::vector<std::string> variants(const MatmulProblem& problem, const Device& device) const override {
        return local_variants(device, compute_type(problem.dtype), sizes_of(problem));
    }
    [[nodiscard]] bool fuses_epilogue(const MatmulProblem&, const Device&, std::string_view) const override {
        return true;
    }
    void run(const MatmulProblem& problem, const MatmulOperands& operands, std::string_view variant) const override {
        multiply(problem, operands, variant);
    }
};

}  // namespace
}  // namespace tiled

const MatmulStrategy& matmul_tiled() {
    static const tiled::MatmulTiled strategy;
    return strategy;
}

}  // namespace declivity::ops
