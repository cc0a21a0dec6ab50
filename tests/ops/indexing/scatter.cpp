// Scattering of rows by index: sums and other reductions, and the last row of each index, compared with plain C++ in
// double; for tables small and large relative to the input, indices in and out of range, every type.
#include <declivity/ops/scatter.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>
#include <tests/support/devices.hpp>
#include <tests/support/values.hpp>

#include "ops/support/work_split.hpp"

using namespace declivity;
using namespace declivity::test;

namespace {

struct Rows {
    std::string name;
    std::int64_t count, inner_size, size;
    double low = -0.05, high = 1.05;  // range of indices, relative to the table size
};

/// Cases: small enough for one work-item; a table per chunk of rows; indices split among work-items; few indices that
/// occur often.
std::vector<Rows> cases() {
    std::vector<Rows> all{
        {"one row", 1, 1, 3}, {"few", 37, 5, 11}, {"one number", 700, 3, 1}, {"few that go far", 90, 2, 5000}};
    if (small_cases()) return all;
    all.insert(all.end(), {{"chunks", 70001, 1, 50},
                           {"chunks of rows", 9001, 19, 70},
                           {"owners", 70001, 1, 60013},
                           {"owners of rows", 9001, 19, 20011},
                           {"crowded", 50021, 1, 40009, -0.00001, 0.0001}});
    return all;
}

std::vector<std::int64_t> indices_of(const Rows& test_case) {
    std::vector<std::int64_t> out;
    const auto size = static_cast<double>(test_case.size);
    for (const double value : random_values(test_case.count, 3, test_case.low * size, test_case.high * size + 0.5))
        out.push_back(static_cast<std::int64_t>(std::floor(value)));
    return out;
}

std::vector<double> folded(ops::Fold fold, const std::vector<double>& x, const std::vector<std::int64_t>& indices,
                           const Rows& test_case) {
    std::vector<std::optional<double>> out(static_cast<std::size_t>(test_case.size * test_case.inner_size));
    for (std::size_t i = 0; i < indices.size(); ++i) {
        if (indices[i] < 0 || indices[i] >= test_case.size) continue;
        for (std::int64_t j = 0; j < test_case.inner_size; ++j) {
            const double value = x[i * static_cast<std::size_t>(test_case.inner_size) + static_cast<std::size_t>(j)];
            auto& to = out[static_cast<std::size_t>(indices[i] * test_case.inner_size + j)];
            if (!to) to = value;
            else if (fold == ops::Fold::sum) *to += value;
            else if (fold == ops::Fold::product) *to *= value;
            else to = fold == ops::Fold::largest ? std::max(*to, value) : std::min(*to, value);
        }
    }
    std::vector<double> plain;
    for (const auto& value : out) plain.push_back(value.value_or(0));
    return plain;
}

Tensor result_of(ops::Fold fold, const Tensor& x, const Tensor& indices, const Rows& test_case) {
    const ops::View out = ops::View::make(x.device(), x.dtype(), {test_case.size, test_case.inner_size});
    ops::fold_rows("fold_rows", fold, x.view(), indices.view(), out);
    return Tensor(out);
}

}  // namespace

TEST_CASE("scatter: three rows with the indices 2, 0, 2") {
    const Tensor x = tensor({1, 2, 3, 4, 5, 6}, {3, 2}), indices = int64_tensor({2, 0, 2}, {3});
    const ops::View out = ops::View::make(x.device(), DType::f32, {3, 2});
    ops::sum_rows("sum_rows", x.view(), indices.view(), out);
    CHECK(values(Tensor(out)) == std::vector<double>{3, 4, 0, 0, 6, 8});
    ops::fold_rows("fold_rows", ops::Fold::product, x.view(), indices.view(), out);
    CHECK(values(Tensor(out)) == std::vector<double>{3, 4, 0, 0, 5, 12});
    const ops::View last = ops::View::make(x.device(), DType::i64, {3});
    ops::last_rows("last_rows", indices.view(), last);
    CHECK(values(Tensor(last)) == std::vector<double>{1, -1, 2});
}

