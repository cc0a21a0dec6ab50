// Layer 2. Softmax and its logarithm along one axis.
#pragma once

#include <cstdint>

#include <declivity/ops/lazy_array.hpp>
#include <declivity/ops/view.hpp>

namespace declivity::ops {

enum class SoftmaxKind : std::uint8_t { softmax, log_softmax };

/// exp(x) / sum of exp(x) along `axis`, or its logarithm, without overflow at any magnitude: the largest element of
/// each row is subtracted first. A row of -inf alone gives NaN. An operation that waits.
/// @param x f32 or f64. What waits is computed by the same kernel where it is made from, and where rows lie side by
/// side
DECLIVITY_API LazyArray softmax(SoftmaxKind kind, LazyArray x, int axis);

/// The gradient for x from the result and the gradient of the result: dense views of one shape.
DECLIVITY_API LazyArray softmax_backward(SoftmaxKind kind, const View& result, const View& result_gradient, int axis);

}  // namespace declivity::ops
