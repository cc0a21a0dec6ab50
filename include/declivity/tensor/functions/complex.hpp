// Layer 3. Complex numbers, as pairs along a last axis of 2: real part and imaginary part, as torch.view_as_real lays
// them out. There is no complex type; sums, slices and factors of real numbers are those of the pairs. All functions
// here are made of others.
#pragma once

#include <declivity/tensor/tensor.hpp>

namespace declivity {

/// (..., 2) from real and imaginary parts, which broadcast.
DECLIVITY_API Tensor complex(const Tensor& real, const Tensor& imag);
/// (..., 2) of these absolute values and angles, in radians, which broadcast.
DECLIVITY_API Tensor polar(const Tensor& abs, const Tensor& angle);
/// The parts of z (..., 2), views of it.
/// @throws ShapeError, here and below, where the last axis is not 2
DECLIVITY_API Tensor real(const Tensor& z);
DECLIVITY_API Tensor imag(const Tensor& z);
/// Products of a (..., 2) and b (..., 2), which broadcast.
DECLIVITY_API Tensor complex_mul(const Tensor& a, const Tensor& b);
/// The same numbers with the other sign of the imaginary part.
DECLIVITY_API Tensor complex_conj(const Tensor& z);
/// Absolute values of z (..., 2), without overflow. The gradient of 0 is 0.
DECLIVITY_API Tensor complex_abs(const Tensor& z);
/// Angles of z (..., 2) in [-pi, pi]; 0 of 0, whose gradient is 0.
DECLIVITY_API Tensor angle(const Tensor& z);

}  // namespace declivity
