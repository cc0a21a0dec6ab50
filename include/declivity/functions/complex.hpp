// Layer 5. Complex numbers as pairs, composed of other functions.
#pragma once

#include <declivity/tensor/tensor.hpp>

namespace declivity {

/// @defgroup functions_complex Complex numbers
/// @ingroup functions
/// Complex numbers as pairs (real part, imaginary part) along a last axis of 2, the layout of torch.view_as_real. There
/// is no complex type; addition, slicing and multiplication by real numbers work on the pairs directly.
///
/// Errors: ShapeError for a last axis other than 2, and for shapes that do not broadcast; TypeError for parts of
/// different types or of integers; DeviceError for operands on different devices.
/// @{

/// (..., 2) from real and imaginary parts, which broadcast.
/// Example: for re = `[1, 2]` and im = `[3, 4]`, `complex(re, im)` is `[[1, 3], [2, 4]]`.
DECLIVITY_API Tensor complex(const Tensor& real, const Tensor& imag);
/// (..., 2) from magnitudes and angles in radians, which broadcast.
/// Example: for r = `[2, 2]` and phi = `[0, 1.5707963]`, `polar(r, phi)` is `[[2, 0], [0, 2]]`.
DECLIVITY_API Tensor polar(const Tensor& abs, const Tensor& angle);
/// Real part of z (..., 2), as a view (...).
/// Example: for z = `[[1, 3], [2, 4]]`, `real(z)` is `[1, 2]`.
DECLIVITY_API Tensor real(const Tensor& z);
/// Imaginary part of z (..., 2), as a view (...). Example: for z = `[[1, 3], [2, 4]]`, `imag(z)` is `[3, 4]`.
DECLIVITY_API Tensor imag(const Tensor& z);
/// Product of a (..., 2) and b (..., 2), which broadcast.
/// Example: for a = `[1, 2]` and b = `[3, -1]`, `complex_mul(a, b)` is `[5, 5]`.
DECLIVITY_API Tensor complex_mul(const Tensor& a, const Tensor& b);
/// Complex conjugate of z (..., 2): the imaginary part is negated.
/// Example: for z = `[[1, 3], [2, -4]]`, `complex_conj(z)` is `[[1, -3], [2, 4]]`.
DECLIVITY_API Tensor complex_conj(const Tensor& z);
/// Magnitude sqrt(re^2 + im^2) of z (..., 2), without overflow: (...). The gradient at 0 is 0.
/// Example: for z = `[[3, -4], [0, 2]]`, `complex_abs(z)` is `[5, 2]`.
DECLIVITY_API Tensor complex_abs(const Tensor& z);
/// Angle of z (..., 2) in radians, in [-pi, pi]: (...); 0 for z = 0, with gradient 0.
/// Example: for z = `[[1, 1], [-1, 0], [0, -2]]`, `angle(z)` is `[0.7854, 3.142, -1.571]`.
DECLIVITY_API Tensor angle(const Tensor& z);

/// @}

}  // namespace declivity
