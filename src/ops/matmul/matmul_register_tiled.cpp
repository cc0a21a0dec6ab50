#include <algorithm>

#include <declivity/runtime/launch.hpp>

#include "matmul_strategies.hpp"
#include "ops/support/work_split.hpp"

namespace declivity::ops {
namespace register_tiled {
namespace {

struct Tile {
    int rows, columns;
};

Tile tile_for(const MatmulProblem& problem) {
    if (problem.style == KernelStyle::simt) return {4, 1};
    // Six rows of two vectors use most registers of a CPU with 512-bit vectors; narrow products use one vector.
    const int vector = problem.dtype == DType::f64 ? 8 : 16;
    return {static_cast<int>(std::min<std::int64_t>(6, problem.m)), problem.n > vector ? 2 * vector : vector};
}

class MatmulRegisterTiled final : public MatmulStrategy {
  public:
    [[nodiscard]] std::string_view name() const override { return "register_tiled"; }
    [[nodiscard]] bool is_applicable(const MatmulProblem&, const Device&) const override { return true; }

    void run(const MatmulProblem& problem, const MatmulOperands& operands, std::string_view) const override {
        const auto& [a, b, out, epilogue] = operands;
        const std::int64_t batch = problem.batch, m = problem.m, n = problem.n, k = problem.k;
        const Device device = out.device();
        const Tile tile = tile_for(problem);
        Defines defines = storage_defines(a.dtype, out.dtype);
        defines.set("ROWS", tile.rows).set("COLUMNS", tile.columns).set("B_STEP", b.strides[2] == 1 ? "1" : "b_column");
        const Kernel kernel(device, {"matmul_register_tiled.cl", "matmul_register_tiled", defines});
        Range range{.global = {static_cast<std::size_t>(ceil_div(n, tile.columns)),
                               static_cast<std::size_t>(ceil_div(m, tile.rows)), static_cast<std::size_t>(batch)},
                    .local = {1, 1, 1}};
        if (problem.style == KernelStyle::simt) {
            range.local[0] = item_group(kernel);
            range.global[0] = round_up(range.global[0], range.local[0]);
        }
        launch(kernel, range,
               {m, n, k, a.argument(), a.strides[0], a.strides[1], a.strides[2], b.argument(), b.strides[0],
                b.strides[1], b.strides[2], out.argument()});
    }
};

}  // namespace
}  // namespace register_tiled

const MatmulStrategy& matmul_register_tiled() {
    static const register_tiled::MatmulRegisterTiled strategy;
    return strategy;
}

}  // namespace declivity::ops
