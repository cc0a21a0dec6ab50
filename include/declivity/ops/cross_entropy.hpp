// Layer 2. Cross entropy between rows of logits and labels.
#pragma once

#include <cstdint>

#include <declivity/ops/lazy_array.hpp>
#include <declivity/ops/view.hpp>

namespace declivity::ops {

/// What becomes of the losses of the rows.
enum class LossReduction : std::int32_t {
    none,  ///< they stay as they are
    sum,
    mean,  ///< of the rows that are not ignored; NaN when there are none
};

struct CrossEntropy {
    double label_smoothing = 0;  ///< in [0, 1): share of the target spread evenly over all classes
    std::int64_t ignore_index = -100;
    LossReduction reduction = LossReduction::none;
};

struct CrossEntropyResults {
    LazyArray loss;        ///< (N), or [] where they are brought together
    LazyArray statistics;  ///< (N, 2): for each row the largest logit m, and log sum exp(logit - m)
    LazyArray divisor;     ///< []: what their sum was divided by; none where they stay as they are
};

/// loss[i] = -log softmax(logits[i])[labels[i]], smoothed as told; 0 for an ignored label, NaN for one outside [0, C).
/// An operation that waits.
/// @param logits (N, C), f32 or f64, dense; @param labels (N), i32 or i64, dense
DECLIVITY_API CrossEntropyResults cross_entropy(const View& logits, const View& labels, const CrossEntropy& options);

/// The gradient for the logits, from that of the loss, which has its shape.
/// @param divisor may be none where the losses stay as they are
DECLIVITY_API LazyArray cross_entropy_backward(const View& logits, const View& labels, const CrossEntropy& options,
                                               const View& statistics, const View& divisor, const View& gradient);

}  // namespace declivity::ops
