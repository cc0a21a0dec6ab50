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
#include "ops/support/strategy.hpp"

namespace declivity::ops {

/// A checked, non-empty matrix product: see matmul.hpp.
struct MatmulProblem {
    DType dtype = DType::f32;
    KernelStyle style = KernelStyle::simd;
    std::int64_t batch = 1, m = 1, n = 1, k = 1;
    std::array<std::int64_t, 3> a_strides{}, b_strides{};  ///< strides of the batch, the rows, the columns
    bool constant_b = false;                               ///< packed copies of b may be cached

    [[nodiscard]] std::array<std::int64_t, 13> numbers() const {
        return {static_cast<std::int64_t>(dtype),
                static_cast<std::int64_t>(style),
                batch,
                m,
                n,
                k,
                a_strides[0],
                a_strides[1],
                a_strides[2],
                b_strides[0],
                b_strides[1],
                b_strides[2],
                constant_b ? 1 : 0};
    }
    [[nodiscard]] MatmulProblem with_constants(bool constant) const {
        MatmulProblem problem = *this;
        problem.constant_b = constant;
        return problem;
    }
    friend bool operator==(const MatmulProblem&, const MatmulProblem&) = default;
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

/// All strategies in order of preference; the last one, `register_tiled`, is applicable to everything.
DECLIVITY_API std::span<const MatmulStrategy* const> matmul_strategies();
const MatmulStrategy& matmul_blocked();
const MatmulStrategy& matmul_clblast();
const MatmulStrategy& matmul_dot();
const MatmulStrategy& matmul_gemv();
const MatmulStrategy& matmul_tiled();
const MatmulStrategy& matmul_packed();
const MatmulStrategy& matmul_split();
const MatmulStrategy& matmul_stream();
const MatmulStrategy& matmul_register_tiled();

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
