// Floor 2. How well scores fit labels, added up on the device.
#pragma once

#include <declivity/ops/view.hpp>

namespace declivity::ops {

/// totals[0] += loss * N; totals[1] += number of rows whose largest score stands at the label (the first of equal
/// ones). noted[0] += 1, the number of this call. The first call whose loss is infinite or NaN, and which has a label
/// outside [0, C), leaves its number in noted[1], that label in noted[2], and the first that differs from it, or the
/// same again, in noted[3]: a loss may be told to ignore one of them, but not both. An operation that waits.
/// @param scores (N, C), f32 or f64, dense; @param labels (N), i32 or i64, dense
/// @param loss one element of the scores' type: the mean loss of these rows; @param totals f32 [2]
/// @param noted i64 [4], dense, zeros before the first call
DECLIVITY_API void add_classification(const View& scores, const View& labels, const View& loss, const View& totals,
                                      const View& noted);

}  // namespace declivity::ops
