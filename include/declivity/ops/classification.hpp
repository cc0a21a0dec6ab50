// Layer 2. Classification metrics, accumulated on the device.
#pragma once

#include <cstdint>
#include <optional>

#include <declivity/ops/view.hpp>

namespace declivity::ops {

/// Divisor of a mean loss.
struct ClassificationWeight {
    View tensor = {};  ///< one element, f32; none: `number`
    double number = 0;
    bool is_sum = false;  ///< sum reduction: the loss is added unscaled, `number` or `tensor` to the weights
    std::optional<std::int64_t> ignore_index = std::nullopt;  ///< rows with this label are not counted
};

/// Accumulates loss, accuracy and counts of a batch. Deferred operation.
///
/// totals[0] += loss * weight; totals[1] += number of rows whose largest score (the first of equal ones) is at the
/// label; totals[2] += weight; totals[3] += number of rows whose label is not ignored. For a weight of 0, totals[0] and
/// totals[2] are unchanged.
///
/// noted[0] += 1, the number of this call. The first call with an infinite or NaN loss, a weight other than 0, and a
/// label outside of [0, C) that is not ignored sets noted[1] to its number, noted[2] to that label, and noted[3] to the
/// first invalid label that differs from it, or to the same one: the loss may have an ignored label of its own, but it
/// cannot ignore both.
/// @param scores (N, C), f32 or f64, dense; @param labels (N), i32 or i64, dense
/// @param loss one element of the scores' type: the loss of these rows; @param totals f32 [4]
/// @param noted i64 [4], dense, zeros before the first call
DECLIVITY_API void add_classification(const View& scores, const View& labels, const View& loss,
                                      const ClassificationWeight& weight, const View& totals, const View& noted);

}  // namespace declivity::ops
