// Products of a matrix and few vectors (cl_kernels/matmul/matmul_gemv.cl), simt kernels.
#include <algorithm>

#include <declivity/runtime/launch.hpp>

#include "ops/support/local_tile.hpp"
#include "matmul_strategies.hpp"
#include "ops/support/work_split.hpp"

namespace declivity::ops {
namespace gemv {
namespace {

constexpr std::int64_t kMaxVectors = 4;

/// Layout of the kernel's structs; must match cl_kernels/matmul/matmul_gemv.cl.
struct OperandStrides {
    std::int64_t batch, across, along;
};
struct Gemv {
    std::int64_t lines, k, batch, each;
    OperandStrides matrix, vectors;
    std::int64_t out_matrix, out_line, out_vector, blocks;
    std::int32_t lines_are_columns, lanes, lane_stride, unused = 0;
};

void multiply(const MatmulProblem& problem, const MatmulOperands& operands) {
    const auto& [a, b, out, epilogue] = operands;
    const std::int64_t batch = problem.batch, m = problem.m, n = problem.n, k = problem.k;
    const Device device = out.device();
    const bool is_row_vector = m <= n;
    const View &matrix = is_row_vector ? b : a, &vectors = is_row_vector ? a : b;
    // The stride of an axis of one element is arbitrary.
    const auto stride = [](std::int64_t size, std::int64_t size_stride) { return size == 1 ? 0 : size_stride; };
    const OperandStrides a_strides{
        .batch = stride(batch, a.strides[0]), .across = stride(m, a.strides[1]), .along = a.strides[2]};
    const OperandStrides b_strides{
        .batch = stride(batch, b.strides[0]), .across = stride(n, b.strides[2]), .along = b.strides[1]};
    Gemv d{.lines = is_row_vector ? n : m,
           .k = k,
           .batch = batch,
           .each = k,
           .matrix = is_row_vector ? b_strides : a_strides,
           .vectors = is_row_vector ? a_strides : b_strides,
           .out_matrix = m * n,
           .out_line = is_row_vector ? 1 : n,
           .out_vector = is_row_vector ? n : 1,
           .blocks = 1,
           .lines_are_columns = is_row_vector ? 1 : 0,
           .lanes = 1,
           .lane_stride = 1};
    const std::int64_t vector_count = is_row_vector ? m : n;
    const bool across =
        d.matrix.across == 1 && d.matrix.along != 1;  // adjacent elements in memory belong to adjacent lines
    const auto by_four = [](const OperandStrides& strides) {
        return strides.along == 1 && strides.across % 4 == 0 && strides.batch % 4 == 0;
    };
    const bool vectorised =
        k % 4 == 0 && by_four(d.matrix) && by_four(d.vectors) && begins_aligned(a) && begins_aligned(b);

    const auto defines_for = [&](const View& to) {
        Defines defines = storage_defines(a.dtype, to.dtype);
        defines.set("VECTORS", vector_count).set("WIDTH", vectorised ? 4 : 1);
        return defines;
    };
    Defines with_activation = defines_for(out);
    set_activation(with_activation, epilogue);
    const auto kernel_of = [&](const Defines& chosen) {
        return Kernel(device, {"matmul_gemv.cl", "matmul_gemv", chosen});
    };
    Kernel kernel = kernel_of(with_activation);
    const RowGroup group = row_group(d.lines, k, across, kernel);
    d.lanes = group.lanes_argument();
    d.lane_stride = group.stride_argument();
    d.blocks = ceil_div(d.lines, group.rows);
    // Split-K if the lines alone would leave compute units idle.
    const std::int64_t target_groups = std::int64_t{device.info().compute_units} * kSimtGroupsPerUnit,
                       step = 4 * group.lanes;
    const std::int64_t max_parts = std::clamp<std::int64_t>(target_groups / (d.blocks * batch), 1,
                                                            std::max<std::int64_t>(1, k / (step * kSimtWork)));
    d.each = ceil_div(ceil_div(k, max_parts), step) * step;
    const std::int64_t parts = ceil_div(k, d.each);
    const View to = parts == 1 ? out : View::make(device, compute_type(out.dtype), {parts, batch, m, n});
    if (parts > 1) kernel = kernel_of(defines_for(to));
    const EpilogueArguments arguments(parts == 1 ? epilogue : KernelEpilogue{}, a);
    launch(kernel, {to_size(d.blocks * batch * parts) * group.items(), group.items()},
           arguments.append_to({d, LocalMemory{group.items() * size_of(compute_type(out.dtype))}, matrix.argument(),
                                vectors.argument(), to.argument()}));
    if (parts > 1) matmul_reduce(to, out, epilogue);
}

class MatmulGemv final : public MatmulStrategy {
  public:
    [[nodiscard]] std::string_view name() const override { return "gemv"; }

    [[nodiscard]] bool is_applicable(const MatmulProblem& problem, const Device&) const override {
        return problem.style == KernelStyle::simt && std::min(problem.m, problem.n) <= kMaxVectors;
    }
    [[nodiscard]] bool fuses_epilogue(const MatmulProblem&, const Device&, std::string_view) const override {
        return true;
    }
    void run(const MatmulProblem& problem, const MatmulOperands& operands, std::string_view) const override {
        multiply(problem, operands);
    }
};

}  // namespace
}  // namespace gemv

const MatmulStrategy& matmul_gemv() {
    static const gemv::MatmulGemv strategy;
    return strategy;
}

}  // namespace declivity::ops
