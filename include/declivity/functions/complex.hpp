// Layer 5. Complex numbers as pairs (real part, imaginary part) along a last axis of 2, the layout of
// torch.view_as_real. There is no complex type; addition, slicing and multiplication by real numbers work on the pairs
// directly. All functions here are composed of other functions.
#pragma once

#include <declivity/tensor/tensor.hpp>

namespace declivity {

/// (..., 2) from real and imaginary parts, which broadcast.
DECLIVITY_API Tensor complex(const Tensor& real, const Tensor& imag);
/// (..., 2) from magnitudes and angles in radians, which broadcast.
DECLIVITY_API Tensor polar(const Tensor& abs, const Tensor& angle);
/// Real and imaginary part of z (..., 2), as views.
/// @throws ShapeError, here and below, if the last axis is not 2
DECLIVITY_API Tensor real(const Tensor& z);
DECLIVITY_API Tensor imag(const Tensor& z);
/// Product of a (..., 2) and b (..., 2), which broadcast.
DECLIVITY_API Tensor complex_mul(const Tensor& a, const Tensor& b);
/// Complex conjugate.
DECLIVITY_API Tensor complex_conj(const Tensor& z);
/// Magnitude of z (..., 2), without overflow. The gradient at 0 is 0.
DECLIVITY_API Tensor complex_abs(const Tensor& z);
/// Angle of z (..., 2) in [-pi, pi]; 0 for z = 0, with gradient 0.
DECLIVITY_API Tensor angle(const Tensor& z);

}  // namespace declivity
