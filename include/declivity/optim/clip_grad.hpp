// Layer 4. Clipping gradients, by their common norm and by value.
#pragma once

#include <vector>

#include <declivity/tensor/tensor.hpp>

namespace declivity::optim {

struct ClipGradNormOptions {
    /// Throws where the norm is infinite or NaN, and leaves the gradients as they are. The norm is read for that, which
    /// synchronises.
    bool error_if_nonfinite = false;
};

/// Scales the gradients of all parameters, in place, by min(1, max_norm / (norm + 1e-6)), so that their common 2-norm
/// is at most `max_norm` (Pascanu et al. 2013). Parameters without a gradient are left out. As in PyTorch, a norm that
/// is NaN makes all gradients NaN; an infinite one makes infinite elements NaN and all others 0.
/// @return the norm before clipping, 0 without gradients, on the device, shape []: f32, or f64 of f64 gradients
/// @throws ValueError unless max_norm is above 0, and for a norm that is not finite with error_if_nonfinite;
/// DeviceError for gradients on several devices
DECLIVITY_API Tensor clip_grad_norm(const std::vector<Tensor>& parameters, double max_norm,
                                    const ClipGradNormOptions& options = {});
/// The same by PyTorch's name.
inline Tensor clip_grad_norm_(const std::vector<Tensor>& parameters, double max_norm,
                              const ClipGradNormOptions& options = {}) {
    return clip_grad_norm(parameters, max_norm, options);
}

/// Clamps each element of the gradients of all parameters, in place, to [-clip_value, clip_value]. NaN stays NaN.
/// Parameters without a gradient are left out.
/// @throws ValueError unless clip_value is at least 0; DeviceError for gradients on several devices
DECLIVITY_API void clip_grad_value(const std::vector<Tensor>& parameters, double clip_value);
/// The same by PyTorch's name.
inline void clip_grad_value_(const std::vector<Tensor>& parameters, double clip_value) {
    clip_grad_value(parameters, clip_value);
}

}  // namespace declivity::optim
