// Products from packed panels (cl_kernels/matmul_packed.cl), for CPU-like devices.
#include <algorithm>
#include <array>
#include <limits>

#include <declivity/runtime/launch.hpp>

#include "matmul_strategies.hpp"
#include "panels.hpp"
#include "vector_form.hpp"

namespace declivity::ops {
namespace {

constexpr std::int64_t kBlockK = 128;    // a panel of each operand then stays in the first two caches
// Panels of a work-group: few enough to stay in the second cache, many enough to be used again.
constexpr std::int64_t kMostRowPanels = 24, kMostColumnPanels = 4;
constexpr std::int64_t kGroupsPerUnit = 4;  // so that all compute units end at about the same time

struct Tile {
    std::int64_t rows, vectors;
};
// Few, because each is kernels to compile: for 32 registers, for 16, and for what has few columns.
constexpr std::array kTiles{Tile{12, 2}, Tile{8, 3}, Tile{24, 1}, Tile{6, 2}, Tile{12, 1}};

/// As the struct of the kernel.
struct Product {
    std::int64_t m, n, k, a_batch, b_batch;
    std::int32_t a_panels, b_panels, a_panels_each, b_panels_each, k_block;
};

/// The tile of least cost: multiply-adds of vectors, two at a time, and loads of numbers and vectors, two at a time; what a
/// tile covers beyond the edges is lost.
Tile choose_tile(const VectorForm& form, std::int64_t m, std::int64_t n) {
    Tile best = kTiles.back();
    double least = std::numeric_limits<double>::infinity();
    for (const Tile& tile : kTiles) {
        if (tile.rows * tile.vectors + tile.vectors + 1 > form.registers) continue;
        const auto tiles = static_cast<double>(ceil_div(m, tile.rows) * ceil_div(n, tile.vectors * form.vector));
        const double cost = tiles * static_cast<double>(std::max(tile.rows * tile.vectors, tile.rows + tile.vectors) + tile.rows / 4);
        if (cost >= least) continue;
        least = cost;
        best = tile;
    }
    return best;
}

}  // namespace

bool matmul_packed_serves(const MatmulProblem& problem) {
    constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
    return problem.m <= most && problem.n <= most;
}

void matmul_packed(const MatmulProblem& problem) {
    const Device device = problem.out.device();
    const VectorForm form = vector_form(device, problem.out.dtype);
    const Tile tile = choose_tile(form, problem.m, problem.n);
    const std::int64_t columns = tile.vectors * form.vector;
    Defines defines = real_defines(problem.out.dtype);
    defines.set("VW", form.vector);
    const View a = pack_panels(problem.a, 1, 2, tile.rows), b = pack_panels(problem.b, 2, 1, columns);

    const std::int64_t a_panels = ceil_div(problem.m, tile.rows), b_panels = ceil_div(problem.n, columns);
    std::int64_t rows_each = std::min(kMostRowPanels, a_panels), columns_each = std::min(kMostColumnPanels, b_panels);
    const std::int64_t wanted = std::int64_t{device.info().compute_units} * kGroupsPerUnit;
    const auto groups = [&] { return ceil_div(a_panels, rows_each) * ceil_div(b_panels, columns_each) * problem.batch; };
    while (groups() < wanted && rows_each + columns_each > 2)
        if (rows_each >= columns_each) rows_each = ceil_div(rows_each, 2);
        else columns_each = ceil_div(columns_each, 2);
    const auto narrow = [](std::int64_t value) { return static_cast<std::int32_t>(value); };
    const Product product{.m = problem.m, .n = problem.n, .k = problem.k,
                          .a_batch = a.shape[0] == 1 ? 0 : a.shape[1], .b_batch = b.shape[0] == 1 ? 0 : b.shape[1], .a_panels = narrow(a_panels), .b_panels = narrow(b_panels),
                          .a_panels_each = narrow(rows_each), .b_panels_each = narrow(columns_each),
                          // Blocks of equal length: a short last one would only cost.
                          .k_block = narrow(ceil_div(problem.k, ceil_div(problem.k, kBlockK)))};
    defines.set("ROWS", tile.rows).set("COLUMNS", columns);
    const Kernel kernel(device, {"matmul_packed.cl", "matmul_packed", defines});
    launch(kernel, {{static_cast<std::size_t>(ceil_div(b_panels, columns_each)), static_cast<std::size_t>(ceil_div(a_panels, rows_each)),
                     static_cast<std::size_t>(problem.batch)}, {1, 1, 1}},
           {product, a.argument(), b.argument(), problem.out.argument()});
}

}  // namespace declivity::ops
