// Layer 2, private. The strategies behind matmul.
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

/// A checked, non-empty product: see matmul.hpp.
struct MatmulProblem {
    DType dtype = DType::f32;
    KernelStyle style = KernelStyle::simd;
    std::int64_t batch = 1, m = 1, n = 1, k = 1;
    std::array<std::int64_t, 3> a_strides{}, b_strides{};  ///< of the batch, the rows, the columns
    bool constant_b = false;                               ///< what is made of b may be kept

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

/// Of a (batch, m, k) and b (batch, k, n), by the kernels of this thread's family.
DECLIVITY_API MatmulProblem matmul_problem(const View& a, const View& b, OperandUse right = OperandUse::variable);

struct MatmulOperands {
    const View& a;
    const View& b;
    const View& out;
    KernelEpilogue epilogue = {};  ///< for strategies that say so
};

using MatmulStrategy = Strategy<MatmulProblem, MatmulOperands>;
using MatmulChoice = StrategyChoice<MatmulStrategy>;

/// All strategies, the preferred first; the last one, `tiled`, serves everything.
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

/// The strategy that DECLIVITY_MATMUL names if it can serve, otherwise the one that was measured as the fastest,
/// otherwise the first that can serve and pays.
/// @throws ValueError when DECLIVITY_MATMUL names none
DECLIVITY_API MatmulChoice choose_matmul(const MatmulProblem& problem, const Device& device);

/// Under which name a problem's measurements are kept.
std::string tuning_key(const MatmulProblem& problem);

/// How many products `blocked` adds up before the sum joins those of the blocks before.
std::int64_t matmul_block_of_k(const MatmulProblem& problem, const Device& device);

/// out = the sum of partials (parts, ...) over their first axis, with a epilogue: for strategies for GPU-like devices.
void matmul_reduce(const View& partials, const View& out, const KernelEpilogue& epilogue);

}  // namespace declivity::ops
