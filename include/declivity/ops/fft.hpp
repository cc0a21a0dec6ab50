// Layer 2. Fourier transforms along one axis. Complex numbers are pairs along a last axis of 2.
#pragma once

#include <declivity/ops/lazy_array.hpp>
#include <declivity/ops/view.hpp>

namespace declivity::ops {

/// @addtogroup ops
/// @{

/// X[k] = scale * sum over j < n of exp(-2 pi i j k / n) x[j] along an axis of n > 0 numbers, with the opposite sign of
/// the exponent if `conjugate`. Lengths whose prime factors are 2, 3, 5 and 7 use Stockham's algorithm (Cochran et al.
/// 1967), others chirp convolutions (Bluestein 1970). Deferred operation.
/// @param x (..., n, ..., 2), f32, f64, f16 or bf16, any strides; the result has its shape and type
/// @param axis of n, which is not the last
/// @throws TypeError, ShapeError naming `function`
DECLIVITY_API LazyArray fft(std::string_view function, const View& x, int axis, bool conjugate, double scale);

/// Real FFT: the first n / 2 + 1 numbers of the transform of real input of even length n along the last axis.
/// @param x (..., n); the result is (..., n / 2 + 1, 2)
DECLIVITY_API LazyArray fft_real(std::string_view function, const View& x, double scale);

/// Inverse of fft_real, times n and scale: the conjugate transform of Hermitian input, given its first n / 2 + 1
/// numbers. The imaginary parts of the first and the last one count as 0.
/// @param x (..., n / 2 + 1, 2); the result is (..., n), n > 0 even
DECLIVITY_API LazyArray fft_real_inverse(std::string_view function, const View& x, double scale);

/// @}

}  // namespace declivity::ops
