// Matrix products from packed panels (cl_kernels/matmul/matmul_packed.cl), simd kernels.
#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <vector>

#include <declivity/runtime/launch.hpp>

#include "ops/engine/packed_weights.hpp"
#include "ops/support/local_block.hpp"
#include "matmul_strategies.hpp"
#include "panels.hpp"
#include "ops/support/vector_form.hpp"
#include "ops/support/work_split.hpp"

namespace declivity::ops {
namespace {

constexpr std::int64_t kBlockK = 128;  // a panel of each operand then stays in the L1 and L2 caches
// Panels of a work-group: few enough to stay in the L2 cache, many enough to be reused.
constexpr std::int64_t kMaxRowPanels = 24, kMaxColumnPanels = 4;
constexpr std::int64_t kGroupsPerUnit = 4;  // to balance the load

// A constant b is packed for at most this many rows, and at least this many elements of b.
constexpr std::int64_t kMaxRows = 192, kMinElements = 1 << 14;

// Few, since each means several kernels to compile: for 32 registers, for 16, and for few columns.
constexpr std::array kTiles{RegisterTile{12, 2}, RegisterTile{8, 3}, RegisterTile{24, 1}, RegisterTile{6, 2},
                            RegisterTile{12, 1}};

/// Layout of the kernel's struct; must match cl_kernels/matmul/matmul_packed.cl.
struct GemmShape {
    std::int64_t m, n, k, a_batch, b_batch, out_batch;
    std::int32_t a_panels, b_panels, a_panels_each, b_panels_each, k_block, unused = 0;
};

}  // namespace

RegisterTile choose_panel_tile(const Device& device, DType dtype, std::int64_t m, std::int64_t n) {
    return cheapest_tile(kTiles, vector_form(device, dtype), m, n);
}

void multiply_panels(const View& a, const View& b, const View& out, std::int64_t k, const RegisterTile& tile,
                     const KernelEpilogue& epilogue, std::optional<DType> stored, std::int64_t k_block) {
    const Device device = out.device();
    const std::int64_t vector = vector_form(device, out.dtype).vector, columns = tile.vectors * vector;
    const std::int64_t batch = out.shape[0], m = out.shape[1], n = out.shape[2];
    const std::int64_t a_panels = ceil_div(m, tile.rows), b_panels = ceil_div(n, columns);
    std::int64_t rows_each = std::min(kMaxRowPanels, a_panels), columns_each = std::min(kMaxColumnPanels, b_panels);
    const std::int64_t target_groups = std::int64_t{device.info().compute_units} * kGroupsPerUnit;
    const auto groups = [&] { return ceil_div(a_panels, rows_each) * ceil_div(b_panels, columns_each) * batch; };
    while (groups() < target_groups && rows_each + columns_each > 2)
        if (rows_each >= columns_each) rows_each = ceil_div(rows_each, 2);
        else columns_each = ceil_div(columns_each, 2);
    const GemmShape product{.m = m,
                            .n = n,
                            .k = k,
                            .a_batch = a.shape[0] == 1 ? 0 : a.shape[1],
                            .b_batch = b.shape[0] == 1 ? 0 : b.shape[1],
                            .out_batch = out.strides[0],
                            .a_panels = narrow(a_panels),
                            .b_panels = narrow(b_panels),
                            .a_panels_each = narrow(rows_each),
                            .b_panels_each = narrow(columns_each),
                            // Blocks of equal length, since a short last one wastes time.
                            .k_block = narrow(k_block > 0 ? k_block : ceil_div(k, ceil_div(k, kBlockK)))};
    Defines defines =
        epilogue.empty() ? real_defines(out.dtype) : storage_defines(stored.value_or(out.dtype), out.dtype);
    defines.set("VW", vector).set("ROWS", tile.rows).set("COLUMNS", columns);
    set_epilogue_stored(defines, epilogue);
    const EpilogueArguments epilogue_arguments(epilogue, b);
    const Kernel kernel(device, {"matmul_packed.cl", "matmul_packed", defines});
    const auto size = [](std::int64_t value) { return static_cast<std::size_t>(value); };
    launch(kernel,
           {{size(ceil_div(b_panels, columns_each)), size(ceil_div(a_panels, rows_each)), size(batch)}, {1, 1, 1}},
           epilogue_arguments.append_to_if_any({product, a.argument(), b.argument(), out.argument()}));
}

namespace {

/// The width of panels of b is always that for many rows, so that one packed copy can be used for any number of rows.
std::int64_t panel_vectors(const Device& device, const MatmulProblem& problem) {
    return choose_panel_tile(device, problem.dtype, kMaxRows, problem.n).vectors;
}
std::int64_t columns_of(const Device& device, const MatmulProblem& problem) {
    return panel_vectors(device, problem) * vector_form(device, problem.dtype).vector;
}
RegisterTile choose_tile(const Device& device, const MatmulProblem& problem) {
    std::vector<RegisterTile> tiles;
    for (const std::int64_t vectors = panel_vectors(device, problem); const RegisterTile& tile : kTiles)
        if (tile.vectors == vectors) tiles.push_back(tile);
    return cheapest_tile(tiles, vector_form(device, problem.dtype), problem.m, problem.n);
}

std::string kind_of(std::int64_t columns) { return fmt::format("panels {}", columns); }

class MatmulPacked final : public MatmulStrategy {
  public:
    [[nodiscard]] std::string_view name() const override { return "packed"; }

