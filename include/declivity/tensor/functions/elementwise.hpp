// Floor 3. Elementwise functions: one line each, all of them made from ops/elementwise_table.def.
//
// They broadcast as NumPy does. They take handles by value and let go of them, so that what a chain such as
// relu(conv2d(x, w)) has only on its way need not be stored.
#pragma once

#include <initializer_list>
#include <span>
#include <string_view>
#include <utility>

#include <declivity/ops/function.hpp>
#include <declivity/tensor/tensor.hpp>

namespace declivity {

using ops::Function;

/// Any function of the table, with its inputs and parameters. How the functions below are made, and how to reach a
/// new row of the table.
/// @param called what errors call it, where that is not the name in the table
DECLIVITY_API Tensor elementwise(Function function, std::span<const Tensor> inputs,
                                 std::span<const double> parameters = {}, std::string_view called = {});
inline Tensor elementwise(Function function, std::initializer_list<Tensor> inputs,
                          std::initializer_list<double> parameters = {}, std::string_view called = {}) {
    return elementwise(function, std::span(inputs.begin(), inputs.size()),
                       std::span(parameters.begin(), parameters.size()), called);
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
inline Tensor operator/(Tensor a, Tensor b) {
    return elementwise(Function::div, {std::move(a), std::move(b)}, {}, "operator/");
}
inline Tensor operator+(Tensor x, double p) {
    return elementwise(Function::add_scalar, {std::move(x)}, {p}, "operator+");
}
inline Tensor operator+(double p, Tensor x) {
    return elementwise(Function::add_scalar, {std::move(x)}, {p}, "operator+");
}
inline Tensor operator-(Tensor x, double p) {
    return elementwise(Function::add_scalar, {std::move(x)}, {-p}, "operator-");
}
inline Tensor operator*(Tensor x, double p) {
    return elementwise(Function::mul_scalar, {std::move(x)}, {p}, "operator*");
}
inline Tensor operator*(double p, Tensor x) {
    return elementwise(Function::mul_scalar, {std::move(x)}, {p}, "operator*");
}
/// x times 1 / p; of integers only where 1 / p is whole. @throws TypeError otherwise
DECLIVITY_API Tensor operator/(Tensor x, double p);
inline Tensor operator-(Tensor x) { return elementwise(Function::neg, {std::move(x)}, {}, "operator-"); }
inline Tensor operator-(double p, Tensor x) {
    return elementwise(Function::add_scalar, {-std::move(x)}, {p}, "operator-");
}
inline Tensor operator/(double p, Tensor x) {
    return elementwise(Function::mul_scalar, {elementwise(Function::reciprocal, {std::move(x)}, {}, "operator/")}, {p},
                       "operator/");
}

inline Tensor pow(Tensor a, Tensor b) { return elementwise(Function::pow, {std::move(a), std::move(b)}); }
inline Tensor pow(Tensor x, double exponent) {
    return elementwise(Function::pow_scalar, {std::move(x)}, {exponent}, "pow");
}
/// NaN wins; where both are equal, each gets half the gradient.
inline Tensor minimum(Tensor a, Tensor b) {
    return elementwise(Function::min, {std::move(a), std::move(b)}, {}, "minimum");
}
inline Tensor maximum(Tensor a, Tensor b) {
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
inline Tensor leaky_relu(Tensor x, double negative_slope = 0.01) {
    return elementwise(Function::leaky_relu, {std::move(x)}, {negative_slope});
}
/// x * Phi(x) with the normal distribution function Phi (Hendrycks, Gimpel 2016), not the tanh approximation.
inline Tensor gelu(Tensor x) { return elementwise(Function::gelu, {std::move(x)}); }
/// x * sigmoid(x), also called swish.
inline Tensor silu(Tensor x) { return elementwise(Function::silu, {std::move(x)}); }
/// min(max(x, low), high).
inline Tensor clamp(Tensor x, double low, double high) {
    return elementwise(Function::clamp, {std::move(x)}, {low, high});
}
inline Tensor equal(Tensor a, Tensor b) { return elementwise(Function::equal, {std::move(a), std::move(b)}); }
inline Tensor not_equal(Tensor a, Tensor b) { return elementwise(Function::not_equal, {std::move(a), std::move(b)}); }
inline Tensor less(Tensor a, Tensor b) { return elementwise(Function::less, {std::move(a), std::move(b)}); }
inline Tensor less_equal(Tensor a, Tensor b) { return elementwise(Function::less_equal, {std::move(a), std::move(b)}); }
inline Tensor greater(Tensor a, Tensor b) { return elementwise(Function::greater, {std::move(a), std::move(b)}); }
inline Tensor greater_equal(Tensor a, Tensor b) {
    return elementwise(Function::greater_equal, {std::move(a), std::move(b)});
}
// The same by their short names.
inline Tensor eq(Tensor a, Tensor b) { return elementwise(Function::equal, {std::move(a), std::move(b)}, {}, "eq"); }
inline Tensor ne(Tensor a, Tensor b) {
    return elementwise(Function::not_equal, {std::move(a), std::move(b)}, {}, "ne");
}
inline Tensor lt(Tensor a, Tensor b) { return elementwise(Function::less, {std::move(a), std::move(b)}, {}, "lt"); }
inline Tensor le(Tensor a, Tensor b) {
    return elementwise(Function::less_equal, {std::move(a), std::move(b)}, {}, "le");
}
inline Tensor gt(Tensor a, Tensor b) { return elementwise(Function::greater, {std::move(a), std::move(b)}, {}, "gt"); }
inline Tensor ge(Tensor a, Tensor b) {
    return elementwise(Function::greater_equal, {std::move(a), std::move(b)}, {}, "ge");
}
/// Where `condition` (bool) holds the element of a, elsewhere that of b.
inline Tensor where(Tensor condition, Tensor a, Tensor b) {
    return elementwise(Function::where, {std::move(condition), std::move(a), std::move(b)});
}

}  // namespace declivity
