// Layer 2. A guard on the device against losses and gradients that are infinite or NaN.
#pragma once

#include <declivity/ops/multi_tensor.hpp>
#include <declivity/ops/view.hpp>

namespace declivity::ops {

// A guard is two i32 on the device: {step at which a loss or a gradient was not finite, or 0; steps checked so far}.
// While the first is not 0, optimizers write nothing, so that the parameters stay those of the last good step. It is
// kSkippedStep while a step is skipped because its loss has weight 0. The host looks at it only now and then.

inline constexpr int kSkippedStep = -1;

/// Counts a step, and notes it when a loss has an infinite or NaN element and no earlier one was noted. Ends a skipped
/// step.
/// @param losses dense, f32 or f64; @param guard dense i32 [2]
DECLIVITY_API void check_finite(const View& losses, const View& guard);
/// The same for one loss and the weight that it was divided by: a loss of weight 0 is never noted. An infinite or NaN
/// weight is noted.
/// @param weight one element, f32; @param skips whether a weight of 0 makes the guard skip the step
DECLIVITY_API void check_finite(const View& loss, const View& weight, const View& guard, bool skips);

/// Notes the step that was counted last when an element is infinite or NaN and no earlier step was noted.
/// @param tensors one role: f16, bf16, f32 or f64
DECLIVITY_API void check_finite(const MultiTensor& tensors, const View& guard);

/// The guard skips the step when the weight is 0. @param weight one element, f32
DECLIVITY_API void skip_weightless(const View& weight, const View& guard);
/// Ends a skipped step: optimizers write again.
DECLIVITY_API void end_skip(const View& guard);

/// Copies the first role to the second, unless a step was noted by the guard. @param tensors two roles of one type
DECLIVITY_API void save_unless_noted(const MultiTensor& tensors, const View& guard);

/// steps[tensors[i]] += 1 for each i, unless the guard is set: the steps that an optimizer took for each tensor.
/// @param steps dense, f32 or f64; @param tensors dense i64, distinct indices of `steps` (MultiTensor::numbers)
DECLIVITY_API void count_step(const View& steps, const View& tensors, const View& guard);

}  // namespace declivity::ops
