#include <declivity/ops/matmul.hpp>

#include <algorithm>
#include <array>
#include <iterator>
#include <string>
#include <vector>

#include <declivity/ops/operation.hpp>
#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

#include "ops/engine/expression_node.hpp"
#include "matmul_strategies.hpp"
#include "runtime/environment.hpp"
#include "ops/support/tuning_table.hpp"
#include "ops/support/work.hpp"
#include "ops/support/work_split.hpp"

namespace declivity::ops {
namespace {

/// With no more rows or columns than these, copying an operand costs more than using it in place.
constexpr std::int64_t kFewRows = 32;

/// For so many rows, and elements of b, a constant b is packed.
constexpr std::int64_t kLeastPackedRows = 4, kMostPackedRows = 192, kLeastPackedElements = 1 << 14;

/// Sums are cut into parts when they are that long, and longer than so many results.
constexpr std::int64_t kLongSum = 2048, kSplitEach = 16;

constexpr MatmulStrategy kStrategies[] = {
    {"blocked", matmul_blocked_serves, matmul_blocked, true},
    {"clblast", matmul_clblast_serves, matmul_clblast},
    {"dot", matmul_dot_serves, matmul_dot, true},
    {"gemv", matmul_gemv_serves, matmul_gemv, true},
    {"local", matmul_local_serves, matmul_local, true, matmul_local_variants},
    {"packed", matmul_packed_serves, matmul_packed, true},
    {"split", matmul_split_serves, matmul_split},
    {"tiled", matmul_tiled_serves, matmul_tiled},
};

const MatmulStrategy& strategy(std::string_view name) {
    const auto* found = std::ranges::find(kStrategies, name, &MatmulStrategy::name);
    if (found == std::end(kStrategies)) {
        std::string names;
        for (const MatmulStrategy& one : kStrategies) names += fmt::format("{}{}", names.empty() ? "" : ", ", one.name);
        throw ValueError(fmt::format("DECLIVITY_MATMUL: wants one of {}, got \"{}\"", names, name));
    }
    return *found;
}

/// Heuristics, until a tuner measures. CLBlast is left to it: it knows no epilogues, copies operands for many shapes,
/// and on CPU-like devices its built-in parameters run at a small part of what a register tile reaches.
std::string_view by_heuristics(const MatmulProblem& problem) {
    const auto& [a, b, out, batch, m, n, k, last_k, epilogue, variant, constant_b] = problem;
    if (family_of(out.device()) == Family::gpu_like)
        return matmul_gemv_serves(problem) ? "gemv" : matmul_local_serves(problem) ? "local" : "tiled";
    if (matmul_dot_serves(problem) && k >= 32 && (m <= kFewRows || n <= kFewRows)) return "dot";
    if (!matmul_blocked_serves(problem)) return "tiled";
    // Parts of sums, where there are not enough sums for all compute units.
    const bool split = k >= kLongSum && batch * m * n <= k * kSplitEach &&
                       matmul_blocked_groups(problem) < std::int64_t{out.device().info().compute_units};
    return split && matmul_split_serves(problem) ? "split" : "blocked";
}

}  // namespace

std::span<const MatmulStrategy> matmul_strategies() { return kStrategies; }

MatmulChoice choose_matmul(const MatmulProblem& problem) {
    if (const std::string_view wanted = declivity::detail::environment_text("DECLIVITY_MATMUL"); !wanted.empty()) {
        const MatmulStrategy& named = strategy(wanted);
        if (named.serves(problem)) return {&named, "", "DECLIVITY_MATMUL names it"};
    }
    if (problem.constant_b && problem.batch == 1 && problem.m >= kLeastPackedRows && problem.m <= kMostPackedRows &&
        problem.n * problem.k >= kLeastPackedElements && matmul_packed_serves(problem))
        return {&strategy("packed"), "", "the right operand is constant, and copied once"};
    const TuningTable& table = TuningTable::of(problem.out.device());
    const bool tunes = tunes_on_use();
    if (tunes || table.generation() != 0) {
        auto entry = table.find(tuning_key(problem));
        if (!entry && tunes) entry = measure_matmul(problem);
        if (entry) {
            const std::string name = entry->winner.substr(0, entry->winner.find(' '));
            for (const MatmulStrategy& one : kStrategies)
                if (one.name == name && one.serves(problem))
                    return {&one, name.size() < entry->winner.size() ? entry->winner.substr(name.size() + 1) : "",
                            "measured as the fastest on this device"};
        }
    }
    return {&strategy(by_heuristics(problem)), "", "rule of thumb: nothing was measured for this shape on this device"};
}

std::string_view matmul_strategy(const MatmulProblem& problem) { return choose_matmul(problem).strategy->name; }

namespace {

void check(const View& a, const View& b) {
    if (!is_floating(a.dtype))
        throw TypeError(fmt::format("matmul: wants f32, f64, f16 or bf16 as a, got {} (convert with .to(DType::f32))",
                                    name_of(a.dtype)));
    require_alike("matmul", "a", a, "b", b);
    require_rank("matmul", "a", a, 3, "batch, M, K");
    require_rank("matmul", "b", b, 3, "batch, K, N");
    if (b.shape[0] != a.shape[0] || b.shape[1] != a.shape[2])
        throw ShapeError(
            fmt::format("matmul: wants (batch, M, K) x (batch, K, N), got {} x {}", a.shape.str(), b.shape.str()));
}

/// @param result (batch, M, N) under the axes that the epilogue speaks of
EpilogueTaken multiply(const View& a, const View& b, const View& result, const Epilogue& epilogue, OperandUse right) {
    MatmulProblem problem{.a = a,
                          .b = b,
                          .out = reshaped(result, {a.shape[0], a.shape[1], b.shape[2]}),
                          .batch = a.shape[0],
                          .m = a.shape[1],
                          .n = b.shape[2],
                          .k = a.shape[2]};
    if (result.numel() == 0) return EpilogueTaken::yes;
    problem.constant_b = right == OperandUse::constant;
    bool done = !epilogue.expression;
    if (problem.k == 0) {
        fill(result, 0);
    } else {
        const MatmulChoice chosen = choose_matmul(problem);
        problem.variant = chosen.variant;
        const bool takes_it = !done && chosen.strategy->epilogue;
        if (auto of_kernel = takes_it ? kernel_epilogue(epilogue, result) : std::nullopt) {
            problem.epilogue = *std::move(of_kernel);
            done = true;
        }
        const WorkScope work("matmul", work_each(2.0 * static_cast<double>(problem.k), problem.out, a, b));
        chosen.strategy->run(problem);
    }
    return EpilogueTaken{done};
}

/// A product whose bias is applied with the epilogue, or before it.
EpilogueTaken multiply_and_add(const View& a, const View& b, const View& bias, const View& out,
                               const Epilogue& epilogue, OperandUse right) {
    const Expression result = Expression::apply(
        Function::add, std::array{Expression::operator_result(out.dtype, out.shape), Expression(bias)});
    const Expression all = epilogue.expression ? with_result(epilogue.expression, result) : result;
    const bool together = fits_one_kernel(all);
    const Epilogue first{together ? all : result};
    if (multiply(a, b, out, first, right) == EpilogueTaken::no) apply_epilogue(first, out);
    return EpilogueTaken{together};
}

}  // namespace

void matmul(const View& a, const View& b, const View& out, const Epilogue& epilogue, OperandUse right) {
    check(a, b);
    require_alike("matmul", "a", a, "out", out);
    require_dense("matmul", "out", out);
    require_shape("matmul", "out", out, {a.shape[0], a.shape[1], b.shape[2]});
    if (may_overlap(a, out) || may_overlap(b, out))
        throw ValueError("matmul: wants memory of its own as out, got that of an operand");
    if (multiply(a, b, out, epilogue, right) == EpilogueTaken::no) apply_epilogue(epilogue, out);
}

Value matmul(const View& a, const View& b, const Shape& shape, const std::optional<View>& bias, OperandUse right) {
    check(a, b);
    if (shape.numel() != a.shape[0] * a.shape[1] * b.shape[2] || shape.rank() < 1 || shape.back() != b.shape[2])
        throw ShapeError(
            fmt::format("matmul: wants a shape of {} x {} x {} elements, the last being the columns, got {}",
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
