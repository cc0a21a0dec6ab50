// Division by a constant as a multiplication, which is fast on every device.
#pragma once

#include <cmath>
#include <limits>

#include <declivity/ops/dtype.hpp>

namespace declivity::detail {

/// Two numbers whose product is 1 / p.
struct Factors {
    double first, second = 1;
};

/// Factors that x of a type is multiplied by, in order, to compute x / p. 1 / p itself may not be a normal number of
/// the compute type (f32, or f64 for f64) where the quotient is one: 1e38 / 2e38.
inline Factors factors_of(DType dtype, double p) {
    using Float = std::numeric_limits<float>;
    using Double = std::numeric_limits<double>;
    const bool is_f64 = dtype == DType::f64;
    const double inverse = std::abs(1 / p), min_normal = is_f64 ? Double::min() : Float::min(),
                 max_finite = is_f64 ? Double::max() : Float::max();
    if (p == 0 || !std::isfinite(p) || (inverse >= min_normal && inverse <= max_finite)) return {1 / p};
    const int exponent = is_f64 ? 512 : 64;
    const double scale = std::ldexp(1.0, inverse < min_normal ? -exponent : exponent);
    return {scale, 1 / (p * scale)};
}

}  // namespace declivity::detail
