// Layer 3. What the elements up to each of them come to, along an axis: sums, products, extremes.
#pragma once

#include <cstdint>
#include <vector>

#include <declivity/tensor/tensor.hpp>

namespace declivity {

/// y[i] = x[0] + ... + x[i] along an axis. Of integers and bools i64.
DECLIVITY_API Tensor cumsum(const Tensor& x, std::int64_t axis);
/// y[i] = x[0] ... x[i] along an axis. Of integers and bools i64.
DECLIVITY_API Tensor cumprod(const Tensor& x, std::int64_t axis);
/// y[i] = log(exp(x[0]) + ... + exp(x[i])) along an axis, without overflow.
DECLIVITY_API Tensor logcumsumexp(const Tensor& x, std::int64_t axis);

/// The largest, or smallest, of the elements up to each, and where along the axis it stands (i64; of equal ones the
/// last). A NaN stays from where it stands on.
struct CumulativeExtreme {
    Tensor values, indices;
};
inline std::vector<Tensor> tensors_of(const CumulativeExtreme& both) { return {both.values, both.indices}; }
DECLIVITY_API CumulativeExtreme cummax(const Tensor& x, std::int64_t axis);
DECLIVITY_API CumulativeExtreme cummin(const Tensor& x, std::int64_t axis);

}  // namespace declivity
