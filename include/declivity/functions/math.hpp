// Layer 5. Elementwise mathematical functions in addition to elementwise.hpp: rounding, logarithms, trigonometric and
// hyperbolic functions, the error and gamma functions. Arithmetic in f32 or f64, accurate to a few units in the last
// place over the whole range (bounds in cl_kernels/lib/math.clh, special.clh); NaN if there is no real result.
// Functions of floating types compute integers in f32.
#pragma once

#include <optional>

#include <declivity/functions/elementwise.hpp>

namespace declivity {

/// -1, 0 or 1; 0 for NaN.
inline Tensor sign(Tensor x) { return elementwise(Function::sign, {std::move(x)}); }
/// Rounding down, up, to nearest (ties to even), and towards zero. Integers are unchanged.
inline Tensor floor(Tensor x) { return elementwise(Function::floor, {std::move(x)}); }
inline Tensor ceil(Tensor x) { return elementwise(Function::ceil, {std::move(x)}); }
inline Tensor round(Tensor x) { return elementwise(Function::round, {std::move(x)}); }
inline Tensor trunc(Tensor x) { return elementwise(Function::trunc, {std::move(x)}); }
/// x - trunc(x).
inline Tensor frac(Tensor x) { return elementwise(Function::frac, {std::move(x)}); }

/// 1 / sqrt(x).
inline Tensor rsqrt(Tensor x) { return elementwise(Function::rsqrt, {std::move(x)}); }
/// log(1 + x) and exp(x) - 1, accurate for small x.
inline Tensor log1p(Tensor x) { return elementwise(Function::log1p, {std::move(x)}); }
inline Tensor expm1(Tensor x) { return elementwise(Function::expm1, {std::move(x)}); }
inline Tensor log2(Tensor x) { return elementwise(Function::log2, {std::move(x)}); }
inline Tensor log10(Tensor x) { return elementwise(Function::log10, {std::move(x)}); }
inline Tensor exp2(Tensor x) { return elementwise(Function::exp2, {std::move(x)}); }
/// log(exp(a) + exp(b)), without overflow.
inline Tensor logaddexp(TensorOrScalar a, TensorOrScalar b) {
    return elementwise(Function::logaddexp, {std::move(a), std::move(b)});
}
/// log2(2^a + 2^b), without overflow.
DECLIVITY_API Tensor logaddexp2(const TensorOrScalar& a, const TensorOrScalar& b);
/// a log(b); 0 if a is 0 and b is not NaN.
DECLIVITY_API Tensor xlogy(const TensorOrScalar& a, const TensorOrScalar& b);
/// log(x / (1 - x)); with eps, x is clamped to [eps, 1 - eps].
DECLIVITY_API Tensor logit(const Tensor& x, std::optional<double> eps = std::nullopt);
/// a times 2^b.
DECLIVITY_API Tensor ldexp(const TensorOrScalar& a, const TensorOrScalar& b);

/// Angles are in radians, of any magnitude.
inline Tensor sin(Tensor x) { return elementwise(Function::sin, {std::move(x)}); }
inline Tensor cos(Tensor x) { return elementwise(Function::cos, {std::move(x)}); }
inline Tensor tan(Tensor x) { return elementwise(Function::tan, {std::move(x)}); }
inline Tensor asin(Tensor x) { return elementwise(Function::asin, {std::move(x)}); }
inline Tensor acos(Tensor x) { return elementwise(Function::acos, {std::move(x)}); }
inline Tensor atan(Tensor x) { return elementwise(Function::atan, {std::move(x)}); }
/// Angle of the point (b, a), in [-pi, pi], with C's rules for zeros and infinities.
inline Tensor atan2(TensorOrScalar a, TensorOrScalar b) {
    return elementwise(Function::atan2, {std::move(a), std::move(b)});
}
inline Tensor sinh(Tensor x) { return elementwise(Function::sinh, {std::move(x)}); }
inline Tensor cosh(Tensor x) { return elementwise(Function::cosh, {std::move(x)}); }
inline Tensor asinh(Tensor x) { return elementwise(Function::asinh, {std::move(x)}); }
inline Tensor acosh(Tensor x) { return elementwise(Function::acosh, {std::move(x)}); }
inline Tensor atanh(Tensor x) { return elementwise(Function::atanh, {std::move(x)}); }
/// sqrt(a^2 + b^2), without intermediate overflow.
inline Tensor hypot(TensorOrScalar a, TensorOrScalar b) {
    return elementwise(Function::hypot, {std::move(a), std::move(b)});
}
/// Conversion between degrees and radians.
DECLIVITY_API Tensor deg2rad(const Tensor& x);
DECLIVITY_API Tensor rad2deg(const Tensor& x);
/// sin(pi x) / (pi x), 1 at 0, where all its derivatives are defined.
DECLIVITY_API Tensor sinc(const Tensor& x);

/// erf: 2 / sqrt(pi) times the integral of exp(-t^2) from 0 to x; erfc: 1 - erf(x); erfinv: the inverse of erf.
inline Tensor erf(Tensor x) { return elementwise(Function::erf, {std::move(x)}); }
inline Tensor erfc(Tensor x) { return elementwise(Function::erfc, {std::move(x)}); }
inline Tensor erfinv(Tensor x) { return elementwise(Function::erfinv, {std::move(x)}); }
/// log|gamma(x)|, and its derivative.
inline Tensor lgamma(Tensor x) { return elementwise(Function::lgamma, {std::move(x)}); }
inline Tensor digamma(Tensor x) { return elementwise(Function::digamma, {std::move(x)}); }
/// n-th derivative of digamma(x), n from 0 to 20: 0 at infinity, where PyTorch gives NaN for n > 1, and NaN at
/// -infinity, where it gives an infinity.
DECLIVITY_API Tensor polygamma(std::int64_t n, const Tensor& x);

/// |a| with the sign of b.
inline Tensor copysign(TensorOrScalar a, TensorOrScalar b) {
    return elementwise(Function::copysign, {std::move(a), std::move(b)});
}
/// True (bool) if the sign bit is set, also that of -0 and NaN.
DECLIVITY_API Tensor signbit(const Tensor& x);
/// Minimum and maximum; of a number and NaN the number. If both are equal, a gets the gradient.
DECLIVITY_API Tensor fmin(const TensorOrScalar& a, const TensorOrScalar& b);
DECLIVITY_API Tensor fmax(const TensorOrScalar& a, const TensorOrScalar& b);
/// 0 for a < 0, 1 for a > 0, b for a = 0.
inline Tensor heaviside(TensorOrScalar a, TensorOrScalar b) {
    return elementwise(Function::heaviside, {std::move(a), std::move(b)});
}
/// a + weight (b - a).
inline Tensor lerp(TensorOrScalar a, TensorOrScalar b, TensorOrScalar weight) {
    return elementwise(Function::lerp, {std::move(a), std::move(b), std::move(weight)});
}
/// x + value a b, and x + value a / b.
DECLIVITY_API Tensor addcmul(const Tensor& x, const Tensor& a, const Tensor& b, Scalar value = 1);
DECLIVITY_API Tensor addcdiv(const Tensor& x, const Tensor& a, const Tensor& b, Scalar value = 1);

/// Elementwise tests; the result is bool. Integers are finite.
inline Tensor isnan(Tensor x) { return elementwise(Function::isnan, {std::move(x)}); }
inline Tensor isinf(Tensor x) { return elementwise(Function::isinf, {std::move(x)}); }
inline Tensor isfinite(Tensor x) { return elementwise(Function::isfinite, {std::move(x)}); }
/// Replaces NaN, infinity and minus infinity; posinf and neginf default to the largest and the smallest number of the
/// type.
DECLIVITY_API Tensor nan_to_num(const Tensor& x, double nan = 0, std::optional<double> posinf = std::nullopt,
                                std::optional<double> neginf = std::nullopt);

/// Shift of integers by b bits; the right shift is arithmetic (repeats the sign). All bits are shifted out if b is
/// negative, or exceeds the number of bits.
inline Tensor bitwise_left_shift(TensorOrScalar a, TensorOrScalar b) {
    return elementwise(Function::bitwise_left_shift, {std::move(a), std::move(b)});
}
inline Tensor bitwise_right_shift(TensorOrScalar a, TensorOrScalar b) {
    return elementwise(Function::bitwise_right_shift, {std::move(a), std::move(b)});
}

}  // namespace declivity
