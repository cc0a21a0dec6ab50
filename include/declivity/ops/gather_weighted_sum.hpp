// Layer 2. Sums of a few rows of a table each, by weights: operations that wait. All views are dense, f32 or f64, on
// one device.
#pragma once

#include <declivity/ops/lazy_array.hpp>
#include <declivity/ops/view.hpp>

namespace declivity::ops {

/// out[i] = sum over k of weights[i][k] rows[numbers[i][k]], where numbers outside of [0, V) count for nothing.
/// @param rows (V, D)
/// @param numbers (N, K), i64
/// @param weights (N, K)
/// @return (N, D)
DECLIVITY_API LazyArray gather_weighted_sum(const View& rows, const View& numbers, const View& weights);
/// The gradient for the weights: (N, K), the dot products of out_gradient[i] (N, D) and rows[numbers[i][k]].
DECLIVITY_API LazyArray weighted_rows_weights(const View& rows, const View& numbers, const View& out_gradient);

}  // namespace declivity::ops