TEST_CASE("scatter: sums of rows by index, and the last row of each index") {
    for (const Rows& test_case : cases()) {
        CAPTURE(test_case.name);
        const std::vector<std::int64_t> indices = indices_of(test_case);
        std::vector<double> last(static_cast<std::size_t>(test_case.size), -1);
        for (std::size_t i = 0; i < indices.size(); ++i)
            if (indices[i] >= 0 && indices[i] < test_case.size)
                last[static_cast<std::size_t>(indices[i])] = static_cast<double>(i);
        for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i8, DType::u16, DType::i64}) {
            if (dtype == DType::f64 && !device().info().fp64) continue;
            CAPTURE(name_of(dtype));
            const bool integral = !is_floating(dtype);
            std::vector<double> elements =
                random_values(test_case.count * test_case.inner_size, 1, integral ? 0 : -1, integral ? 2 : 1);
            if (integral)
                for (double& element : elements) element = std::floor(element);
            const Tensor x = tensor(elements, {test_case.count, test_case.inner_size}, dtype);
            elements = values(x);
            std::vector<double> expected = folded(ops::Fold::sum, elements, indices, test_case);
            if (dtype == DType::i8)
                for (double& sum : expected) sum = static_cast<std::int8_t>(static_cast<std::int64_t>(sum));
            if (dtype == DType::u16)
                for (double& sum : expected) sum = static_cast<std::uint16_t>(static_cast<std::int64_t>(sum));
            const auto max_terms = static_cast<double>(
                test_case.high < 0.01 ? test_case.count : 20 * test_case.count / test_case.size + 1);
            const double rounding = dtype == DType::f16 ? 1e-3 : 8e-3;  // rounded once, at the end
            const Tolerance allowed = integral                ? Tolerance{0, 0}
                                      : is_16bit_float(dtype) ? Tolerance{rounding, rounding}
                                                              : tolerance(dtype, max_terms, 4);
            for (const DType index_dtype : {DType::i32, DType::i64}) {
                const Tensor at = Tensor::from<std::int64_t>(indices, {test_case.count}).to(index_dtype);
                for (const KernelStyle style : kernel_styles()) {
                    const ops::KernelStyleScope scope(style);
                    CAPTURE(style == KernelStyle::simd ? "simd" : "simt");
                    const Tensor sums = result_of(ops::Fold::sum, x, at, test_case);
                    CHECK(difference(sums, expected, allowed) == "");
                    CHECK(difference(result_of(ops::Fold::sum, x, at, test_case), values(sums), {0, 0}) == "");
                    if (dtype != DType::f32) continue;
                    const ops::View out = ops::View::make(x.device(), DType::i64, {test_case.size});
                    ops::last_rows("last_rows", at.view(), out);
                    CHECK(difference(Tensor(out), last, {0, 0}) == "");
                }
                if (dtype != DType::f32) break;
            }
        }
    }
}

TEST_CASE("scatter: sums onto existing values") {
    for (const Rows& test_case : cases()) {
        if (test_case.name == "crowded") continue;
        CAPTURE(test_case.name);
        const std::vector<std::int64_t> indices = indices_of(test_case);
        for (const DType dtype : {DType::f32, DType::bf16, DType::i32}) {
            CAPTURE(name_of(dtype));
            const double scale = dtype == DType::i32 ? 100 : 1;
            const Tensor x = random_tensor({test_case.count, test_case.inner_size}, 1, dtype, -scale, scale),
                         base = random_tensor({test_case.size, test_case.inner_size}, 2, dtype, -scale, scale),
                         at = Tensor::from<std::int64_t>(indices, {test_case.count});
            std::vector<double> expected = folded(ops::Fold::sum, values(x), indices, test_case);
            const std::vector<double> before = values(base);
            for (std::size_t i = 0; i < expected.size(); ++i) expected[i] += before[i];
            const Tolerance allowed = dtype == DType::i32    ? Tolerance{0, 0}
                                      : dtype == DType::bf16 ? Tolerance{8e-3, 8e-3}
                                                             : sum_tolerance(dtype, 100);
            for (const KernelStyle style : kernel_styles()) {
                const ops::KernelStyleScope scope(style);
                CAPTURE(style == KernelStyle::simd ? "simd" : "simt");
                const ops::View out = ops::View::make(x.device(), dtype, {test_case.size, test_case.inner_size}),
                                onto = base.view();
                ops::sum_rows("sum_rows", x.view(), at.view(), out, &onto);
                CHECK(difference(Tensor(out), expected, allowed) == "");
            }
        }
    }
}

