// Layer 6. Gradient clipping, by total norm and by value.
#pragma once

#include <vector>

#include <declivity/tensor/tensor.hpp>

namespace declivity::optim {

/// @addtogroup optim
/// @{

struct ClipGradNormOptions {
    /// Throws if the norm is infinite or NaN, and leaves the gradients unchanged. This reads the norm, which
    /// synchronises.
    bool error_if_nonfinite = false;
};

/// Scales the gradients of all parameters, in place, by min(1, max_norm / (norm + 1e-6)), so that their total 2-norm is
/// at most `max_norm` (Pascanu et al. 2013). Parameters without a gradient are skipped. As in PyTorch, a NaN norm makes
/// all gradients NaN; an infinite one makes infinite elements NaN and all others 0.
/// @return the norm before clipping, 0 if there are no gradients, on the device, shape []: f32, or f64 for f64
/// gradients
/// @throws ValueError unless max_norm is above 0, and for a non-finite norm with error_if_nonfinite; DeviceError for
/// gradients on several devices
DECLIVITY_API Tensor clip_grad_norm(const std::vector<Tensor>& parameters, double max_norm,
                                    const ClipGradNormOptions& options = {});
/// Alias with PyTorch's name.
inline Tensor clip_grad_norm_(const std::vector<Tensor>& parameters, double max_norm,
                              const ClipGradNormOptions& options = {}) {
    return clip_grad_norm(parameters, max_norm, options);
}

/// Clamps each element of the gradients of all parameters, in place, to [-clip_value, clip_value]. NaN stays NaN.
/// Parameters without a gradient are skipped.
/// @throws ValueError unless clip_value is at least 0; DeviceError for gradients on several devices
DECLIVITY_API void clip_grad_value(const std::vector<Tensor>& parameters, double clip_value);
/// Alias with PyTorch's name.
inline void clip_grad_value_(const std::vector<Tensor>& parameters, double clip_value) {
    clip_grad_value(parameters, clip_value);
}

/// @}

}  // namespace declivity::optim