    [[nodiscard]] bool is_applicable(const MatmulProblem& problem, const Device&) const override {
        constexpr std::int64_t limit = std::numeric_limits<std::int32_t>::max();
        return problem.style == KernelStyle::simd && problem.m <= limit && problem.n <= limit;
    }
    /// Replaces `blocked` with bit-identical results.
    [[nodiscard]] bool is_profitable(const MatmulProblem& problem, const Device& device) const override {
        if (!problem.constant_b || problem.batch != 1 || problem.m > kMaxRows || problem.n * problem.k < kMinElements)
            return false;
        const std::array others{&matmul_stream(), &matmul_dot(), &matmul_split()};
        return std::ranges::none_of(others, [&](const MatmulStrategy* other) {
            return other->is_applicable(problem, device) && other->is_profitable(problem, device);
        });
    }
    [[nodiscard]] bool keeps_constants(const MatmulProblem& problem) const override { return problem.constant_b; }
    [[nodiscard]] std::optional<PackedCopy> packed_copy(const MatmulProblem& problem, const Device& device,
                                                        std::string_view) const override {
        if (!problem.constant_b) return std::nullopt;
        const std::int64_t columns = columns_of(device, problem);
        return PackedCopy{.kind = kind_of(columns),
                          .bytes = ceil_div(problem.n, columns) * columns * problem.k *
                                   static_cast<std::int64_t>(size_of(compute_type(problem.dtype))),
                          .same_bits = true};
    }
    [[nodiscard]] bool fuses_epilogue(const MatmulProblem&, const Device&, std::string_view) const override {
        return true;
    }

    void run(const MatmulProblem& problem, const MatmulOperands& operands, std::string_view) const override {
        const auto& [a, b, out, epilogue] = operands;
        const Device device = out.device();
        const RegisterTile tile = choose_tile(device, problem);
        const View rows = pack_panels(a, 1, 2, tile.rows);
        const std::int64_t columns = tile.vectors * vector_form(device, problem.dtype).vector;
        const View panels =
            packed_once(b, problem.constant_b, kind_of(columns), [&] { return pack_panels(b, 2, 1, columns); });
        const RoundedOutput rounded(out);
        // Split-K as in `blocked`, so that results do not depend on the existence of a packed copy.
        multiply_panels(rows, panels, rounded.exact(), problem.k, tile, epilogue, problem.dtype,
                        matmul_block_of_k(problem, device));
        rounded.round();
    }
};

}  // namespace

const MatmulStrategy& matmul_packed() {
    static const MatmulPacked strategy;
    return strategy;
}

}  // namespace declivity::ops
