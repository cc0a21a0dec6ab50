// searchsorted and bucketize compared with std::lower_bound and std::upper_bound: all types, separate rows and one
// shared row, ties, NaN, infinities.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include <declivity/functions/functions.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>
#include <tests/support/devices.hpp>
#include <tests/support/values.hpp>

#include "ops/support/work_split.hpp"

using namespace declivity;
using namespace declivity::test;

namespace {

using Values = std::vector<double>;

/// NaN is the largest.
bool comes_before(double a, double b) { return std::isnan(b) ? !std::isnan(a) : a < b; }

Values search_reference(const Values& rows, std::int64_t n, const Values& queries, std::int64_t queries_per_row,
                        bool shared, bool right) {
    Values out;
    for (std::size_t i = 0; i < queries.size(); ++i) {
        const double* from = rows.data() + (shared ? 0 : static_cast<std::int64_t>(i) / queries_per_row * n);
        const double* found = right ? std::upper_bound(from, from + n, queries[i], comes_before)
                                    : std::lower_bound(from, from + n, queries[i], comes_before);
        out.push_back(static_cast<double>(found - from));
    }
    return out;
}

}  // namespace

TEST_CASE("searchsorted: positions at which values keep a row sorted") {
    const Tensor row = tensor({1, 3, 5}, {3}), x = tensor({0, 3, 9}, {3});
    CHECK(values(searchsorted(row, x)) == Values{0, 1, 3});
    CHECK(values(searchsorted(row, x, true)) == Values{0, 2, 3});  // behind equal elements
    CHECK(values(bucketize(tensor({0.5, 1, 7}, {1, 3}), tensor({1, 2}, {2}))) == Values{0, 0, 2});
}

TEST_CASE("searchsorted: all types, separate rows and one shared row") {
    std::mt19937_64 engine(3);
    constexpr double inf = std::numeric_limits<double>::infinity();
    for (const KernelStyle style : kernel_styles()) {
        const ops::KernelStyleScope scope(style);
        for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::i64, DType::i32, DType::u8, DType::i16}) {
            if (dtype == DType::f64 && !device().info().fp64) continue;
            for (const std::int64_t n : {1, 2, 5, 64, 1000})
                for (const std::int64_t rows : {1, 3}) {
                    if (small_cases() && n > 5) continue;
                    CAPTURE(name_of(dtype));
                    CAPTURE(n);
                    CAPTURE(rows);
                    // A third as many distinct numbers as elements: ties.
                    const auto max_value = static_cast<std::uint64_t>(std::min<std::int64_t>(100, n / 3 + 2));
                    const auto draw = [&](std::int64_t count, bool with_special_values) {
                        Values all;
                        for (std::int64_t i = 0; i < count; ++i) {
                            all.push_back(static_cast<double>(engine() % max_value + 1));
                            if (is_floating(dtype) && with_special_values && engine() % 9 == 0)
                                all.back() = std::array{inf, -inf, std::nan("")}[engine() % 3];
                        }
                        return all;
                    };
                    Values table = draw(rows * n, true);
                    for (std::int64_t row = 0; row < rows; ++row)
                        std::sort(table.begin() + row * n, table.begin() + (row + 1) * n, comes_before);
                    Values queries = draw(rows * 37, true);
                    queries[1] = 0, queries[2] = 101;  // before all, after all numbers
                    const Tensor sorted = tensor(table, {rows, n}, dtype), x = tensor(queries, {rows, 37}, dtype);
                    for (const bool right : {false, true}) {
                        CAPTURE(right);
                        CHECK(values(searchsorted(sorted, x, right)) ==
                              search_reference(table, n, queries, 37, false, right));
                        const Tensor first = select(sorted, 0, 0);
                        const Values one_for_all = search_reference(table, n, queries, 37, true, right);
                        CHECK(values(searchsorted(first, x, right)) == one_for_all);
                        CHECK(values(bucketize(x, first, right)) == one_for_all);
                    }
                }
        }
    }
}

TEST_CASE("searchsorted: empty boundaries, and empty values") {
    CHECK(values(searchsorted(zeros({2, 0}), zeros({2, 3}))) == Values(6, 0));
    CHECK(searchsorted(zeros({2, 4}), zeros({2, 0})).shape() == Shape{2, 0});
    CHECK_THROWS_AS((void)searchsorted(zeros({2, 4}), zeros({3, 1})), ShapeError);
}
