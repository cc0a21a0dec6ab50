// Floor 2. A guard on the device against losses that are no numbers.
#pragma once

#include <declivity/ops/view.hpp>

namespace declivity::ops {

// A guard is two i32 on the device: {step at which a loss was not finite, or 0; steps checked so far}. While the first
// is set, optimizers write nothing, so that the parameters stay those of the last good step. The host looks at it only
// now and then.

/// Counts a step, and notes it when a loss has an infinite or NaN element and no earlier one was noted.
/// @param losses dense, f32 or f64; @param guard dense i32 [2]
DECLIVITY_API void check_finite(const View& losses, const View& guard);

/// steps[tensors[i]] += 1 for each i, unless the guard is set: the steps that an optimizer took for each tensor.
/// @param steps dense, f32 or f64; @param tensors dense i64, distinct indices of `steps` (MultiTensor::numbers)
DECLIVITY_API void count_step(const View& steps, const View& tensors, const View& guard);

}  // namespace declivity::ops
