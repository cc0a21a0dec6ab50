#include <declivity/ops/matmul.hpp>

#include <array>

#include <declivity/ops/copy.hpp>
#include <declivity/ops/operation.hpp>
#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

#include "ops/engine/expression_node.hpp"
#include "matmul_strategies.hpp"
#include "ops/engine/packed_weights.hpp"
#include "ops/support/work.hpp"
#include "ops/support/work_split.hpp"

namespace declivity::ops {
namespace {

std::array<std::int64_t, 3> strides_of(const View& view) { return {view.strides[0], view.strides[1], view.strides[2]}; }

void check(const View& a, const View& b) {
    if (!is_floating(a.dtype))
        throw TypeError(fmt::format(
            "matmul: expected f32, f64, f16 or bf16 as a, got {} (convert with .to(DType::f32))", name_of(a.dtype)));
    require_alike("matmul", "a", a, "b", b);
    require_rank("matmul", "a", a, 3, "batch, M, K");
    require_rank("matmul", "b", b, 3, "batch, K, N");
    if (b.shape[0] != a.shape[0] || b.shape[1] != a.shape[2])
        throw ShapeError(
            fmt::format("matmul: expected (batch, M, K) x (batch, K, N), got {} x {}", a.shape.str(), b.shape.str()));
}

/// @param result (batch, M, N), viewed with the axes of the epilogue
EpilogueFused multiply(const View& a, const View& b, const View& result, const Epilogue& epilogue, OperandUse right) {
    if (result.numel() == 0) return EpilogueFused::yes;
    const MatmulProblem problem = matmul_problem(a, b, right);
    if (problem.k == 0) {
        fill(result, 0);
        return EpilogueFused{!epilogue};
    }
    const View out = reshaped(result, {problem.batch, problem.m, problem.n});
    const Device device = out.device();
    const auto run = [&](const MatmulProblem& served, const MatmulChoice& chosen) {
        MatmulOperands operands{a, b, out};
        bool done = !epilogue;
        const bool takes_it = !done && chosen.strategy->fuses_epilogue(served, device, chosen.variant);
        if (auto of_kernel = takes_it ? kernel_epilogue(epilogue, result) : std::nullopt) {
            operands.epilogue = *std::move(of_kernel);
            done = true;
        }
        const WorkScope work("matmul", work_each(2.0 * static_cast<double>(problem.k), out, a, b));
        chosen.strategy->run(served, operands, chosen.variant);
        return EpilogueFused{done};
    };
    return with_packed_weights(problem, problem.constant_b, b, device, choose_matmul, run);
}

/// A matrix product whose bias is applied with the epilogue, or before it.
EpilogueFused multiply_and_add(const View& a, const View& b, const View& bias, const View& out,
                               const Epilogue& epilogue, OperandUse right) {
    const Expression result = Expression::apply(
        Function::add, std::array{Expression::operator_result(out.dtype, out.shape), Expression(bias)});
    const Expression combined = epilogue ? with_result(expression_of(epilogue), result) : result;
    const bool fused = fits_one_kernel(combined);
    const Epilogue first = epilogue_of(fused ? combined : result);
    if (multiply(a, b, out, first, right) == EpilogueFused::no) apply_epilogue(first, out);
    return EpilogueFused{fused};
}

}  // namespace

MatmulProblem matmul_problem(const View& a, const View& b, OperandUse right) {
    return {.dtype = a.dtype,
            .style = kernel_style_of(a.device()),
            .batch = a.shape[0],
            .m = a.shape[1],
            .n = b.shape[2],
            .k = a.shape[2],
            .a_strides = strides_of(a),
            .b_strides = strides_of(b),
            .constant_b = right == OperandUse::constant};
}

void matmul(const View& a, const View& b, const View& out, const Epilogue& epilogue, OperandUse right) {
    check(a, b);
    require_alike("matmul", "a", a, "out", out);
    require_dense("matmul", "out", out);
    require_shape("matmul", "out", out, {a.shape[0], a.shape[1], b.shape[2]});
    if (may_overlap(a, out) || may_overlap(b, out))
        throw ValueError("matmul: expected an out that does not overlap the operands, got one that does");
    if (multiply(a, b, out, epilogue, right) == EpilogueFused::no) apply_epilogue(epilogue, out);
}

LazyArray matmul(const View& a, const View& b, const Shape& shape, const std::optional<View>& bias, OperandUse right) {
    check(a, b);
    if (shape.numel() != a.shape[0] * a.shape[1] * b.shape[2] || shape.rank() < 1 || shape.back() != b.shape[2])
        throw ShapeError(
            fmt::format("matmul: expected a shape of {} x {} x {} elements, the last being the columns, got {}",
                        a.shape[0], a.shape[1], b.shape[2], shape.str()));
    if (bias) require_alike("matmul", "a", a, "bias", *bias);
    return operation("matmul",
                     [](const OperationViews& views, const OperandUse& use) {
                         const View &left = views.in(0), &factor = views.in(1), &offset = views.in(2),
                                    &out = views.out(0);
                         return offset.buffer ? multiply_and_add(left, factor, offset, out, views.epilogue(), use)
                                              : multiply(left, factor, out, views.epilogue(), use);
                     },
                     right, {.reads = {a, b, bias.value_or(View())}, .outputs = {{a.dtype, shape}}})[0];
}

}  // namespace declivity::ops
