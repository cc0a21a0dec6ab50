// topk: both results, ties, NaN, all types, k from 0 to all, and gradients to the selected elements.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>
#include <tests/support/contract.hpp>
#include <tests/support/devices.hpp>
#include <tests/support/values.hpp>

#include "ops/support/work_split.hpp"

using namespace declivity;
using namespace declivity::test;

namespace {

using Values = std::vector<double>;

/// The order of a row, by a stable sort.
std::vector<std::size_t> order(const Values& row, bool largest) {
    std::vector<std::size_t> indices(row.size());
    std::iota(indices.begin(), indices.end(), 0);
    const auto key = [&](std::size_t at) {
        return std::isnan(row[at]) ? std::numeric_limits<double>::infinity() : row[at];
    };
    std::ranges::stable_sort(indices, [&](std::size_t a, std::size_t b) {
        // NaN counts as larger than infinity.
        if (key(a) == key(b) && std::isnan(row[a]) != std::isnan(row[b])) return std::isnan(row[a]) == largest;
        return largest ? key(a) > key(b) : key(a) < key(b);
    });
    return indices;
}

void check(const Tensor& x, std::int64_t k, bool largest) {
    const std::int64_t rows = x.size(0), n = x.size(1);
    const Values all = values(x);
    Values expected, expected_indices;
    for (std::int64_t row = 0; row < rows; ++row) {
        const Values row_values(all.begin() + row * n, all.begin() + (row + 1) * n);
        const auto expected_order = order(row_values, largest);
        for (std::int64_t i = 0; i < k; ++i) {
            expected_indices.push_back(static_cast<double>(expected_order[static_cast<std::size_t>(i)]));
            expected.push_back(row_values[expected_order[static_cast<std::size_t>(i)]]);
        }
    }
    const TopK got = topk(x, k, -1, largest);
    CHECK(got.indices.dtype() == DType::i64);
    CHECK(got.values.dtype() == x.dtype());
    CHECK(difference(got.values, expected, {}) == "");
    CHECK(values(got.indices) == expected_indices);
}

}  // namespace

TEST_CASE("topk: the k largest elements of a row and their indices") {
    const Tensor x = tensor({4, 1, 9, 4}, {4});
    const TopK three = topk(x, 3);
    CHECK(values(three.values) == Values{9, 4, 4});
    CHECK(values(three.indices) == Values{2, 0, 3});
    const TopK smallest = topk(x, 2, -1, false);
    CHECK(values(smallest.values) == Values{1, 4});
    CHECK(values(smallest.indices) == Values{1, 0});
}

TEST_CASE("topk: sizes, ties, both directions, both kernel styles") {
    struct Size {
        std::int64_t rows, n, k;
    };
    for (const KernelStyle style : kernel_styles()) {
        const ops::KernelStyleScope scope(style);
        for (const Size& size : {Size{3, 7, 2}, Size{1, 1, 1}, Size{5, 33, 33}, Size{2, 300, 5}, Size{2, 300, 290},
                                 Size{4, 9, 0}, Size{0, 9, 2}}) {
            if (small_cases() && size.n > 40) continue;
            CAPTURE(size.rows);
            CAPTURE(size.n);
            CAPTURE(size.k);
            for (const bool largest : {true, false}) {
                for (const DType dtype : floats()) check(random_tensor({size.rows, size.n}, 1, dtype), size.k, largest);
                // Few distinct values.
                check((random_tensor({size.rows, size.n}, 2) * 2.0).to(DType::i32), size.k, largest);
                check((random_tensor({size.rows, size.n}, 2, DType::f32, 0, 3)).to(DType::u8), size.k, largest);
                check((random_tensor({size.rows, size.n}, 2) * 2.0).to(DType::i32).to(DType::f32), size.k, largest);
            }
        }
        const double nan = std::nan(""), infinity = std::numeric_limits<double>::infinity();
        const Tensor special = tensor({1, nan, infinity, -infinity, nan, 2, -infinity, infinity}, {1, 8});
        for (const bool largest : {true, false})
            for (const std::int64_t k : {1, 3, 5, 8}) check(special, k, largest);
    }
}

TEST_CASE("topk: axes, f16 and bf16, and errors") {
    const Tensor x = random_tensor({4, 6, 5}, 1);
    const TopK along_axis = topk(x, 3, 1), transposed = topk(transpose(x, 1, 2), 3, -1);
    CHECK(along_axis.values.shape() == Shape{4, 3, 5});
    CHECK(values(along_axis.values) == values(transpose(transposed.values, 1, 2)));
    CHECK(values(along_axis.indices) == values(transpose(transposed.indices, 1, 2)));
    for (const DType half : {DType::f16, DType::bf16}) {
        const TopK reduced = topk(x.to(half), 2), upcast = topk(x.to(half).to(DType::f32), 2);
        CHECK(reduced.values.dtype() == half);
        CHECK(values(reduced.values) == values(upcast.values));
        CHECK(values(reduced.indices) == values(upcast.indices));
    }
    CHECK_THROWS_WITH_AS(topk(x, 6), "topk: expected a k of 0 to 5, the elements of the axis, got 6", ValueError);
    CHECK_THROWS_AS(topk(x, -1), ValueError);
    CHECK_THROWS_AS(topk(x, 1, 3), ShapeError);
    CHECK_THROWS_AS(topk(Tensor(), 1), ValueError);
}

TEST_CASE("topk: gradients go to the selected elements, and the indices have none") {
    const Tensor x = random_tensor({3, 8}, 1).set_requires_grad();
    const TopK result = topk(x, 3);
    CHECK(result.values.requires_grad());
    CHECK_FALSE(result.indices.requires_grad());
    const Tensor weights = random_tensor({3, 3}, 2);
    sum(result.values * weights).backward();
    Values expected(24, 0);
    const Values selected = values(result.indices), g = values(weights);
    for (std::size_t i = 0; i < 9; ++i) expected[i / 3 * 8 + static_cast<std::size_t>(selected[i])] = g[i];
    CHECK(values(x.grad()) == expected);
}

TEST_CASE("topk: the function contract with both results") {
    const Contract contract{.name = "topk",
                            .inputs = {random_tensor({4, 9}, 1)},
                            .arbitrary = {true},
                            .call = [](const std::vector<Tensor>& in) {
                                const TopK result = topk(in[0], 4, -1, false);
                                return std::vector{result.values, result.indices};
                            }};
    std::string all;
    for (const std::string& violation : violations(contract)) all += violation + "\n";
    CHECK(all == "");
}
