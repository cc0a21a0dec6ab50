// Layer 5. Elementwise mathematical functions in addition to elementwise.hpp. Bounds of their errors are in
// cl_kernels/lib/math.clh and special.clh.
#pragma once

#include <optional>

#include <declivity/functions/elementwise.hpp>

namespace declivity {

/// @defgroup functions_math Mathematical functions
/// @ingroup functions
/// Rounding, logarithms, trigonometric and hyperbolic functions, the error and gamma functions, of each element.
/// Computed in f32 or f64, accurate to a few units in the last place over the whole range; NaN if there is no real
/// result.
///
/// Shapes, types and errors are those of @ref functions_elementwise. Operands broadcast, and are converted to their
/// result_type(). Integers and bools are computed in f32, except by the functions that keep integers: sign(), floor(),
/// ceil(), round(), trunc(), fmin(), fmax(), heaviside(), addcmul(), nan_to_num() and the shifts.
/// @{

/// Sign of x: -1, 0 or 1; 0 for NaN. The gradient is 0.
/// Example: for x = `[-3, 0, 2]`, `sign(x)` is `[-1, 0, 1]`.
inline Tensor sign(Tensor x) { return elementwise(Function::sign, {std::move(x)}); }
/// Rounds down: the largest integer that is not above x. Integers are unchanged; the gradient is 0.
/// Example: for x = `[-1.5, 0.5, 2.5]`, `floor(x)` is `[-2, 0, 2]`.
inline Tensor floor(Tensor x) { return elementwise(Function::floor, {std::move(x)}); }
/// Rounds up: the smallest integer that is not below x. Integers are unchanged; the gradient is 0.
/// Example: for x = `[-1.5, 0.5, 2.5]`, `ceil(x)` is `[-1, 1, 3]`.
inline Tensor ceil(Tensor x) { return elementwise(Function::ceil, {std::move(x)}); }
/// Rounds to the nearest integer, ties to even. Integers are unchanged; the gradient is 0.
/// Example: for x = `[-1.5, 0.5, 2.5]`, `round(x)` is `[-2, 0, 2]`.
inline Tensor round(Tensor x) { return elementwise(Function::round, {std::move(x)}); }
/// Rounds towards zero: the integer part of x. Integers are unchanged; the gradient is 0.
/// Example: for x = `[-1.5, 0.5, 2.5]`, `trunc(x)` is `[-1, 0, 2]`.
inline Tensor trunc(Tensor x) { return elementwise(Function::trunc, {std::move(x)}); }
/// Fractional part x - trunc(x), with the sign of x.
/// Example: for x = `[-1.25, 2.5]`, `frac(x)` is `[-0.25, 0.5]`.
inline Tensor frac(Tensor x) { return elementwise(Function::frac, {std::move(x)}); }

/// Reciprocal of the square root, 1 / sqrt(x).
/// Example: for x = `[4, 0]`, `rsqrt(x)` is `[0.5, inf]`.
inline Tensor rsqrt(Tensor x) { return elementwise(Function::rsqrt, {std::move(x)}); }
/// log(1 + x), accurate for small x.
/// Examples: for x = `[1e-10]`, `log1p(x) * 1e10` is `[1]`; `log(1 + x)` is `[0]`.
inline Tensor log1p(Tensor x) { return elementwise(Function::log1p, {std::move(x)}); }
/// exp(x) - 1, accurate for small x. Example: for x = `[1e-10]`, `expm1(x) * 1e10` is `[1]`.
inline Tensor expm1(Tensor x) { return elementwise(Function::expm1, {std::move(x)}); }
/// Logarithm to base 2, log(x) / log(2). Example: for x = `[8, 1, 0.5]`, `log2(x)` is `[3, 0, -1]`.
inline Tensor log2(Tensor x) { return elementwise(Function::log2, {std::move(x)}); }
/// Logarithm to base 10, log(x) / log(10). Example: for x = `[1000, 1, 0.1]`, `log10(x)` is `[3, 0, -1]`.
inline Tensor log10(Tensor x) { return elementwise(Function::log10, {std::move(x)}); }
/// Power of two, 2^x. Example: for x = `[3, 0.5, -1]`, `exp2(x)` is `[8, 1.414, 0.5]`.
inline Tensor exp2(Tensor x) { return elementwise(Function::exp2, {std::move(x)}); }
/// log(exp(a) + exp(b)), without overflow.
/// Example: for a = `[0, 1000]` and b = `[0, 1000]`, `logaddexp(a, b)` is `[0.6931, 1001]`.
inline Tensor logaddexp(TensorOrScalar a, TensorOrScalar b) {
    return elementwise(Function::logaddexp, {std::move(a), std::move(b)});
}
/// log2(2^a + 2^b), without overflow.
/// Example: for a = `[0, 1000]` and b = `[0, 1000]`, `logaddexp2(a, b)` is `[1, 1001]`.
DECLIVITY_API Tensor logaddexp2(const TensorOrScalar& a, const TensorOrScalar& b);
/// a log(b); 0 if a is 0 and b is not NaN.
/// Example: for a = `[0, 2, 1]` and b = `[0, 3, 0]`, `xlogy(a, b)` is `[0, 2.197, -inf]`.
DECLIVITY_API Tensor xlogy(const TensorOrScalar& a, const TensorOrScalar& b);
/// log(x / (1 - x)); with eps, x is clamped to [eps, 1 - eps].
/// Examples: for x = `[0.5, 0.9, 1]`, `logit(x)` is `[0, 2.197, inf]`; `logit(x, 0.1)` is `[0, 2.197, 2.197]`.
DECLIVITY_API Tensor logit(const Tensor& x, std::optional<double> eps = std::nullopt);
/// Multiplies by a power of two: a 2^b.
/// Example: for a = `[3, 3]` and b = `[2, -1]`, `ldexp(a, b)` is `[12, 1.5]`.
DECLIVITY_API Tensor ldexp(const TensorOrScalar& a, const TensorOrScalar& b);

/// Sine of x in radians, of any magnitude.
/// Example: for x = `[0, 1, 1.570796]`, `sin(x)` is `[0, 0.8415, 1]`.
inline Tensor sin(Tensor x) { return elementwise(Function::sin, {std::move(x)}); }
/// Cosine of x in radians, of any magnitude. Example: for x = `[0, 1, 1.570796]`, `cos(x)` is `[1, 0.5403, 0]`.
inline Tensor cos(Tensor x) { return elementwise(Function::cos, {std::move(x)}); }
/// Tangent sin(x) / cos(x) of x in radians, of any magnitude. Example: for x = `[0, 1]`, `tan(x)` is `[0, 1.557]`.
inline Tensor tan(Tensor x) { return elementwise(Function::tan, {std::move(x)}); }
/// Arc sine in radians, in [-pi / 2, pi / 2]; NaN outside of [-1, 1].
/// Example: for x = `[-1, 0.5, 2]`, `asin(x)` is `[-1.571, 0.5236, nan]`.
inline Tensor asin(Tensor x) { return elementwise(Function::asin, {std::move(x)}); }
/// Arc cosine in radians, in [0, pi]; NaN outside of [-1, 1].
/// Example: for x = `[-1, 0.5, 2]`, `acos(x)` is `[3.142, 1.047, nan]`.
inline Tensor acos(Tensor x) { return elementwise(Function::acos, {std::move(x)}); }
/// Arc tangent in radians, in [-pi / 2, pi / 2]. Example: for x = `[1, -inf]`, `atan(x)` is `[0.7854, -1.571]`.
inline Tensor atan(Tensor x) { return elementwise(Function::atan, {std::move(x)}); }
/// Angle of the point (b, a) in radians, in [-pi, pi]: atan(a / b) in the quadrant of the point, with C's rules for
/// zeros and infinities.
/// Example: for a = `[1, -1]` and b = `[1, -1]`, `atan2(a, b)` is `[0.7854, -2.356]`.
inline Tensor atan2(TensorOrScalar a, TensorOrScalar b) {
    return elementwise(Function::atan2, {std::move(a), std::move(b)});
}
/// Hyperbolic sine (e^x - e^-x) / 2. Example: for x = `[-1, 0, 1]`, `sinh(x)` is `[-1.175, 0, 1.175]`.
inline Tensor sinh(Tensor x) { return elementwise(Function::sinh, {std::move(x)}); }
/// Hyperbolic cosine (e^x + e^-x) / 2. Example: for x = `[-1, 0, 1]`, `cosh(x)` is `[1.543, 1, 1.543]`.
inline Tensor cosh(Tensor x) { return elementwise(Function::cosh, {std::move(x)}); }
/// Inverse of sinh, log(x + sqrt(x^2 + 1)). Example: for x = `[-1, 0, 1]`, `asinh(x)` is `[-0.8814, 0, 0.8814]`.
inline Tensor asinh(Tensor x) { return elementwise(Function::asinh, {std::move(x)}); }
/// Inverse of cosh, log(x + sqrt(x^2 - 1)); NaN below 1. Example: for x = `[0, 1, 2]`, `acosh(x)` is `[nan, 0, 1.317]`.
inline Tensor acosh(Tensor x) { return elementwise(Function::acosh, {std::move(x)}); }
/// Inverse of tanh, log((1 + x) / (1 - x)) / 2; NaN outside of [-1, 1].
/// Example: for x = `[-1, 0.5, 2]`, `atanh(x)` is `[-inf, 0.5493, nan]`.
inline Tensor atanh(Tensor x) { return elementwise(Function::atanh, {std::move(x)}); }
/// sqrt(a^2 + b^2), without intermediate overflow.
/// Example: for a = `[3, 3e30]` and b = `[-4, 4e30]`, `hypot(a, b) / a` is `[1.667, 1.667]`.
inline Tensor hypot(TensorOrScalar a, TensorOrScalar b) {
    return elementwise(Function::hypot, {std::move(a), std::move(b)});
}
/// Degrees to radians, x pi / 180.
/// Example: for x = `[180, 90]`, `deg2rad(x)` is `[3.142, 1.571]`.
DECLIVITY_API Tensor deg2rad(const Tensor& x);
/// Radians to degrees, 180 x / pi. Example: for x = `[180, 90]`, `rad2deg(deg2rad(x))` is `[180, 90]`.
DECLIVITY_API Tensor rad2deg(const Tensor& x);
/// sin(pi x) / (pi x), 1 at 0, where all its derivatives are defined.
/// Example: for x = `[0, 0.5, 1.5]`, `sinc(x)` is `[1, 0.6366, -0.2122]`.
DECLIVITY_API Tensor sinc(const Tensor& x);

/// Error function: 2 / sqrt(pi) times the integral of exp(-t^2) from 0 to x.
/// Example: for x = `[-1, 0, 0.5]`, `erf(x)` is `[-0.8427, 0, 0.5205]`.
inline Tensor erf(Tensor x) { return elementwise(Function::erf, {std::move(x)}); }
/// Complementary error function 1 - erf(x), accurate for large x.
/// Example: for x = `[-1, 0, 0.5]`, `erfc(x)` is `[1.843, 1, 0.4795]`.
inline Tensor erfc(Tensor x) { return elementwise(Function::erfc, {std::move(x)}); }
/// Inverse of erf for x in [-1, 1], infinite at both ends.
/// Example: for x = `[-1, 0, 0.5]`, `erfinv(x)` is `[-inf, 0, 0.4769]`.
inline Tensor erfinv(Tensor x) { return elementwise(Function::erfinv, {std::move(x)}); }
/// log|gamma(x)|; its gradient is digamma(x).
/// Example: for x = `[5, 0.5, 0]`, `lgamma(x)` is `[3.178, 0.5724, inf]`.
inline Tensor lgamma(Tensor x) { return elementwise(Function::lgamma, {std::move(x)}); }
/// Derivative of lgamma, gamma'(x) / gamma(x). Example: for x = `[5, 0.5, 0]`, `digamma(x)` is `[1.506, -1.964, -inf]`.
inline Tensor digamma(Tensor x) { return elementwise(Function::digamma, {std::move(x)}); }
/// n-th derivative of digamma(x), n from 0 to 20: 0 at infinity, where PyTorch gives NaN for n > 1, and NaN at
/// -infinity, where it gives an infinity.
/// Example: for x = `[1, 2]`, `polygamma(1, x)` is `[1.645, 0.6449]`.
/// @throws ValueError for n below 0 or above 20
DECLIVITY_API Tensor polygamma(std::int64_t n, const Tensor& x);

/// |a| with the sign of b.
/// Example: for a = `[1, -2, 3]` and b = `[-1, 1, -0.0]`, `copysign(a, b)` is `[-1, 2, -3]`.
inline Tensor copysign(TensorOrScalar a, TensorOrScalar b) {
    return elementwise(Function::copysign, {std::move(a), std::move(b)});
}
/// True (bool) if the sign bit is set, also that of -0 and NaN.
/// Example: for x = `[-1, 0, -0.0]`, `signbit(x)` is `[true, false, true]`.
DECLIVITY_API Tensor signbit(const Tensor& x);
/// Smaller of a and b; of a number and NaN the number. If both are equal, each gets half of the gradient.
/// Example: for a = `[1, 5, nan]` and b = `[4, 2, 3]`, `fmin(a, b)` is `[1, 2, 3]`.
DECLIVITY_API Tensor fmin(const TensorOrScalar& a, const TensorOrScalar& b);
/// Larger of a and b; of a number and NaN the number. If both are equal, each gets half of the gradient.
/// Example: for a = `[1, 5, nan]` and b = `[4, 2, 3]`, `fmax(a, b)` is `[4, 5, 3]`.
DECLIVITY_API Tensor fmax(const TensorOrScalar& a, const TensorOrScalar& b);
/// Unit step: 0 for a < 0 and NaN, 1 for a > 0, b for a = 0. Without gradient.
/// Example: for a = `[-2, 0, 3]`, `heaviside(a, 0.5)` is `[0, 0.5, 1]`.
inline Tensor heaviside(TensorOrScalar a, TensorOrScalar b) {
    return elementwise(Function::heaviside, {std::move(a), std::move(b)});
}
/// Linear interpolation a + weight (b - a).
/// Example: for a = `[0, 10]` and b = `[1, 20]`, `lerp(a, b, 0.25)` is `[0.25, 12.5]`.
inline Tensor lerp(TensorOrScalar a, TensorOrScalar b, TensorOrScalar weight) {
    return elementwise(Function::lerp, {std::move(a), std::move(b), std::move(weight)});
}
/// x + value a b; x, a and b broadcast.
/// Example: for x = `[1, 1]`, a = `[2, 3]` and b = `[4, 5]`, `addcmul(x, a, b, 10)` is `[81, 151]`.
DECLIVITY_API Tensor addcmul(const Tensor& x, const Tensor& a, const Tensor& b, Scalar value = 1);
/// x + value a / b; x, a and b broadcast.
/// Example: for x = `[1, 1]`, a = `[2, 3]` and b = `[4, 5]`, `addcdiv(x, a, b)` is `[1.5, 1.6]`.
DECLIVITY_API Tensor addcdiv(const Tensor& x, const Tensor& a, const Tensor& b, Scalar value = 1);

/// True (bool) where x is NaN; integers never are.
/// Example: for x = `[1, nan, -inf]`, `isnan(x)` is `[false, true, false]`.
inline Tensor isnan(Tensor x) { return elementwise(Function::isnan, {std::move(x)}); }
/// True (bool) where x is infinity or minus infinity.
/// Example: for x = `[1, nan, -inf]`, `isinf(x)` is `[false, false, true]`.
inline Tensor isinf(Tensor x) { return elementwise(Function::isinf, {std::move(x)}); }
/// True (bool) where x is neither infinite nor NaN; integers always are.
/// Example: for x = `[1, nan, -inf]`, `isfinite(x)` is `[true, false, false]`.
inline Tensor isfinite(Tensor x) { return elementwise(Function::isfinite, {std::move(x)}); }
/// Replaces NaN by `nan`, infinity by posinf and minus infinity by neginf, which default to the largest and the
/// smallest number of the type. Integers and bools are returned unchanged.
/// Examples: for x = `[nan, inf]`, `nan_to_num(x)` is `[0, 3.403e+38]`; `nan_to_num(x, -1, 9)` is `[-1, 9]`.
DECLIVITY_API Tensor nan_to_num(const Tensor& x, double nan = 0, std::optional<double> posinf = std::nullopt,
                                std::optional<double> neginf = std::nullopt);

/// Shift of integers to the left by b bits, a 2^b modulo 2^bits. 0 if b is negative, or at least the number of bits.
/// Examples: for i32 a = `[1, -8]`, `bitwise_left_shift(a, 2)` is `[4, -32]`; `bitwise_left_shift(a, 32)` is `[0, 0]`.
/// @throws TypeError for floating types and bool
inline Tensor bitwise_left_shift(TensorOrScalar a, TensorOrScalar b) {
    return elementwise(Function::bitwise_left_shift, {std::move(a), std::move(b)});
}
/// Arithmetic shift of integers to the right by b bits, the largest integer that is not above a / 2^b. If b is
/// negative, or at least the number of bits: -1 for negative a, otherwise 0.
/// Example: for i32 a = `[1, -8]`, `bitwise_right_shift(a, 2)` is `[0, -2]`.
/// @throws TypeError for floating types and bool
inline Tensor bitwise_right_shift(TensorOrScalar a, TensorOrScalar b) {
    return elementwise(Function::bitwise_right_shift, {std::move(a), std::move(b)});
}

/// @}

}  // namespace declivity
