// Weighted sums of gathered rows and the gradient of the weights, compared with plain C++: sums of a number of rows
// that is known at compile time and of others, rows of all lengths with respect to vectors, indices out of range.
#include <declivity/ops/gather_weighted_sum.hpp>

#include <cmath>
#include <cstdint>
#include <vector>

#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>
#include <tests/support/devices.hpp>
#include <tests/support/values.hpp>

#include "ops/support/work_split.hpp"

using namespace declivity;
using namespace declivity::test;

TEST_CASE("gather_weighted_sum: half of row 2 plus three times row 0") {
    const Tensor rows = tensor({1, 2, 10, 20, 100, 200}, {3, 2}), indices = int64_tensor({2, 0}, {1, 2}),
                 weights = tensor({0.5, 3}, {1, 2}), gradient = tensor({1, 1}, {1, 2});
    CHECK(values(Tensor(ops::gather_weighted_sum(rows.view(), indices.view(), weights.view()))) ==
          std::vector<double>{53, 106});
    CHECK(values(Tensor(ops::gather_weighted_sum_backward_weights(rows.view(), indices.view(), gradient.view()))) ==
          std::vector<double>{300, 3});
}

TEST_CASE("gather_weighted_sum: rows in both kernel styles, and the gradient of the weights") {
    constexpr std::int64_t table_rows = 13;
    for (const DType dtype : floats())
        for (const std::int64_t k : {1, 4, 8, 9})
            for (const std::int64_t length : {1, 7, 16, 21})
                for (const std::int64_t positions : {1, 37}) {
                    CAPTURE(name_of(dtype));
                    CAPTURE(k);
                    CAPTURE(length);
                    CAPTURE(positions);
                    const Tensor rows = random_tensor({table_rows, length}, 1, dtype),
                                 weights = random_tensor({positions, k}, 2, dtype),
                                 gradient = random_tensor({positions, length}, 3, dtype);
                    std::vector<std::int64_t> at;
                    for (const double value : random_values(positions * k, 4, -2, table_rows + 2))
                        at.push_back(static_cast<std::int64_t>(std::floor(value)));
                    const auto table = values(rows), factors = values(weights), g = values(gradient);
                    std::vector<double> sums(g.size(), 0), dot_products(factors.size(), 0);
                    for (std::int64_t i = 0; i < positions; ++i)
                        for (std::int64_t j = 0; j < k; ++j) {
                            const auto e = static_cast<std::size_t>(i * k + j);
                            if (at[e] < 0 || at[e] >= table_rows) continue;
                            for (std::int64_t d = 0; d < length; ++d) {
                                const double value = table[static_cast<std::size_t>(at[e] * length + d)];
                                sums[static_cast<std::size_t>(i * length + d)] += factors[e] * value;
                                dot_products[e] += g[static_cast<std::size_t>(i * length + d)] * value;
                            }
                        }
                    const Tensor indices = Tensor::from<std::int64_t>(at, {positions, k});
                    for (const KernelStyle style : kernel_styles()) {
                        const ops::KernelStyleScope scope(style);
                        CAPTURE(style == KernelStyle::simd ? "simd" : "simt");
                        const Tensor got(ops::gather_weighted_sum(rows.view(), indices.view(), weights.view()));
                        CHECK(difference(got, sums, sum_tolerance(dtype, static_cast<double>(k))) == "");
                        const Tensor got_gradient(
                            ops::gather_weighted_sum_backward_weights(rows.view(), indices.view(), gradient.view()));
                        CHECK(difference(got_gradient, dot_products,
                                         sum_tolerance(dtype, static_cast<double>(length))) == "");
                    }
                }
}

TEST_CASE("gather_weighted_sum: no positions, no rows of a sum, and errors") {
    const Tensor rows = random_tensor({3, 2}, 1, DType::f32);
    const auto empty = [](std::int64_t n, std::int64_t k) { return zeros({n, k}, {DType::i64}); };
    CHECK(Tensor(ops::gather_weighted_sum(rows.view(), empty(0, 2).view(), zeros({0, 2}).view())).numel() == 0);
    CHECK(values(Tensor(ops::gather_weighted_sum(rows.view(), empty(2, 0).view(), zeros({2, 0}).view()))) ==
          std::vector<double>(4, 0));
    CHECK_THROWS_WITH_AS(
        (void)ops::gather_weighted_sum(rows.view(), zeros({2, 2}, {DType::i32}).view(), zeros({2, 2}).view()),
        "gather_weighted_sum: expected indices of i64, got i32", TypeError);
}
