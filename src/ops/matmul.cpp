#include <declivity/ops/matmul.hpp>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <string>

#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

#include "matmul_strategies.hpp"

namespace declivity::ops {
namespace {

/// With fewer rows or columns than these, copying an operand costs more than using it in place.
constexpr std::int64_t kFewRows = 48;
/// The same for long rows, of which a work-item uses each element more often in place.
constexpr std::int64_t kFewLongRows = 160, kLongRow = 512;

struct Strategy {
    std::string_view name;
    bool (*serves)(const MatmulProblem&);
    void (*run)(const MatmulProblem&);
};

constexpr Strategy kStrategies[] = {
    {"blocked", matmul_blocked_serves, matmul_blocked},
    {"clblast", matmul_clblast_serves, matmul_clblast},
    {"dot", matmul_dot_serves, matmul_dot},
    {"packed", matmul_packed_serves, matmul_packed},
    {"tiled", matmul_tiled_serves, matmul_tiled},
};

const Strategy& strategy(std::string_view name) {
    const auto* found = std::ranges::find(kStrategies, name, &Strategy::name);
    if (found == std::end(kStrategies)) {
        std::string names;
        for (const Strategy& one : kStrategies) names += fmt::format("{}{}", names.empty() ? "" : ", ", one.name);
        throw ValueError(fmt::format("DECLIVITY_MATMUL: wants one of {}, got \"{}\"", names, name));
    }
    return *found;
}

/// Heuristics, until a tuner measures. CLBlast's kernels are made for GPUs and for large single products; on CPU-like
/// devices its built-in parameters run at a small part of what a register tile reaches. There copying the operands pays
/// when each element is used often enough.
std::string_view by_heuristics(const MatmulProblem& problem) {
    const auto& [a, b, out, batch, m, n, k] = problem;
    const bool large = m * n * k >= 64 * 64 * 64;
    if (out.device().family() == Family::gpu_like) return large && batch <= 4 && matmul_clblast_serves(problem) ? "clblast" : "tiled";
    const std::int64_t few = k >= kLongRow ? kFewLongRows : kFewRows;
    if (matmul_dot_serves(problem) && k >= 32 && (m < few || n < kFewRows || !large)) return "dot";
    return large && m >= 8 && matmul_packed_serves(problem) ? "packed" : "tiled";
}

const Strategy& choose(const MatmulProblem& problem) {
    if (const char* wanted = std::getenv("DECLIVITY_MATMUL"); wanted != nullptr && *wanted != '\0') {
        const Strategy& named = strategy(wanted);
        if (named.serves(problem)) return named;
    }
    return strategy(by_heuristics(problem));
}

}  // namespace

std::string_view matmul_strategy(const MatmulProblem& problem) { return choose(problem).name; }

void matmul(const View& a, const View& b, const View& out, const Epilogue& epilogue) {
    require_floating("matmul", "a", a);
    require_alike("matmul", "a", a, "b", b);
    require_alike("matmul", "a", a, "out", out);
    require_rank("matmul", "a", a, 3, "batch, M, K");
    require_rank("matmul", "b", b, 3, "batch, K, N");
    require_dense("matmul", "out", out);
    const MatmulProblem problem{.a = a, .b = b, .out = out, .batch = a.shape[0], .m = a.shape[1], .n = b.shape[2], .k = a.shape[2]};
    if (b.shape[0] != problem.batch || b.shape[1] != problem.k)
        throw ShapeError(fmt::format("matmul: wants (batch, M, K) x (batch, K, N), got {} x {}", a.shape.str(), b.shape.str()));
    require_shape("matmul", "out", out, {problem.batch, problem.m, problem.n});
    if (may_overlap(a, out) || may_overlap(b, out))
        throw ValueError("matmul: wants memory of its own as out, got that of an operand");
    if (out.numel() == 0) return;
    if (problem.k == 0) fill(out, 0);
    else choose(problem).run(problem);
    apply_epilogue(epilogue, out);
}

}  // namespace declivity::ops
