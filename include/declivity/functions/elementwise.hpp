// Layer 5. Elementwise functions: one line each, all defined by ops/elementwise_table.def.
//
// They broadcast as NumPy does, and convert operands to a common type (result_type()); functions of floating types
// compute integers in f32. They take handles by value and release them, so that intermediate results of a chain such as
// relu(conv2d(x, w)) need not be stored.
#pragma once

#include <initializer_list>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <declivity/ops/function.hpp>
#include <declivity/tensor/tensor.hpp>

namespace declivity {

using ops::Function;

/// Any function of the table, with its inputs and parameters. The functions below call it; use it for a new row of the
/// table.
/// @param called name in error messages, if it is not the name in the table
DECLIVITY_API Tensor elementwise(Function function, std::span<const TensorOrScalar> inputs,
                                 std::span<const Scalar> parameters = {}, std::string_view called = {});
inline Tensor elementwise(Function function, std::initializer_list<TensorOrScalar> inputs,
                          std::initializer_list<Scalar> parameters = {}, std::string_view called = {}) {
    return elementwise(function, std::span(inputs.begin(), inputs.size()),
                       std::span(parameters.begin(), parameters.size()), called);
}

inline Tensor elementwise(Function function, std::span<const Tensor> inputs, std::span<const Scalar> parameters = {},
                          std::string_view called = {}) {
    const std::vector<TensorOrScalar> operands(inputs.begin(), inputs.end());
    return elementwise(function, std::span(operands), parameters, called);
}

inline Tensor operator+(Tensor a, Tensor b) {
    return elementwise(Function::add, {std::move(a), std::move(b)}, {}, "operator+");
}
inline Tensor operator-(Tensor a, Tensor b) {
    return elementwise(Function::sub, {std::move(a), std::move(b)}, {}, "operator-");
}
inline Tensor operator*(Tensor a, Tensor b) {
    return elementwise(Function::mul, {std::move(a), std::move(b)}, {}, "operator*");
}
/// Integers are divided in f32, as in PyTorch; floor_divide() gives integers.
inline Tensor operator/(Tensor a, Tensor b) {
    return elementwise(Function::div, {std::move(a), std::move(b)}, {}, "operator/");
}
inline Tensor operator+(Tensor x, Scalar p) {
    return elementwise(Function::add_scalar, {std::move(x)}, {p}, "operator+");
}
inline Tensor operator+(Scalar p, Tensor x) {
    return elementwise(Function::add_scalar, {std::move(x)}, {p}, "operator+");
}
inline Tensor operator-(Tensor x, Scalar p) {
    return elementwise(Function::add_scalar, {std::move(x)}, {-p}, "operator-");
}
inline Tensor operator*(Tensor x, Scalar p) {
    return elementwise(Function::mul_scalar, {std::move(x)}, {p}, "operator*");
}
inline Tensor operator*(Scalar p, Tensor x) {
    return elementwise(Function::mul_scalar, {std::move(x)}, {p}, "operator*");
}
/// x times 1 / p, within one rounding of the quotient even if 1 / p is out of the range of the type.
DECLIVITY_API Tensor operator/(Tensor x, Scalar p);
inline Tensor operator-(Tensor x) { return elementwise(Function::neg, {std::move(x)}, {}, "operator-"); }
inline Tensor operator-(Scalar p, Tensor x) {
    return elementwise(Function::add_scalar, {-std::move(x)}, {p}, "operator-");
}
inline Tensor operator/(Scalar p, Tensor x) { return elementwise(Function::div, {p, std::move(x)}, {}, "operator/"); }

/// In place, as add_(), sub_(), mul_() and div_().
inline Tensor& operator+=(Tensor& x, TensorOrScalar other) { return x.add_(std::move(other)); }
inline Tensor& operator-=(Tensor& x, TensorOrScalar other) { return x.sub_(std::move(other)); }
inline Tensor& operator*=(Tensor& x, TensorOrScalar other) { return x.mul_(std::move(other)); }
inline Tensor& operator/=(Tensor& x, TensorOrScalar other) { return x.div_(std::move(other)); }
/// In place, for integers and bools.
DECLIVITY_API Tensor& operator&=(Tensor& x, const TensorOrScalar& other);
DECLIVITY_API Tensor& operator|=(Tensor& x, const TensorOrScalar& other);
DECLIVITY_API Tensor& operator^=(Tensor& x, const TensorOrScalar& other);

/// Largest integer that is not above a / b. For integers the result is an integer, and 0 if b = 0.
inline Tensor floor_divide(TensorOrScalar a, TensorOrScalar b) {
    return elementwise(Function::floor_divide, {std::move(a), std::move(b)});
}
/// a - b floor_divide(a, b), with the sign of b, as Python's %; also `a % b`. For integers 0 if b = 0.
inline Tensor remainder(TensorOrScalar a, TensorOrScalar b) {
    return elementwise(Function::remainder, {std::move(a), std::move(b)});
}
/// Remainder with the sign of a, as C's fmod. For integers 0 if b = 0.
inline Tensor fmod(TensorOrScalar a, TensorOrScalar b) {
    return elementwise(Function::fmod, {std::move(a), std::move(b)});
}
inline Tensor operator%(Tensor a, TensorOrScalar b) {
    return elementwise(Function::remainder, {std::move(a), std::move(b)}, {}, "operator%");
}
inline Tensor operator%(Scalar a, Tensor b) {
    return elementwise(Function::remainder, {a, std::move(b)}, {}, "operator%");
}

/// a^b. For integers the result is an integer; 0 for a negative exponent, unless a is 1 or -1.
inline Tensor pow(Tensor a, Tensor b) { return elementwise(Function::pow, {std::move(a), std::move(b)}); }
/// x^exponent. For floating x and an exponent of -2, -1, -0.5, 0.5, 2 or 3 computed by products, quotients and square
/// roots, as in PyTorch: 0.5 of -infinity is NaN, and infinity with C's pow.
DECLIVITY_API Tensor pow(const Tensor& x, Scalar exponent);
inline Tensor pow(Scalar base, Tensor exponent) { return elementwise(Function::pow, {base, std::move(exponent)}); }
/// NaN propagates; if both are equal, each gets half of the gradient.
inline Tensor minimum(TensorOrScalar a, TensorOrScalar b) {
    return elementwise(Function::min, {std::move(a), std::move(b)}, {}, "minimum");
}
inline Tensor maximum(TensorOrScalar a, TensorOrScalar b) {
    return elementwise(Function::max, {std::move(a), std::move(b)}, {}, "maximum");
}
inline Tensor neg(Tensor x) { return elementwise(Function::neg, {std::move(x)}); }
inline Tensor abs(Tensor x) { return elementwise(Function::abs, {std::move(x)}); }
inline Tensor square(Tensor x) { return elementwise(Function::square, {std::move(x)}); }
inline Tensor sqrt(Tensor x) { return elementwise(Function::sqrt, {std::move(x)}); }
inline Tensor reciprocal(Tensor x) { return elementwise(Function::reciprocal, {std::move(x)}); }
inline Tensor exp(Tensor x) { return elementwise(Function::exp, {std::move(x)}); }
inline Tensor log(Tensor x) { return elementwise(Function::log, {std::move(x)}); }
inline Tensor tanh(Tensor x) { return elementwise(Function::tanh, {std::move(x)}); }
inline Tensor sigmoid(Tensor x) { return elementwise(Function::sigmoid, {std::move(x)}); }
inline Tensor relu(Tensor x) { return elementwise(Function::relu, {std::move(x)}); }
inline Tensor leaky_relu(Tensor x, Scalar negative_slope = 0.01) {
    return elementwise(Function::leaky_relu, {std::move(x)}, {negative_slope});
}
/// x * Phi(x) with the normal distribution function Phi (Hendrycks, Gimpel 2016), not the tanh approximation.
inline Tensor gelu(Tensor x) { return elementwise(Function::gelu, {std::move(x)}); }
/// x * sigmoid(x), also called swish.
inline Tensor silu(Tensor x) { return elementwise(Function::silu, {std::move(x)}); }
/// min(max(x, low), high); bounds are numbers, or tensors that broadcast. At a bound that is a number the gradient is
/// 0; at one that is a tensor, x and the bound share it. A bound of NaN gives NaN.
DECLIVITY_API Tensor clamp(Tensor x, Scalar low, Scalar high);

DECLIVITY_API Tensor clamp(const Tensor& x, const Tensor& low, const TensorOrScalar& high);
DECLIVITY_API Tensor clamp(const Tensor& x, Scalar low, const Tensor& high);
/// clamp with one bound.
DECLIVITY_API Tensor clamp_min(const Tensor& x, const TensorOrScalar& low);
DECLIVITY_API Tensor clamp_max(const Tensor& x, const TensorOrScalar& high);

/// Bitwise for integers, logical for bools. Also `a & b`, `a | b`, `a ^ b`, `~x`.
inline Tensor bitwise_and(TensorOrScalar a, TensorOrScalar b) {
    return elementwise(Function::bitwise_and, {std::move(a), std::move(b)});
}
inline Tensor bitwise_or(TensorOrScalar a, TensorOrScalar b) {
    return elementwise(Function::bitwise_or, {std::move(a), std::move(b)});
}
inline Tensor bitwise_xor(TensorOrScalar a, TensorOrScalar b) {
    return elementwise(Function::bitwise_xor, {std::move(a), std::move(b)});
}
inline Tensor bitwise_not(Tensor x) { return elementwise(Function::bitwise_not, {std::move(x)}); }
inline Tensor operator&(Tensor a, TensorOrScalar b) {
    return elementwise(Function::bitwise_and, {std::move(a), std::move(b)}, {}, "operator&");
}
inline Tensor operator|(Tensor a, TensorOrScalar b) {
    return elementwise(Function::bitwise_or, {std::move(a), std::move(b)}, {}, "operator|");
}
inline Tensor operator^(Tensor a, TensorOrScalar b) {
    return elementwise(Function::bitwise_xor, {std::move(a), std::move(b)}, {}, "operator^");
}
inline Tensor operator~(Tensor x) { return elementwise(Function::bitwise_not, {std::move(x)}, {}, "operator~"); }

/// Operands of any type, nonzero is true; the result is bool. Also `!x`.
inline Tensor logical_and(TensorOrScalar a, TensorOrScalar b) {
    return elementwise(Function::logical_and, {std::move(a), std::move(b)});
}
inline Tensor logical_or(TensorOrScalar a, TensorOrScalar b) {
    return elementwise(Function::logical_or, {std::move(a), std::move(b)});
}
inline Tensor logical_xor(TensorOrScalar a, TensorOrScalar b) {
    return elementwise(Function::logical_xor, {std::move(a), std::move(b)});
}
inline Tensor logical_not(Tensor x) { return elementwise(Function::logical_not, {std::move(x)}); }
inline Tensor operator!(Tensor x) { return elementwise(Function::logical_not, {std::move(x)}, {}, "operator!"); }

// Comparisons return bool. They have long names, short names, and operators.
inline Tensor equal(TensorOrScalar a, TensorOrScalar b) {
    return elementwise(Function::equal, {std::move(a), std::move(b)});
}
inline Tensor not_equal(TensorOrScalar a, TensorOrScalar b) {
    return elementwise(Function::not_equal, {std::move(a), std::move(b)});
}
inline Tensor less(TensorOrScalar a, TensorOrScalar b) {
    return elementwise(Function::less, {std::move(a), std::move(b)});
}
inline Tensor less_equal(TensorOrScalar a, TensorOrScalar b) {
    return elementwise(Function::less_equal, {std::move(a), std::move(b)});
}
inline Tensor greater(TensorOrScalar a, TensorOrScalar b) {
    return elementwise(Function::greater, {std::move(a), std::move(b)});
}
inline Tensor greater_equal(TensorOrScalar a, TensorOrScalar b) {
    return elementwise(Function::greater_equal, {std::move(a), std::move(b)});
}
// Short names.
inline Tensor eq(TensorOrScalar a, TensorOrScalar b) {
    return elementwise(Function::equal, {std::move(a), std::move(b)}, {}, "eq");
}
inline Tensor ne(TensorOrScalar a, TensorOrScalar b) {
    return elementwise(Function::not_equal, {std::move(a), std::move(b)}, {}, "ne");
}
inline Tensor lt(TensorOrScalar a, TensorOrScalar b) {
    return elementwise(Function::less, {std::move(a), std::move(b)}, {}, "lt");
}
inline Tensor le(TensorOrScalar a, TensorOrScalar b) {
    return elementwise(Function::less_equal, {std::move(a), std::move(b)}, {}, "le");
}
inline Tensor gt(TensorOrScalar a, TensorOrScalar b) {
    return elementwise(Function::greater, {std::move(a), std::move(b)}, {}, "gt");
}
inline Tensor ge(TensorOrScalar a, TensorOrScalar b) {
    return elementwise(Function::greater_equal, {std::move(a), std::move(b)}, {}, "ge");
}
// Operators.
inline Tensor operator==(Tensor a, Tensor b) {
    return elementwise(Function::equal, {std::move(a), std::move(b)}, {}, "operator==");
}
inline Tensor operator==(Tensor a, Scalar b) {
    return elementwise(Function::equal, {std::move(a), b}, {}, "operator==");
}
inline Tensor operator==(Scalar a, Tensor b) {
    return elementwise(Function::equal, {a, std::move(b)}, {}, "operator==");
}
inline Tensor operator!=(Tensor a, Tensor b) {
    return elementwise(Function::not_equal, {std::move(a), std::move(b)}, {}, "operator!=");
}
inline Tensor operator!=(Tensor a, Scalar b) {
    return elementwise(Function::not_equal, {std::move(a), b}, {}, "operator!=");
}
inline Tensor operator!=(Scalar a, Tensor b) {
    return elementwise(Function::not_equal, {a, std::move(b)}, {}, "operator!=");
}
inline Tensor operator<(Tensor a, Tensor b) {
    return elementwise(Function::less, {std::move(a), std::move(b)}, {}, "operator<");
}
inline Tensor operator<(Tensor a, Scalar b) { return elementwise(Function::less, {std::move(a), b}, {}, "operator<"); }
inline Tensor operator<(Scalar a, Tensor b) { return elementwise(Function::less, {a, std::move(b)}, {}, "operator<"); }
inline Tensor operator<=(Tensor a, Tensor b) {
    return elementwise(Function::less_equal, {std::move(a), std::move(b)}, {}, "operator<=");
}
inline Tensor operator<=(Tensor a, Scalar b) {
    return elementwise(Function::less_equal, {std::move(a), b}, {}, "operator<=");
}
inline Tensor operator<=(Scalar a, Tensor b) {
    return elementwise(Function::less_equal, {a, std::move(b)}, {}, "operator<=");
}
inline Tensor operator>(Tensor a, Tensor b) {
    return elementwise(Function::greater, {std::move(a), std::move(b)}, {}, "operator>");
}
inline Tensor operator>(Tensor a, Scalar b) {
    return elementwise(Function::greater, {std::move(a), b}, {}, "operator>");
}
inline Tensor operator>(Scalar a, Tensor b) {
    return elementwise(Function::greater, {a, std::move(b)}, {}, "operator>");
}
inline Tensor operator>=(Tensor a, Tensor b) {
    return elementwise(Function::greater_equal, {std::move(a), std::move(b)}, {}, "operator>=");
}
inline Tensor operator>=(Tensor a, Scalar b) {
    return elementwise(Function::greater_equal, {std::move(a), b}, {}, "operator>=");
}
inline Tensor operator>=(Scalar a, Tensor b) {
    return elementwise(Function::greater_equal, {a, std::move(b)}, {}, "operator>=");
}

/// Element of a where `condition` (bool) is true, otherwise of b.
inline Tensor where(Tensor condition, TensorOrScalar a, TensorOrScalar b) {
    return elementwise(Function::where, {std::move(condition), std::move(a), std::move(b)});
}

}  // namespace declivity
