// Softmax: shapes, references in double, and costs. Shared by the test and the benchmark.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <declivity/functions/functions.hpp>

#include <reference/values.hpp>

namespace declivity::reference {

struct SoftmaxCase {
    std::string name;
    Shape shape;
    int axis = -1;
    bool large = false;  ///< too large for an interpreter

    [[nodiscard]] std::int64_t length() const { return shape[normalize_axis("case", axis, shape.rank())]; }
    /// Maximum, difference, exponential (about 15), sum, product.
    [[nodiscard]] double flops() const { return 19.0 * static_cast<double>(shape.numel()); }
    [[nodiscard]] double bytes(DType dtype) const {
        return 2.0 * static_cast<double>(shape.numel()) * static_cast<double>(size_of(dtype));
    }
    [[nodiscard]] Tolerance tolerance(DType dtype, double scale = 1) const {
        return reference::tolerance(dtype, static_cast<double>(length()), scale);
    }
};

inline const std::vector<SoftmaxCase>& softmax_cases() {
    static const std::vector<SoftmaxCase> cases{
        {.name = "one element", .shape = {1}},
        {.name = "one row", .shape = {37}},
        {.name = "digits", .shape = {9, 10}},
        {.name = "rows", .shape = {5, 75}},
        {.name = "first axis", .shape = {13, 6}, .axis = 0},
        {.name = "channels", .shape = {2, 3, 5, 5}, .axis = 1},
        {.name = "more than a block of columns", .shape = {3, 4, 70}, .axis = 1},
        {.name = "an axis of size 1", .shape = {3, 1, 4}, .axis = 1},
        {.name = "nothing", .shape = {0, 4}},
        {.name = "attention", .shape = {8, 12, 128, 128}, .large = true},
        {.name = "many classes", .shape = {64, 1000}, .large = true},
        {.name = "a vocabulary", .shape = {16, 50257}, .large = true},
        {.name = "segmentation", .shape = {4, 21, 64, 64}, .axis = 1, .large = true},
    };
    return cases;
}

/// Calls row(element) for each row; element(c) is the offset of its c-th element.
template <class Row>
void for_rows(const Shape& shape, int any_axis, Row&& row) {
    const int axis = normalize_axis("reference", any_axis, shape.rank());
    std::int64_t inner = 1;
    for (int i = axis + 1; i < shape.rank(); ++i) inner *= shape[i];
    const std::int64_t n = shape[axis];
    for (std::int64_t r = 0; n > 0 && r < shape.numel() / n; ++r) {
        const std::int64_t start = r / inner * n * inner + r % inner;
        row([=](std::int64_t c) { return static_cast<std::size_t>(start + c * inner); }, n);
    }
}

inline std::vector<double> reference_log_softmax(const std::vector<double>& x, const Shape& shape, int axis) {
    std::vector<double> out(x.size());
    for_rows(shape, axis, [&](auto at, std::int64_t n) {
        double largest = -INFINITY, sum = 0;
        for (std::int64_t c = 0; c < n; ++c) largest = std::max(largest, x[at(c)]);
        for (std::int64_t c = 0; c < n; ++c) sum += std::exp(x[at(c)] - largest);
        for (std::int64_t c = 0; c < n; ++c) out[at(c)] = x[at(c)] - largest - std::log(sum);
    });
    return out;
}

inline std::vector<double> reference_softmax(const std::vector<double>& x, const Shape& shape, int axis) {
    auto out = reference_log_softmax(x, shape, axis);
    for (double& value : out) value = std::exp(value);
    return out;
}

/// Gradient of softmax or log-softmax, from that of the result.
inline std::vector<double> reference_softmax_backward(bool log, const std::vector<double>& x,
                                                      const std::vector<double>& g, const Shape& shape, int axis) {
    const auto y = reference_softmax(x, shape, axis);
    std::vector<double> out(x.size());
    for_rows(shape, axis, [&](auto at, std::int64_t n) {
        double sum = 0;
        for (std::int64_t c = 0; c < n; ++c) sum += log ? g[at(c)] : g[at(c)] * y[at(c)];
        for (std::int64_t c = 0; c < n; ++c) out[at(c)] = log ? g[at(c)] - y[at(c)] * sum : y[at(c)] * (g[at(c)] - sum);
    });
    return out;
}

}  // namespace declivity::reference
