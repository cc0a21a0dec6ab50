// Scans: lines in one chunk and in several, contiguous or not, compared with plain C++ in double.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
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

/// Calls next(index, previous index or -1) for each element of x (outer, n, inner), along the middle axis.
template <class Next>
void for_each_line(const Shape& shape, Next next) {
    const std::int64_t n = shape[1], inner = shape[2];
    for (std::int64_t o = 0; o < shape[0]; ++o)
        for (std::int64_t i = 0; i < n; ++i)
            for (std::int64_t k = 0; k < inner; ++k) {
                const std::int64_t at = (o * n + i) * inner + k;
                next(static_cast<std::size_t>(at), i == 0 ? -1 : at - inner, i);
            }
}

/// Lines that are short, or long enough for several chunks in either kernel style; one column, and more than a
/// work-item processes.
std::vector<Shape> shapes() {
    std::vector<Shape> all{{2, 7, 3}, {1, 20, 1}, {3, 33, 1}, {1, 5000, 1}, {1, 5000, 2}};
    if (!small_cases())
        all.insert(all.end(), {{2, 300, 5}, {3, 2050, 1}, {2, 3, 70}, {1, 2100, 67}, {1, 150000, 1}, {2, 150000, 1}});
    return all;
}

bool same(const Values& got, const Values& expected) {
    return std::ranges::equal(got, expected,
                              [](double a, double b) { return (std::isnan(a) && std::isnan(b)) || a == b; });
}

}  // namespace

TEST_CASE("scan: sums, products and maxima up to each element") {
    CHECK(values(cumsum(tensor({1, 2, 3, 4, 5, 6}, {2, 3}), 1)) == Values{1, 3, 6, 4, 9, 15});
    CHECK(values(cumsum(tensor({1, 2, 3, 4, 5, 6}, {2, 3}), 0)) == Values{1, 2, 3, 5, 7, 9});
    CHECK(values(cumprod(tensor({1, 2, 3, 4}, {4}), 0)) == Values{1, 2, 6, 24});
    const CumulativeExtreme maxima = cummax(tensor({1, 3, 2, 3}, {4}), 0);
    CHECK(values(maxima.values) == Values{1, 3, 3, 3});
    CHECK(values(maxima.indices) == Values{0, 1, 1, 3});  // the last of equal ones
    CHECK(difference(logcumsumexp(tensor({1000, 1000}, {2}), 0), {1000, 1000.693147}, {1e-3}) == "");
}

TEST_CASE("scan: sums, products and logcumsumexp along the middle of three axes") {
    std::uint64_t seed = 0;
    for (const KernelStyle style : kernel_styles()) {
        const ops::KernelStyleScope scope(style);
        CAPTURE(style == KernelStyle::simd);
        for (const DType dtype : floats())
            for (const Shape& shape : shapes()) {
                CAPTURE(name_of(dtype));
                CAPTURE(shape.str());
                const Tensor x = random_tensor(shape, ++seed, dtype, 0, 3),
                             near_one = random_tensor(shape, ++seed, dtype, 0.998, 1.002);
                const Values in = values(x), factors = values(near_one);
                Values sums(in.size()), products(in.size()), logs(in.size());
                for_each_line(shape, [&](std::size_t at, std::int64_t before, std::int64_t) {
                    const auto from = static_cast<std::size_t>(before);
                    sums[at] = before < 0 ? in[at] : sums[from] + in[at];
                    products[at] = before < 0 ? factors[at] : products[from] * factors[at];
                    logs[at] = before < 0 ? in[at] : std::log(std::exp(logs[from]) + std::exp(in[at]));
                });
                const Tolerance allowed = tolerance(dtype, static_cast<double>(shape[1]), 3);
                CHECK(difference(cumsum(x, 1), sums, allowed) == "");
                CHECK(difference(cumprod(near_one, 1), products, allowed) == "");
                CHECK(difference(logcumsumexp(x, 1), logs, allowed) == "");
            }
    }
}

TEST_CASE("scan: logcumsumexp far from zero, of equal elements, of infinities and NaN") {
    constexpr double inf = std::numeric_limits<double>::infinity();
    for (const KernelStyle style : kernel_styles()) {
        const ops::KernelStyleScope scope(style);
        const auto log_sums = [](const Values& line) {
            return values(logcumsumexp(tensor(line, {static_cast<std::int64_t>(line.size())}), 0));
        };
        const Values large = log_sums({1000, 1000, 998, -1000, 1001});
        const double two = 1000 + std::log(2.0), three = two + std::log1p(std::exp(998 - two));
        const Values expected{1000, two, three, three, 1001 + std::log1p(std::exp(three - 1001))};
        for (std::size_t i = 0; i < expected.size(); ++i) CHECK(large[i] == doctest::Approx(expected[i]).epsilon(1e-6));
        CHECK(same(log_sums({-inf, -inf}), {-inf, -inf}));
        CHECK(same(log_sums({-inf, 2, -inf}), {-inf, 2, 2}));
        CHECK(same(log_sums({1, inf, 1, inf}), {1, inf, inf, inf}));
        const Values with_nan = log_sums({1, NAN, 1});
        CHECK(with_nan[0] == 1);
        CHECK(std::isnan(with_nan[1]));
        CHECK(std::isnan(with_nan[2]));
    }
}

