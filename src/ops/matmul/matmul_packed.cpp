// Products from packed panels (cl_kernels/matmul/matmul_packed.cl), for CPU-like devices.
#include <algorithm>
#include <array>
#include <limits>

#include <declivity/runtime/launch.hpp>

#include "ops/engine/constant.hpp"
#include "ops/support/local_block.hpp"
#include "matmul_strategies.hpp"
#include "panels.hpp"
#include "ops/support/vector_form.hpp"
#include "ops/support/work_split.hpp"

namespace declivity::ops {
namespace {

constexpr std::int64_t kBlockK = 128;  // a panel of each operand then stays in the first two caches
// Panels of a work-group: few enough to stay in the second cache, many enough to be used again.
constexpr std::int64_t kMostRowPanels = 24, kMostColumnPanels = 4;
constexpr std::int64_t kGroupsPerUnit = 4;  // so that all compute units end at about the same time

// For so many rows, and elements of b, a constant b is packed.
constexpr std::int64_t kLeastRows = 4, kMostRows = 192, kLeastElements = 1 << 14;

// Few, because each is kernels to compile: for 32 registers, for 16, and for what has few columns.
constexpr std::array kTiles{RegisterTile{12, 2}, RegisterTile{8, 3}, RegisterTile{24, 1}, RegisterTile{6, 2},
                            RegisterTile{12, 1}};

/// As the struct of the kernel.
struct Product {
    std::int64_t m, n, k, a_batch, b_batch, out_batch;
    std::int32_t a_panels, b_panels, a_panels_each, b_panels_each, k_block, unused = 0;
};

}  // namespace

RegisterTile choose_panel_tile(const Device& device, DType dtype, std::int64_t m, std::int64_t n) {
    return cheapest_tile(kTiles, vector_form(device, dtype), m, n);
}

void multiply_panels(const View& a, const View& b, const View& out, std::int64_t k, const RegisterTile& tile,
                     const KernelEpilogue& epilogue, std::optional<DType> stored) {
    const Device device = out.device();
    const std::int64_t vector = vector_form(device, out.dtype).vector, columns = tile.vectors * vector;
    const std::int64_t batch = out.shape[0], m = out.shape[1], n = out.shape[2];
    const std::int64_t a_panels = ceil_div(m, tile.rows), b_panels = ceil_div(n, columns);
    std::int64_t rows_each = std::min(kMostRowPanels, a_panels), columns_each = std::min(kMostColumnPanels, b_panels);
    const std::int64_t wanted = std::int64_t{device.info().compute_units} * kGroupsPerUnit;
    const auto groups = [&] { return ceil_div(a_panels, rows_each) * ceil_div(b_panels, columns_each) * batch; };
    while (groups() < wanted && rows_each + columns_each > 2)
        if (rows_each >= columns_each) rows_each = ceil_div(rows_each, 2);
        else columns_each = ceil_div(columns_each, 2);
    const Product product{.m = m,
                          .n = n,
                          .k = k,
                          .a_batch = a.shape[0] == 1 ? 0 : a.shape[1],
                          .b_batch = b.shape[0] == 1 ? 0 : b.shape[1],
                          .out_batch = out.strides[0],
                          .a_panels = narrow(a_panels),
                          .b_panels = narrow(b_panels),
                          .a_panels_each = narrow(rows_each),
                          .b_panels_each = narrow(columns_each),
                          // Blocks of equal length: a short last one would only cost.
                          .k_block = narrow(ceil_div(k, ceil_div(k, kBlockK)))};
    Defines defines =
        epilogue.empty() ? real_defines(out.dtype) : storage_defines(stored.value_or(out.dtype), out.dtype);
    defines.set("VW", vector).set("ROWS", tile.rows).set("COLUMNS", columns);
    set_epilogue_stored(defines, epilogue);
    const EpilogueArguments epilogue_arguments(epilogue, b);
    const Kernel kernel(device, {"matmul_packed.cl", "matmul_packed", defines});
    const auto size = [](std::int64_t value) { return static_cast<std::size_t>(value); };
    launch(kernel,
           {{size(ceil_div(b_panels, columns_each)), size(ceil_div(a_panels, rows_each)), size(batch)}, {1, 1, 1}},
           epilogue_arguments.if_any_behind({product, a.argument(), b.argument(), out.argument()}));
}

namespace {

class MatmulPacked final : public MatmulStrategy {
  public:
    [[nodiscard]] std::string_view name() const override { return "packed"; }

    [[nodiscard]] bool can_serve(const MatmulProblem& problem, const Device&) const override {
        constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
        return problem.family == Family::cpu_like && problem.m <= most && problem.n <= most;
    }
    [[nodiscard]] bool pays(const MatmulProblem& problem, const Device&) const override {
        return problem.constant_b && problem.batch == 1 && problem.m >= kLeastRows && problem.m <= kMostRows &&
               problem.n * problem.k >= kLeastElements;
    }
    [[nodiscard]] bool keeps_constants(const MatmulProblem& problem) const override { return problem.constant_b; }
    [[nodiscard]] bool takes_epilogue(const MatmulProblem&, const Device&, std::string_view) const override {
        return true;
    }

    void run(const MatmulProblem& problem, const MatmulOperands& operands, std::string_view) const override {
        const auto& [a, b, out, epilogue] = operands;
        const Device device = out.device();
        const RegisterTile tile = choose_panel_tile(device, problem.dtype, problem.m, problem.n);
        const View rows = pack_panels(a, 1, 2, tile.rows);
        const std::int64_t columns = tile.vectors * vector_form(device, problem.dtype).vector;
        const View panels = made_once(b, problem.constant_b, fmt::format("panels {}", columns),
                                      [&] { return pack_panels(b, 2, 1, columns); });
        const RoundedOutput rounded(out);
        multiply_panels(rows, panels, rounded.exact(), problem.k, tile, epilogue, problem.dtype);
        rounded.round();
    }
};

}  // namespace

const MatmulStrategy& matmul_packed() {
    static const MatmulPacked strategy;
    return strategy;
}

}  // namespace declivity::ops
