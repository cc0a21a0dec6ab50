// Functions in double that C++ lacks.
#pragma once

#include <cmath>
#include <numbers>

namespace declivity::reference {

/// Computed by bisection in double.
inline double inverse_erf(double x) {
    if (x == 0) return x;
    if (!(std::abs(x) < 1)) return std::abs(x) == 1 ? std::copysign(INFINITY, x) : NAN;
    double low = 0, high = 7;
    const double a = std::abs(x);
    for (int i = 0; i < 200; ++i) {
        const double middle = (low + high) / 2;
        (a < 0.5 ? std::erf(middle) < a : std::erfc(middle) > 1 - a) ? low = middle : high = middle;
    }
    return std::copysign((low + high) / 2, x);
}

/// Computed by the recurrence up to 30, then by the asymptotic series.
inline double digamma_reference(double x) {
    if (x == 0) return std::copysign(INFINITY, -x);
    if (x < 0) {
        const double t = x - std::nearbyint(x);
        return t == 0 || std::isinf(x) ? NAN
                                       : digamma_reference(1 - x) - std::numbers::pi / std::tan(std::numbers::pi * t);
    }
    if (std::isinf(x)) return x;
    long double z = x, sum = 0;
    for (; z < 30; z += 1) sum -= 1 / z;
    const long double w = 1 / (z * z);
    return static_cast<double>(sum + std::log(z) - 0.5L / z -
                               w * (1 / 12.0L - w * (1 / 120.0L - w * (1 / 252.0L - w / 240.0L))));
}

/// The terms below 30 individually, the others by the Euler-Maclaurin formula.
inline double hurwitz_zeta_reference(double s, double x) {
    if (x == 0) return INFINITY;
    if (!(x > 0)) return NAN;
    if (std::isinf(x)) return 0;
    long double z = x, sum = 0;
    for (; z < 30; z += 1) sum += std::pow(z, static_cast<long double>(-s));
    const long double last = std::pow(z, static_cast<long double>(-s));
    return static_cast<double>(sum +
                               last * (z / (s - 1) + 0.5L + s / z / 12 - s * (s + 1) * (s + 2) / (720 * z * z * z) +
                                       s * (s + 1) * (s + 2) * (s + 3) * (s + 4) / (30240 * std::pow(z, 5.0L))));
}

}  // namespace declivity::reference
