// Matrix products in blocks that each work-group copies for itself (cl_kernels/matmul/matmul_blocked.cl), simd kernels.
#include <algorithm>
#include <array>
#include <limits>

#include <declivity/ops/reduce.hpp>
#include <declivity/runtime/launch.hpp>

#include "ops/support/local_block.hpp"
#include "matmul_strategies.hpp"
#include "ops/support/vector_form.hpp"
#include "ops/support/work_split.hpp"

namespace declivity::ops {
namespace {

constexpr std::int64_t kBlockBytes = std::int64_t{704} << 10;  // of the L2 cache, which also holds streamed data
constexpr std::int64_t kSmallBytes = 16 * 1024;                // of a, to stay in the L1 cache
constexpr std::int64_t kBlockK = 384;                          // a panel of a then fills half of the L1 cache
constexpr std::int64_t kMaxRows = 1024, kMaxColumns = 384;     // of a work-group
constexpr std::int64_t kPackedRows = 64;                       // at a time: some adjacent cache lines
constexpr std::int64_t kGroupsPerUnit = 2;                     // with split-K, to balance the load
constexpr std::int64_t kMaxGroupsPerUnit = 8;                  // limit of the search for a partition
constexpr std::int64_t kWork = std::int64_t{1} << 20;          // minimum multiply-adds of a work-group
constexpr std::int64_t kMinPartOfK = 512;                      // minimum of a split-K part
// Split-K is used for sums of at least this length, and at least this multiple of the number of results.
constexpr std::int64_t kLongSum = 2048, kSplitEach = 16;

struct Tile {
    std::int64_t rows, vectors;
};
struct OperandStrides {
    std::int64_t batch, groups_across, along;
};
/// Layout of the kernel's struct; must match cl_kernels/matmul/matmul_blocked.cl.
struct GemmShape {
    std::int64_t m, n, k, last_k;
    OperandStrides a, b;
    std::int64_t out_batch, matrices;
    std::int32_t row_panels, column_panels, panel_vectors, wider_panels, rows_each, columns_each, matrices_each,
        packed_panels, k_block, has_epilogue;
};

/// Partition of a product, in total and for each work-group.
struct LaunchConfig {
    Tile tile;
    std::int64_t vector, block, a_packed, row_panels, column_vectors, column_panels, rows_each, columns_each,
        matrices_each, packed_panels, k_block;
    [[nodiscard]] std::int64_t columns() const { return tile.vectors * vector; }
};

/// The next larger number of groups with fewer than `each` of `total` items in a group; more than `total` if there is
/// none.
std::int64_t more_groups(std::int64_t total, std::int64_t each) {
    return each == 1 ? total + 1 : ceil_div(total, each - 1);
}

struct BlockConfig {
    std::int64_t rows_each = 1, columns_each = 1;
};

/// Searches the partition into work-groups whose last unit finishes first. Cost in cycles for each k: a group copies
/// its columns of b, reads its rows of a, and multiplies each with each.
BlockConfig search_block_config(const LaunchConfig& config, std::int64_t m, std::int64_t k, std::int64_t batch,
                                std::int64_t max_columns, std::int64_t units) {
    constexpr double copy_cost = 3, group_overhead = 4000;
    const double read_row = config.a_packed != 0 ? 1 : 0.4,
                 panel_vectors = static_cast<double>(config.column_vectors) / static_cast<double>(config.column_panels);
    const std::int64_t rows = config.tile.rows, max_groups = units * kMaxGroupsPerUnit;
    const auto cycles = [&](std::int64_t panels, std::int64_t group_rows) {
        return static_cast<double>(k) *
                   (static_cast<double>(panels) * panel_vectors * (copy_cost + static_cast<double>(group_rows)) +
                    static_cast<double>(group_rows) * read_row) +
               group_overhead;
    };
    BlockConfig best;
    double min_cost = std::numeric_limits<double>::infinity();
    for (std::int64_t row_groups = ceil_div(config.row_panels, kMaxRows / rows), min_row_groups = row_groups;
         row_groups <= std::max(min_row_groups, std::min(config.row_panels, max_groups));) {
        const std::int64_t rows_each = ceil_div(config.row_panels, row_groups),
                           groups_down = ceil_div(config.row_panels, rows_each),
                           group_rows = std::min(rows_each * rows, m), last_rows = m - (groups_down - 1) * group_rows;
        for (std::int64_t column_groups = ceil_div(config.column_panels, max_columns),
                          min_column_groups = column_groups;
             column_groups <= std::max(min_column_groups, std::min(config.column_panels, max_groups / row_groups));) {
            const std::int64_t columns_each = ceil_div(config.column_panels, column_groups),
                               groups_across = ceil_div(config.column_panels, columns_each),
                               last_columns = config.column_panels - (groups_across - 1) * columns_each;
            const double cost = GroupGrid{groups_across,
                                          groups_down * batch,
                                          cycles(columns_each, group_rows),
                                          cycles(last_columns, group_rows),
                                          cycles(columns_each, last_rows),
                                          cycles(last_columns, last_rows)}
                                    .cycles(units);
            if (cost < min_cost) min_cost = cost, best = {.rows_each = rows_each, .columns_each = columns_each};
            column_groups = more_groups(config.column_panels, columns_each);
        }
        row_groups = more_groups(config.row_panels, rows_each);
    }
    return best;
}

LaunchConfig launch_config_for(const MatmulProblem& problem, const Device& device) {
    const std::int64_t batch = problem.batch, m = problem.m, n = problem.n, k = problem.k;
    const VectorForm form = vector_form(device, problem.dtype);
    LaunchConfig config{};
    config.tile = form.registers < 32 ? Tile{4, 3} : Tile{8, 3};
    config.vector = form.vector;
    const std::int64_t rows = config.tile.rows, columns = config.columns();
    config.block = block_elements(device, compute_type(problem.dtype), kBlockBytes);
    // A small operand is read in place, whatever its layout.
    const bool small = m * k * static_cast<std::int64_t>(size_of(problem.dtype)) <= kSmallBytes;
    config.a_packed = (k != 1 && problem.a_strides[2] != 1 && !small) || is_16bit_float(problem.dtype) ? 1 : 0;
    config.row_panels = ceil_div(m, rows);
    config.column_vectors = ceil_div(n, form.vector);
    config.column_panels = ceil_div(config.column_vectors, config.tile.vectors);

    const std::int64_t max_k = std::min(kBlockK, config.block / (columns + config.a_packed * rows));
    config.k_block = ceil_div(k, ceil_div(k, max_k));  // of equal length, since a short last one wastes time
    config.packed_panels = config.a_packed * std::min(config.row_panels, kPackedRows / rows);
    std::int64_t max_columns = std::min(config.column_panels, std::max<std::int64_t>(1, kMaxColumns / columns));
    while ((max_columns * columns + config.packed_panels * rows) * config.k_block > config.block)
        if (config.packed_panels > 1) config.packed_panels /= 2;
        else --max_columns;
    const std::int64_t units = device.info().compute_units;
    const std::array key{m, n, k, batch, rows, config.columns(), config.a_packed, max_columns, units};
    const BlockConfig block_config =
        memoize<BlockConfig>(key, [&] { return search_block_config(config, m, k, batch, max_columns, units); });
    config.rows_each = block_config.rows_each, config.columns_each = block_config.columns_each;
    config.matrices_each = std::clamp<std::int64_t>(kWork / (m * n * k), 1, ceil_div(batch, units));
    return config;
}

/// Number of work-groups of a problem.
std::int64_t groups_of(const MatmulProblem& problem, const Device& device) {
    const LaunchConfig config = launch_config_for(problem, device);
    return ceil_div(config.row_panels, config.rows_each) * ceil_div(config.column_panels, config.columns_each) *
           ceil_div(problem.batch, config.matrices_each);
}

/// @param last_k of the last matrices of a batch, if shorter
void multiply(const MatmulProblem& problem, const MatmulOperands& operands, std::int64_t last_k) {
    const auto& [a, b, out, epilogue] = operands;
    const std::int64_t batch = problem.batch, m = problem.m, n = problem.n, k = problem.k;
    const LaunchConfig config = launch_config_for(problem, out.device());
    const GemmShape product{
        .m = m,
        .n = n,
        .k = k,
        .last_k = last_k,
        .a = {.batch = a.strides[0], .groups_across = m == 1 ? 1 : a.strides[1], .along = k == 1 ? 1 : a.strides[2]},
        .b = {.batch = b.strides[0], .groups_across = n == 1 ? 1 : b.strides[2], .along = b.strides[1]},
        .out_batch = out.strides[0],
        .matrices = batch,
        .row_panels = narrow(config.row_panels),
        .column_panels = narrow(config.column_panels),
        .panel_vectors = narrow(config.column_vectors / config.column_panels),
        .wider_panels = narrow(config.column_vectors % config.column_panels),
        .rows_each = narrow(config.rows_each),
        .columns_each = narrow(config.columns_each),
        .matrices_each = narrow(config.matrices_each),
        .packed_panels = narrow(config.packed_panels),
        .k_block = narrow(config.k_block),
        .has_epilogue = epilogue.empty() ? 0 : 1};
    // Sums of several blocks of k are accumulated in the output.
    const RoundedOutput rounded(out, config.k_block < k);
    Defines defines = storage_defines(a.dtype, rounded.exact().dtype);
    defines.set("VW", config.vector)
        .set("ROWS", config.tile.rows)
        .set("COLUMNS", config.columns())
        .set("A_PACKED", config.a_packed);
    set_activation(defines, epilogue);
    const EpilogueArguments arguments(epilogue, a);
    const Kernel kernel(out.device(), {"matmul_blocked.cl", "matmul_blocked", defines});
    const auto groups = [](std::int64_t all, std::int64_t each) {
        return static_cast<std::size_t>(ceil_div(all, each));
    };
    launch(kernel,
           {{groups(config.column_panels, config.columns_each), groups(config.row_panels, config.rows_each),
             groups(batch, config.matrices_each)},
            {1, 1, 1}},
           arguments.append_to({product, local_memory(config.block, compute_type(out.dtype)), a.argument(),
                                b.argument(), rounded.exact().argument()}));
    rounded.round();
}

class MatmulBlocked final : public MatmulStrategy {
  public:
    [[nodiscard]] std::string_view name() const override { return "blocked"; }

