// Layer 2. Fourier transforms along one axis. Complex numbers are pairs along a last axis of 2.
#pragma once

#include <declivity/ops/lazy_array.hpp>
#include <declivity/ops/view.hpp>

namespace declivity::ops {

/// X[k] = scale * sum over j < n of exp(-2 pi i j k / n) x[j], with the other sign where `conjugate`, along an axis of
/// n > 0 numbers. Lengths whose primes are 2, 3, 5 and 7 by Stockham's passes (Cochran et al. 1967), others by
/// convolutions (Bluestein 1970). An operation that waits.
/// @param x (..., n, ..., 2), f32, f64, f16 or bf16, whatever the strides; the result has its shape and type
/// @param axis of n, which is not the last
/// @throws TypeError, ShapeError naming `function`
DECLIVITY_API LazyArray fft(std::string_view function, const View& x, int axis, bool conjugate, double scale);

/// The first n / 2 + 1 numbers of the transform of real ones along the last axis, of an even length n.
/// @param x (..., n); the result is (..., n / 2 + 1, 2)
DECLIVITY_API LazyArray fft_real(std::string_view function, const View& x, double scale);

/// Its inverse, times n and scale: the conjugate transform of the Hermitian numbers whose first half is given.
/// Imaginary parts of the first and the last one count as 0.
/// @param x (..., n / 2 + 1, 2); the result is (..., n), n > 0 even
DECLIVITY_API LazyArray fft_real_inverse(std::string_view function, const View& x, double scale);

}  // namespace declivity::ops
