// Gamma and Poisson numbers compared with the same methods in plain C++, in double and from the same random words. A
// comparison within rounding error may turn out differently, so a few elements may differ.
#include <declivity/ops/random_distributions.hpp>

#include <cmath>
#include <cstdint>
#include <numbers>
#include <vector>

#include <declivity/ops/philox.hpp>
#include <doctest/doctest.h>
#include <tests/support/devices.hpp>
#include <tests/support/values.hpp>

#include "ops/random/random.hpp"
#include "ops/support/work_split.hpp"

using namespace declivity;
using namespace declivity::test;

namespace {

constexpr std::uint64_t kSeed = 0x0123456789abcdef, kOffset = 0xfffffff0;  // crosses 2^32

double uniform(std::uint32_t word) { return (static_cast<double>(word) + 0.5) * 0x1p-32; }

double normal_of(double u, double fraction) {
    return std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * fraction);
}

/// The words of an attempt: a normal number, the acceptance number, and the rest for the boost below 1.
struct Attempt {
    double normal, decides, rest;

    Attempt(DType dtype, std::uint64_t block, std::uint64_t number) {
        if (dtype == DType::f32) {
            const auto w = philox_block(kSeed, block + number);
            normal = normal_of(uniform(w[0]), static_cast<double>(w[1]) * 0x1p-32);
            decides = uniform(w[2]);
            rest = uniform(w[3]);
            return;
        }
        const auto w = philox_block(kSeed, block + 2 * number), v = philox_block(kSeed, block + 2 * number + 1);
        const auto half_word = [&](int i) {
            return static_cast<double>(
                       (std::uint64_t{w[static_cast<std::size_t>(i) + 1]} << 32 | w[static_cast<std::size_t>(i)]) >>
                       11) *
                   0x1p-53;
        };
        normal = normal_of(half_word(0) + 0x1p-54, half_word(2));
        decides = uniform(v[0]);
        rest = uniform(v[1]);
    }
};

/// Logarithm of a gamma number (Marsaglia, Tsang 2000).
double log_gamma_number(DType dtype, double a, std::uint64_t block) {
    const double d = (a < 1 ? a + 1 : a) - 1.0 / 3, c = 1 / std::sqrt(9 * d);
    for (std::uint64_t number = 0; number < 16; ++number) {
        const Attempt attempt(dtype, block, number);
        const double r = 1 + c * attempt.normal;
        if (r <= 0) continue;
        const double v = r * r * r;
        if (std::log(attempt.decides) < 0.5 * attempt.normal * attempt.normal + d * (1 - v + std::log(v)))
            return std::log(d) + std::log(v) + (a < 1 ? std::log(attempt.rest) / a : 0);
    }
    return NAN;
}

double poisson_number(double rate, std::uint64_t block) {
    if (rate < 10) {  // Knuth
        double product = 1;
        for (int count = 0;; ++count) {
            product *= uniform(philox_block(
                kSeed, block + static_cast<std::uint64_t>(count / 4))[static_cast<std::size_t>(count % 4)]);
            if (!(product > std::exp(-rate))) return count;
        }
    }
    const double b = 0.931 + 2.53 * std::sqrt(rate), a = -0.059 + 0.02483 * b;  // Hörmann 1993, PTRS
    const double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4), accepted = 0.9277 - 3.6224 / (b - 2);
    for (std::uint64_t attempt = 0; attempt < 16; ++attempt) {
        const auto random_words = philox_block(kSeed, block + attempt);
        const double u = uniform(random_words[0]) - 0.5, v = uniform(random_words[1]), us = 0.5 - std::fabs(u);
        const double k = std::floor((2 * a / us + b) * u + rate + 0.43);
        if (us >= 0.07 && v <= accepted) return k;
        if (k < 0 || (us < 0.013 && v > us)) continue;
        if (std::log(v) + std::log(inverse_alpha) - std::log(a / (us * us) + b) <=
            -rate + k * std::log(rate) - std::lgamma(k + 1))
            return k;
    }
    return std::floor(rate);
}

