// Radix sort: all types, rows long enough for it, ties, NaN, zeros of both signs, compared with std::stable_sort.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include <declivity/functions/functions.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>
#include <tests/support/devices.hpp>
#include <tests/support/values.hpp>

#include "ops/support/work_split.hpp"

using namespace declivity;
using namespace declivity::test;

namespace {

using Values = std::vector<double>;

/// Values of the type, with some duplicates.
Values random_column(DType dtype, std::int64_t count, std::uint64_t seed) {
    std::mt19937_64 engine(seed);
    Values out;
    for (std::int64_t i = 0; i < count; ++i) {
        const auto bits = static_cast<std::int64_t>(engine() >> 12);
        double value = 0;
        switch (dtype) {
            case DType::boolean:
                value = static_cast<double>(bits % 2);
                break;
            case DType::u8:
                value = static_cast<double>(bits % 256);
                break;
            case DType::i8:
                value = static_cast<double>(bits % 256 - 128);
                break;
            case DType::u16:
                value = static_cast<double>(bits % 65536);
                break;
            case DType::i16:
                value = static_cast<double>(bits % 65536 - 32768);
                break;
            case DType::u32:
                value = static_cast<double>(bits % (std::int64_t{1} << 32));
                break;
            case DType::i32:
                value = static_cast<double>(bits % (std::int64_t{1} << 32) - (std::int64_t{1} << 31));
                break;
            case DType::u64:
                value = static_cast<double>(bits);
                break;
            case DType::i64:
                value = static_cast<double>(bits - (std::int64_t{1} << 51));
                break;
            case DType::f16:
            case DType::bf16:
                value = static_cast<double>(bits % 256 - 128) / 16;
                break;
            default:
                // All magnitudes, both signs; every eighth from a small set with both zeros, infinities and NaN.
                value = std::ldexp(static_cast<double>(bits % 1000000 - 500000), static_cast<int>(bits % 40) - 30);
                value = static_cast<float>(value);
                if (bits % 8 == 0) {
                    constexpr double inf = std::numeric_limits<double>::infinity();
                    const double special_values[] = {0.0, -0.0, inf, -inf, NAN, -NAN, 1.0, -1.0};
                    value = special_values[static_cast<std::size_t>(bits / 8 % 8)];
                }
        }
        out.push_back(value);
    }
    return out;
}

void check(DType dtype, std::int64_t rows, std::int64_t n, std::int64_t k, bool descending, const Values& all) {
    CAPTURE(name_of(dtype));
    CAPTURE(rows);
    CAPTURE(n);
    CAPTURE(k);
    CAPTURE(descending);
    const Tensor x = tensor(all, {rows, n}, dtype);
    Values expected, places;
    for (std::int64_t row = 0; row < rows; ++row) {
        const double* row_values = all.data() + row * n;
        std::vector<std::int64_t> order(static_cast<std::size_t>(n));
        std::iota(order.begin(), order.end(), 0);
        const auto less = [](double a, double b) { return std::isnan(b) ? !std::isnan(a) : a < b; };
        std::ranges::stable_sort(order, [&](std::int64_t a, std::int64_t b) {
            return descending ? less(row_values[b], row_values[a]) : less(row_values[a], row_values[b]);
        });
        for (std::int64_t i = 0; i < k; ++i) {
            places.push_back(static_cast<double>(order[static_cast<std::size_t>(i)]));
            expected.push_back(row_values[order[static_cast<std::size_t>(i)]]);
        }
    }
    const auto same = [](const Values& a, const Values& b) {
        return std::ranges::equal(a, b, [](double p, double q) {
            return (std::isnan(p) && std::isnan(q)) || (p == q && std::signbit(p) == std::signbit(q));
        });
    };
    Tensor found, from;
    if (k == n) {
        const Sorted both = sort(x, -1, descending);
        found = both.values, from = both.indices;
        CHECK(values(argsort(x, -1, descending)) == places);
    } else {
        const TopK both = topk(x, k, -1, descending);
        found = both.values, from = both.indices;
    }
    CHECK(found.dtype() == dtype);
    CHECK(same(values(found), expected));
    CHECK(values(from) == places);
}

}  // namespace

TEST_CASE("sort: a row in order and the indices of its elements; equal ones keep their order, NaN is last") {
    const Tensor x = tensor({3, 1, NAN, 1}, {4});
    const Sorted ascending = sort(x);
    CHECK(difference(ascending.values, {1, 1, 3, NAN}, {}) == "");
    CHECK(values(ascending.indices) == Values{1, 3, 0, 2});
    const Sorted descending = sort(x, 0, true);
    CHECK(difference(descending.values, {NAN, 3, 1, 1}, {}) == "");
    CHECK(values(descending.indices) == Values{2, 0, 1, 3});
    CHECK(values(argsort(tensor({3, 1, 2, 4, 6, 5}, {2, 3}))) == Values{1, 2, 0, 0, 2, 1});
}

TEST_CASE("sort: all types, in both orders, in both kernel styles") {
    std::uint64_t seed = 0;
    for (const KernelStyle style : kernel_styles()) {
        const ops::KernelStyleScope scope(style);
        CAPTURE(style == KernelStyle::simd);
        for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i8, DType::u8, DType::i16,
                                  DType::u16, DType::i32, DType::u32, DType::i64, DType::u64, DType::boolean}) {
            if (dtype == DType::f64 && !device().info().fp64) continue;
            for (const bool descending : {false, true})
                check(dtype, 3, 700, 700, descending, random_column(dtype, 3 * 700, ++seed));
        }
    }
}

TEST_CASE("sort: numbers with common digits, in some rows or in all") {
    struct Row {
        std::uint64_t different;  // distinct numbers
        double unit;
    };
    const std::vector<Row> rows{{251, 1}, {251, 256}, {1, 5}, {65521, 1}, {100, 65536}, {2, 3}};
    const std::int64_t n = small_cases() ? 600 : 9001;
    std::mt19937_64 engine(11);
    Values all;
    for (const Row& row : rows)
        for (std::int64_t i = 0; i < n; ++i)
            all.push_back(static_cast<double>(1 + engine() % row.different) * row.unit);
    for (const KernelStyle style : kernel_styles()) {
        const ops::KernelStyleScope scope(style);
        CAPTURE(style == KernelStyle::simd);
        for (const DType dtype : {DType::i32, DType::u32, DType::i64, DType::u64, DType::f32, DType::f64}) {
            if (dtype == DType::f64 && !device().info().fp64) continue;
            for (const bool descending : {false, true})
                check(dtype, static_cast<std::int64_t>(rows.size()), n, n, descending, all);
        }
    }
}

TEST_CASE("sort: rows of many sizes, and topk of them") {
    std::uint64_t seed = 100;
    for (const KernelStyle style : kernel_styles()) {
        const ops::KernelStyleScope scope(style);
        CAPTURE(style == KernelStyle::simd);
        for (const std::int64_t n : {1, 2, 127, 128, 129, 511, 512, 513, 2048, 2049, 9001}) {
            if (small_cases() && n > 600) continue;
            for (const std::int64_t rows : {1, 2, 5})
                check(DType::f32, rows, n, n, rows == 2, random_column(DType::f32, rows * n, ++seed));
        }
        for (const std::int64_t k : {1, 17, 100, 599})
            check(DType::f32, 2, 600, k, k == 17, random_column(DType::f32, 1200, ++seed));
        check(DType::i64, 1, 600, 300, true, random_column(DType::i64, 600, ++seed));
        if (!small_cases()) check(DType::f32, 1, 70001, 70001, false, random_column(DType::f32, 70001, ++seed));
    }
}