    [[nodiscard]] bool is_applicable(const MatmulProblem& problem, const Device&) const override {
        constexpr std::int64_t limit = std::numeric_limits<std::int32_t>::max() / 2;
        return problem.style == KernelStyle::simd && problem.m <= limit && problem.n <= limit;
    }
    [[nodiscard]] bool fuses_epilogue(const MatmulProblem&, const Device&, std::string_view) const override {
        return true;
    }
    void run(const MatmulProblem& problem, const MatmulOperands& operands, std::string_view) const override {
        multiply(problem, operands, problem.k);
    }
};

/// Split-K: computes the partial sums as a batch, then adds them in order.
void multiply_split(const MatmulProblem& problem, const MatmulOperands& operands) {
    const auto& [a, b, out, epilogue] = operands;
    const std::int64_t m = problem.m, n = problem.n, k = problem.k;
    const std::int64_t units = out.device().info().compute_units,
                       max_parts = std::max<std::int64_t>(2, k / kMinPartOfK);
    const std::int64_t each = ceil_div(k, std::min(max_parts, std::max<std::int64_t>(2, units * kGroupsPerUnit))),
                       parts = ceil_div(k, each);
    View left = a, right = b;
    left.shape = {parts, m, each};
    left.strides[0] = each * a.strides[2];
    right.shape = {parts, each, n};
    right.strides[0] = each * b.strides[1];
    const View partial = View::make(out.device(), compute_type(out.dtype), {parts, m, n});
    multiply(matmul_problem(left, right), {left, right, partial}, k - (parts - 1) * each);
    const RoundedOutput rounded(out);
    View sum = rounded.exact();
    sum.shape = {m, n};
    sum.strides = dense_strides(sum.shape);
    reduce(Reduce::sum, partial, {0}, sum);
    rounded.round();
}

class MatmulSplit final : public MatmulStrategy {
  public:
    [[nodiscard]] std::string_view name() const override { return "split"; }

    [[nodiscard]] bool is_applicable(const MatmulProblem& problem, const Device& device) const override {
        return problem.batch == 1 && problem.k > 1 && matmul_blocked().is_applicable(problem, device);
    }
    /// Split-K, if there are not enough results for all compute units.
    [[nodiscard]] bool is_profitable(const MatmulProblem& problem, const Device& device) const override {
        return problem.k >= kLongSum && problem.m * problem.n <= problem.k * kSplitEach &&
               groups_of(problem, device) < std::int64_t{device.info().compute_units};
    }
    void run(const MatmulProblem& problem, const MatmulOperands& operands, std::string_view) const override {
        multiply_split(problem, operands);
    }
};

}  // namespace

std::int64_t matmul_block_of_k(const MatmulProblem& problem, const Device& device) {
    return launch_config_for(problem, device).k_block;
}

const MatmulStrategy& matmul_blocked() {
    static const MatmulBlocked strategy;
    return strategy;
}

const MatmulStrategy& matmul_split() {
    static const MatmulSplit strategy;
    return strategy;
}

}  // namespace declivity::ops
