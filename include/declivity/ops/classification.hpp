// Layer 2. How well scores fit labels, added up on the device.
#pragma once

#include <cstdint>
#include <optional>

#include <declivity/ops/view.hpp>

namespace declivity::ops {

/// The divisor of a mean loss.
struct ClassificationWeight {
    View tensor = {};  ///< one element, f32; none: `number`
    double number = 0;
    bool is_sum = false;  ///< the loss is a sum: it is added as it is, and `number` or `tensor` to the weights
    std::optional<std::int64_t> ignore_index = std::nullopt;  ///< rows with this label are not counted
};

/// totals[0] += loss * weight; totals[1] += number of rows whose largest score stands at the label (the first of equal
/// ones); totals[2] += weight; totals[3] += number of rows whose label is not ignored. Of a loss of weight 0 nothing is
/// added to the first and third. noted[0] += 1, the number of this call. The first call whose loss is infinite or NaN,
/// of a weight other than 0, and which has a label outside [0, C) that is not ignored, leaves its number in noted[1],
/// that label in noted[2], and the first that differs from it, or the same again, in noted[3]: a loss may be told to
/// ignore one of them, but not both. A lazy operation.
/// @param scores (N, C), f32 or f64, dense; @param labels (N), i32 or i64, dense
/// @param loss one element of the scores' type: the loss of these rows; @param totals f32 [4]
/// @param noted i64 [4], dense, zeros before the first call
DECLIVITY_API void add_classification(const View& scores, const View& labels, const View& loss,
                                      const ClassificationWeight& weight, const View& totals, const View& noted);

}  // namespace declivity::ops
