// Layer 2. Softmax and log-softmax along one axis.
#pragma once

#include <cstdint>

#include <declivity/ops/lazy_array.hpp>
#include <declivity/ops/view.hpp>

namespace declivity::ops {

/// @addtogroup ops
/// @{

enum class SoftmaxKind : std::uint8_t { softmax, log_softmax };

/// exp(x) / sum of exp(x) along `axis`, or its logarithm, without overflow at any magnitude: the largest element of
/// each row is subtracted first. A row of -inf only gives NaN. Deferred operation.
/// @param x of a floating type. A pending expression is fused as the prologue if its rows are contiguous
DECLIVITY_API LazyArray softmax(SoftmaxKind kind, LazyArray x, int axis);

/// Gradient of x from the result and the gradient of the result: dense views of one shape.
DECLIVITY_API LazyArray softmax_backward(SoftmaxKind kind, const View& result, const View& result_gradient, int axis);

/// @}

}  // namespace declivity::ops
