// Layer 5. Elementwise functions: one line each, all defined by ops/elementwise_table.def. They take handles by value
// and release them, so that intermediate results of a chain such as relu(conv2d(x, w)) need not be stored.
#pragma once

#include <initializer_list>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <declivity/ops/function.hpp>
#include <declivity/tensor/tensor.hpp>

namespace declivity {

/// @defgroup functions_elementwise Elementwise functions
/// @ingroup functions
/// Arithmetic, comparisons, logic and basic functions of each element. The following holds for all elementwise
/// functions, also for those of @ref functions_math and @ref functions_activation.
///
/// - Shapes: all operands broadcast to one shape, as in NumPy, which is the shape of the result. A number broadcasts to
///   any shape.
/// - Types: operands are converted to their result_type(), which is the type of the result. Functions whose results are
///   fractions, such as sqrt(), exp() and the quotient, compute integers and bools in f32. Of two bools, + and
///   maximum() are the logical or, * and minimum() the logical and; other arithmetic that keeps the type of integers,
///   such as - and abs(), throws TypeError.
/// - Values: NaN propagates, unless stated otherwise.
/// - Gradients: none flow through comparisons, logical and bitwise functions, and floor_divide().
/// - Errors: ShapeError for shapes that do not broadcast; TypeError for types without a common one (u64 and a signed
///   integer), or that the function does not support; DeviceError for tensors on different devices; ValueError for an
///   undefined tensor, for numbers without a tensor, and for a number that the integer type of the result does not
///   represent.
///
/// @{

using ops::Function;

/// Any function of ops/elementwise_table.def, with its inputs and parameters. The functions below call it; use it for a
/// new row of the table.
/// Example: for x = `[3]` and y = `[4]`, `elementwise(Function::hypot, {x, y})` is `[5]`.
/// @param name in error messages, if it is not the name in the table
/// @throws ValueError for another number of inputs or parameters than the function has
DECLIVITY_API Tensor elementwise(Function function, std::span<const TensorOrScalar> inputs,
                                 std::span<const Scalar> parameters = {}, std::string_view name = {});
/// Overload for inputs and parameters in braces.
inline Tensor elementwise(Function function, std::initializer_list<TensorOrScalar> inputs,
                          std::initializer_list<Scalar> parameters = {}, std::string_view name = {}) {
    return elementwise(function, std::span(inputs.begin(), inputs.size()),
                       std::span(parameters.begin(), parameters.size()), name);
}

/// Overload for inputs that are all tensors.
inline Tensor elementwise(Function function, std::span<const Tensor> inputs, std::span<const Scalar> parameters = {},
                          std::string_view name = {}) {
    const std::vector<TensorOrScalar> operands(inputs.begin(), inputs.end());
    return elementwise(function, std::span(operands), parameters, name);
}

/// Sum a + b; of bools, the logical or.
/// Example: for a = `[[1], [2]]` and b = `[10, 20]`, `a + b` is `[[11, 21], [12, 22]]`.
inline Tensor operator+(Tensor a, Tensor b) {
    return elementwise(Function::add, {std::move(a), std::move(b)}, {}, "operator+");
}
/// Difference a - b. Example: for a = `[5, 1]` and b = `[2, 4]`, `a - b` is `[3, -3]`.
inline Tensor operator-(Tensor a, Tensor b) {
    return elementwise(Function::sub, {std::move(a), std::move(b)}, {}, "operator-");
}
/// Elementwise product a b; of bools, the logical and. The matrix product is matmul().
/// Example: for a = `[5, 1]` and b = `[2, -4]`, `a * b` is `[10, -4]`.
inline Tensor operator*(Tensor a, Tensor b) {
    return elementwise(Function::mul, {std::move(a), std::move(b)}, {}, "operator*");
}
/// Quotient a / b. Integers are divided in f32, as in PyTorch; floor_divide() gives integers.
/// Example: for i64 a = `[7, 0]` and i64 b = `[2, 0]`, `a / b` is `[3.5, nan]`.
inline Tensor operator/(Tensor a, Tensor b) {
    return elementwise(Function::div, {std::move(a), std::move(b)}, {}, "operator/");
}
/// x + p for a number p: of the type of x, unless p is of a higher category (result_type()).
/// Examples: for i64 x = `[1, 2]`, `x + 10` is `[11, 12]`; `x + 0.5` is `[1.5, 2.5]` (f32).
inline Tensor operator+(Tensor x, Scalar p) {
    return elementwise(Function::add_scalar, {std::move(x)}, {p}, "operator+");
}
/// p + x for a number p; the same as x + p.
inline Tensor operator+(Scalar p, Tensor x) {
    return elementwise(Function::add_scalar, {std::move(x)}, {p}, "operator+");
}
/// x - p for a number p; unsigned integers wrap modulo 2^bits. Example: for x = `[1, 2]`, `x - 1` is `[0, 1]`.
inline Tensor operator-(Tensor x, Scalar p) {
    return elementwise(Function::add_scalar, {std::move(x)}, {-p}, "operator-");
}
/// x times a number p. Example: for x = `[1, 2]`, `x * 3` is `[3, 6]`.
inline Tensor operator*(Tensor x, Scalar p) {
    return elementwise(Function::mul_scalar, {std::move(x)}, {p}, "operator*");
}
/// A number p times x; the same as x * p.
inline Tensor operator*(Scalar p, Tensor x) {
    return elementwise(Function::mul_scalar, {std::move(x)}, {p}, "operator*");
}
/// x times 1 / p, within one rounding of the quotient even if 1 / p is out of the range of the type.
/// Example: for x = `[1, 2]`, `x / 4` is `[0.25, 0.5]`.
DECLIVITY_API Tensor operator/(Tensor x, Scalar p);
/// Negation, the same as neg(x). Example: for x = `[1, -2]`, `-x` is `[-1, 2]`.
inline Tensor operator-(Tensor x) { return elementwise(Function::neg, {std::move(x)}, {}, "operator-"); }
/// p - x for a number p. Example: for x = `[1, 2]`, `1 - x` is `[0, -1]`.
inline Tensor operator-(Scalar p, Tensor x) {
    return elementwise(Function::add_scalar, {-std::move(x)}, {p}, "operator-");
}
/// p / x for a number p; integers are divided in f32. Example: for x = `[4, 0]`, `1 / x` is `[0.25, inf]`.
inline Tensor operator/(Scalar p, Tensor x) { return elementwise(Function::div, {p, std::move(x)}, {}, "operator/"); }

/// x = x + other in place, as Tensor::add_(); `other` broadcasts to the shape of x.
/// Examples: for x = `[1, 2]`, `x += 10` is `[11, 12]`; `x -= 1` is `[0, 1]`; `x *= x` is `[1, 4]`; `x /= 2` is
/// `[0.5, 1]`.
/// @throws TypeError if result_type(x, other) is of a higher category than the type of x: a floating type, and x has
/// integers; ShapeError unless `other` broadcasts to the shape of x
inline Tensor& operator+=(Tensor& x, TensorOrScalar other) { return x.add_(std::move(other)); }
/// x = x - other in place, as Tensor::sub_(); see operator+=().
inline Tensor& operator-=(Tensor& x, TensorOrScalar other) { return x.sub_(std::move(other)); }
/// x = x * other in place, as Tensor::mul_(); see operator+=().
inline Tensor& operator*=(Tensor& x, TensorOrScalar other) { return x.mul_(std::move(other)); }
/// x = x / other in place, as Tensor::div_(); see operator+=(). x must be of a floating type.
inline Tensor& operator/=(Tensor& x, TensorOrScalar other) { return x.div_(std::move(other)); }
/// x = x & other in place, for integers and bools; see bitwise_and() and operator+=().
/// Examples: for i64 x = `[12, 10]`, `x &= 6` is `[4, 2]`; `x |= 1` is `[13, 11]`; `x ^= 6` is `[10, 12]`.
DECLIVITY_API Tensor& operator&=(Tensor& x, const TensorOrScalar& other);
/// x = x | other in place, for integers and bools; see bitwise_or().
DECLIVITY_API Tensor& operator|=(Tensor& x, const TensorOrScalar& other);
/// x = x ^ other in place, for integers and bools; see bitwise_xor().
DECLIVITY_API Tensor& operator^=(Tensor& x, const TensorOrScalar& other);

/// Largest integer that is not above a / b, without gradient. For integers the result is an integer, and 0 if b = 0.
/// Example: for i64 a = `[7, -7]`, `floor_divide(a, 2)` is `[3, -4]`.
inline Tensor floor_divide(TensorOrScalar a, TensorOrScalar b) {
    return elementwise(Function::floor_divide, {std::move(a), std::move(b)});
}
/// a - b floor_divide(a, b), with the sign of b, as Python's %; also `a % b`. For integers 0 if b = 0.
/// Example: for i64 a = `[7, -7]`, `remainder(a, 3)` is `[1, 2]`.
inline Tensor remainder(TensorOrScalar a, TensorOrScalar b) {
    return elementwise(Function::remainder, {std::move(a), std::move(b)});
}
/// Remainder a - b trunc(a / b), with the sign of a, as C's fmod. For integers 0 if b = 0.
/// Example: for i64 a = `[7, -7]`, `fmod(a, 3)` is `[1, -1]`.
inline Tensor fmod(TensorOrScalar a, TensorOrScalar b) {
    return elementwise(Function::fmod, {std::move(a), std::move(b)});
}
/// remainder(a, b). Example: for a = `[5.5, -1]`, `a % 2` is `[1.5, 1]`.
inline Tensor operator%(Tensor a, TensorOrScalar b) {
    return elementwise(Function::remainder, {std::move(a), std::move(b)}, {}, "operator%");
}
/// remainder(a, b) of a number and a tensor.
inline Tensor operator%(Scalar a, Tensor b) {
    return elementwise(Function::remainder, {a, std::move(b)}, {}, "operator%");
}

/// Power a^b. For integers the result is an integer; 0 for a negative exponent, unless a is 1 or -1.
/// Example: for a = `[2, 3]` and b = `[3, -1]`, `pow(a, b)` is `[8, 0.3333]`.
inline Tensor pow(Tensor a, Tensor b) { return elementwise(Function::pow, {std::move(a), std::move(b)}); }
/// x^exponent. For floating x and an exponent of -2, -1, -0.5, 0.5, 2 or 3 computed by products, quotients and square
/// roots, as in PyTorch: 0.5 of -infinity is NaN, and infinity with C's pow.
/// Examples: for x = `[-2, 9]`, `pow(x, 2)` is `[4, 81]`; `pow(x, 0.5)` is `[nan, 3]`.
DECLIVITY_API Tensor pow(const Tensor& x, Scalar exponent);
/// base^exponent for a number as the base; integers as in pow(a, b).
/// Example: for x = `[-1, 3]`, `pow(2, x)` is `[0.5, 8]`.
inline Tensor pow(Scalar base, Tensor exponent) { return elementwise(Function::pow, {base, std::move(exponent)}); }
/// Smaller of a and b: min(a, b). NaN propagates; if both are equal, each gets half of the gradient.
/// Example: for a = `[1, 5]` and b = `[4, nan]`, `minimum(a, b)` is `[1, nan]`.
inline Tensor minimum(TensorOrScalar a, TensorOrScalar b) {
    return elementwise(Function::min, {std::move(a), std::move(b)}, {}, "minimum");
}
/// Larger of a and b: max(a, b). NaN propagates; if both are equal, each gets half of the gradient.
/// Examples: for a = `[1, 5]` and b = `[4, nan]`, `maximum(a, b)` is `[4, nan]`; `maximum(a, 2)` is `[2, 5]`.
inline Tensor maximum(TensorOrScalar a, TensorOrScalar b) {
    return elementwise(Function::max, {std::move(a), std::move(b)}, {}, "maximum");
}
/// Negation -x. Example: for x = `[1, -2]`, `neg(x)` is `[-1, 2]`.
inline Tensor neg(Tensor x) { return elementwise(Function::neg, {std::move(x)}); }
/// Absolute value |x|; the gradient at 0 is 0. Example: for x = `[1, -2]`, `abs(x)` is `[1, 2]`.
inline Tensor abs(Tensor x) { return elementwise(Function::abs, {std::move(x)}); }
/// Square x^2. Example: for x = `[1, -3]`, `square(x)` is `[1, 9]`.
inline Tensor square(Tensor x) { return elementwise(Function::square, {std::move(x)}); }
/// Square root x^(1/2); NaN below 0. Example: for x = `[4, -1]`, `sqrt(x)` is `[2, nan]`.
inline Tensor sqrt(Tensor x) { return elementwise(Function::sqrt, {std::move(x)}); }
/// Reciprocal 1 / x. Example: for x = `[4, 0]`, `reciprocal(x)` is `[0.25, inf]`.
inline Tensor reciprocal(Tensor x) { return elementwise(Function::reciprocal, {std::move(x)}); }
/// Exponential e^x. Example: for x = `[-1, 0, 1]`, `exp(x)` is `[0.3679, 1, 2.718]`.
inline Tensor exp(Tensor x) { return elementwise(Function::exp, {std::move(x)}); }
/// Natural logarithm, to base e: minus infinity for 0, NaN below 0.
/// Example: for x = `[10, 1, 0, -1]`, `log(x)` is `[2.303, 0, -inf, nan]`.
inline Tensor log(Tensor x) { return elementwise(Function::log, {std::move(x)}); }
/// Hyperbolic tangent (e^x - e^-x) / (e^x + e^-x), in [-1, 1].
/// Example: for x = `[-1, 0, 1]`, `tanh(x)` is `[-0.7616, 0, 0.7616]`.
inline Tensor tanh(Tensor x) { return elementwise(Function::tanh, {std::move(x)}); }
/// Logistic function 1 / (1 + exp(-x)). Example: for x = `[-2, 0, 2]`, `sigmoid(x)` is `[0.1192, 0.5, 0.8808]`.
inline Tensor sigmoid(Tensor x) { return elementwise(Function::sigmoid, {std::move(x)}); }
/// Rectified linear unit max(x, 0); the gradient at 0 is 0. Example: for x = `[-1, 2]`, `relu(x)` is `[0, 2]`.
inline Tensor relu(Tensor x) { return elementwise(Function::relu, {std::move(x)}); }
/// x if x > 0, otherwise negative_slope x; the gradient at 0 is negative_slope.
/// Examples: for x = `[-1, 2]`, `leaky_relu(x)` is `[-0.01, 2]`; `leaky_relu(x, 0.2)` is `[-0.2, 2]`.
inline Tensor leaky_relu(Tensor x, Scalar negative_slope = 0.01) {
    return elementwise(Function::leaky_relu, {std::move(x)}, {negative_slope});
}
/// x * Phi(x) with the normal distribution function Phi (Hendrycks, Gimpel 2016), not the tanh approximation.
/// Example: for x = `[-1, 0, 1]`, `gelu(x)` is `[-0.1587, 0, 0.8413]`.
inline Tensor gelu(Tensor x) { return elementwise(Function::gelu, {std::move(x)}); }
/// x * sigmoid(x), also called swish.
/// Example: for x = `[-1, 0, 1]`, `silu(x)` is `[-0.2689, 0, 0.7311]`.
inline Tensor silu(Tensor x) { return elementwise(Function::silu, {std::move(x)}); }
/// min(max(x, low), high) for numbers as bounds; high where low > high. The gradient is 0 at and outside of the bounds.
/// A bound of NaN gives NaN for floating x.
/// Example: for x = `[-3, 0.5, 7]`, `clamp(x, -1, 1)` is `[-1, 0.5, 1]`.
DECLIVITY_API Tensor clamp(Tensor x, Scalar low, Scalar high);

/// min(max(x, low), high), where one bound or both are tensors, which broadcast with x; high where low > high. NaN of x
/// or of a tensor of bounds propagates. Where x equals a tensor of bounds, both share the gradient; where both bounds
/// are equal tensors, it goes to one of the three.
/// Example: for x = `[-3, 0.5, 7]` and low = `[-5, 1, 0]`, `clamp(x, low, 2)` is `[-3, 1, 2]`.
DECLIVITY_API Tensor clamp(const Tensor& x, const Tensor& low, const TensorOrScalar& high);
/// clamp() with a number as the lower bound and a tensor as the upper one.
DECLIVITY_API Tensor clamp(const Tensor& x, Scalar low, const Tensor& high);
/// max(x, low): clamp() without an upper bound.
/// Example: for x = `[-3, 0.5, 7]`, `clamp_min(x, 0)` is `[0, 0.5, 7]`.
DECLIVITY_API Tensor clamp_min(const Tensor& x, const TensorOrScalar& low);
/// min(x, high): clamp() without a lower bound. Example: for x = `[-3, 0.5, 7]`, `clamp_max(x, 1)` is `[-3, 0.5, 1]`.
DECLIVITY_API Tensor clamp_max(const Tensor& x, const TensorOrScalar& high);

/// Bitwise and for integers, logical and for bools; also the operator &.
/// Example: for i64 a = `[12, -1]`, `bitwise_and(a, 10)` is `[8, 10]`.
inline Tensor bitwise_and(TensorOrScalar a, TensorOrScalar b) {
    return elementwise(Function::bitwise_and, {std::move(a), std::move(b)});
}
/// Bitwise or for integers, logical or for bools; also the operator |.
/// Example: for i64 a = `[12, -1]`, `bitwise_or(a, 10)` is `[14, -1]`.
inline Tensor bitwise_or(TensorOrScalar a, TensorOrScalar b) {
    return elementwise(Function::bitwise_or, {std::move(a), std::move(b)});
}
/// Bitwise exclusive or for integers, logical for bools; also the operator ^.
/// Example: for i64 a = `[12, -1]`, `bitwise_xor(a, 10)` is `[6, -11]`.
inline Tensor bitwise_xor(TensorOrScalar a, TensorOrScalar b) {
    return elementwise(Function::bitwise_xor, {std::move(a), std::move(b)});
}
/// Bitwise complement -1 - x of integers, logical not of bools; also the operator ~.
/// Example: for i64 x = `[12, -1]`, `bitwise_not(x)` is `[-13, 0]`.
inline Tensor bitwise_not(Tensor x) { return elementwise(Function::bitwise_not, {std::move(x)}); }
/// bitwise_and(a, b). Example: for bool a = `[true, true]` and bool b = `[true, false]`, `a & b` is `[true, false]`.
inline Tensor operator&(Tensor a, TensorOrScalar b) {
    return elementwise(Function::bitwise_and, {std::move(a), std::move(b)}, {}, "operator&");
}
/// bitwise_or(a, b). Example: for bool a = `[true, false]` and bool b = `[true, false]`, `a | b` is `[true, false]`.
inline Tensor operator|(Tensor a, TensorOrScalar b) {
    return elementwise(Function::bitwise_or, {std::move(a), std::move(b)}, {}, "operator|");
}
/// bitwise_xor(a, b). Example: for bool a = `[true, true]` and bool b = `[true, false]`, `a ^ b` is `[false, true]`.
inline Tensor operator^(Tensor a, TensorOrScalar b) {
    return elementwise(Function::bitwise_xor, {std::move(a), std::move(b)}, {}, "operator^");
}
/// bitwise_not(x): logical not for bools. Example: for bool x = `[true, false]`, `~x` is `[false, true]`.
inline Tensor operator~(Tensor x) { return elementwise(Function::bitwise_not, {std::move(x)}, {}, "operator~"); }

/// True where a and b are both nonzero, of any types; the result is bool.
/// Example: for a = `[0, 0, 2]` and b = `[0, 3, 4]`, `logical_and(a, b)` is `[false, false, true]`.
inline Tensor logical_and(TensorOrScalar a, TensorOrScalar b) {
    return elementwise(Function::logical_and, {std::move(a), std::move(b)});
}
/// True where a or b is nonzero, of any types; the result is bool.
/// Example: for a = `[0, 0, 2]` and b = `[0, 3, 4]`, `logical_or(a, b)` is `[false, true, true]`.
inline Tensor logical_or(TensorOrScalar a, TensorOrScalar b) {
    return elementwise(Function::logical_or, {std::move(a), std::move(b)});
}
/// True where exactly one of a and b is nonzero, of any types; the result is bool.
/// Example: for a = `[0, 0, 2]` and b = `[0, 3, 4]`, `logical_xor(a, b)` is `[false, true, false]`.
inline Tensor logical_xor(TensorOrScalar a, TensorOrScalar b) {
    return elementwise(Function::logical_xor, {std::move(a), std::move(b)});
}
/// True where x, of any type, is 0; the result is bool. Also the operator !.
/// Example: for x = `[0, 2]`, `logical_not(x)` is `[true, false]`.
inline Tensor logical_not(Tensor x) { return elementwise(Function::logical_not, {std::move(x)}); }
/// logical_not(x). Example: for x = `[0, 2]`, `!x` is `[true, false]`.
inline Tensor operator!(Tensor x) { return elementwise(Function::logical_not, {std::move(x)}, {}, "operator!"); }

// Comparisons have long names, short names, and operators.

/// a == b; false if either is NaN. The result is bool, as for all comparisons.
/// Example: for a = `[1, 2, nan]` and b = `[1, 3, nan]`, `equal(a, b)` is `[true, false, false]`.
inline Tensor equal(TensorOrScalar a, TensorOrScalar b) {
    return elementwise(Function::equal, {std::move(a), std::move(b)});
}
/// a != b; true if either is NaN.
/// Example: for a = `[1, 2, nan]` and b = `[1, 3, nan]`, `not_equal(a, b)` is `[false, true, true]`.
inline Tensor not_equal(TensorOrScalar a, TensorOrScalar b) {
    return elementwise(Function::not_equal, {std::move(a), std::move(b)});
}
/// a < b; false if either is NaN. Example: for a = `[1, 2, nan]`, `less(a, 2)` is `[true, false, false]`.
inline Tensor less(TensorOrScalar a, TensorOrScalar b) {
    return elementwise(Function::less, {std::move(a), std::move(b)});
}
/// a <= b; false if either is NaN. Example: for a = `[1, 2, nan]`, `less_equal(a, 2)` is `[true, true, false]`.
inline Tensor less_equal(TensorOrScalar a, TensorOrScalar b) {
    return elementwise(Function::less_equal, {std::move(a), std::move(b)});
}
/// a > b; false if either is NaN. Example: for a = `[1, 2, nan]`, `greater(a, 1)` is `[false, true, false]`.
inline Tensor greater(TensorOrScalar a, TensorOrScalar b) {
    return elementwise(Function::greater, {std::move(a), std::move(b)});
}
/// a >= b; false if either is NaN. Example: for a = `[1, 2, nan]`, `greater_equal(a, 1)` is `[true, true, false]`.
inline Tensor greater_equal(TensorOrScalar a, TensorOrScalar b) {
    return elementwise(Function::greater_equal, {std::move(a), std::move(b)});
}
// Short names.

/// equal(a, b). Example: for a = `[1, 2]`, `eq(a, 2)` is `[false, true]`.
inline Tensor eq(TensorOrScalar a, TensorOrScalar b) {
    return elementwise(Function::equal, {std::move(a), std::move(b)}, {}, "eq");
}
/// not_equal(a, b). Example: for a = `[1, 2]`, `ne(a, 2)` is `[true, false]`.
inline Tensor ne(TensorOrScalar a, TensorOrScalar b) {
    return elementwise(Function::not_equal, {std::move(a), std::move(b)}, {}, "ne");
}
/// less(a, b). Example: for a = `[1, 2]`, `lt(a, 2)` is `[true, false]`.
inline Tensor lt(TensorOrScalar a, TensorOrScalar b) {
    return elementwise(Function::less, {std::move(a), std::move(b)}, {}, "lt");
}
/// less_equal(a, b). Example: for a = `[1, 2]`, `le(a, 2)` is `[true, true]`.
inline Tensor le(TensorOrScalar a, TensorOrScalar b) {
    return elementwise(Function::less_equal, {std::move(a), std::move(b)}, {}, "le");
}
/// greater(a, b). Example: for a = `[1, 2]`, `gt(a, 1)` is `[false, true]`.
inline Tensor gt(TensorOrScalar a, TensorOrScalar b) {
    return elementwise(Function::greater, {std::move(a), std::move(b)}, {}, "gt");
}
/// greater_equal(a, b). Example: for a = `[1, 2]`, `ge(a, 1)` is `[true, true]`.
inline Tensor ge(TensorOrScalar a, TensorOrScalar b) {
    return elementwise(Function::greater_equal, {std::move(a), std::move(b)}, {}, "ge");
}
// Operators.

/// equal(a, b) of two tensors, which broadcast.
/// Example: for a = `[[1], [2]]` and b = `[1, 2]`, `a == b` is `[[true, false], [false, true]]`.
inline Tensor operator==(Tensor a, Tensor b) {
    return elementwise(Function::equal, {std::move(a), std::move(b)}, {}, "operator==");
}
/// equal(a, b) of a tensor and a number. Example: for a = `[1, 2]`, `a == 2` is `[false, true]`.
inline Tensor operator==(Tensor a, Scalar b) {
    return elementwise(Function::equal, {std::move(a), b}, {}, "operator==");
}
/// equal(a, b) of a number and a tensor.
inline Tensor operator==(Scalar a, Tensor b) {
    return elementwise(Function::equal, {a, std::move(b)}, {}, "operator==");
}
/// not_equal(a, b) of two tensors, which broadcast.
/// Example: for a = `[1, 2]` and b = `[1, 3]`, `a != b` is `[false, true]`.
inline Tensor operator!=(Tensor a, Tensor b) {
    return elementwise(Function::not_equal, {std::move(a), std::move(b)}, {}, "operator!=");
}
/// not_equal(a, b) of a tensor and a number. Example: for a = `[1, 2]`, `a != 2` is `[true, false]`.
inline Tensor operator!=(Tensor a, Scalar b) {
    return elementwise(Function::not_equal, {std::move(a), b}, {}, "operator!=");
}
/// not_equal(a, b) of a number and a tensor.
inline Tensor operator!=(Scalar a, Tensor b) {
    return elementwise(Function::not_equal, {a, std::move(b)}, {}, "operator!=");
}
/// less(a, b) of two tensors, which broadcast. Example: for a = `[1, 3]` and b = `[2, 2]`, `a < b` is `[true, false]`.
inline Tensor operator<(Tensor a, Tensor b) {
    return elementwise(Function::less, {std::move(a), std::move(b)}, {}, "operator<");
}
/// less(a, b) of a tensor and a number. Example: for a = `[1, 3]`, `a < 2` is `[true, false]`.
inline Tensor operator<(Tensor a, Scalar b) { return elementwise(Function::less, {std::move(a), b}, {}, "operator<"); }
/// less(a, b) of a number and a tensor.
inline Tensor operator<(Scalar a, Tensor b) { return elementwise(Function::less, {a, std::move(b)}, {}, "operator<"); }
/// less_equal(a, b) of two tensors, which broadcast.
/// Example: for a = `[1, 3]` and b = `[1, 2]`, `a <= b` is `[true, false]`.
inline Tensor operator<=(Tensor a, Tensor b) {
    return elementwise(Function::less_equal, {std::move(a), std::move(b)}, {}, "operator<=");
}
/// less_equal(a, b) of a tensor and a number. Example: for a = `[1, 3]`, `a <= 1` is `[true, false]`.
inline Tensor operator<=(Tensor a, Scalar b) {
    return elementwise(Function::less_equal, {std::move(a), b}, {}, "operator<=");
}
/// less_equal(a, b) of a number and a tensor.
inline Tensor operator<=(Scalar a, Tensor b) {
    return elementwise(Function::less_equal, {a, std::move(b)}, {}, "operator<=");
}
/// greater(a, b) of two tensors, which broadcast.
/// Example: for a = `[1, 3]` and b = `[2, 2]`, `a > b` is `[false, true]`.
inline Tensor operator>(Tensor a, Tensor b) {
    return elementwise(Function::greater, {std::move(a), std::move(b)}, {}, "operator>");
}
/// greater(a, b) of a tensor and a number. Example: for a = `[1, 3]`, `a > 2` is `[false, true]`.
inline Tensor operator>(Tensor a, Scalar b) {
    return elementwise(Function::greater, {std::move(a), b}, {}, "operator>");
}
/// greater(a, b) of a number and a tensor.
inline Tensor operator>(Scalar a, Tensor b) {
    return elementwise(Function::greater, {a, std::move(b)}, {}, "operator>");
}
/// greater_equal(a, b) of two tensors, which broadcast.
/// Example: for a = `[1, 3]` and b = `[2, 3]`, `a >= b` is `[false, true]`.
inline Tensor operator>=(Tensor a, Tensor b) {
    return elementwise(Function::greater_equal, {std::move(a), std::move(b)}, {}, "operator>=");
}
/// greater_equal(a, b) of a tensor and a number. Example: for a = `[1, 3]`, `a >= 3` is `[false, true]`.
inline Tensor operator>=(Tensor a, Scalar b) {
    return elementwise(Function::greater_equal, {std::move(a), b}, {}, "operator>=");
}
/// greater_equal(a, b) of a number and a tensor.
inline Tensor operator>=(Scalar a, Tensor b) {
    return elementwise(Function::greater_equal, {a, std::move(b)}, {}, "operator>=");
}

/// Element of a where `condition` is true, otherwise of b; all three broadcast.
/// Example: for x = `[-1, 2]`, `where(x > 0, x, 0)` is `[0, 2]`.
/// @throws TypeError unless `condition` is bool
inline Tensor where(Tensor condition, TensorOrScalar a, TensorOrScalar b) {
    return elementwise(Function::where, {std::move(condition), std::move(a), std::move(b)});
}

/// @}

}  // namespace declivity