TEST_CASE("scan: running maximum and minimum, and their indices") {
    std::mt19937_64 engine(7);
    enum class Order { random, rising, falling, equal, with_nan };
    for (const KernelStyle style : kernel_styles()) {
        const ops::KernelStyleScope scope(style);
        CAPTURE(style == KernelStyle::simd);
        for (const DType dtype : {DType::f32, DType::f64, DType::i32, DType::u8}) {
            if (dtype == DType::f64 && !device().info().fp64) continue;
            for (const Shape& shape : shapes())
                for (const Order order :
                     {Order::random, Order::rising, Order::falling, Order::equal, Order::with_nan}) {
                    if (order == Order::with_nan && !is_floating(dtype)) continue;
                    if (small_cases() && dtype != DType::f32 && order != Order::random) continue;
                    CAPTURE(name_of(dtype));
                    CAPTURE(shape.str());
                    CAPTURE(static_cast<int>(order));
                    Values in(static_cast<std::size_t>(shape.numel()));
                    for_each_line(shape, [&](std::size_t at, std::int64_t, std::int64_t i) {
                        const auto step = static_cast<double>(dtype == DType::u8 ? i % 200 : i);
                        in[at] = order == Order::rising    ? step
                                 : order == Order::falling ? (dtype == DType::u8 ? 250 : 9000) - step
                                 : order == Order::equal   ? 3
                                                           : static_cast<double>(engine() % 100);
                        // A line with NaN from some position on, which may be in a later chunk.
                        if (order == Order::with_nan && engine() % 1500 == 0) in[at] = NAN;
                    });
                    Values tops(in.size()), bottoms(in.size()), top_indices(in.size()), bottom_indices(in.size());
                    for_each_line(shape, [&](std::size_t at, std::int64_t before, std::int64_t i) {
                        const auto from = static_cast<std::size_t>(before);
                        const auto take = [&](Values& best, Values& best_indices, const auto& is_better) {
                            const bool replaces = before < 0 || std::isnan(in[at]) ||
                                                  (!std::isnan(best[from]) && is_better(in[at], best[from]));
                            best[at] = replaces ? in[at] : best[from];
                            best_indices[at] = replaces ? static_cast<double>(i) : best_indices[from];
                        };
                        take(tops, top_indices, [](double a, double b) { return a >= b; });
                        take(bottoms, bottom_indices, [](double a, double b) { return a <= b; });
                    });
                    const Tensor x = tensor(in, shape, dtype);
                    const CumulativeExtreme top = cummax(x, 1), bottom = cummin(x, 1);
                    CHECK(same(values(top.values), tops));
                    CHECK(same(values(bottom.values), bottoms));
                    CHECK(values(top.indices) == top_indices);
                    CHECK(values(bottom.indices) == bottom_indices);
                }
        }
    }
}

TEST_CASE("scan: sums and products of lines of many sizes, of all types") {
    std::mt19937_64 engine(5);
    for (const KernelStyle style : kernel_styles()) {
        const ops::KernelStyleScope scope(style);
        CAPTURE(style == KernelStyle::simd);
        for (const DType dtype : {DType::f32, DType::f64, DType::i32, DType::i64, DType::u8}) {
            if (dtype == DType::f64 && !device().info().fp64) continue;
            for (const std::int64_t n : {1, 15, 16, 17, 31, 32, 33, 100, 1024, 5000}) {
                if (small_cases() && n > 40) continue;
                for (const std::int64_t rows : {1, 3}) {
                    CAPTURE(name_of(dtype));
                    CAPTURE(n);
                    CAPTURE(rows);
                    const bool integral = !is_floating(dtype);
                    Values in, sums, products;
                    for (std::int64_t i = 0; i < rows * n; ++i) {
                        const double element =
                            integral ? static_cast<double>(engine() % 3)
                                     : static_cast<float>(1 + static_cast<double>(engine() % 100) / 5000 - 0.01);
                        in.push_back(element);
                        sums.push_back(i % n == 0 ? element : sums.back() + element);
                        products.push_back(i % n == 0 ? element : products.back() * element);
                    }
                    if (dtype == DType::u8 && n > 100) continue;  // would overflow
                    const Tensor x = tensor(in, {rows, n}, dtype);
                    CHECK(difference(cumsum(x, 1).to(integral ? DType::i64 : dtype), sums, tolerance(dtype, 100)) ==
                          "");
                    if (!integral) CHECK(difference(cumprod(x, 1), products, tolerance(dtype, 100)) == "");
                }
            }
        }
        // A product of integers, within their range.
        const Tensor signs = tensor(Values{2, -1, 1,  3, -2, 1, 1, 1, -1, 5, 1, 1, 1, -1, 1, 2, 1, 1,  1, 1,
                                           1, 1,  -1, 1, 1,  1, 1, 1, 1,  1, 1, 1, 7, 1,  1, 1, 1, -1, 1, 1},
                                    {40}, DType::i32);
        Values expected;
        for (const double value : values(signs)) expected.push_back(expected.empty() ? value : expected.back() * value);
        CHECK(values(cumprod(signs, 0)) == expected);
    }
}
