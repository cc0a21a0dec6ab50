// Products with few rows that read a large matrix once (cl_kernels/matmul/matmul_stream.cl), simd kernels.
#include <algorithm>

#include <declivity/runtime/launch.hpp>

#include "ops/support/vector_form.hpp"
#include "matmul_strategies.hpp"
#include "ops/support/work_split.hpp"

namespace declivity::ops {
namespace stream {
namespace {

constexpr std::int64_t kMaxRows = 4;
constexpr std::int64_t kMinK = 64, kMinColumns = 32;
constexpr std::int64_t kGroupsPerUnit = 4;  // to balance the load

/// Layout of the kernel's struct; must match cl_kernels/matmul/matmul_stream.cl.
struct GemmShape {
    std::int64_t n, k, a_batch, a_row, b_batch, b_column, columns_each;
};

void multiply(const MatmulProblem& problem, const MatmulOperands& operands) {
    const auto& [a, b, out, epilogue] = operands;
    const Device device = out.device();
    const DType compute = compute_type(a.dtype);
    const VectorForm form = vector_form(device, compute);
    const std::int64_t blocks = ceil_div(problem.n, form.vector),
                       target_groups = std::int64_t{device.info().compute_units} * kGroupsPerUnit,
                       each = std::max<std::int64_t>(1, blocks * problem.batch / target_groups) * form.vector;
    const GemmShape product{.n = problem.n,
                            .k = problem.k,
                            .a_batch = a.strides[0],
                            .a_row = a.strides[1],
                            .b_batch = b.strides[0],
                            .b_column = b.strides[2],
                            .columns_each = each};
    Defines defines = storage_defines(a.dtype, out.dtype);
    defines.set("VW", form.vector).set("ROWS", problem.m).set("CHAINS", problem.m == 1 ? 4 : 2);
    set_activation(defines, epilogue);
    const Kernel kernel(device, {"matmul_stream.cl", "matmul_stream", defines});
    const EpilogueArguments arguments(epilogue, a);
    launch(kernel, {{to_size(ceil_div(problem.n, each)), to_size(problem.batch), 1}, {1, 1, 1}},
           arguments.append_to({product, a.argument(), b.argument(), out.argument()}));
}

class MatmulStream final : public MatmulStrategy {
  public:
    [[nodiscard]] std::string_view name() const override { return "stream"; }

    [[nodiscard]] bool is_applicable(const MatmulProblem& problem, const Device&) const override {
        return problem.style == KernelStyle::simd && problem.m <= kMaxRows &&
               (problem.k == 1 || (problem.a_strides[2] == 1 && problem.b_strides[1] == 1));
    }
    [[nodiscard]] bool is_profitable(const MatmulProblem& problem, const Device&) const override {
        return problem.k >= kMinK && problem.n >= kMinColumns;
    }
    [[nodiscard]] bool fuses_epilogue(const MatmulProblem&, const Device&, std::string_view) const override {
        return true;
    }
    void run(const MatmulProblem& problem, const MatmulOperands& operands, std::string_view) const override {
        multiply(problem, operands);
    }
};

}  // namespace
}  // namespace stream

const MatmulStrategy& matmul_stream() {
    static const stream::MatmulStream strategy;
    return strategy;
}

}  // namespace declivity::ops
