// Tests whether numbers come from a distribution: Kolmogorov-Smirnov and Pearson's chi-squared.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

namespace declivity::test {

/// sqrt(n) times the largest distance between the empirical distribution and `cdf`: above 2.2 in one of 10,000 cases.
inline double kolmogorov_smirnov(std::vector<double> samples, const std::function<double(double)>& cdf) {
    std::ranges::sort(samples);
    const auto n = static_cast<double>(samples.size());
    double largest = 0;
    for (std::size_t i = 0; i < samples.size(); ++i) {
        const double p = cdf(samples[i]);
        if (!(p >= 0 && p <= 1)) return INFINITY;
        largest = std::max({largest, p - static_cast<double>(i) / n, static_cast<double>(i + 1) / n - p});
    }
    return largest * std::sqrt(n);
}

/// Pearson's chi-squared statistic for cells with these probabilities, minus its quantile of 1 - 1/10,000 (Wilson,
/// Hilferty 1931): a positive result is a misfit. Cells with fewer than 5 expected are merged with the next one.
inline double chi_squared_excess(const std::vector<std::int64_t>& counts, const std::vector<double>& probabilities) {
    double total = 0, sum = 0, expected = 0, counted = 0;
    for (const std::int64_t count : counts) total += static_cast<double>(count);
    int cells = 0;
    const auto close = [&] {
        if (expected > 0) sum += (counted - expected) * (counted - expected) / expected, ++cells;
        else if (counted > 0) sum = INFINITY;
        expected = counted = 0;
    };
    for (std::size_t i = 0; i < counts.size(); ++i) {
        expected += total * probabilities[i], counted += static_cast<double>(counts[i]);
        if (expected >= 5) close();
    }
    close();
    const double k = std::max(1, cells - 1), ninth = 2 / (9 * k), root = 1 - ninth + 3.72 * std::sqrt(ninth);
    return sum - k * root * root * root;
}

/// The regularised lower incomplete gamma function P(a, x): by its series, and for x > a + 1 by its continued fraction
/// (Lentz).
inline double incomplete_gamma(double a, double x) {
    if (x <= 0) return 0;
    const double front = std::exp(a * std::log(x) - x - std::lgamma(a));
    if (x < a + 1) {
        double term = 1 / a, sum = term;
        for (int n = 1; n < 10000 && term > sum * 1e-15; ++n) sum += term *= x / (a + n);
        return front * sum;
    }
    double b = x + 1 - a, c = 1e300, d = 1 / b, h = d;
    for (int n = 1; n < 10000; ++n) {
        const double an = -n * (n - a);
        b += 2;
        d = 1 / (an * d + b), c = b + an / c;
        h *= d * c;
        if (std::abs(d * c - 1) < 1e-15) break;
    }
    return 1 - front * h;
}

/// The regularised incomplete beta function I_x(a, b), by its continued fraction (Lentz).
inline double incomplete_beta(double a, double b, double x) {
    if (x <= 0) return 0;
    if (x >= 1) return 1;
    if (x > (a + 1) / (a + b + 2)) return 1 - incomplete_beta(b, a, 1 - x);
    const double front =
        std::exp(a * std::log(x) + b * std::log1p(-x) + std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b)) / a;
    double c = 1, d = 1 / (1 - (a + b) * x / (a + 1)), h = d;
    for (int m = 1; m < 10000; ++m) {
        double step = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        d = 1 / (1 + step * d), c = 1 + step / c;
        h *= d * c;
        step = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
        d = 1 / (1 + step * d), c = 1 + step / c;
        h *= d * c;
        if (std::abs(d * c - 1) < 1e-15) break;
    }
    return front * h;
}

}  // namespace declivity::test
