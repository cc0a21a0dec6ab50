#include <declivity/ops/matmul.hpp>

#include <algorithm>
#include <cstdlib>
#include <iterator>

#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

#include "matmul_strategies.hpp"

namespace declivity::ops {
namespace {

struct Strategy {
    std::string_view name;
    bool (*serves)(const MatmulProblem&);
    void (*run)(const MatmulProblem&);
};

constexpr Strategy kStrategies[] = {
    {"clblast", matmul_clblast_serves, matmul_clblast},
    {"packed", matmul_packed_serves, matmul_packed},
    {"tiled", matmul_tiled_serves, matmul_tiled},
};

/// Heuristics, until a tuner measures: CLBlast's kernels are made for GPUs and for large single products; on CPU-like
/// devices its built-in parameters run at a small part of what the register tile reaches.
const Strategy& choose(const MatmulProblem& problem) {
    if (const char* wanted = std::getenv("DECLIVITY_MATMUL"); wanted != nullptr && *wanted != '\0') {
        const auto* named = std::ranges::find(kStrategies, wanted, &Strategy::name);
        if (named == std::end(kStrategies)) throw ValueError(fmt::format("DECLIVITY_MATMUL: wants clblast, packed or tiled, got \"{}\"", wanted));
        if (named->serves(problem)) return *named;
    }
    const bool large = problem.m * problem.n * problem.k >= 64 * 64 * 64;
    if (problem.out.device().family() == Family::cpu_like)
        return large && problem.m >= 8 && matmul_packed_serves(problem) ? kStrategies[1] : kStrategies[2];
    return large && problem.batch <= 4 && matmul_clblast_serves(problem) ? kStrategies[0] : kStrategies[2];
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
