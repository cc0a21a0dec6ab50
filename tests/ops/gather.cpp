// Rows by their numbers: sums and other folds, the last row of each number, against plain C++ in double precision; for
// tables that are small and large beside what they are made from, numbers of all places and outside, every type.
#include <declivity/ops/gather.hpp>

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
    std::int64_t count, taken, size;
    double low = -0.05, high = 1.05;  // of numbers, in sizes
};

/// Small enough for one work-item; a table for each chunk of rows; numbers for each work-item; few numbers have all.
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

std::vector<std::int64_t> numbers_of(const Rows& one) {
    std::vector<std::int64_t> out;
    const auto size = static_cast<double>(one.size);
    for (const double place : random_values(one.count, 3, one.low * size, one.high * size + 0.5))
        out.push_back(static_cast<std::int64_t>(std::floor(place)));
    return out;
}

std::vector<double> folded(ops::Fold fold, const std::vector<double>& x, const std::vector<std::int64_t>& numbers,
                           const Rows& one) {
    std::vector<std::optional<double>> out(static_cast<std::size_t>(one.size * one.taken));
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        if (numbers[i] < 0 || numbers[i] >= one.size) continue;
        for (std::int64_t j = 0; j < one.taken; ++j) {
            const double value = x[i * static_cast<std::size_t>(one.taken) + static_cast<std::size_t>(j)];
            auto& to = out[static_cast<std::size_t>(numbers[i] * one.taken + j)];
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

Tensor result_of(ops::Fold fold, const Tensor& x, const Tensor& numbers, const Rows& one) {
    const ops::View out = ops::View::make(x.device(), x.dtype(), {one.size, one.taken});
    ops::fold_rows("fold_rows", fold, x.view(), numbers.view(), out);
    return Tensor(out);
}

}  // namespace

TEST_CASE("sums of rows by their numbers, and the last ones") {
    for (const Rows& one : cases()) {
        CAPTURE(one.name);
        const std::vector<std::int64_t> numbers = numbers_of(one);
        std::vector<double> last(static_cast<std::size_t>(one.size), -1);
        for (std::size_t i = 0; i < numbers.size(); ++i)
            if (numbers[i] >= 0 && numbers[i] < one.size)
                last[static_cast<std::size_t>(numbers[i])] = static_cast<double>(i);
        for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i8, DType::u16, DType::i64}) {
            if (dtype == DType::f64 && !device().info().fp64) continue;
            CAPTURE(name_of(dtype));
            const bool whole = !is_floating(dtype);
            std::vector<double> elements = random_values(one.count * one.taken, 1, whole ? 0 : -1, whole ? 2 : 1);
            if (whole)
                for (double& element : elements) element = std::floor(element);
            const Tensor x = tensor(elements, {one.count, one.taken}, dtype);
            elements = values(x);
            std::vector<double> wanted = folded(ops::Fold::sum, elements, numbers, one);
            if (dtype == DType::i8)
                for (double& sum : wanted) sum = static_cast<std::int8_t>(static_cast<std::int64_t>(sum));
            if (dtype == DType::u16)
                for (double& sum : wanted) sum = static_cast<std::uint16_t>(static_cast<std::int64_t>(sum));
            const auto most = static_cast<double>(one.high < 0.01 ? one.count : 20 * one.count / one.size + 1);
            const double rounding = dtype == DType::f16 ? 1e-3 : 8e-3;  // once, at the end
            const Tolerance allowed = whole            ? Tolerance{0, 0}
                                      : is_half(dtype) ? Tolerance{rounding, rounding}
                                                       : tolerance(dtype, most, 4);
            for (const DType place : {DType::i32, DType::i64}) {
                const Tensor at = Tensor::from<std::int64_t>(numbers, {one.count}).to(place);
                for (const Family family : families()) {
                    const ops::FamilyScope scope(family);
                    CAPTURE(family == Family::cpu_like ? "CPU-like" : "GPU-like");
                    const Tensor sums = result_of(ops::Fold::sum, x, at, one);
                    CHECK(difference(sums, wanted, allowed) == "");
                    CHECK(difference(result_of(ops::Fold::sum, x, at, one), values(sums), {0, 0}) == "");
                    if (dtype != DType::f32) continue;
                    const ops::View out = ops::View::make(x.device(), DType::i64, {one.size});
                    ops::last_rows("last_rows", at.view(), out);
                    CHECK(difference(Tensor(out), last, {0, 0}) == "");
                }
                if (dtype != DType::f32) break;
            }
        }
    }
}

TEST_CASE("products, largest and smallest rows of each number") {
    for (const Rows& one : cases()) {
        if (one.name == "crowded") continue;
        CAPTURE(one.name);
        const std::vector<std::int64_t> numbers = numbers_of(one);
        const Tensor x = random_tensor({one.count, one.taken}, 1, DType::f32, 0.9, 1.1),
                     at = Tensor::from<std::int64_t>(numbers, {one.count});
        for (const ops::Fold fold : {ops::Fold::product, ops::Fold::largest, ops::Fold::smallest}) {
            CAPTURE(static_cast<int>(fold));
            const std::vector<double> wanted = folded(fold, values(x), numbers, one);
            for (const Family family : families()) {
                const ops::FamilyScope scope(family);
                CAPTURE(family == Family::cpu_like ? "CPU-like" : "GPU-like");
                CHECK(difference(result_of(fold, x, at, one), wanted,
                                 tolerance(DType::f32, fold == ops::Fold::product ? 2000 : 1, 4)) == "");
            }
        }
    }
}

TEST_CASE("a NaN stays with its own number") {
    for (const Family family : families()) {
        const ops::FamilyScope scope(family);
        const Tensor x = Tensor::from<float>({1, NAN, 2, INFINITY, 3}, {5, 1}),
                     at = Tensor::from<std::int64_t>({0, 2, 0, 7, -1}, {5});
        const std::vector<double> sums = values(result_of(ops::Fold::sum, x, at, {"", 5, 1, 4}));
        CHECK(sums[0] == 3);
        CHECK(sums[1] == 0);
        CHECK(std::isnan(sums[2]));
        CHECK(sums[3] == 0);
    }
}

TEST_CASE("what sums of rows refuse") {
    const Tensor x = random_tensor({4, 2}, 1), at = zeros({4}, {DType::i64});
    const ops::View out = ops::View::make(x.device(), DType::f32, {3, 2});
    CHECK_THROWS_AS(ops::sum_rows("f", x.view(), x.view(), out), TypeError);
    CHECK_THROWS_AS(ops::sum_rows("f", x.view(), zeros({3}, {DType::i64}).view(), out), ShapeError);
    CHECK_THROWS_AS(ops::last_rows("f", at.view(), ops::View::make(x.device(), DType::i32, {3})), TypeError);
    CHECK_THROWS_WITH_AS(
        ops::sum_rows("f", x.to(DType::boolean).view(), at.view(), ops::View::make(x.device(), DType::boolean, {3, 2})),
        doctest::Contains("f: wants numbers as x, got bool"), TypeError);
}
