// Layer 2, private. The strategies of matmul.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <declivity/ops/view.hpp>

#include "ops/engine/epilogue.hpp"
#include "ops/engine/reduced_precision.hpp"
#include "ops/support/problem_fields.hpp"
#include "ops/support/strategy.hpp"

namespace declivity::ops {

/// A checked, non-empty matrix product: see matmul.hpp.
struct MatmulProblem {
    DType dtype = DType::f32;
    KernelStyle style = KernelStyle::simd;
    std::int64_t batch = 1, m = 1, n = 1, k = 1;
    std::array<std::int64_t, 3> a_strides{}, b_strides{};  ///< strides of the batch, the rows, the columns
    bool constant_b = false;                               ///< packed copies of b may be cached

    /// Two letters, the layouts of a and b. N: row-major, T: column-major, S: neither; lower case: one matrix for the
    /// whole batch.
    [[nodiscard]] std::string layouts() const;
    [[nodiscard]] MatmulProblem with_constants(bool constant) const {
        MatmulProblem problem = *this;
        problem.constant_b = constant;
        return problem;
    }
    friend bool operator==(const MatmulProblem&, const MatmulProblem&) = default;
    /// See problem_fields.hpp. With another member this does not compile until it is listed.
    template <class Visit>
    friend void visit_fields(const MatmulProblem& problem, Visit&& visit) {
        const auto& [dtype, style, batch, m, n, k, a_strides, b_strides, constant_b] = problem;
        visit("", dtype, KeyPart::value);
        visit("", style, KeyPart::value);
        visit("batch", batch, KeyPart::bucket);
        visit("m", m, KeyPart::bucket);
        visit("n", n, KeyPart::bucket);
        visit("k", k, KeyPart::bucket);
        visit("a", a_strides, KeyPart::none);
        visit("b", b_strides, KeyPart::none);
        visit("", std::string_view(problem.layouts()), KeyPart::value);
        visit("constant", constant_b, KeyPart::value);
    }
};

/// The problem of a (batch, m, k) and b (batch, k, n), with the kernel style of this thread.
DECLIVITY_API MatmulProblem matmul_problem(const View& a, const View& b, OperandUse right = OperandUse::variable);

struct MatmulOperands {
    const View& a;
    const View& b;
    const View& out;
    KernelEpilogue epilogue = {};  ///< for strategies that fuse it
};

using MatmulStrategy = Strategy<MatmulProblem, MatmulOperands>;
using MatmulChoice = StrategyChoice<MatmulStrategy>;

/// All strategies in order of preference, matmul_strategies.def; the last one is applicable to everything.
DECLIVITY_API std::span<const MatmulStrategy* const> matmul_strategies();
#define MATMUL_STRATEGY(name) const MatmulStrategy& matmul_##name();
#include "matmul_strategies.def"
#undef MATMUL_STRATEGY

/// Returns the strategy that DECLIVITY_MATMUL names if it is applicable, otherwise the one measured as the fastest,
/// otherwise the first that is applicable and profitable.
/// @throws ValueError if DECLIVITY_MATMUL names no strategy
DECLIVITY_API MatmulChoice choose_matmul(const MatmulProblem& problem, const Device& device);

/// The key of a problem's measurements.
std::string tuning_key(const MatmulProblem& problem);

/// The number of products that `blocked` adds before the sum is added to that of the previous blocks.
std::int64_t matmul_block_of_k(const MatmulProblem& problem, const Device& device);

/// out = the sum of partials (parts, ...) over their first axis, with an epilogue: for simt strategies.
void matmul_reduce(const View& partials, const View& out, const KernelEpilogue& epilogue);

}  // namespace declivity::ops
