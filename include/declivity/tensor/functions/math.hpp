// Layer 3. Mathematical functions of each element, beside those of elementwise.hpp: rounding, logarithms, trigonometric
// and hyperbolic functions, the error and gamma functions. Arithmetic in f32 or f64, accurate to a few units of the
// last place over the whole range (cl_kernels/lib/math.clh, special.clh state the bounds); NaN where there is no real
// result. Functions of floating numbers compute integers in f32.
#pragma once

#include <optional>

#include <declivity/tensor/functions/elementwise.hpp>

namespace declivity {

/// -1, 0 or 1; 0 for NaN.
inline Tensor sign(Tensor x) { return elementwise(Function::sign, {std::move(x)}); }
/// The nearest whole number below, above, either (of two the even one), towards zero. Integers stay as they are.
inline Tensor floor(Tensor x) { return elementwise(Function::floor, {std::move(x)}); }
inline Tensor ceil(Tensor x) { return elementwise(Function::ceil, {std::move(x)}); }
inline Tensor round(Tensor x) { return elementwise(Function::round, {std::move(x)}); }
inline Tensor trunc(Tensor x) { return elementwise(Function::trunc, {std::move(x)}); }
/// x - trunc(x).
inline Tensor frac(Tensor x) { return elementwise(Function::frac, {std::move(x)}); }

/// 1 / sqrt(x).
inline Tensor rsqrt(Tensor x) { return elementwise(Function::rsqrt, {std::move(x)}); }
/// log(1 + x) and exp(x) - 1, exact for small x.
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
/// a log(b); 0 where a is 0, whatever b is but NaN.
DECLIVITY_API Tensor xlogy(const TensorOrScalar& a, const TensorOrScalar& b);
/// log(x / (1 - x)); with an eps of x cut to [eps, 1 - eps].
DECLIVITY_API Tensor logit(const Tensor& x, std::optional<double> eps = std::nullopt);
/// a times 2^b.
DECLIVITY_API Tensor ldexp(const TensorOrScalar& a, const TensorOrScalar& b);

/// Of angles in radians, of any size.
inline Tensor sin(Tensor x) { return elementwise(Function::sin, {std::move(x)}); }
inline Tensor cos(Tensor x) { return elementwise(Function::cos, {std::move(x)}); }
inline Tensor tan(Tensor x) { return elementwise(Function::tan, {std::move(x)}); }
inline Tensor asin(Tensor x) { return elementwise(Function::asin, {std::move(x)}); }
inline Tensor acos(Tensor x) { return elementwise(Function::acos, {std::move(x)}); }
inline Tensor atan(Tensor x) { return elementwise(Function::atan, {std::move(x)}); }
/// The angle of the point (b, a), in [-pi, pi], with C's rules for zeros and infinities.
inline Tensor atan2(TensorOrScalar a, TensorOrScalar b) {
    return elementwise(Function::atan2, {std::move(a), std::move(b)});
}
inline Tensor sinh(Tensor x) { return elementwise(Function::sinh, {std::move(x)}); }
inline Tensor cosh(Tensor x) { return elementwise(Function::cosh, {std::move(x)}); }
inline Tensor asinh(Tensor x) { return elementwise(Function::asinh, {std::move(x)}); }
inline Tensor acosh(Tensor x) { return elementwise(Function::acosh, {std::move(x)}); }
inline Tensor atanh(Tensor x) { return elementwise(Function::atanh, {std::move(x)}); }
/// sqrt(a^2 + b^2), without overflow on the way.
inline Tensor hypot(TensorOrScalar a, TensorOrScalar b) {
    return elementwise(Function::hypot, {std::move(a), std::move(b)});
}
/// Degrees as radians, and back.
DECLIVITY_API Tensor deg2rad(const Tensor& x);
DECLIVITY_API Tensor rad2deg(const Tensor& x);
/// sin(pi x) / (pi x), 1 at 0, with all its derivatives there.
DECLIVITY_API Tensor sinc(const Tensor& x);

/// 2 / sqrt(pi) times the integral of exp(-t^2) from 0 to x; 1 - erf(x); and the x whose erf that is.
inline Tensor erf(Tensor x) { return elementwise(Function::erf, {std::move(x)}); }
inline Tensor erfc(Tensor x) { return elementwise(Function::erfc, {std::move(x)}); }
inline Tensor erfinv(Tensor x) { return elementwise(Function::erfinv, {std::move(x)}); }
/// log|gamma(x)|, and its derivative.
inline Tensor lgamma(Tensor x) { return elementwise(Function::lgamma, {std::move(x)}); }
inline Tensor digamma(Tensor x) { return elementwise(Function::digamma, {std::move(x)}); }
/// The n-th derivative of digamma(x), n from 0 to 20: 0 at infinity, where PyTorch gives NaN for n > 1, and NaN at
/// -infinity, where it gives an infinity.
DECLIVITY_API Tensor polygamma(std::int64_t n, const Tensor& x);

/// |a| with the sign of b.
inline Tensor copysign(TensorOrScalar a, TensorOrScalar b) {
    return elementwise(Function::copysign, {std::move(a), std::move(b)});
}
/// Whether the sign is a minus, that of -0 and of NaN too, in bool.
DECLIVITY_API Tensor signbit(const Tensor& x);
/// The smaller, the larger of both; of a number and NaN the number. Where both are equal, a has the gradient.
DECLIVITY_API Tensor fmin(const TensorOrScalar& a, const TensorOrScalar& b);
DECLIVITY_API Tensor fmax(const TensorOrScalar& a, const TensorOrScalar& b);
/// 0 for a < 0, 1 for a > 0, b where a is 0.
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

/// Bool for each element. Integers are finite.
inline Tensor isnan(Tensor x) { return elementwise(Function::isnan, {std::move(x)}); }
inline Tensor isinf(Tensor x) { return elementwise(Function::isinf, {std::move(x)}); }
inline Tensor isfinite(Tensor x) { return elementwise(Function::isfinite, {std::move(x)}); }
/// x with other numbers for NaN, infinity and minus infinity; without a number for these the largest and the smallest
/// that the type holds.
DECLIVITY_API Tensor nan_to_num(const Tensor& x, double nan = 0, std::optional<double> posinf = std::nullopt,
                                std::optional<double> neginf = std::nullopt);

/// Of integers, by b bits; those on the right repeat the sign. All bits where b is less than 0, or more than there are.
inline Tensor bitwise_left_shift(TensorOrScalar a, TensorOrScalar b) {
    return elementwise(Function::bitwise_left_shift, {std::move(a), std::move(b)});
}
inline Tensor bitwise_right_shift(TensorOrScalar a, TensorOrScalar b) {
    return elementwise(Function::bitwise_right_shift, {std::move(a), std::move(b)});
}

}  // namespace declivity
