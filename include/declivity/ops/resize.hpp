// Layer 2. Resampling of an axis as weighted sums of a few elements, and its gradient: deferred operations. All views
// are dense, f32 or f64, on one device.
#pragma once

#include <cstdint>

#include <declivity/ops/lazy_array.hpp>
#include <declivity/ops/view.hpp>

namespace declivity::ops {

/// @addtogroup ops
/// @{

/// out[a][i][b] = sum over k of weights[i][k] x[a][indices[i][k]][b]; terms with weight 0 are skipped.
/// @param x (outer, n, inner)
/// @param indices (m, K) of i32 in [0, n), ascending along both axes
/// @param weights (m, K); without a buffer: all 1
/// @return (outer, m, inner)
DECLIVITY_API LazyArray resample(const View& x, const View& indices, const View& weights);
/// Gradient of x of n elements along that axis, always summed in the same order.
DECLIVITY_API LazyArray resample_backward(const View& out_gradient, const View& indices, const View& weights,
                                          std::int64_t n);

/// @}

}  // namespace declivity::ops
