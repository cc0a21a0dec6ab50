// Batch normalisation: shapes, references in double, and costs. Shared by the test and the benchmark.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include <declivity/functions/functions.hpp>

#include <reference/values.hpp>

namespace declivity::reference {

struct BatchNormCase {
    std::string name;
    Shape shape;
    bool large = false;  ///< too large for an interpreter

    [[nodiscard]] std::int64_t channels() const { return shape[1]; }
    [[nodiscard]] std::int64_t inner() const { return shape.numel() / (shape[0] * shape[1]); }
    /// Elements per channel.
    [[nodiscard]] std::int64_t terms() const { return shape.numel() / shape[1]; }
    /// Forward in training: mean, variance, normalise.
    [[nodiscard]] double flops() const { return 8.0 * static_cast<double>(shape.numel()); }
    [[nodiscard]] double bytes(DType dtype) const {
        return 3.0 * static_cast<double>(shape.numel()) * static_cast<double>(size_of(dtype));
    }
    [[nodiscard]] Tolerance tolerance(DType dtype, double scale = 1) const {
        return reference::tolerance(dtype, 64, scale);
    }
};

inline const std::vector<BatchNormCase>& batch_norm_cases() {
    static const std::vector<BatchNormCase> cases{
        {.name = "two rows", .shape = {2, 3}},
        {.name = "rows", .shape = {75, 5}},
        {.name = "more columns than a block", .shape = {5, 70}},
        {.name = "one image", .shape = {1, 3, 5, 5}},
        {.name = "small planes", .shape = {6, 5, 3, 3}},
        {.name = "planes", .shape = {3, 4, 5, 7}},
        {.name = "signals", .shape = {4, 2, 33}},
        {.name = "volumes", .shape = {2, 3, 2, 3, 5}},
        {.name = "planes worth going through alone", .shape = {3, 5, 17, 19}},
        {.name = "many rows", .shape = {20'000, 37}, .large = true},
        {.name = "one channel", .shape = {100, 1, 50, 50}, .large = true},
        {.name = "early layer", .shape = {64, 32, 32, 32}, .large = true},
        {.name = "late layer", .shape = {64, 256, 7, 7}, .large = true},
        {.name = "last layer", .shape = {128, 512, 2, 2}, .large = true},
    };
    return cases;
}

struct BatchNormReference {
    std::vector<double> mean, variance;  // per channel; biased variance
    std::vector<double> y;
    std::vector<double> dx, dweight, dbias;
};

/// `running`: mean and variance to use instead of those of x.
inline BatchNormReference reference_batch_norm(const BatchNormCase& test_case, const std::vector<double>& x,
                                               const std::vector<double>& weight, const std::vector<double>& bias,
                                               const std::vector<double>& g, double eps,
                                               const BatchNormReference* running = nullptr) {
    const auto channels = static_cast<std::size_t>(test_case.channels()),
               inner = static_cast<std::size_t>(test_case.inner());
    const auto count = static_cast<double>(test_case.terms());
    const auto channel = [&](std::size_t i) { return i / inner % channels; };
    BatchNormReference out;
    const auto sums = [&](auto&& term) {  // long double, since sums of many doubles lose too much
        std::vector<long double> total(channels, 0);
        for (std::size_t i = 0; i < x.size(); ++i) total[channel(i)] += term(i);
        return std::vector<double>(total.begin(), total.end());
    };
    if (running != nullptr) {
        out.mean = running->mean;
        out.variance = running->variance;
    } else {
        out.mean = sums([&](std::size_t i) { return x[i]; });
        for (double& value : out.mean) value /= count;
        out.variance =
            sums([&](std::size_t i) { return (x[i] - out.mean[channel(i)]) * (x[i] - out.mean[channel(i)]); });
        for (double& value : out.variance) value /= count;
    }
    const auto normal = [&](std::size_t i) {
        return (x[i] - out.mean[channel(i)]) / std::sqrt(out.variance[channel(i)] + eps);
    };
    for (std::size_t i = 0; i < x.size(); ++i) out.y.push_back(normal(i) * weight[channel(i)] + bias[channel(i)]);
    out.dweight = sums([&](std::size_t i) { return g[i] * normal(i); });
    out.dbias = sums([&](std::size_t i) { return g[i]; });
    for (std::size_t i = 0; i < x.size(); ++i) {
        const std::size_t c = channel(i);
        const double through = running != nullptr ? 0 : (out.dbias[c] + normal(i) * out.dweight[c]) / count;
        out.dx.push_back(weight[c] / std::sqrt(out.variance[c] + eps) * (g[i] - through));
    }
    return out;
}

}  // namespace declivity::reference
