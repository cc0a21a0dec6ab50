// Reductions: shapes, a reference in double, and costs. Shared by the test and the benchmark.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <declivity/functions/functions.hpp>
#include <declivity/ops/reduce.hpp>

#include <reference/values.hpp>

namespace declivity::reference {

/// x is made dense with its axes in the order `memory` (unchanged if empty), then every `step`th element of each axis
/// is taken.
struct ReduceCase {
    std::string name;
    Shape shape;
    Dims axes = {};
    Dims memory = {};
    std::int64_t step = 1;
    bool large = false;  ///< too large for an interpreter

    [[nodiscard]] Tensor input(DType dtype, std::uint64_t seed = 1, double low = -1, double high = 1) const {
        Shape dense;
        for (int i = 0; i < shape.rank(); ++i)
            dense.push_back(shape[memory.empty() ? i : static_cast<int>(memory[i])] * step);
        Tensor x = random_tensor(dense, seed, dtype, low, high);
        if (!memory.empty()) {
            Dims order = memory;
            for (int i = 0; i < memory.rank(); ++i) order[static_cast<int>(memory[i])] = i;
            x = permute(x, order);
        }
        for (int axis = 0; step > 1 && axis < shape.rank(); ++axis) x = slice(x, axis, 0, x.size(axis), step);
        return x;
    }

