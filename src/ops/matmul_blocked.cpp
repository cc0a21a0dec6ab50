// Products in blocks that a work-group copies for itself (cl_kernels/matmul_blocked.cl), for CPU-like devices.
#include <algorithm>
#include <cstdlib>
#include <limits>

#include <declivity/runtime/launch.hpp>

#include "matmul_strategies.hpp"
#include "vector_form.hpp"

namespace declivity::ops {
namespace {

constexpr std::int64_t kBlockBytes = std::int64_t{704} << 10;  // of a second cache, beside what passes through it
constexpr std::int64_t kBlockK = 384;                         // a panel of a then fills half of the first cache
constexpr std::int64_t kMostRows = 1024, kMostColumns = 384;  // of a work-group
constexpr std::int64_t kRowsCopied = 64;                      // at a time: some cache lines side by side
constexpr std::int64_t kGroupsPerUnit = 2;                    // so that all compute units end at about the same time
constexpr std::int64_t kWork = std::int64_t{1} << 20;         // multiply-adds that are worth a work-group

struct Tile {
    std::int64_t rows, vectors;
};
struct Lie {
    std::int64_t batch, across, along;
};
/// As the struct of the kernel.
struct Product {
    std::int64_t m, n, k, k_each;
    Lie a, b;
    std::int64_t out_batch, matrices;
    std::int32_t row_panels, column_vectors, column_panels, rows_each, columns_each, matrices_each, rows_copied, k_block, has_bias, rectified;
};

std::int32_t narrow(std::int64_t value) { return static_cast<std::int32_t>(value); }
std::int64_t env(const char* name, std::int64_t value) { const char* e = std::getenv(name); return e ? std::atoll(e) : value; }

}  // namespace

bool matmul_blocked_serves(const MatmulProblem& problem) {
    constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max() / 2;
    return problem.m <= most && problem.n <= most;
}

void matmul_blocked(const MatmulProblem& problem) {
    const auto& [a, b, out, batch, m, n, k] = problem;
    const Device device = out.device();
    const VectorForm form = vector_form(device, out.dtype);
    const std::int64_t bytes = static_cast<std::int64_t>(size_of(out.dtype)), units = device.info().compute_units;
    const Tile tile = form.registers < 32 ? Tile{4, 3} : Tile{8, 3};
    const std::int64_t columns = tile.vectors * form.vector;
    const std::int64_t block = std::min<std::int64_t>(kBlockBytes, static_cast<std::int64_t>(device.info().local_memory) - 1024) / bytes;
    const std::int64_t row_panels = ceil_div(m, tile.rows), vectors = ceil_div(n, form.vector), column_panels = ceil_div(vectors, tile.vectors);

    const Lie left{.batch = a.strides[0], .across = m == 1 ? 1 : a.strides[1], .along = k == 1 ? 1 : a.strides[2]};
    const Lie right{.batch = b.strides[0], .across = n == 1 ? 1 : b.strides[2], .along = b.strides[1]};
    const bool a_copied = left.along != 1;
    std::int64_t rows_copied = a_copied ? std::min(row_panels, kRowsCopied / tile.rows) : 0;

    const std::int64_t most_k = std::min(env("WB_K", kBlockK), block / (columns + (a_copied ? tile.rows : 0)));
    const std::int64_t k_block = ceil_div(k, ceil_div(k, most_k));  // of equal length: a short last one would only cost
    std::int64_t rows_each = std::min(row_panels, env("WB_ROWS", kMostRows) / tile.rows), columns_each = std::min(column_panels, env("WB_COLUMNS", kMostColumns) / columns);
    while ((columns_each * columns + rows_copied * tile.rows) * k_block > block)
        if (rows_copied > 1) rows_copied /= 2;
        else --columns_each;
    const auto groups = [&] { return ceil_div(row_panels, rows_each) * ceil_div(column_panels, columns_each) * batch; };
    while (groups() < units * kGroupsPerUnit && rows_each * tile.rows * columns_each * columns * k > kWork && rows_each + columns_each > 2)
        if (columns_each > 1 && (rows_each == 1 || columns_each * columns > rows_each * tile.rows)) columns_each = ceil_div(columns_each, 2);
        else rows_each = ceil_div(rows_each, 2);
    rows_each = ceil_div(row_panels, ceil_div(row_panels, rows_each));
    columns_each = ceil_div(column_panels, ceil_div(column_panels, columns_each));
    const std::int64_t matrices_each = std::clamp<std::int64_t>(kWork / (m * n * k), 1, ceil_div(batch, units));

    const Product product{.m = m, .n = n, .k = k, .k_each = k, .a = left, .b = right, .out_batch = out.strides[0], .matrices = batch,
                          .row_panels = narrow(row_panels), .column_vectors = narrow(vectors), .column_panels = narrow(column_panels),
                          .rows_each = narrow(rows_each), .columns_each = narrow(columns_each), .matrices_each = narrow(matrices_each),
                          .rows_copied = narrow(rows_copied), .k_block = narrow(k_block), .has_bias = 0, .rectified = 0};
    Defines defines = real_defines(out.dtype);
    defines.set("VW", form.vector).set("ROWS", tile.rows).set("COLUMNS", columns).set("BLOCK", block).set("A_COPIED", a_copied ? 1 : 0);
    const Kernel kernel(device, {"matmul_blocked.cl", "matmul_blocked", defines});
    const auto size = [](std::int64_t value) { return static_cast<std::size_t>(value); };
    launch(kernel, {{size(ceil_div(column_panels, columns_each)), size(ceil_div(row_panels, rows_each)), size(ceil_div(batch, matrices_each))}, {1, 1, 1}},
           {product, a.argument(), b.argument(), out.argument(), a.argument()});
}

}  // namespace declivity::ops
