// Matrix products as dot products of contiguous elements (cl_kernels/matmul/matmul_dot.cl), simd kernels.
#include <algorithm>
#include <array>
#include <limits>

#include <declivity/runtime/launch.hpp>

#include "matmul_strategies.hpp"
#include "ops/support/vector_form.hpp"
#include "ops/support/work_split.hpp"

namespace declivity::ops {
namespace dot {
namespace {

constexpr std::int64_t kBlockK = 1024;      // elements of a row, to stay in the L1 cache with others
constexpr std::int64_t kGroupsPerUnit = 8;  // to balance the load
constexpr std::int64_t kFewRows = 32;       // or columns
constexpr std::int64_t kMinK = 32;
// Reducing a vector costs a result as much as copying this many elements of b, which other strategies do once for all
// rows.
constexpr std::int64_t kMinKOfRow = 10;

struct Tile {
    std::int64_t rows, columns;
};
// Few, since each is a kernel to compile: for 32 registers, for 16, and for few rows.
constexpr std::array kTiles{Tile{6, 4}, Tile{3, 6}, Tile{3, 3}, Tile{1, 8}, Tile{1, 6}};

/// Layout of the kernel's struct; must match cl_kernels/matmul/matmul_dot.cl.
struct GemmShape {
    std::int64_t m, n, k, a_batch, a_row, b_batch, b_column, k_block;
    std::int32_t row_tiles_each, unused = 0;
};

/// The tile of least cost: multiply-adds and loads of vectors, two at a time each; work beyond the edges is wasted.
Tile choose_tile(const VectorForm& form, std::int64_t m, std::int64_t n) {
    Tile best = kTiles.back();
    double min_cost = std::numeric_limits<double>::infinity();
    for (const Tile& tile : kTiles) {
        if (tile.rows * tile.columns + tile.columns + 1 > form.registers) continue;
        const auto tiles = static_cast<double>(ceil_div(m, tile.rows) * ceil_div(n, tile.columns));
        const double cost =
            tiles * static_cast<double>(std::max(tile.rows * tile.columns, tile.rows + tile.columns) + 2);
        if (cost >= min_cost) continue;
        min_cost = cost;
        best = tile;
    }
    return best;
}

void multiply(const MatmulProblem& problem, const MatmulOperands& operands) {
    const auto& [a, b, out, epilogue] = operands;
    const std::int64_t batch = problem.batch, m = problem.m, n = problem.n, k = problem.k;
    const Device device = out.device();
    const VectorForm form = vector_form(device, out.dtype);
    const Tile tile = choose_tile(form, m, n);
    const std::int64_t row_tiles = ceil_div(m, tile.rows), column_tiles = ceil_div(n, tile.columns);
    const std::int64_t target_groups = std::int64_t{device.info().compute_units} * kGroupsPerUnit;
    const std::int64_t parts = std::clamp<std::int64_t>(target_groups / (column_tiles * batch), 1, row_tiles);
    const std::int64_t each = ceil_div(row_tiles, parts);
    const GemmShape product{.m = m,
                            .n = n,
                            .k = k,
                            .a_batch = a.strides[0],
                            .a_row = a.strides[1],
                            .b_batch = b.strides[0],
                            .b_column = b.strides[2],
                            .k_block = kBlockK,
                            .row_tiles_each = static_cast<std::int32_t>(each)};
    Defines defines = real_defines(out.dtype);
    defines.set("VW", form.vector).set("ROWS", tile.rows).set("COLUMNS", tile.columns);
    set_activation(defines, epilogue);
    const Kernel kernel(device, {"matmul_dot.cl", "matmul_dot", defines});
    const EpilogueArguments arguments(epilogue, a);
    launch(kernel,
           {{static_cast<std::size_t>(column_tiles), static_cast<std::size_t>(ceil_div(row_tiles, each)),
             static_cast<std::size_t>(batch)},
            {1, 1, 1}},
           arguments.append_to({product, a.argument(), b.argument(), out.argument()}));
}

class MatmulDot final : public MatmulStrategy {
  public:
    [[nodiscard]] std::string_view name() const override { return "dot"; }

    /// f16 and bf16 values would be converted again for each tile.
    [[nodiscard]] bool is_applicable(const MatmulProblem& problem, const Device&) const override {
        return problem.style == KernelStyle::simd && !is_16bit_float(problem.dtype) &&
               (problem.k == 1 || (problem.a_strides[2] == 1 && problem.b_strides[1] == 1));
    }
    /// Profitable where copying an operand costs more than using it in place.
    [[nodiscard]] bool is_profitable(const MatmulProblem& problem, const Device&) const override {
        return problem.k >= kMinK &&
               (problem.n <= kFewRows || (problem.m <= kFewRows && problem.k >= kMinKOfRow * problem.m));
    }
    [[nodiscard]] bool fuses_epilogue(const MatmulProblem&, const Device&, std::string_view) const override {
        return true;
    }
    void run(const MatmulProblem& problem, const MatmulOperands& operands, std::string_view) const override {
        multiply(problem, operands);
    }
};

}  // namespace
}  // namespace dot

const MatmulStrategy& matmul_dot() {
    static const dot::MatmulDot strategy;
    return strategy;
}

}  // namespace declivity::ops
