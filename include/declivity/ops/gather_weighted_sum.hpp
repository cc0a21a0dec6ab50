// Layer 2. Weighted sums of gathered rows. Deferred operations. All views are dense, f32 or f64, on one device.
#pragma once

#include <declivity/ops/lazy_array.hpp>
#include <declivity/ops/view.hpp>

namespace declivity::ops {

/// @addtogroup ops
/// @{

/// out[i] = sum over k of weights[i][k] rows[indices[i][k]]; indices outside of [0, V) are ignored.
/// @param rows (V, D)
/// @param indices (N, K), i64
/// @param weights (N, K)
/// @return (N, D)
DECLIVITY_API LazyArray gather_weighted_sum(const View& rows, const View& indices, const View& weights);
/// Gradient of the weights, (N, K): dot products of out_gradient[i] (N, D) and rows[indices[i][k]].
DECLIVITY_API LazyArray gather_weighted_sum_backward_weights(const View& rows, const View& indices,
                                                             const View& out_gradient);

// ---- deprecated names of version 0.1

[[deprecated("ops::gather_weighted_sum")]] inline LazyArray weighted_rows(const View& rows, const View& indices,
                                                                          const View& weights) {
    return gather_weighted_sum(rows, indices, weights);
}

[[deprecated("ops::gather_weighted_sum_backward_weights")]] inline LazyArray weighted_rows_weights(
    const View& rows, const View& indices, const View& out_gradient) {
    return gather_weighted_sum_backward_weights(rows, indices, out_gradient);
}

/// @}

}  // namespace declivity::ops