/// `count` parameters, evenly spaced in their logarithm, with some at the switch between methods.
Tensor parameters(std::int64_t count, DType dtype, double low, double high) {
    std::vector<double> all = random_values(count, 11, std::log(low), std::log(high));
    for (double& item : all) item = std::exp(item);
    for (std::size_t i = 0; i < all.size(); i += 50) all[i] = low < 1 ? 1 : 10;  // where the methods change
    return tensor(all, {count}, dtype);
}

ops::RandomCall call_of(DType dtype, std::int64_t count) {
    ops::set_random_position(device(), {kSeed, kOffset});
    return ops::take_random(device(), dtype, count);
}

struct Position {
    ops::RandomPosition before = ops::random_position(device());
    ~Position() { ops::set_random_position(device(), before); }
};

}  // namespace

TEST_CASE("random draws: gamma numbers match the method in plain C++") {
    const Position position;
    const std::int64_t count = small_cases() ? 300 : 20000;
    for (const DType dtype : floats()) {
        const Tensor a = parameters(count, dtype, 0.05, 500);
        const std::vector<double> shapes = values(a);
        const std::uint64_t blocks =
            static_cast<std::uint64_t>(ops::kRandomGammaNumbers) / (dtype == DType::f64 ? 2 : 4);
        for (const bool logarithm : {true, false})
            for (const KernelStyle style : kernel_styles()) {
                const ops::KernelStyleScope scope(style);
                CAPTURE(name_of(dtype));
                CAPTURE(logarithm);
                const ops::View out = ops::View::make(device(), dtype, {count});
                ops::random_gamma("gamma", a.view(), logarithm, call_of(dtype, count * ops::kRandomGammaNumbers), out);
                const std::vector<double> result = values(Tensor(out));
                int wrong = 0;
                for (std::size_t i = 0; i < result.size(); ++i) {
                    const double log_of = log_gamma_number(dtype, shapes[i], kOffset + i * blocks);
                    const double expected = logarithm ? log_of : std::exp(log_of);
                    // Below 1 the logarithm of a uniform is divided by a, which multiplies its rounding error.
                    const double allowed = dtype == DType::f64 ? 1e-12 : 3e-6;
                    wrong +=
                        !(std::fabs(result[i] - expected) <=
                          allowed * (logarithm ? 1 + std::fabs(expected) : (1 + std::fabs(log_of)) * expected + 1e-30));
                }
                CHECK(wrong <= count / 1000);
            }
    }
}

TEST_CASE("random draws: Poisson numbers match the methods in plain C++") {
    const Position position;
    const std::int64_t count = small_cases() ? 300 : 20000;
    for (const DType dtype : floats()) {
        CAPTURE(name_of(dtype));
        for (const auto& [low, high] : {std::pair{0.05, 10.0}, {10.0, 3000.0}}) {
            const Tensor rate = parameters(count, dtype, low, high);
            const std::vector<double> rates = values(rate);
            const std::uint64_t blocks = static_cast<std::uint64_t>(ops::kRandomPoissonNumbers) / 4;
            for (const KernelStyle style : kernel_styles()) {
                const ops::KernelStyleScope scope(style);
                CAPTURE(high);
                const ops::View out = ops::View::make(device(), dtype, {count});
                ops::random_poisson("poisson", rate.view(), call_of(DType::f32, count * ops::kRandomPoissonNumbers),
                                    out);
                const std::vector<double> result = values(Tensor(out));
                int wrong = 0;
                for (std::size_t i = 0; i < result.size(); ++i)
                    wrong += result[i] != poisson_number(rates[i], kOffset + i * blocks);
                CHECK(wrong <= (dtype == DType::f64 ? 0 : count / 500));
            }
        }
    }
}
