// A case for each row of elementwise_table.def: the function in plain C++ double, its input ranges, and its tolerance.
// Shared by the tests of operators and gradients, and by benchmarks.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <numbers>
#include <utility>
#include <vector>

#include <reference/special_references.hpp>
#include <reference/values.hpp>

#include "ops/engine/expression.hpp"

namespace declivity::reference {

/// Inputs x = a (one input), a and b, or a, b and c; parameters p and q.
struct Arguments {
    double a = 0, b = 0, c = 0, p = 0, q = 0;
    bool integral = false;  // the inputs are integers or bools
};

struct ElementwiseCase {
    ops::Function function;
    std::function<double(const Arguments&)> value;
    std::vector<double> parameters = {};
    double low = -3, high = 3;  ///< range of random floating inputs
    double ulps = 2;            ///< tolerance in ulps of the result
    double absolute =
        0;  ///< additional absolute tolerance in f32 (for functions with zeros that are not zeros of a factor)
    /// Distance from the nearest point without a derivative.
    std::function<double(const Arguments&)> kink = [](const Arguments&) {
        return std::numeric_limits<double>::infinity();
    };
};

inline std::vector<Scalar> scalars(const std::vector<double>& values) { return {values.begin(), values.end()}; }

/// a / b, rounded down, without rounding errors if a is far larger than b.
inline double floor_divided(double a, double b) {
    const double remainder = std::fmod(a, b);
    const double quotient = (a - remainder) / b - (remainder != 0 && (remainder < 0) != (b < 0) ? 1 : 0);
    return b == 0 ? a / b : quotient == 0 ? std::copysign(0, a / b) : std::round(quotient);
}

inline std::int64_t bits(double value) { return static_cast<std::int64_t>(value); }

inline double normal_distribution(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }

/// The cases by subject.
namespace elementwise_groups {

using F = ops::Function;
using A = Arguments;
using Cases = std::vector<ElementwiseCase>;

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

inline Cases arithmetic() {
    return {
        {.function = F::add, .value = [](const A& v) { return v.a + v.b; }},
        {.function = F::sub, .value = [](const A& v) { return v.a - v.b; }},
        {.function = F::mul, .value = [](const A& v) { return v.a * v.b; }},
        {.function = F::div,
         .value = [](const A& v) { return v.a / v.b; },
         .ulps = 3,
         .kink = [](const A& v) { return std::abs(v.b) / 10; }},
        {.function = F::pow,
         .value = [](const A& v) { return std::pow(v.a, v.b); },
         .low = 0.05,
         .high = 4,
         .ulps = 16},
        {.function = F::min,
         .value = [](const A& v) { return std::isnan(v.a) || std::isnan(v.b) ? NAN : std::min(v.a, v.b); },
         .kink = [](const A& v) { return std::abs(v.a - v.b); }},
        {.function = F::max,
         .value = [](const A& v) { return std::isnan(v.a) || std::isnan(v.b) ? NAN : std::max(v.a, v.b); },
         .kink = [](const A& v) { return std::abs(v.a - v.b); }},
        {.function = F::add_scalar, .value = [](const A& v) { return v.a + v.p; }, .parameters = {3}},
        {.function = F::mul_scalar, .value = [](const A& v) { return v.a * v.p; }, .parameters = {-2}},
        {.function = F::pow_scalar,
         .value = [](const A& v) { return std::pow(v.a, v.p); },
         .parameters = {2.5},
         .low = 0.05,
         .high = 4,
         .ulps = 16},
        {.function = F::neg, .value = [](const A& v) { return -v.a; }},
        {.function = F::abs,
         .value = [](const A& v) { return std::abs(v.a); },
         .kink = [](const A& v) { return std::abs(v.a); }},
        {.function = F::square, .value = [](const A& v) { return v.a * v.a; }},
        {.function = F::sqrt,
         .value = [](const A& v) { return std::sqrt(v.a); },
         .low = 0,
         .ulps = 4,
         .kink = [](const A& v) { return v.a / 10; }},
        {.function = F::reciprocal,
         .value = [](const A& v) { return 1 / v.a; },
         .ulps = 3,
         .kink = [](const A& v) { return std::abs(v.a) / 10; }},
    };
}

inline Cases exponentials_and_activations() {
    return {
        {.function = F::exp, .value = [](const A& v) { return std::exp(v.a); }, .low = -10, .high = 10, .ulps = 4},
        {.function = F::log,
         .value = [](const A& v) { return std::log(v.a); },
         .low = 0,
         .high = 10,
         .ulps = 4,
         .kink = [](const A& v) { return v.a / 10; }},
        {.function = F::tanh, .value = [](const A& v) { return std::tanh(v.a); }, .ulps = 6},
        {.function = F::sigmoid,
         .value = [](const A& v) { return 1 / (1 + std::exp(-v.a)); },
         .low = -20,
         .high = 20,
         .ulps = 6},
        {.function = F::relu,
         .value = [](const A& v) { return v.a < 0 ? 0.0 : v.a; },
         .kink = [](const A& v) { return std::abs(v.a); }},
        {.function = F::leaky_relu,
         .value = [](const A& v) { return v.a < 0 ? v.p * v.a : v.a; },
         .parameters = {0.125},
         .kink = [](const A& v) { return std::abs(v.a); }},
        {.function = F::gelu,
         .value = [](const A& v) { return v.a == -kInfinity ? 0.0 : v.a * normal_distribution(v.a); },
         .low = -5,
         .high = 5,
         .ulps = 40},
        {.function = F::gelu_gradient,
         .value =
             [](const A& v) {
                 const double density = 0.39894228040143267794 * std::exp(-0.5 * v.a * v.a);
                 return normal_distribution(v.a) + (density == 0 ? 0.0 : v.a * density);
             },
         .low = -5,
         .high = 5,
         .ulps = 40,
         .absolute = 5e-7},
        {.function = F::silu,
         .value = [](const A& v) { return v.a == -kInfinity ? 0.0 : v.a / (1 + std::exp(-v.a)); },
         .low = -20,
         .high = 20,
         .ulps = 8},
        {.function = F::clamp,
         .value = [](const A& v) { return v.a < v.p   ? v.p
                                          : v.a > v.q ? v.q
                                                      : v.a; },
         .parameters = {-1, 2},
         .kink = [](const A& v) { return std::min(std::abs(v.a - v.p), std::abs(v.a - v.q)); }},
    };
}

inline Cases differences_and_divisions() {
    return {
        {.function = F::squared_difference, .value = [](const A& v) { return (v.a - v.b) * (v.a - v.b); }, .ulps = 4},
        {.function = F::binary_cross_entropy,
         .value = [](const A& v) { return std::max(v.a, 0.0) - v.a * v.b + std::log1p(std::exp(-std::abs(v.a))); },
         .low = 0,
         .high = 1,
         .ulps = 8,
         .absolute = 4e-7,
         .kink = [](const A& v) { return std::abs(v.a); }},
        {.function = F::floor_divide,
         .value = [](const A& v) { return v.integral && v.b == 0 ? 0 : floor_divided(v.a, v.b); }},
        {.function = F::remainder,
         .value =
             [](const A& v) {
                 if (v.integral && v.b == 0) return 0.0;
                 const double modulus = std::fmod(v.a, v.b);
                 return modulus != 0 && (modulus < 0) != (v.b < 0) ? modulus + v.b : modulus;
             },
         .kink = [](const A& v) { return std::min(std::abs(v.a / v.b - std::round(v.a / v.b)), std::abs(v.b) / 10); }},
        {.function = F::fmod,
         .value = [](const A& v) { return v.integral && v.b == 0 ? 0 : std::fmod(v.a, v.b); },
         .kink = [](const A& v) { return std::min(std::abs(v.a / v.b - std::round(v.a / v.b)), std::abs(v.b) / 10); }},
    };
}

inline Cases logic_and_comparisons() {
    return {
        {.function = F::bitwise_and, .value = [](const A& v) { return bits(v.a) & bits(v.b); }},
        {.function = F::bitwise_or, .value = [](const A& v) { return bits(v.a) | bits(v.b); }},
        {.function = F::bitwise_xor, .value = [](const A& v) { return bits(v.a) ^ bits(v.b); }},
        {.function = F::bitwise_not, .value = [](const A& v) { return ~bits(v.a); }},
        {.function = F::logical_and, .value = [](const A& v) { return v.a != 0 && v.b != 0; }},
        {.function = F::logical_or, .value = [](const A& v) { return v.a != 0 || v.b != 0; }},
        {.function = F::logical_xor, .value = [](const A& v) { return (v.a != 0) != (v.b != 0); }},
        {.function = F::logical_not, .value = [](const A& v) { return v.a == 0; }},
        {.function = F::equal, .value = [](const A& v) { return v.a == v.b ? 1.0 : 0.0; }},
        {.function = F::not_equal, .value = [](const A& v) { return v.a != v.b ? 1.0 : 0.0; }},
        {.function = F::less, .value = [](const A& v) { return v.a < v.b ? 1.0 : 0.0; }},
        {.function = F::less_equal, .value = [](const A& v) { return v.a <= v.b ? 1.0 : 0.0; }},
        {.function = F::greater, .value = [](const A& v) { return v.a > v.b ? 1.0 : 0.0; }},
        {.function = F::greater_equal, .value = [](const A& v) { return v.a >= v.b ? 1.0 : 0.0; }},
    };
}

inline Cases mathematics() {
    return {
        {.function = F::sign,
         .value = [](const A& v) { return v.a > 0   ? 1.0
                                          : v.a < 0 ? -1.0
                                                    : 0.0; },
         .kink = [](const A& v) { return std::abs(v.a); }},
        {.function = F::rsqrt,
         .value = [](const A& v) { return 1 / std::sqrt(v.a); },
         .low = 0.01,
         .ulps = 6,
         .kink = [](const A& v) { return v.a / 10; }},
        {.function = F::log1p,
         .value = [](const A& v) { return std::log1p(v.a); },
         .low = -0.95,
         .high = 10,
         .ulps = 4},
        {.function = F::expm1, .value = [](const A& v) { return std::expm1(v.a); }, .low = -10, .high = 10, .ulps = 4},
        {.function = F::log2,
         .value = [](const A& v) { return std::log2(v.a); },
         .low = 0.01,
         .high = 10,
         .ulps = 4,
         .kink = [](const A& v) { return v.a / 10; }},
        {.function = F::exp2, .value = [](const A& v) { return std::exp2(v.a); }, .low = -10, .high = 10, .ulps = 4},
        {.function = F::log10,
         .value = [](const A& v) { return std::log10(v.a); },
         .low = 0.01,
         .high = 10,
         .ulps = 5,
         .kink = [](const A& v) { return v.a / 10; }},
        {.function = F::sin, .value = [](const A& v) { return std::sin(v.a); }, .low = -20, .high = 20, .ulps = 4},
        {.function = F::cos, .value = [](const A& v) { return std::cos(v.a); }, .low = -20, .high = 20, .ulps = 4},
        {.function = F::tan, .value = [](const A& v) { return std::tan(v.a); }, .low = -1.4, .high = 1.4, .ulps = 8},
        {.function = F::asin,
         .value = [](const A& v) { return std::asin(v.a); },
         .low = -0.99,
         .high = 0.99,
         .ulps = 4},
        {.function = F::acos,
         .value = [](const A& v) { return std::acos(v.a); },
         .low = -0.99,
         .high = 0.99,
         .ulps = 4},
        {.function = F::atan, .value = [](const A& v) { return std::atan(v.a); }, .ulps = 4},
        {.function = F::atan2,
         .value = [](const A& v) { return std::atan2(v.a, v.b); },
         .ulps = 6,
         .kink = [](const A& v) { return std::hypot(v.a, v.b) / 10; }},
        {.function = F::sinh, .value = [](const A& v) { return std::sinh(v.a); }, .low = -9, .high = 9, .ulps = 6},
        {.function = F::cosh, .value = [](const A& v) { return std::cosh(v.a); }, .low = -9, .high = 9, .ulps = 6},
        {.function = F::asinh, .value = [](const A& v) { return std::asinh(v.a); }, .low = -9, .high = 9, .ulps = 6},
        {.function = F::acosh,
         .value = [](const A& v) { return std::acosh(v.a); },
         .low = 1.01,
         .high = 9,
         .ulps = 6,
         .kink = [](const A& v) { return (v.a - 1) / 10; }},
        {.function = F::atanh,
         .value = [](const A& v) { return std::atanh(v.a); },
         .low = -0.99,
         .high = 0.99,
         .ulps = 6},
        {.function = F::erf, .value = [](const A& v) { return std::erf(v.a); }, .ulps = 4},
        {.function = F::erfc, .value = [](const A& v) { return std::erfc(v.a); }, .ulps = 20},
        {.function = F::erfinv,
         .value = [](const A& v) { return inverse_erf(v.a); },
         .low = -0.99,
         .high = 0.99,
         .ulps = 12},
        {.function = F::lgamma,
         .value = [](const A& v) { return std::lgamma(v.a); },
         .low = 0.05,
         .high = 20,
         .ulps = 12,
         .absolute = 2e-6},
        {.function = F::digamma,
         .value = [](const A& v) { return digamma_reference(v.a); },
         .low = 0.05,
         .high = 20,
         .ulps = 12,
         .absolute = 2e-6},
        {.function = F::hurwitz_zeta,
         .value = [](const A& v) { return hurwitz_zeta_reference(v.p, v.a); },
         .parameters = {3},
         .low = 0.05,
         .high = 4,
         .ulps = 24},
    };
}

inline Cases rounding() {
    return {
        {.function = F::floor,
         .value = [](const A& v) { return std::floor(v.a); },
         .kink = [](const A& v) { return std::abs(v.a - std::round(v.a)); }},
        {.function = F::ceil,
         .value = [](const A& v) { return std::ceil(v.a); },
         .kink = [](const A& v) { return std::abs(v.a - std::round(v.a)); }},
        {.function = F::round,
         .value = [](const A& v) { return std::nearbyint(v.a); },
         .kink = [](const A& v) { return 0.5 - std::abs(v.a - std::round(v.a)); }},
        {.function = F::trunc,
         .value = [](const A& v) { return std::trunc(v.a); },
         .kink = [](const A& v) { return std::abs(v.a - std::round(v.a)); }},
        {.function = F::frac,
         .value = [](const A& v) { return v.a - std::trunc(v.a); },
         .kink = [](const A& v) { return std::abs(v.a - std::round(v.a)); }},
    };
}

inline Cases activations() {
    return {
        {.function = F::elu,
         .value = [](const A& v) { return v.a > 0 ? v.a : v.p * std::expm1(v.a); },
         .parameters = {0.75},
         .ulps = 6,
         .kink = [](const A& v) { return std::abs(v.a); }},
        {.function = F::softplus,
         .value = [](const A& v) { return v.a * v.p > v.q ? v.a : std::log1p(std::exp(v.a * v.p)) / v.p; },
         .parameters = {1.5, 2},
         .ulps = 8,
         .kink = [](const A& v) { return std::abs(v.a * v.p - v.q); }},
        {.function = F::logsigmoid,
         .value = [](const A& v) { return std::min(v.a, 0.0) - std::log1p(std::exp(-std::abs(v.a))); },
         .ulps = 6},
        {.function = F::softsign,
         .value = [](const A& v) { return std::isinf(v.a) ? NAN : v.a / (1 + std::abs(v.a)); },
         .ulps = 6,
         .kink = [](const A& v) { return std::abs(v.a); }},
        {.function = F::hardswish,
         .value = [](const A& v) { return v.a * std::clamp(v.a + 3, 0.0, 6.0) / 6; },
         .low = -5,
         .high = 5,
         .ulps = 8,
         .absolute = 4e-7,
         .kink = [](const A& v) { return std::abs(std::abs(v.a) - 3); }},
        {.function = F::hardsigmoid,
         .value = [](const A& v) { return std::isnan(v.a) ? NAN : std::clamp(v.a + 3, 0.0, 6.0) / 6; },
         .low = -5,
         .high = 5,
         .ulps = 6,
         .absolute = 2e-7,
         .kink = [](const A& v) { return std::abs(std::abs(v.a) - 3); }},
        {.function = F::hardtanh,
         .value = [](const A& v) { return v.a < v.p   ? v.p
                                          : v.a > v.q ? v.q
                                                      : v.a; },
         .parameters = {-1, 2},
         .kink = [](const A& v) { return std::min(std::abs(v.a - v.p), std::abs(v.a - v.q)); }},
        {.function = F::mish,
         .value =
             [](const A& v) {
                 return v.a == -kInfinity ? 0.0 : v.a * std::tanh(std::log1p(std::exp(std::min(v.a, 700.0))));
             },
         .ulps = 12,
         .absolute = 1e-35},
        {.function = F::gelu_tanh,
         .value =
             [](const A& v) {
                 return v.a < -40 ? 0.0
                                  : v.a / (1 + std::exp(-v.a * 2 * std::sqrt(2 / std::numbers::pi) *
                                                        (1 + 0.044715 * v.a * v.a)));
             },
         .low = -5,
         .high = 5,
         .ulps = 40,
         .absolute = 1e-35},
        {.function = F::threshold,
         .value = [](const A& v) { return v.a <= v.p ? v.q : v.a; },
         .parameters = {-1, 2},
         .kink = [](const A& v) { return std::abs(v.a - v.p); }},
        {.function = F::softshrink,
         .value = [](const A& v) { return v.a > v.p    ? v.a - v.p
                                          : v.a < -v.p ? v.a + v.p
                                                       : v.a * 0; },
         .parameters = {0.5},
         .kink = [](const A& v) { return std::abs(std::abs(v.a) - v.p); }},
        {.function = F::hardshrink,
         .value = [](const A& v) { return std::abs(v.a) <= v.p ? 0.0 : v.a; },
         .parameters = {0.5},
         .kink = [](const A& v) { return std::abs(std::abs(v.a) - v.p); }},
    };
}

inline Cases pairs() {
    return {
        {.function = F::logaddexp,
         .value =
             [](const A& v) {
                 return v.a == v.b
                            ? v.a + std::log(2.0)
                            : std::max(v.a, v.b) + std::log1p(std::exp(-std::abs(v.a - v.b))) +
                                  0 * std::abs(v.a == v.b                                                      ? 0.0
                                               : std::isnan(v.a + v.b) && (std::isnan(v.a) || std::isnan(v.b)) ? NAN
                                                                                                               : 0.0);
             },
         .ulps = 6,
         .absolute = 4e-7},
        {.function = F::hypot,
         .value = [](const A& v) { return std::hypot(v.a, v.b); },
         .ulps = 6,
         .kink = [](const A& v) { return std::hypot(v.a, v.b) / 10; }},
        {.function = F::copysign,
         .value = [](const A& v) { return std::copysign(v.a, v.b); },
         .kink = [](const A& v) { return std::min(std::abs(v.a), std::abs(v.b)); }},
        {.function = F::heaviside, .value = [](const A& v) { return v.a == 0  ? v.b
                                                                    : v.a > 0 ? 1.0
                                                                              : 0.0; }},
        {.function = F::lerp,
         .value = [](const A& v) { return v.a + v.c * (v.b - v.a); },
         .ulps = 4,
         .absolute = 2e-6,
         .kink = [](const A& v) { return std::abs(std::abs(v.c) - 0.5); }},
    };
}

inline Cases classification_shifts_and_choice() {
    return {
        {.function = F::isnan, .value = [](const A& v) { return std::isnan(v.a) ? 1.0 : 0.0; }},
        {.function = F::isinf, .value = [](const A& v) { return std::isinf(v.a) ? 1.0 : 0.0; }},
        {.function = F::isfinite, .value = [](const A& v) { return std::isfinite(v.a) ? 1.0 : 0.0; }},
        {.function = F::bitwise_left_shift,
         .value = [](const A& v) { return v.b < 0 || v.b >= 64 ? 0.0 : static_cast<double>(bits(v.a) << bits(v.b)); }},
        {.function = F::bitwise_right_shift,
         .value = [](const A& v) { return static_cast<double>(bits(v.a) >> (v.b < 0 || v.b >= 64 ? 63 : bits(v.b))); }},
        {.function = F::dropout,
         .value = [](const A& v) { return v.b == 0 ? v.a * v.p : 0.0; },
         .parameters = {1.25},
         .kink = [](const A& v) { return std::abs(v.b); }},
        {.function = F::where, .value = [](const A& v) { return v.a != 0 ? v.b : v.c; }},
    };
}

}  // namespace elementwise_groups

inline const std::vector<ElementwiseCase>& elementwise_cases() {
    static const std::vector<ElementwiseCase> cases = [] {
        std::vector<ElementwiseCase> all;
        for (const auto group :
             {elementwise_groups::arithmetic, elementwise_groups::exponentials_and_activations,
              elementwise_groups::differences_and_divisions, elementwise_groups::logic_and_comparisons,
              elementwise_groups::mathematics, elementwise_groups::rounding, elementwise_groups::activations,
              elementwise_groups::pairs, elementwise_groups::classification_shifts_and_choice})
            for (ElementwiseCase& item : group()) all.push_back(std::move(item));
        return all;
    }();
    return cases;
}

/// The rows of the table, in order.
inline const std::vector<ops::Function>& all_functions() {
    static const std::vector<ops::Function> functions = {
#define DECLIVITY_FUNCTION(name, ...) ops::Function::name,
#include <declivity/ops/elementwise_table.def>
#undef DECLIVITY_FUNCTION
    };
    return functions;
}

/// The case of a row, or null if missing.
inline const ElementwiseCase* case_of(ops::Function function) {
    const auto found = std::ranges::find(elementwise_cases(), function, &ElementwiseCase::function);
    return found == elementwise_cases().end() ? nullptr : &*found;
}

/// Input values: random, integral for integer types, with duplicates.
inline std::vector<double> inputs_for(const ElementwiseCase& test_case, DType dtype, std::int64_t count,
                                      std::uint64_t seed) {
    if (is_floating(dtype)) {
        auto values = random_values(count, seed, test_case.low, test_case.high);
        for (double& value : values) value = as_type(value, dtype);
        return values;
    }
    // Products of two must fit into i32 and i64; in the small types they may wrap, as on the device.
    const std::size_t size = size_of(dtype);
    const double reach = dtype == DType::boolean ? 2 : size == 8 ? 1e6 : size == 4 ? 40000 : size == 2 ? 30000 : 127;
    auto values = random_values(count, seed, dtype_info(dtype).is_signed ? -reach : 0, reach);
    for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = i % 5 == 0 ? static_cast<double>(i % 3) : std::floor(values[i]);
    for (double& value : values) value = as_type(value, dtype);
    return values;
}

/// The expected result for each element.
inline std::vector<double> expected(const ElementwiseCase& test_case, DType dtype,
                                    const std::vector<std::vector<double>>& in) {
    const ops::Domain domain = ops::info(test_case.function).domain;
    const DType result = domain == ops::Domain::compare || domain == ops::Domain::logic ? DType::boolean : dtype;
    std::vector<double> out;
    for (std::size_t i = 0; i < in[0].size(); ++i) {
        Arguments arguments{.a = in[0][i], .integral = !is_floating(dtype)};
        if (in.size() > 1) arguments.b = in[1][i];
        if (in.size() > 2) arguments.c = in[2][i];
        if (!test_case.parameters.empty()) arguments.p = as_type(test_case.parameters[0], compute_type(dtype));
        if (test_case.parameters.size() > 1) arguments.q = as_type(test_case.parameters[1], compute_type(dtype));
        const double exact = test_case.value(arguments), rounded = as_type(exact, result);
        // For f16 and bf16 the unrounded value, since an f32 error may tip the rounding; but infinity if it rounds to
        // infinity.
        out.push_back(is_16bit_float(result) && std::isfinite(rounded) ? exact : rounded);
    }
    return out;
}

inline Tolerance allowed(const ElementwiseCase& test_case, DType dtype) {
    if (!is_floating(dtype)) return {};
    // Half an ulp in addition to the f32 error; for denormals half their distance.
    if (dtype == DType::f16)
        return {.absolute = 0x1p-25 + test_case.absolute, .relative = 0x1.01p-11 + test_case.ulps * 0x1p-23};
    if (dtype == DType::bf16)
        return {.absolute = 0x1p-125 + test_case.absolute, .relative = 0x1.01p-8 + test_case.ulps * 0x1p-23};
    // Results below the smallest normal number may be flushed to zero.
    if (dtype == DType::f32) return {.absolute = 0x1p-125 + test_case.absolute, .relative = test_case.ulps * 0x1p-23};
    return {.absolute = 0x1p-1021 + test_case.absolute * 0x1p-29, .relative = 4 * test_case.ulps * 0x1p-52};
}

}  // namespace declivity::reference
