// Layer 5. Scans along an axis: cumulative sums, products and extremes.
#pragma once

#include <cstdint>
#include <vector>

#include <declivity/tensor/tensor.hpp>

namespace declivity {

/// y[i] = x[0] + ... + x[i] along an axis; i64 for integers and bools.
DECLIVITY_API Tensor cumsum(const Tensor& x, std::int64_t axis);
/// y[i] = x[0] ... x[i] along an axis; i64 for integers and bools.
DECLIVITY_API Tensor cumprod(const Tensor& x, std::int64_t axis);
/// y[i] = log(exp(x[0]) + ... + exp(x[i])) along an axis, without overflow.
DECLIVITY_API Tensor logcumsumexp(const Tensor& x, std::int64_t axis);

/// Cumulative maximum or minimum, and its index along the axis (i64; the last of equal ones). NaN propagates.
struct CumulativeExtreme {
    Tensor values, indices;
};
inline std::vector<Tensor> tensors_of(const CumulativeExtreme& both) { return {both.values, both.indices}; }
DECLIVITY_API CumulativeExtreme cummax(const Tensor& x, std::int64_t axis);
DECLIVITY_API CumulativeExtreme cummin(const Tensor& x, std::int64_t axis);

}  // namespace declivity
