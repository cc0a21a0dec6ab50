// The functions of math.clh: references in double, their stated error bounds, and arguments over their whole range.
// Shared by the test and `declivity doctor`.
#pragma once

#include <algorithm>
#include <bit>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <vector>

#include <declivity/ops/philox.hpp>
#include <declivity/runtime/device.hpp>
#include <reference/special_references.hpp>

namespace declivity::reference {

// The factor is rounded as in math.clh: its rounding is magnified in the result and is not under test.
inline double big_phi(double x) { return 0.5 * std::erfc(-0.70710678118654752440 * x); }
inline double small_phi(double x) { return std::exp(-0.5 * x * x) / std::sqrt(2 * std::numbers::pi); }
inline double sigmoid(double x) { return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x)); }
// 0 times infinity is 0 here: the functions take the limit.
inline double product(double a, double b) { return a == 0 || b == 0 ? 0 : a * b; }

struct MathCase {
    const char* name;
    double (*reference)(double);
    double ulps;           ///< as stated in math.clh, for float
    double absolute = 0;   ///< additional absolute error
    int divisions = 0;     ///< number of divisions and square roots, which devices other than CPUs may round worse
    bool special = false;  ///< from special.clh, without a vector form

    /// Allowed error of a device in ulps, in addition to `absolute`.
    [[nodiscard]] double allowed(DeviceType type) const { return ulps + (type == DeviceType::cpu ? 0 : 3 * divisions); }
};

inline const std::vector<MathCase>& math_cases() {
    static const std::vector<MathCase> cases = {
        {"exp", [](double x) { return std::exp(x); }, 1},
        {"expm1", [](double x) { return std::expm1(x); }, 1.5},
        {"log", [](double x) { return std::log(x); }, 1},
        {"log1p", [](double x) { return std::log1p(x); }, 1.5},
        {"tanh", [](double x) { return std::tanh(x); }, 2.5, 0, 1},
        {"sigmoid", sigmoid, 2.5, 0, 1},
        {"silu", [](double x) { return product(x, sigmoid(x)); }, 3.5, 2e-36, 1},
        {"softplus", [](double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }, 2},
        {"erf", [](double x) { return std::erf(x); }, 1.2},
        {"erfc", [](double x) { return std::erfc(x); }, 7, 0, 1},
        {"gelu", [](double x) { return product(x, big_phi(x)); }, 7, 0, 1},
        {"gelu_gradient", [](double x) { return big_phi(x) + product(x, small_phi(x)); }, 0, 3e-7, 1},
        {"gelu_tanh_gradient",
         [](double x) {
             const double a = std::clamp(x, -40.0, 40.0), linear = std::sqrt(8 / std::numbers::pi);
             const double cubic = linear * 0.044715, s = 1 / (1 + std::exp(-a * (linear + cubic * a * a)));
             return s + a * s * (1 - s) * (linear + 3 * cubic * a * a);
         },
         0, 5e-7, 1},
        {"sqrt", [](double x) { return std::sqrt(x); }, 0.5, 0, 1},
        {"rsqrt", [](double x) { return 1 / std::sqrt(x); }, 1.5, 0, 2},
        {"log2", [](double x) { return std::log2(x); }, 1.5, 0, 0, true},
        {"log10", [](double x) { return std::log10(x); }, 2, 0, 0, true},
        {"exp2", [](double x) { return std::exp2(x); }, 1.5, 0, 0, true},
        {"sin", [](double x) { return std::sin(x); }, 2, 0, 0, true},
        {"cos", [](double x) { return std::cos(x); }, 2, 0, 0, true},
        {"tan", [](double x) { return std::tan(x); }, 3.5, 0, 1, true},
        {"asin", [](double x) { return std::asin(x); }, 2.5, 0, 1, true},
        {"acos", [](double x) { return std::acos(x); }, 2, 0, 1, true},
        {"atan", [](double x) { return std::atan(x); }, 2, 0, 1, true},
        {"sinh", [](double x) { return std::sinh(x); }, 3, 0, 1, true},
        {"cosh", [](double x) { return std::cosh(x); }, 2, 0, 1, true},
        {"asinh", [](double x) { return std::asinh(x); }, 3, 0, 2, true},
        {"acosh", [](double x) { return std::acosh(x); }, 3, 0, 1, true},
        {"atanh", [](double x) { return std::atanh(x); }, 3, 0, 1, true},
        {"erfinv", inverse_erf, 6, 0, 1, true},
        {"lgamma", [](double x) { return std::lgamma(x); }, 6, 1e-6, 1, true},
        {"digamma", digamma_reference, 6, 4e-6, 2, true},
    };
    return cases;
}

template <class Real>
double ulp(double x) {
    using Limits = std::numeric_limits<Real>;
    if (std::abs(x) < Limits::min()) return Limits::denorm_min();
    if (std::abs(x) > Limits::max()) x = Limits::max();
    return std::ldexp(1.0, std::ilogb(x) + 1 - Limits::digits);
}

/// Error in ulps beyond `absolute`; infinite if NaN, infinity or the range is wrong.
template <class Real>
double math_error(Real actual, double expected, double absolute) {
    const auto nearest = static_cast<Real>(expected);
    if (std::isnan(expected) || std::isnan(actual))
        return std::isnan(expected) == std::isnan(actual) ? 0 : std::numeric_limits<double>::infinity();
    if (std::isinf(nearest) || std::isinf(actual)) {
        const bool borders =
            std::abs(expected) > std::numeric_limits<Real>::max() * (1 - 1e-6) && !std::isinf(expected);
        return actual == nearest || borders ? 0 : std::numeric_limits<double>::infinity();
    }
    // Results below the smallest normal number, or with such intermediate values, may be flushed or lose digits.
    if (std::abs(expected) < 4 * std::numeric_limits<Real>::min()) absolute += 4 * std::numeric_limits<Real>::min();
    return std::max(0.0, std::abs(static_cast<double>(actual) - expected) - absolute) / ulp<Real>(expected);
}

