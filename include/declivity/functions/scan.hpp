// Layer 5. Scans along an axis: cumulative sums, products and extremes.
#pragma once

#include <cstdint>
#include <vector>

#include <declivity/tensor/tensor.hpp>

namespace declivity {

/// @defgroup functions_scan Cumulative sums, products and extremes
/// @ingroup functions
/// Scans along one axis of x of any shape; the results have its shape. The axis may be negative to count from the end;
/// a tensor without axes counts as one element, with axis 0 or -1.
///
/// Errors: ShapeError for an axis out of range; TypeError for types that a function does not support.
/// @{

/// Cumulative sum y[i] = x[0] + ... + x[i] along an axis; i64 for integers and bools.
/// Example: for x = `[[1, 2, 3], [4, 5, 6]]`, `cumsum(x, 1)` is `[[1, 3, 6], [4, 9, 15]]`.
DECLIVITY_API Tensor cumsum(const Tensor& x, std::int64_t axis);
/// Cumulative product y[i] = x[0] ... x[i] along an axis; i64 for integers and bools.
/// Example: for x = `[1, 2, 3, 4]`, `cumprod(x, 0)` is `[1, 2, 6, 24]`.
DECLIVITY_API Tensor cumprod(const Tensor& x, std::int64_t axis);
/// y[i] = log(exp(x[0]) + ... + exp(x[i])) along an axis, without overflow. Floating types only.
/// Example: for x = `[1000, 1000]`, `logcumsumexp(x, 0)` is `[1000, 1001]`.
DECLIVITY_API Tensor logcumsumexp(const Tensor& x, std::int64_t axis);

/// Cumulative maximum or minimum, and its index along the axis (i64; the last of equal ones). NaN propagates.
struct CumulativeExtreme {
    Tensor values, indices;
};
inline std::vector<Tensor> tensors_of(const CumulativeExtreme& both) { return {both.values, both.indices}; }
/// Cumulative maximum max(x[0], ..., x[i]) along an axis, of any type.
/// Examples: for x = `[1, 3, 2, 3]`, `cummax(x, 0).values` is `[1, 3, 3, 3]`; `cummax(x, 0).indices` is `[0, 1, 1, 3]`.
DECLIVITY_API CumulativeExtreme cummax(const Tensor& x, std::int64_t axis);
/// Cumulative minimum min(x[0], ..., x[i]) along an axis, of any type.
/// Examples: for x = `[2, 3, 1, 2]`, `cummin(x, 0).values` is `[2, 2, 1, 1]`; `cummin(x, 0).indices` is `[0, 0, 2, 2]`.
DECLIVITY_API CumulativeExtreme cummin(const Tensor& x, std::int64_t axis);

/// @}

}  // namespace declivity