    [[nodiscard]] std::int64_t outputs() const {
        return ops::reduced_shape(shape, ops::normalize_axes("case", axes, shape.rank()), false).numel();
    }
    [[nodiscard]] std::int64_t terms() const { return shape.numel() / std::max<std::int64_t>(1, outputs()); }
    [[nodiscard]] double flops() const { return static_cast<double>(shape.numel()); }
    [[nodiscard]] double bytes(DType dtype) const {
        return static_cast<double>((shape.numel() + outputs()) * static_cast<std::int64_t>(size_of(dtype)));
    }
    /// Maxima are exact. Sums consist of short compensated partial sums, so that the number of terms hardly matters.
    [[nodiscard]] Tolerance tolerance(ops::Reduce kind, DType dtype) const {
        if (kind == ops::Reduce::max || kind == ops::Reduce::min || !is_floating(dtype)) return {};
        const double scale = kind == ops::Reduce::mean ? 1 / static_cast<double>(terms()) : 1;
        return reference::tolerance(dtype, static_cast<double>(std::min<std::int64_t>(terms(), 64)),
                                    std::sqrt(static_cast<double>(terms())) * scale);
    }
};

inline const std::vector<ReduceCase>& reduce_cases() {
    static const std::vector<ReduceCase> cases{
        {.name = "a scalar", .shape = {}},
        {.name = "one element", .shape = {1}},
        {.name = "a short row", .shape = {7}},
        {.name = "a row of every remainder", .shape = {64 + 15}},
        {.name = "rows", .shape = {5, 37}, .axes = {1}},
        {.name = "columns", .shape = {37, 5}, .axes = {0}},
        {.name = "columns at a vector's width", .shape = {9, 16}, .axes = {0}},
        {.name = "columns beyond a vector", .shape = {9, 19}, .axes = {0}},
        {.name = "columns beyond four vectors", .shape = {11, 75}, .axes = {0}},
        {.name = "many short rows", .shape = {70, 3}, .axes = {-1}},
        {.name = "many rows of more than two vectors", .shape = {19, 43}, .axes = {1}},
        {.name = "rows in an order of their own", .shape = {2, 18, 9}, .axes = {2}, .memory = {1, 0, 2}},
        {.name = "many columns of many", .shape = {66, 67}, .axes = {0}},
        {.name = "a middle axis of many columns", .shape = {2, 3, 67}, .axes = {1}},
        {.name = "all axes", .shape = {3, 5, 7}},
        {.name = "the middle axis", .shape = {4, 6, 5}, .axes = {1}},
        {.name = "outer axes", .shape = {4, 6, 18}, .axes = {0, 1}},
        {.name = "first and last axis", .shape = {4, 6, 18}, .axes = {0, 2}},
        {.name = "channels", .shape = {3, 4, 5, 5}, .axes = {0, 2, 3}},
        {.name = "images", .shape = {3, 4, 5, 5}, .axes = {1, -1}},
        {.name = "every other of five axes", .shape = {2, 3, 4, 3, 5}, .axes = {0, 2, 4}},
        {.name = "and the others", .shape = {2, 3, 4, 3, 5}, .axes = {1, 3}},
        {.name = "axes of size 1", .shape = {1, 6, 1, 5, 1}, .axes = {0, 3}},
        {.name = "only axes of size 1", .shape = {1, 6, 1}, .axes = {0, 2}},
        {.name = "transposed, rows", .shape = {20, 33}, .axes = {1}, .memory = {1, 0}},
        {.name = "transposed, columns", .shape = {33, 20}, .axes = {0}, .memory = {1, 0}},
        {.name = "permuted, all", .shape = {4, 5, 18}, .memory = {2, 0, 1}},
        {.name = "permuted, two", .shape = {4, 5, 18}, .axes = {0, 2}, .memory = {2, 0, 1}},
        {.name = "sliced, rows", .shape = {6, 35}, .axes = {1}, .step = 2},
        {.name = "sliced, columns", .shape = {6, 35}, .axes = {0}, .step = 3},
        {.name = "sliced, all", .shape = {6, 5, 35}, .step = 2},
        {.name = "no outputs", .shape = {0, 4}, .axes = {1}},
        {.name = "a million", .shape = {1'000'003}, .large = true},
        {.name = "a million rows of three", .shape = {333'333, 3}, .axes = {1}, .large = true},
        {.name = "ten columns of a hundred thousand", .shape = {100'001, 10}, .axes = {0}, .large = true},
        {.name = "two columns, strided", .shape = {100'001, 2}, .axes = {0}, .step = 2, .large = true},
        {.name = "long rows", .shape = {10, 100'001}, .axes = {1}, .large = true},
        {.name = "long columns", .shape = {3'001, 513}, .axes = {0}, .large = true},
        {.name = "channels of a batch", .shape = {64, 32, 28, 28}, .axes = {0, 2, 3}, .large = true},
        {.name = "channels of a batch beyond the caches",
         .shape = {1'301, 5, 27, 25},
         .axes = {0, 2, 3},
         .large = true},
        {.name = "few channels of a batch", .shape = {100, 3, 5, 5}, .axes = {0, 2, 3}, .large = true},
        {.name = "planes of a batch", .shape = {64, 32, 7, 7}, .axes = {2, 3}, .large = true},
        {.name = "a permuted batch", .shape = {64, 32, 14, 14}, .axes = {0, 2}, .memory = {0, 2, 3, 1}, .large = true},
    };
    return cases;
}

struct ArgmaxCase {
    Shape shape;
    int axis;
    bool large = false;  ///< too large for an interpreter
};

inline const std::vector<ArgmaxCase>& argmax_cases() {
    static const std::vector<ArgmaxCase> cases{{{1}, 0},
                                               {{7}, 0},
                                               {{300}, 0},
                                               {{9, 10}, 1},
                                               {{9, 70}, 0},
                                               {{3, 5, 4}, 1},
                                               {{2, 3, 70}, 1},
                                               {{1'000'003}, 0, true},
                                               {{1000, 1000}, 1, true},
                                               {{2000, 500}, 0, true},
                                               {{8, 21, 64, 64}, 1, true}};
    return cases;
}

/// Index of the first largest element along one axis, without NaN.
inline std::vector<double> reference_argmax(const std::vector<double>& x, const Shape& shape, int axis) {
    std::int64_t inner = 1;
    for (int i = axis + 1; i < shape.rank(); ++i) inner *= shape[i];
    const std::int64_t n = shape[axis];
    std::vector<double> out;
    for (std::int64_t row = 0; row < shape.numel() / n; ++row) {
        const std::int64_t start = row / inner * n * inner + row % inner;
        std::int64_t best = 0;
        for (std::int64_t c = 1; c < n; ++c)
            if (x[static_cast<std::size_t>(start + c * inner)] > x[static_cast<std::size_t>(start + best * inner)])
                best = c;
        out.push_back(static_cast<double>(best));
    }
    return out;
}

/// Results in row-major order of the kept axes.
inline std::vector<double> reference_reduce(ops::Reduce kind, const std::vector<double>& x, const Shape& shape,
                                            const Dims& axes_or_empty) {
    const Dims axes = ops::normalize_axes("reference", axes_or_empty, shape.rank());
    const Shape reduced = ops::reduced_shape(shape, axes, true);
    const Strides strides = dense_strides(reduced);
    const double start = kind == ops::Reduce::max ? -INFINITY : kind == ops::Reduce::min ? INFINITY : 0;
    std::vector<long double> out(static_cast<std::size_t>(reduced.numel()),
                                 start);  // long double, since sums of many doubles lose too much
    for (std::size_t i = 0; i < x.size(); ++i) {
        std::int64_t at = 0;
        auto remaining = static_cast<std::int64_t>(i);
        for (int axis = shape.rank() - 1; axis >= 0; --axis) {
            if (reduced[axis] != 1) at += remaining % shape[axis] * strides[axis];
            remaining /= shape[axis];
        }
        long double& value = out[static_cast<std::size_t>(at)];
        if (kind == ops::Reduce::sum || kind == ops::Reduce::mean) value += x[i];
        else if (std::isnan(x[i])) value = x[i];
        else if (kind == ops::Reduce::max ? x[i] > value : x[i] < value) value = x[i];
    }
    if (kind == ops::Reduce::mean)
        for (long double& value : out)
            value /= static_cast<long double>(x.size()) / static_cast<long double>(out.size());
    return {out.begin(), out.end()};
}

}  // namespace declivity::reference