/// Returns whether the device may flush x to zero.
template <class Real>
bool flushes(Real x) {
    return x != 0 && std::abs(x) < std::numeric_limits<Real>::min();
}

/// Error in ulps for a device that may flush a denormal x to zero.
template <class Real>
double math_error(const MathCase& test_case, Real x, Real y) {
    const double e = math_error(y, test_case.reference(x), test_case.absolute);
    return flushes(x) ? std::min(e, math_error(y, test_case.reference(std::copysign(0.0, x)), 0)) : e;
}

/// The same in double, where the functions are nearly as accurate as the host's.
inline double math_error_f64(const MathCase& test_case, double x, double y) {
    return math_error(y, test_case.reference(x),
                      test_case.absolute == 0 ? 1e-290 : std::max(2e-15, test_case.absolute * 0x1p-29));
}
inline constexpr double kMathUlpsF64 = 64;

/// Special values, `count` bit patterns spread over all patterns, and twice as many numbers in the range where the
/// functions are curved. A multiple of 16 if `count` is.
inline std::vector<float> math_arguments(std::uint32_t count) {
    constexpr float nan = std::numeric_limits<float>::quiet_NaN();
    const auto f = [](std::uint32_t bits) { return std::bit_cast<float>(bits); };
    std::vector<float> x = {0.0F,
                            -0.0F,
                            1,
                            -1,
                            INFINITY,
                            -INFINITY,
                            nan,
                            -nan,
                            f(0x7fffffff),
                            f(0xffc00fff),
                            FLT_MIN,
                            -FLT_MIN,
                            FLT_TRUE_MIN,
                            -FLT_TRUE_MIN,
                            FLT_MAX,
                            -FLT_MAX,
                            88.72283F,
                            88.72284F,
                            89,
                            -87.3365F,
                            -87.33655F,
                            -103.9F,
                            -105,
                            0.9375F,
                            4,
                            -0.75179F,
                            10,
                            10.2F,
                            14.4F,
                            -14.4F,
                            1.0e-4F,
                            -1.0e-4F};
    const std::uint32_t stride = (0xffffffffU / count) | 1U;
    for (std::uint32_t i = 0; i < count; ++i) x.push_back(f(i * stride + (i * 2654435761U) % stride));
    for (std::uint32_t i = 0; i < count; ++i) x.push_back(-20 + 40 * static_cast<float>(i) / static_cast<float>(count));
    for (std::uint32_t i = 0; i < count; ++i) x.push_back(0.5F + static_cast<float>(i) / static_cast<float>(count));
    return x;
}

struct PowArguments {
    std::vector<float> x, y;
};
/// All pairs of special values, and `count` pairs of all magnitudes whose power is finite.
inline PowArguments pow_arguments(std::uint32_t count) {
    constexpr float nan = std::numeric_limits<float>::quiet_NaN();
    const auto unit = [](std::uint32_t word) { return (word + 0.5) * 0x1p-32; };
    const std::vector<float> special = {0.0F,   -0.0F,   1,    -1,    INFINITY,   -INFINITY,   nan,      2,
                                        -2,     3,       -3,   0.5F,  -0.5F,      16777216,    -8388607, 1e30F,
                                        -1e30F, FLT_MAX, 1.5F, -2.5F, 1.0000001F, 0.99999994F, 1e-30F};
    PowArguments out;
    auto& [x, y] = out;
    for (const float a : special)
        for (const float b : special) x.push_back(a), y.push_back(b);
    for (std::uint32_t i = 0; i < count; ++i) {
        const auto w = philox4x32_10({i, 0, 0, 0}, {1, 2});
        const auto any = std::bit_cast<float>(w[0]);
        const double result = 200 * unit(w[1]) - 105;  // target logarithm of the result
        switch (i % 4) {
            case 0:
                x.push_back(any), y.push_back(std::bit_cast<float>(w[2]));
                break;
            case 1:
                x.push_back(std::abs(any)), y.push_back(static_cast<float>(result / std::log(std::abs(any))));
                break;
            case 2:
                x.push_back(static_cast<float>(1 + (i % 8 == 2 ? 1e-3 : 1) * (unit(w[3]) - 0.5)));
                y.push_back(static_cast<float>(result / std::log(x.back())));
                break;
            default:
                x.push_back(static_cast<float>(20 * unit(w[2]) - 10)), y.push_back(static_cast<float>(w[3] % 60) - 30);
        }
    }
    while (x.size() % 16 != 0) x.push_back(2), y.push_back(2);
    return out;
}

/// Error of z = pow(x, y), relative to the allowed error if the device flushes denormals.
inline double pow_error(float x, float y, float z) {
    if (flushes(x) || flushes(y)) return 0;
    const double expected = std::pow(static_cast<double>(x), static_cast<double>(y));
    if (expected == 0 && !std::isnan(z) && std::signbit(expected) != std::signbit(z))
        return std::numeric_limits<double>::infinity();
    return math_error(z, expected, 0);
}
inline constexpr double kPowUlps = 1.5;

}  // namespace declivity::reference
