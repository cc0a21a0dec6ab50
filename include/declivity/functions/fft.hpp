// Layer 5. Discrete Fourier transforms, by their names in torch.fft.
#pragma once

#include <cstdint>
#include <string_view>

#include <declivity/tensor/creation.hpp>
#include <declivity/tensor/tensor.hpp>

namespace declivity::fft {

/// @defgroup functions_fft Fourier transforms
/// @ingroup functions
/// Discrete Fourier transforms, by their names in torch.fft:
///
///     X[k] = sum over j < n of exp(-2 pi i j k / n) x[j]
///
/// - Shapes: there is no complex type: complex numbers are pairs along a last axis of 2 (@ref functions_complex), and
///   `axis` and `axes` count only the other axes: -1 is the one before the pairs. For real arguments they count all
///   axes.
/// - `n`, or each of `sizes`, is the length of the transform: x is truncated, or padded with zeros; -1 is the size of
///   x.
/// - `norm` selects the divisor: "backward" (1 forward, n inverse), "ortho" (the square root of n in both directions)
///   or "forward" (n forward, 1 inverse).
/// - Types: f32 and f64; f16 and bf16 are computed in f32 and rounded, integers become f32.
/// - Time: lengths whose prime factors are 2, 3, 5 and 7 are fast, others take about five times as long.
/// - Gradients are transforms again, and differentiable to any order.
/// - Errors: ShapeError if an axis is missing or empty, or if pairs are missing; ValueError for an n below 1, or
///   another norm.
///
/// @{

/// Transform of x (..., n, 2) along one axis; the result has its shape.
/// Example: for z = `[[1, 0], [2, 0], [3, 0], [4, 0]]`, `fft::fft(z)` is `[[10, 0], [-2, 2], [-2, 0], [-2, -2]]`.
DECLIVITY_API Tensor fft(const Tensor& x, std::int64_t n = -1, std::int64_t axis = -1,
                         std::string_view norm = "backward");
/// Inverse of fft() of x (..., n, 2): the conjugate transform, divided by n.
/// Example: for z = `[[10, 0], [-2, 2], [-2, 0], [-2, -2]]`, `fft::ifft(z)` is `[[1, 0], [2, 0], [3, 0], [4, 0]]`.
DECLIVITY_API Tensor ifft(const Tensor& x, std::int64_t n = -1, std::int64_t axis = -1,
                          std::string_view norm = "backward");
/// Transform of real x (..., n): the first n / 2 + 1 numbers, (..., n / 2 + 1, 2). The others are their conjugates.
/// Examples: for x = `[1, 2, 3, 4]`, `fft::rfft(x)` is `[[10, 0], [-2, 2], [-2, 0]]`; `fft::rfft(x, 2)` is
/// `[[3, 0], [-1, 0]]`.
DECLIVITY_API Tensor rfft(const Tensor& x, std::int64_t n = -1, std::int64_t axis = -1,
                          std::string_view norm = "backward");
/// Inverse of rfft: n real numbers, by default 2 (m - 1), from m complex ones x (..., m, 2). The imaginary part of the
/// first one, and for an even n of the last one, is ignored.
/// Example: for z = `[[10, 0], [-2, 2], [-2, 0]]`, `fft::irfft(z)` is `[1, 2, 3, 4]`.
DECLIVITY_API Tensor irfft(const Tensor& x, std::int64_t n = -1, std::int64_t axis = -1,
                           std::string_view norm = "backward");
/// Transform of a Hermitian signal in time, given its first numbers x (..., m, 2): n real numbers, by default 2 (m -
/// 1).
/// Example: for z = `[[1, 0], [0, 1], [2, 0]]`, `fft::hfft(z)` is `[3, 1, 3, -3]`.
DECLIVITY_API Tensor hfft(const Tensor& x, std::int64_t n = -1, std::int64_t axis = -1,
                          std::string_view norm = "backward");
/// Inverse of hfft() of real x (..., n): the first n / 2 + 1 numbers, (..., n / 2 + 1, 2).
/// Example: for x = `[3, 1, 3, -3]`, `fft::ihfft(x)` is `[[1, 0], [0, 1], [2, 0]]`.
DECLIVITY_API Tensor ihfft(const Tensor& x, std::int64_t n = -1, std::int64_t axis = -1,
                           std::string_view norm = "backward");

/// fft() over two axes of x (..., m, n, 2).
/// Example: for z = `[[[1, 0], [2, 0]], [[3, 0], [4, 0]]]`, `fft::fft2(z)` is
/// `[[[10, 0], [-2, 0]], [[-4, 0], [0, 0]]]`.
DECLIVITY_API Tensor fft2(const Tensor& x, const Dims& sizes = {}, const Dims& axes = {-2, -1},
                          std::string_view norm = "backward");
/// Inverse of fft2().
/// Example: for z = `[[[1, 0], [2, 0]], [[3, 0], [4, 0]]]`, `fft::ifft2(fft::fft2(z))` is
/// `[[[1, 0], [2, 0]], [[3, 0], [4, 0]]]`.
DECLIVITY_API Tensor ifft2(const Tensor& x, const Dims& sizes = {}, const Dims& axes = {-2, -1},
                           std::string_view norm = "backward");
/// rfft() over the last of two axes of real x (..., m, n) and fft() over the other: (..., m, n / 2 + 1, 2).
/// Example: for x = `[[1, 2], [3, 4]]`, `fft::rfft2(x)` is `[[[10, 0], [-2, 0]], [[-4, 0], [0, 0]]]`.
DECLIVITY_API Tensor rfft2(const Tensor& x, const Dims& sizes = {}, const Dims& axes = {-2, -1},
                           std::string_view norm = "backward");
/// Inverse of rfft2(): real numbers.
/// Example: for x = `[[1, 2], [3, 4]]`, `fft::irfft2(fft::rfft2(x))` is `[[1, 2], [3, 4]]`.
DECLIVITY_API Tensor irfft2(const Tensor& x, const Dims& sizes = {}, const Dims& axes = {-2, -1},
                            std::string_view norm = "backward");

/// fft() over any number of axes; if none are given, over as many last axes as there are sizes, or over all.
/// Example: for z = `[[[1, 0], [2, 0]], [[3, 0], [4, 0]]]`, `fft::fftn(z)` is
/// `[[[10, 0], [-2, 0]], [[-4, 0], [0, 0]]]`.
DECLIVITY_API Tensor fftn(const Tensor& x, const Dims& sizes = {}, const Dims& axes = {},
                          std::string_view norm = "backward");
/// Inverse of fftn().
/// Example: for z = `[[[1, 0], [2, 0]], [[3, 0], [4, 0]]]`, `fft::ifftn(fft::fftn(z))` is
/// `[[[1, 0], [2, 0]], [[3, 0], [4, 0]]]`.
DECLIVITY_API Tensor ifftn(const Tensor& x, const Dims& sizes = {}, const Dims& axes = {},
                           std::string_view norm = "backward");
/// rfft() over the last of these axes of real x and fft() over the others; axes as for fftn().
/// Example: for x = `[[1, 2], [3, 4]]`, `fft::rfftn(x, {}, {0})` is `[[[4, 0], [6, 0]], [[-2, 0], [-2, 0]]]`.
DECLIVITY_API Tensor rfftn(const Tensor& x, const Dims& sizes = {}, const Dims& axes = {},
                           std::string_view norm = "backward");
/// Inverse of rfftn(): real numbers.
/// Example: for x = `[[1, 2], [3, 4]]`, `fft::irfftn(fft::rfftn(x))` is `[[1, 2], [3, 4]]`.
DECLIVITY_API Tensor irfftn(const Tensor& x, const Dims& sizes = {}, const Dims& axes = {},
                            std::string_view norm = "backward");

/// Frequencies of the n results of fft, in cycles per unit of the sample spacing d: (0, 1, ..., -2, -1) / (n d).
/// Examples: `fft::fftfreq(4)` is `[0, 0.25, -0.5, -0.25]`; `fft::fftfreq(5, 0.1)` is `[0, 2, 4, -4, -2]`.
/// @throws ValueError for an n below 1
DECLIVITY_API Tensor fftfreq(std::int64_t n, double d = 1, const TensorOptions& options = {});
/// Frequencies of the n / 2 + 1 results of rfft: (0, 1, ..., n / 2) / (n d).
/// Example: `fft::rfftfreq(4)` is `[0, 0.25, 0.5]`.
DECLIVITY_API Tensor rfftfreq(std::int64_t n, double d = 1, const TensorOptions& options = {});
/// Moves frequency 0 to the middle of these axes (all if none are given). Axes count those of the tensor as it is: for
/// pairs, name the axes to leave out the last one.
/// Example: for x = `[0, 1, 2, -2, -1]`, `fft::fftshift(x)` is `[-2, -1, 0, 1, 2]`.
DECLIVITY_API Tensor fftshift(const Tensor& x, const Dims& axes = {});
/// Inverse of fftshift(): moves frequency 0 from the middle to the beginning.
/// Example: for x = `[0, 1, 2, -2, -1]`, `fft::ifftshift(fft::fftshift(x))` is `[0, 1, 2, -2, -1]`.
DECLIVITY_API Tensor ifftshift(const Tensor& x, const Dims& axes = {});

/// Discrete cosine transform (Ahmed, Natarajan, Rao 1974; type II) of real x (..., n), computed by a Fourier transform
/// of length n: y[k] = 2 sum over j < n of cos(pi k (2 j + 1) / (2 n)) x[j], times the square root of 1 / (2 n), of 1 /
/// (4 n) for k = 0, if norm is "ortho". As scipy.fft.dct.
/// Examples: for x = `[1, 2, 3]`, `fft::dct(x)` is `[12, -3.464, 0]`; `fft::dct(x, -1, "ortho")` is
/// `[3.464, -1.414, 0]`.
/// @throws ValueError for another norm than "backward" and "ortho"
DECLIVITY_API Tensor dct(const Tensor& x, std::int64_t axis = -1, std::string_view norm = "backward");
/// Inverse of dct with the same norm (type III).
/// Example: for x = `[3.4641016, -1.4142136, 0]`, `fft::idct(x, -1, "ortho")` is `[1, 2, 3]`.
DECLIVITY_API Tensor idct(const Tensor& x, std::int64_t axis = -1, std::string_view norm = "backward");

/// @}

}  // namespace declivity::fft
