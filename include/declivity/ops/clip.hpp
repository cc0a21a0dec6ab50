// Layer 2. Gradient clipping by global norm and by value.
#pragma once

#include <declivity/ops/multi_tensor.hpp>

namespace declivity::ops {

/// @addtogroup ops
/// @{

/// Scales all tensors by min(1, max_norm / (norm + 1e-6)), where norm is the 2-norm of all elements together (Pascanu
/// et al. 2013). A NaN norm makes all elements NaN; an infinite norm scales by 0, so that infinite elements become NaN.
/// Does not synchronise.
class DECLIVITY_API ClipNorm {
  public:
    /// Computes the norm. @param tensors one role of f32 or f64; must outlive this
    ClipNorm(const MultiTensor& tensors, double max_norm);
    /// Norm before clipping, f32 or f64 [1], on the device.
    [[nodiscard]] View norm() const;
    void scale() const;

  private:
    const MultiTensor& tensors_;
    View norm_;  // followed by the factor
};

/// Computes the norm and scales. @return the norm before clipping
DECLIVITY_API View clip_norm(const MultiTensor& tensors, double max_norm);

/// Clamps each element to [-limit, limit]; NaN stays NaN.
/// @param tensors one role of f32 or f64; @param limit at least 0
DECLIVITY_API void clip_value(const MultiTensor& tensors, double limit);

/// @}

}  // namespace declivity::ops
