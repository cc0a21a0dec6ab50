// Floor 2. Cross entropy of scores against labels.
#pragma once

#include <declivity/ops/view.hpp>

namespace declivity::ops {

struct CrossEntropyParameters {
    double label_smoothing = 0;        ///< in [0, 1)
    std::int64_t ignore_label = -100;
};

/// losses[n] = -sum over c of q[n][c] log softmax(logits[n])[c], where q is 1 - s + s / C at the label and s / C elsewhere,
/// s the smoothing. 0 for ignored rows, NaN for a label outside [0, C). counts[n] = 1, or 0 for ignored rows.
/// @param logits (N, C), f32 or f64, dense; @param labels (N), i32 or i64, dense
/// @param losses, counts, lse (N) of the logits' type, dense; lse[n] = log sum exp(logits[n]) is for the backward
DECLIVITY_API void cross_entropy_forward(const View& logits, const View& labels, const View& losses, const View& counts, const View& lse,
                                         const CrossEntropyParameters& parameters);

/// logits_gradient[n][c] = g[n] * (softmax(logits[n])[c] - q[n][c]); 0 for ignored rows.
/// @param row_gradient (N), any strides (0 when all rows have the same)
DECLIVITY_API void cross_entropy_backward(const View& logits, const View& labels, const View& lse, const View& row_gradient,
                                          const View& logits_gradient, const CrossEntropyParameters& parameters);

}  // namespace declivity::ops
