// Layer 2. Classification metrics, accumulated on the device.
#pragma once

#include <cstdint>
#include <optional>

#include <declivity/ops/view.hpp>

namespace declivity::ops {

/// @addtogroup ops
/// @{

/// Divisor of a mean loss.
struct ClassificationWeight {
    View tensor = {};  ///< one element, f32; none: `value`
    double value = 0;
    bool is_sum = false;  ///< sum reduction: the loss is added unscaled, `value` or `tensor` to the weights
    std::optional<std::int64_t> ignore_index = std::nullopt;  ///< rows with this label are not counted
};

/// Accumulates loss, accuracy and counts of a batch. Deferred operation.
///
/// totals[0] += loss * weight; totals[1] += number of rows whose largest score (the first of equal ones) is at the
/// label; totals[2] += weight; totals[3] += number of rows whose label is not ignored. For a weight of 0, totals[0] and
/// totals[2] are unchanged.
///
/// label_errors[0] += 1, the number of this call. The first call with an infinite or NaN loss, a weight other than 0,
/// and a label outside of [0, C) that is not ignored sets label_errors[1] to its number, label_errors[2] to that label,
/// and label_errors[3] to the first invalid label that differs from it, or to the same one: the loss may have an
/// ignored label of its own, but it cannot ignore both.
/// @param scores (N, C), f32 or f64, dense; @param labels (N), i32 or i64, dense
/// @param loss one element of the scores' type: the loss of these rows; @param totals f32 [4]
/// @param label_errors i64 [4], dense, zeros before the first call
DECLIVITY_API void add_classification(const View& scores, const View& labels, const View& loss,
                                      const ClassificationWeight& weight, const View& totals, const View& label_errors);

/// @}

}  // namespace declivity::ops
