// Helpers shared by several parts of the catalogue.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <declivity/functions/functions.hpp>
#include <tests/functions/catalogue/case.hpp>

namespace declivity::test::catalogue {

using MultiIndex = std::vector<std::int64_t>;

inline double element(const Values& x, const Shape& shape, const MultiIndex& at) {
    std::int64_t out = 0;
    for (int axis = 0; axis < shape.rank(); ++axis) out = out * shape[axis] + at[static_cast<std::size_t>(axis)];
    return x[static_cast<std::size_t>(out)];
}

inline std::int64_t to_integer(double x) { return static_cast<std::int64_t>(x); }

/// A function that appends a case to `all`.
inline auto adder(std::vector<Case>& all) {
    return [&all](Case test_case) { all.push_back(std::move(test_case)); };
}

/// Each element of the result is one of x, or 0 without an index.
inline Case indexed_case(const std::string& name, const Shape& from, const Shape& to,
                         std::function<Tensor(const Tensor&)> call, std::function<MultiIndex(const Dims&)> index_of) {
    return {.name = name,
            .inputs = {{from}},
            .call = [call = std::move(call)](const Tensors& in) { return call(in[0]); },
            .reference =
                [from, to, index_of = std::move(index_of)](const Columns& in, DType) {
                    return table(to, [&](const Dims& at) {
                        const MultiIndex index = index_of(at);
                        return index.empty() && from.rank() > 0 ? 0.0 : element(in[0], from, index);
                    });
                },
            .sampled = true};
}

/// Parts concatenated, the last one first.
inline Tensor concat_reversed(Tensors parts, std::int64_t axis) {
    std::ranges::reverse(parts);
    return cat(std::move(parts), axis);
}

/// Members of Case.
struct AxisCaseOptions {
    bool differentiable = true;
    double terms = 5;
};

/// Along axis 1 of (3, 5, 7): from the five elements to five, or to one.
inline Case axis_case(const std::string& name, std::function<Tensor(const Tensor&)> call,
                      std::function<Values(const Values&)> line, const AxisCaseOptions& options = {}) {
    return {.name = name,
            .inputs = {{{3, 5, 7}}},
            .call = [call = std::move(call)](const Tensors& in) { return call(in[0]); },
            .reference =
                [line = std::move(line)](const Columns& in, DType) {
                    const Shape from{3, 5, 7};
                    const auto reduced_line = [&](std::int64_t i, std::int64_t k) {
                        Values column;
                        for (std::int64_t j = 0; j < 5; ++j) column.push_back(element(in[0], from, {i, j, k}));
                        return line(column);
                    };
                    const auto size = static_cast<std::int64_t>(reduced_line(0, 0).size());
                    return table({3, size, 7}, [&](const Dims& at) {
                        return reduced_line(at[0], at[2])[static_cast<std::size_t>(at[1])];
                    });
                },
            .differentiable = options.differentiable,
            .terms = options.terms};
}

inline Values sorted_values(Values x) {
    std::ranges::sort(x);
    return x;
}

/// Geometry of windows, a number for each spatial axis.
struct Windows {
    Dims kernel, stride, padding, dilation;
};

/// The index in x (N, C, spatial...) of element `tap` of window `at`, and whether it is inside.
inline std::pair<MultiIndex, bool> index_in_window(const Windows& windows, const Shape& from, const Dims& at,
                                                   const Dims& tap, std::int64_t channel) {
    MultiIndex index{at[0], channel};
    bool inside = true;
    for (int axis = 0; axis < windows.kernel.rank(); ++axis) {
        index.push_back(at[2 + axis] * windows.stride[axis] - windows.padding[axis] +
                        tap[axis] * windows.dilation[axis]);
        inside = inside && index.back() >= 0 && index.back() < from[2 + axis];
    }
    return {index, inside};
}

/// The source indices and weights of an output position.
using WeightedIndices = std::vector<std::pair<std::int64_t, double>>;

inline double triangle(double d) { return std::max(0.0, 1 - std::abs(d)); }

/// Pixels of [0, in) around `at`; those outside are clamped, or left out.
inline WeightedIndices filter_weights(std::int64_t in, double at, const std::function<double(double)>& filter,
                                      double support = 1, bool exclude = false) {
    WeightedIndices weights;
    double total_weight = 0;
    const auto middle = static_cast<std::int64_t>(std::floor(at));
    const auto reach = static_cast<std::int64_t>(3 * support) + 2;
    for (std::int64_t j = middle - reach; j <= middle + reach; ++j) {
        const double weight = filter((static_cast<double>(j) - at) / support);
        if (weight == 0 || (exclude && (j < 0 || j >= in))) continue;
        weights.emplace_back(std::clamp<std::int64_t>(j, 0, in - 1), weight);
        total_weight += weight;
    }
    if (exclude || support != 1)
        for (auto& item : weights) item.second /= total_weight;
    return weights;
}

/// Inputs of rows of n elements each, or one, and a loss for each row; (N, C, ...) has a row for each of N and C.
inline Case row_loss_case(const std::string& name, std::vector<Input> inputs,
                          std::function<Tensor(const Tensors&)> call, std::function<double(const Columns&)> reference) {
    const auto count = static_cast<std::size_t>(inputs[0].shape[0]);
    return {.name = name,
            .inputs = std::move(inputs),
            .call = std::move(call),
            .reference =
                [reference = std::move(reference), count](const Columns& in, DType) {
                    Values out;
                    for (std::size_t n = 0; n < count; ++n) {
                        Columns at;
                        for (const Values& column : in) {
                            const auto size = static_cast<std::ptrdiff_t>(column.size() / count);
                            const auto first = column.begin() + static_cast<std::ptrdiff_t>(n) * size;
                            at.emplace_back(first, first + size);
                        }
                        out.push_back(reference(at));
                    }
                    return out;
                },
            .terms = 20};
}

inline double logistic(double x) { return 1 / (1 + std::exp(-x)); }

inline double total(const Values& x) {
    double out = 0;
    for (const double value : x) out += value;
    return out;
}

}  // namespace declivity::test::catalogue
