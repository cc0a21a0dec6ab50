// Floor 2, private. The strategies behind matmul. Each says whether it can serve a problem, and runs it.
#pragma once

#include <declivity/ops/view.hpp>

namespace declivity::ops {

/// A checked, non-empty product: see matmul.hpp.
struct MatmulProblem {
    const View& a;
    const View& b;
    const View& out;
    std::int64_t batch, m, n, k;
};

bool matmul_clblast_serves(const MatmulProblem& problem);
void matmul_clblast(const MatmulProblem& problem);

bool matmul_tiled_serves(const MatmulProblem& problem);
void matmul_tiled(const MatmulProblem& problem);

}  // namespace declivity::ops