TEST_CASE("scatter: sums and writes along the middle axis") {
    struct Along {
        const char* name;
        std::int64_t outer, size, index_count, inner;
    };
    std::vector<Along> all{{"one", 1, 3, 1, 1}, {"rows", 5, 7, 11, 1}, {"columns", 1, 4, 9, 13}, {"both", 3, 4, 6, 5}};
    if (!small_cases())
        all.insert(all.end(), {{"many rows", 701, 53, 97, 1},
                               {"one long row", 1, 60013, 20011, 1},
                               {"one short row", 1, 50, 70001, 1},
                               {"blocks of columns", 1, 30, 200, 301},
                               {"blocks of the axis", 1, 7001, 9001, 3},
                               {"blocks of rows", 97, 41, 50, 19}});
    for (const Along& item : all)
        for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i8, DType::i64}) {
            if (dtype == DType::f64 && !device().info().fp64) continue;
            CAPTURE(item.name);
            CAPTURE(name_of(dtype));
            const Shape table{item.outer, item.size, item.inner},
                source_shape{item.outer, item.index_count, item.inner};
            const double scale = is_floating(dtype) ? 1 : 9;
            const Tensor x = random_tensor(source_shape, 1, dtype, -scale, scale),
                         base = random_tensor(table, 2, dtype, -scale, scale);
            const std::vector<double> elements = values(x), before = values(base);
            std::vector<std::int64_t> indices;
            const auto size = static_cast<double>(item.size);
            for (const double value : random_values(source_shape.numel(), 3, -0.05 * size, 1.05 * size + 0.5))
                indices.push_back(static_cast<std::int64_t>(std::floor(value)));
            std::vector<double> sums = before, none(before.size(), 0), last = before;
            for (std::int64_t e = 0; e < source_shape.numel(); ++e) {
                const std::int64_t index_value = indices[static_cast<std::size_t>(e)];
                if (index_value < 0 || index_value >= item.size) continue;
                const std::int64_t o = e / item.inner / item.index_count;
                const auto to = static_cast<std::size_t>((o * item.size + index_value) * item.inner + e % item.inner);
                sums[to] += elements[static_cast<std::size_t>(e)];
                none[to] += elements[static_cast<std::size_t>(e)];
                last[to] = elements[static_cast<std::size_t>(e)];
            }
            if (dtype == DType::i8)
                for (std::vector<double>* some : {&sums, &none})
                    for (double& sum : *some) sum = static_cast<std::int8_t>(static_cast<std::int64_t>(sum));
            const double rounding = dtype == DType::f16 ? 1e-3 : 8e-3;
            const Tolerance allowed = !is_floating(dtype) ? Tolerance{0, 0}
                                      : is_16bit_float(dtype)
                                          ? Tolerance{rounding, rounding}
                                          : tolerance(dtype, 20 * static_cast<double>(item.index_count) / size + 1, 4);
            for (const DType index_dtype : {DType::i32, DType::i64}) {
                const Tensor at = Tensor::from<std::int64_t>(indices, source_shape).to(index_dtype);
                for (const KernelStyle style : kernel_styles()) {
                    const ops::KernelStyleScope scope(style);
                    CAPTURE(style == KernelStyle::simd ? "simd" : "simt");
                    const auto result = [&](auto run) {
                        const ops::View out = ops::View::make(x.device(), dtype, table);
                        run(out);
                        return Tensor(out);
                    };
                    const ops::View onto = base.view();
                    const auto add = [&](const ops::View* to) {
                        return result([&](const ops::View& out) {
                            ops::scatter_add("scatter_add", to, x.view(), at.view(), out);
                        });
                    };
                    const Tensor accumulated = add(&onto);
                    CHECK(difference(accumulated, sums, allowed) == "");
                    CHECK(difference(add(&onto), values(accumulated), {0, 0}) == "");
                    CHECK(difference(add(nullptr), none, allowed) == "");
                    const Tensor written = result([&](const ops::View& out) {
                        ops::scatter_last("scatter_last", onto, x.view(), at.view(), out);
                    });
                    CHECK(difference(written, last, {0, 0}) == "");
                }
            }
        }
}

