// Layer 3. Discrete Fourier transforms, by the names of torch.fft.
//
// There is no complex type: complex numbers are pairs along a last axis of 2 (complex.hpp), and `axis` and `axes` count
// the other axes alone, as if it were not there: -1 is the one before the pairs. Of real arguments they count all.
//
//   X[k] = sum over j < n of exp(-2 pi i j k / n) x[j]
//
// `n`, or each of `sizes`, is how many numbers are transformed: x is cut, or filled up with zeros; -1 is the size of x.
// `norm` says what results are divided by: "backward" (nothing forwards, n backwards), "ortho" (the root of n in both
// directions) or "forward" (n forwards, nothing backwards). f32 and f64; f16 and bf16 are computed in f32 and rounded,
// whole numbers become f32. Lengths whose primes are 2, 3, 5 and 7 are fast, others take some five times as long.
//
// Gradients are transforms again, so that there are ones of any order.
//
// @throws ShapeError where an axis is missing, has nothing to transform, or where pairs are missing; ValueError for an
// n below 1, or another norm
#pragma once

#include <cstdint>
#include <string_view>

#include <declivity/tensor/creation.hpp>
#include <declivity/tensor/tensor.hpp>

namespace declivity::fft {

/// Of x (..., n, 2), along one axis: its shape.
DECLIVITY_API Tensor fft(const Tensor& x, std::int64_t n = -1, std::int64_t axis = -1,
                         std::string_view norm = "backward");
/// The inverse: the conjugate transform, divided by n.
DECLIVITY_API Tensor ifft(const Tensor& x, std::int64_t n = -1, std::int64_t axis = -1,
                          std::string_view norm = "backward");
/// Of real x (..., n): the first n / 2 + 1 numbers, (..., n / 2 + 1, 2). The others are their conjugates.
DECLIVITY_API Tensor rfft(const Tensor& x, std::int64_t n = -1, std::int64_t axis = -1,
                          std::string_view norm = "backward");
/// The inverse of rfft: n real numbers, by default 2 (m - 1), from m complex ones x (..., m, 2). The imaginary part of
/// the first one, and for an even n of the last one, is not looked at.
DECLIVITY_API Tensor irfft(const Tensor& x, std::int64_t n = -1, std::int64_t axis = -1,
                           std::string_view norm = "backward");
/// Of a Hermitian signal in time, whose first half x (..., m, 2) is: n real numbers, by default 2 (m - 1).
DECLIVITY_API Tensor hfft(const Tensor& x, std::int64_t n = -1, std::int64_t axis = -1,
                          std::string_view norm = "backward");
/// The inverse of hfft: the first n / 2 + 1 numbers.
DECLIVITY_API Tensor ihfft(const Tensor& x, std::int64_t n = -1, std::int64_t axis = -1,
                           std::string_view norm = "backward");

/// Over two axes.
DECLIVITY_API Tensor fft2(const Tensor& x, const Dims& sizes = {}, const Dims& axes = {-2, -1},
                          std::string_view norm = "backward");
DECLIVITY_API Tensor ifft2(const Tensor& x, const Dims& sizes = {}, const Dims& axes = {-2, -1},
                           std::string_view norm = "backward");
/// rfft over the last of these axes, fft over the other; and back.
DECLIVITY_API Tensor rfft2(const Tensor& x, const Dims& sizes = {}, const Dims& axes = {-2, -1},
                           std::string_view norm = "backward");
DECLIVITY_API Tensor irfft2(const Tensor& x, const Dims& sizes = {}, const Dims& axes = {-2, -1},
                            std::string_view norm = "backward");

/// Over any number of axes; without any, over the last as many as there are sizes, or over all.
DECLIVITY_API Tensor fftn(const Tensor& x, const Dims& sizes = {}, const Dims& axes = {},
                          std::string_view norm = "backward");
DECLIVITY_API Tensor ifftn(const Tensor& x, const Dims& sizes = {}, const Dims& axes = {},
                           std::string_view norm = "backward");
DECLIVITY_API Tensor rfftn(const Tensor& x, const Dims& sizes = {}, const Dims& axes = {},
                           std::string_view norm = "backward");
DECLIVITY_API Tensor irfftn(const Tensor& x, const Dims& sizes = {}, const Dims& axes = {},
                            std::string_view norm = "backward");

/// The frequencies of fft's n results, in cycles per unit of d, the distance of samples: 0, 1, ..., -2, -1 over n d.
/// @throws ValueError for an n below 1
DECLIVITY_API Tensor fftfreq(std::int64_t n, double d = 1, const TensorOptions& options = {});
/// Those of rfft's n / 2 + 1 results: 0, 1, ..., n / 2 over n d.
DECLIVITY_API Tensor rfftfreq(std::int64_t n, double d = 1, const TensorOptions& options = {});
/// Frequency 0 to the middle of these axes, without any of all, and back. Axes are those of the tensor as it is: of
/// pairs, name them, so that the last one stays.
DECLIVITY_API Tensor fftshift(const Tensor& x, const Dims& axes = {});
DECLIVITY_API Tensor ifftshift(const Tensor& x, const Dims& axes = {});

/// The cosine transform (Ahmed, Natarajan, Rao 1974; type II), of real x (..., n), by a Fourier transform of n:
/// y[k] = 2 sum over j < n of cos(pi k (2 j + 1) / (2 n)) x[j], times the root of 1 / (2 n), of 1 / (4 n) for k = 0,
/// where norm is "ortho". As scipy.fft.dct.
DECLIVITY_API Tensor dct(const Tensor& x, std::int64_t axis = -1, std::string_view norm = "backward");
/// The inverse of dct with the same norm (type III).
DECLIVITY_API Tensor idct(const Tensor& x, std::int64_t axis = -1, std::string_view norm = "backward");

}  // namespace declivity::fft
