// Layer 5. Softmax and log-softmax.
#pragma once

#include <cstdint>

#include <declivity/tensor/tensor.hpp>

namespace declivity {

/// @defgroup functions_softmax Softmax
/// @ingroup functions
/// Softmax of x of any shape and a floating type, along one axis, the last one by default; the result has the shape and
/// type of x. A row that consists of minus infinities gives NaN. A tensor without axes counts as one element.
///
/// Errors: TypeError for integers and bool, ShapeError for an axis out of range.
/// @{

/// exp(x) / sum(exp(x)) along an axis, without overflow. Example: for x = `[[0, 1], [1000, 1000]]`, `softmax(x)` is
/// `[[0.2689, 0.7311], [0.5, 0.5]]`.
DECLIVITY_API Tensor softmax(Tensor x, std::int64_t axis = -1);
/// log(softmax(x)), accurate for small probabilities. Example: for x = `[0, 1, 200]`, `log_softmax(x)` is
/// `[-200, -199, 0]`.
DECLIVITY_API Tensor log_softmax(Tensor x, std::int64_t axis = -1);
/// softmax(-x), exp(-x) / sum(exp(-x)) along an axis.
/// Example: for x = `[0, 1]`, `softmin(x)` is `[0.7311, 0.2689]`.
DECLIVITY_API Tensor softmin(const Tensor& x, std::int64_t axis = -1);

/// @}

}  // namespace declivity
