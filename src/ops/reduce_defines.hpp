// Layer 2, private. What kernels of reductions are compiled with.
#pragma once

#include <declivity/ops/reduce.hpp>
#include <declivity/runtime/launch.hpp>

namespace declivity::ops {

/// ACC, IDENTITY, COMBINE and FLOATING_SUM of cl_kernels/lib/reduction.clh. @param accumulate type of sums and results
Defines reduce_defines(Reduce kind, DType accumulate);

}  // namespace declivity::ops
