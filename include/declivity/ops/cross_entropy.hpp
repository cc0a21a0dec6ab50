// Layer 2. Cross entropy of logits and integer labels.
#pragma once

#include <cstdint>

#include <declivity/ops/lazy_array.hpp>
#include <declivity/ops/view.hpp>

namespace declivity::ops {

/// @addtogroup ops
/// @{

/// Reduction over rows.
enum class LossReduction : std::int32_t {
    none,  ///< one loss per row
    sum,
    mean,  ///< over the rows that are not ignored; NaN if there are none
};

struct CrossEntropy {
    double label_smoothing = 0;  ///< in [0, 1): share of the target spread evenly over all classes
    std::int64_t ignore_index = -100;
    LossReduction reduction = LossReduction::none;
};

struct CrossEntropyResults {
    LazyArray loss;        ///< (N), or [] when reduced
    LazyArray statistics;  ///< (N, 2): for each row the largest logit m, and log sum exp(logit - m)
    LazyArray divisor;     ///< []: divisor of the sum; none without reduction
};

/// loss[i] = -log softmax(logits[i])[labels[i]], with label smoothing; 0 for an ignored label, NaN for a label outside
/// of [0, C). Deferred operation.
/// @param logits (N, C), of a floating type, dense; @param labels (N), i32 or i64, dense
DECLIVITY_API CrossEntropyResults cross_entropy(const View& logits, const View& labels, const CrossEntropy& options);

/// Gradient of the logits from that of the loss, which has the shape of the loss.
/// @param divisor may be none without reduction
DECLIVITY_API LazyArray cross_entropy_backward(const View& logits, const View& labels, const CrossEntropy& options,
                                               const View& statistics, const View& divisor, const View& gradient);

/// @}

}  // namespace declivity::ops
