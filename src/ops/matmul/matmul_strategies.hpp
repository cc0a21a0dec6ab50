// Floor 2, private. The strategies behind matmul. Each says whether it can serve a problem, and runs it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <declivity/ops/view.hpp>

#include "ops/engine/epilogue.hpp"

namespace declivity::ops {

/// A checked, non-empty product: see matmul.hpp.
struct MatmulProblem {
    const View& a;
    const View& b;
    const View& out;
    std::int64_t batch, m, n, k;
    std::int64_t last_k = -1;  ///< of the last matrices of a batch, where they have fewer: for strategies that say so
    KernelEpilogue epilogue = {};   ///< for strategies that say so
    std::string_view variant = {};  ///< of the strategy; the empty one stands for its own choice
    bool constant_b = false;        ///< what is made of b may be kept
};

/// For strategies that add sums in parts: of f16 and bf16 in f32, rounded once at the end.
class RoundedOutput {
  public:
    /// @param in_parts false: the strategy rounds by itself, and `exact` is `out`
    explicit RoundedOutput(const View& out, bool in_parts = true)
        : out_(out),
          exact_(in_parts && is_half(out.dtype) ? View::make(out.device(), compute_type(out.dtype), out.shape) : out) {}
    /// Where the sums go.
    [[nodiscard]] const View& exact() const { return exact_; }
    void round() const {
        if (exact_.dtype != out_.dtype) evaluate(Expression::cast(exact_, out_.dtype), out_);
    }

  private:
    const View& out_;
    View exact_;
};

/// Name of the strategy that would serve a problem.
std::string_view matmul_strategy(const MatmulProblem& problem);

struct MatmulStrategy {
    std::string_view name;
    bool (*serves)(const MatmulProblem&);
    void (*run)(const MatmulProblem&);
    bool epilogue = false;  ///< it knows epilogues
    /// Parameters worth a measurement, by names of the strategy's own.
    std::vector<std::string> (*variants)(const MatmulProblem&) = nullptr;
};
/// All strategies; the last one, `tiled`, serves everything.
DECLIVITY_API std::span<const MatmulStrategy> matmul_strategies();

struct MatmulChoice {
    const MatmulStrategy* strategy;
    std::string variant;
    std::string_view reason;
};
/// The strategy that DECLIVITY_MATMUL names if it can serve, otherwise the one that was measured as the fastest,
/// otherwise one by rule of thumb.
/// @throws ValueError when DECLIVITY_MATMUL names none
DECLIVITY_API MatmulChoice choose_matmul(const MatmulProblem& problem);

/// Under which name a problem's measurements are kept.
std::string tuning_key(const MatmulProblem& problem);
struct TuningEntry;
/// Measures all strategies and keeps the result.
TuningEntry measure_matmul(const MatmulProblem& problem);

bool matmul_blocked_serves(const MatmulProblem& problem);
void matmul_blocked(const MatmulProblem& problem);

/// Work-groups that "blocked" cuts a problem into.
std::int64_t matmul_blocked_groups(const MatmulProblem& problem);

bool matmul_split_serves(const MatmulProblem& problem);
void matmul_split(const MatmulProblem& problem);

bool matmul_clblast_serves(const MatmulProblem& problem);
void matmul_clblast(const MatmulProblem& problem);

bool matmul_gemv_serves(const MatmulProblem& problem);
void matmul_gemv(const MatmulProblem& problem);

bool matmul_local_serves(const MatmulProblem& problem);
std::vector<std::string> matmul_local_variants(const MatmulProblem& problem);
void matmul_local(const MatmulProblem& problem);

/// out = the sum of partials (parts, ...) over their first axis, with a epilogue: for strategies for GPU-like devices.
void matmul_reduce(const View& partials, const View& out, const KernelEpilogue& epilogue);

bool matmul_dot_serves(const MatmulProblem& problem);
void matmul_dot(const MatmulProblem& problem);

bool matmul_packed_serves(const MatmulProblem& problem);
void matmul_packed(const MatmulProblem& problem);

bool matmul_tiled_serves(const MatmulProblem& problem);
void matmul_tiled(const MatmulProblem& problem);

}  // namespace declivity::ops
