// Floor 2. Cross entropy between rows of logits and labels.
#pragma once

#include <cstdint>

#include <declivity/ops/view.hpp>

namespace declivity::ops {

struct CrossEntropy {
    double label_smoothing = 0;  ///< in [0, 1): share of the target spread evenly over all classes
    std::int64_t ignore_label = -100;
};

/// losses[i] = -log softmax(logits[i])[labels[i]], smoothed as told; 0 for an ignored label, NaN for one outside [0,
/// C).
/// @param logits (N, C), f32 or f64, dense; @param labels (N), i32 or i64, dense
/// @param losses (N), dense; @param statistics (N, 2), dense: for each row the largest logit m, and log sum exp(logit -
/// m)
DECLIVITY_API void cross_entropy(const View& logits, const View& labels, const CrossEntropy& options,
                                 const View& losses, const View& statistics);

/// total[0] = sum of the losses of all rows, divided by the number of rows that are not ignored when `mean` (NaN when
/// there are none); total[1] = that divisor, or 1.
/// @param total [2], of the losses' type, dense
DECLIVITY_API void cross_entropy_total(const View& losses, const View& labels, std::int64_t ignore_label, bool mean,
                                       const View& total);

/// Gradient for the logits, from that of each loss (N), or from that of the total ([]), which total[1] divides.
/// `total` may be empty for the former.
DECLIVITY_API void cross_entropy_backward(const View& logits, const View& labels, const CrossEntropy& options,
                                          const View& statistics, const View& gradient, const View& total,
                                          const View& logits_gradient);

}  // namespace declivity::ops
