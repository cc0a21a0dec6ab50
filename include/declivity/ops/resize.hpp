// Layer 2. An axis in another size, as sums of a few elements, and its gradient: operations that wait. All views are
// dense, f32 or f64, on one device.
#pragma once

#include <cstdint>

#include <declivity/ops/lazy_array.hpp>
#include <declivity/ops/view.hpp>

namespace declivity::ops {

/// out[a][i][b] = sum over k of weights[i][k] x[a][places[i][k]][b], where weights of 0 count for nothing.
/// @param x (outer, n, inner)
/// @param places (m, K) of i32 in [0, n), rising along both axes
/// @param weights (m, K); without a buffer: all 1
/// @return (outer, m, inner)
DECLIVITY_API LazyArray resample(const View& x, const View& places, const View& weights);
/// The gradient for x of n elements along that axis, always summed up in the same order.
DECLIVITY_API LazyArray resample_backward(const View& out_gradient, const View& places, const View& weights,
                                          std::int64_t n);

}  // namespace declivity::ops
