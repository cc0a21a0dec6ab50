// Layer 2, private. Defines of reduction kernels.
#pragma once

#include <declivity/ops/reduce.hpp>
#include <declivity/runtime/launch.hpp>

namespace declivity::ops {

/// Defines ACC, IDENTITY, COMBINE and FLOATING_SUM of cl_kernels/lib/reduction.clh. @param accumulate type of sums and
/// results
Defines reduce_defines(Reduce kind, DType accumulate);

}  // namespace declivity::ops
