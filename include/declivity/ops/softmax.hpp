// Floor 2. Softmax and its logarithm along one axis.
#pragma once

#include <cstdint>

#include <declivity/ops/view.hpp>

namespace declivity::ops {

enum class SoftmaxKind : std::uint8_t { softmax, log_softmax };

/// out = exp(x) / sum of exp(x) along `axis`, or its logarithm, without overflow at any magnitude: the largest element
/// of each row is subtracted first. A row of -inf alone gives NaN.
/// @param x f32 or f64, dense; @param out as x, and not x itself
DECLIVITY_API void softmax(SoftmaxKind kind, const View& x, int axis, const View& out);

/// The gradient for x from the result and the gradient of the result. All are dense views of one shape, and
/// `x_gradient` is neither of the others.
DECLIVITY_API void softmax_backward(SoftmaxKind kind, const View& result, const View& result_gradient, int axis,
                                    const View& x_gradient);

}  // namespace declivity::ops
