// Floor 2. How well scores fit labels, added up on the device.
#pragma once

#include <declivity/ops/view.hpp>

namespace declivity::ops {

/// totals[0] += loss * N; totals[1] += number of rows whose largest score stands at the label (the first of equal ones).
/// @param scores (N, C), f32 or f64, dense; @param labels (N), i32 or i64, dense
/// @param loss one element of the scores' type: the mean loss of these rows; @param totals f32 [2]
DECLIVITY_API void add_classification(const View& scores, const View& labels, const View& loss, const View& totals);

}  // namespace declivity::ops
