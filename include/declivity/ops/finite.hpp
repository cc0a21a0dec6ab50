// Layer 2. Device-side guard against infinite or NaN losses and gradients.
#pragma once

#include <declivity/ops/multi_tensor.hpp>
#include <declivity/ops/view.hpp>

namespace declivity::ops {

/// @addtogroup ops
/// @{

// A guard is two i32 on the device: {step at which a loss or a gradient was not finite, or 0; steps checked so far}.
// While the first is not 0, optimizers write nothing, so that the parameters stay those of the last good step. It is
// kSkippedStep while a step is skipped because its loss has weight 0. The host reads it only occasionally.

inline constexpr int kSkippedStep = -1;

/// Counts a step, ends a skipped step, and sets the guard if a loss has an infinite or NaN element and no earlier step
/// is set.
/// @param losses dense, f32 or f64; @param guard dense i32 [2]
DECLIVITY_API void check_finite(const View& losses, const View& guard);
/// Checks one loss and the weight that it was divided by: a loss of weight 0 never sets the guard, an infinite or NaN
/// weight does.
/// @param weight one element, f32; @param skips true if a weight of 0 makes the guard skip the step
DECLIVITY_API void check_finite(const View& loss, const View& weight, const View& guard, bool skips);

/// Sets the guard to the step counted last if an element is infinite or NaN and no earlier step is set.
/// @param tensors one role: f16, bf16, f32 or f64
DECLIVITY_API void check_finite(const MultiTensor& tensors, const View& guard);

/// Makes the guard skip the step if the weight is 0. @param weight one element, f32
DECLIVITY_API void skip_weightless(const View& weight, const View& guard);
/// Ends a skipped step: optimizers write again.
DECLIVITY_API void end_skip(const View& guard);

/// Copies the first role to the second, unless the guard is set. @param tensors two roles of one type
DECLIVITY_API void save_unless_noted(const MultiTensor& tensors, const View& guard);

/// steps[tensors[i]] += 1 for each i, unless the guard is set: the number of optimizer steps of each tensor.
/// @param steps dense, f32 or f64; @param tensors dense i64, distinct indices of `steps` (MultiTensor::numbers)
DECLIVITY_API void count_step(const View& steps, const View& tensors, const View& guard);

/// @}

}  // namespace declivity::ops