TEST_CASE("scatter: empty indices leave the values unchanged") {
    const Tensor base = random_tensor({2, 3, 1}, 1), none = zeros({2, 0, 1}), at = zeros({2, 0, 1}, {DType::i64});
    const ops::View onto = base.view(), out = ops::View::make(base.device(), DType::f32, {2, 3, 1});
    ops::scatter_add("f", &onto, none.view(), at.view(), out);
    CHECK(values(Tensor(out)) == values(base));
    ops::scatter_add("f", nullptr, none.view(), at.view(), out);
    CHECK(values(Tensor(out)) == std::vector<double>(6, 0));
    ops::scatter_last("f", onto, none.view(), at.view(), out);
    CHECK(values(Tensor(out)) == values(base));
    const Tensor x = zeros({2, 4, 1}), misshapen_index = zeros({2, 4, 2}, {DType::i64});
    CHECK_THROWS_AS(ops::scatter_add("f", &onto, x.view(), misshapen_index.view(), out), ShapeError);
    CHECK_THROWS_AS(ops::scatter_last("f", onto, x.view(), x.view(), out), TypeError);
}

TEST_CASE("scatter: products, minima and maxima of rows by index") {
    for (const Rows& test_case : cases()) {
        if (test_case.name == "crowded") continue;
        CAPTURE(test_case.name);
        const std::vector<std::int64_t> indices = indices_of(test_case);
        const Tensor x = random_tensor({test_case.count, test_case.inner_size}, 1, DType::f32, 0.9, 1.1),
                     at = Tensor::from<std::int64_t>(indices, {test_case.count});
        for (const ops::Fold fold : {ops::Fold::product, ops::Fold::largest, ops::Fold::smallest}) {
            CAPTURE(static_cast<int>(fold));
            const std::vector<double> expected = folded(fold, values(x), indices, test_case);
            for (const KernelStyle style : kernel_styles()) {
                const ops::KernelStyleScope scope(style);
                CAPTURE(style == KernelStyle::simd ? "simd" : "simt");
                CHECK(difference(result_of(fold, x, at, test_case), expected,
                                 tolerance(DType::f32, fold == ops::Fold::product ? 2000 : 1, 4)) == "");
            }
        }
    }
}

TEST_CASE("scatter: a NaN affects only its own index") {
    for (const KernelStyle style : kernel_styles()) {
        const ops::KernelStyleScope scope(style);
        const Tensor x = Tensor::from<float>({1, NAN, 2, INFINITY, 3}, {5, 1}),
                     at = Tensor::from<std::int64_t>({0, 2, 0, 7, -1}, {5});
        const std::vector<double> sums = values(result_of(ops::Fold::sum, x, at, {"", 5, 1, 4}));
        CHECK(sums[0] == 3);
        CHECK(sums[1] == 0);
        CHECK(std::isnan(sums[2]));
        CHECK(sums[3] == 0);
    }
}

TEST_CASE("scatter: error messages") {
    const Tensor x = random_tensor({4, 2}, 1), at = zeros({4}, {DType::i64});
    const ops::View out = ops::View::make(x.device(), DType::f32, {3, 2});
    CHECK_THROWS_AS(ops::sum_rows("f", x.view(), x.view(), out), TypeError);
    CHECK_THROWS_AS(ops::sum_rows("f", x.view(), zeros({3}, {DType::i64}).view(), out), ShapeError);
    CHECK_THROWS_AS(ops::last_rows("f", at.view(), ops::View::make(x.device(), DType::i32, {3})), TypeError);
    CHECK_THROWS_WITH_AS(
        ops::sum_rows("f", x.to(DType::boolean).view(), at.view(), ops::View::make(x.device(), DType::boolean, {3, 2})),
        doctest::Contains("f: expected numbers as x, got bool"), TypeError);
}
