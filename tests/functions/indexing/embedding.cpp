// embedding: rows by index, and gradients of repeated indices summed in a fixed order.
#include <cmath>
#include <string>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/ops/gather.hpp>
#include <declivity/ops/scatter.hpp>
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

std::vector<std::int64_t> random_indices(std::int64_t count, std::int64_t size, std::uint64_t seed) {
    std::vector<std::int64_t> all;
    for (const double value : random_values(count, seed, 0, static_cast<double>(size)))
        all.push_back(static_cast<std::int64_t>(value));
    return all;
}

}  // namespace

TEST_CASE("embedding: rows of a table by index; the gradients of a row that occurs twice are added") {
    const Tensor indices = int64_tensor({2, 0, 2}, {3}), rows = tensor({1, 2, 3, 4, 5, 6}, {3, 2}).set_requires_grad();
    const Tensor y = embedding(indices, rows);
    CHECK(values(y) == Values{5, 6, 1, 2, 5, 6});
    y.backward(tensor({1, 10, 1, 10, 1, 10}, {3, 2}));
    CHECK(values(rows.grad()) == Values{1, 10, 0, 0, 2, 20});
}

TEST_CASE("embedding: values and gradients, both kernel styles, indices of both types") {
    struct Size {
        std::int64_t rows, width, count;
    };
    for (const KernelStyle style : kernel_styles()) {
        const ops::KernelStyleScope scope(style);
        for (const Size& size : {Size{5, 3, 7}, Size{1, 1, 1}, Size{3, 70, 100}, Size{500, 2, 33}, Size{4, 5, 0}}) {
            if (small_cases() && size.count > 40) continue;
            CAPTURE(size.rows);
            CAPTURE(size.count);
            for (const DType dtype : floats()) {
                const auto row_indices = random_indices(size.count, size.rows, 1);
                for (const DType type : {DType::i64, DType::i32}) {
                    const Tensor indices = Tensor::from(row_indices, {size.count}).to(type);
                    const Tensor weight = random_tensor({size.rows, size.width}, 2, dtype).set_requires_grad();
                    const Tensor g = random_tensor({size.count, size.width}, 3, dtype);
                    const Tensor y = embedding(indices, weight);
                    Values expected, gradient(static_cast<std::size_t>(size.rows * size.width), 0);
                    const Values table = values(weight), out_gradient = values(g);
                    for (std::size_t i = 0; i < row_indices.size(); ++i)
                        for (std::size_t k = 0; k < static_cast<std::size_t>(size.width); ++k) {
                            const auto at = static_cast<std::size_t>(row_indices[i] * size.width) + k;
                            expected.push_back(table[at]);
                            gradient[at] += out_gradient[i * static_cast<std::size_t>(size.width) + k];
                        }
                    CHECK(values(y) == expected);
                    y.backward(g);
                    CHECK(difference(weight.grad(), gradient, tolerance(dtype, 60)) == "");
                    const Values first = values(weight.grad());
                    for (int turn = 0; turn < 3; ++turn) {
                        const Tensor again = grad({embedding(indices, weight)}, {weight}, {.output_gradients = {g}})[0];
                        CHECK(values(again) == first);
                    }
                }
            }
        }
    }
}

TEST_CASE("embedding: indices of any shape, and indices out of range") {
    const Tensor weight = random_tensor({4, 3}, 1).set_requires_grad();
    const Tensor y = embedding(Tensor::from<std::int64_t>({0, 3, 4, -1, 2, 2}, {2, 1, 3}), weight);
    CHECK(y.shape() == Shape{2, 1, 3, 3});
    const Values got = values(y), table = values(weight);
    for (std::size_t k = 0; k < 3; ++k) {
        CHECK(got[k] == table[k]);
        CHECK(got[3 + k] == table[9 + k]);
        CHECK(std::isnan(got[6 + k]));
        CHECK(std::isnan(got[9 + k]));
        CHECK(got[15 + k] == table[6 + k]);
    }
    y.backward(ones(y.shape()));
    CHECK(values(weight.grad()) == Values{1, 1, 1, 0, 0, 0, 2, 2, 2, 1, 1, 1});
    CHECK(embedding(Tensor::from<std::int64_t>({2}, {}), weight).shape() == Shape{3});
    for (const DType half : {DType::f16, DType::bf16})
        CHECK(values(embedding(Tensor::from<std::int64_t>({1, 2}, {2}), weight.detach().to(half))) ==
              values(slice(weight.detach().to(half), 0, 1, 3)));
    CHECK_THROWS_AS(embedding(random_tensor({3}, 1), weight), TypeError);
    CHECK_THROWS_AS(embedding(Tensor::from<std::int64_t>({1}, {1}), random_tensor({3}, 1)), ShapeError);
    CHECK_THROWS_AS(embedding(Tensor(), weight), ValueError);
}

TEST_CASE("gather, scatter, scatter_add: elements read and written by index") {
    CHECK(values(gather(tensor({1, 2, 3, 4}, {2, 2}), 1, int64_tensor({1, 0}, {2, 1}))) == Values{2, 3});
    const Tensor indices = int64_tensor({2, 0, 2}, {3}), src = tensor({5, 6, 7}, {3});
    CHECK(values(scatter(zeros({3}), 0, indices, src)) == Values{6, 0, 7});  // the last of two
    CHECK(values(scatter_add(ones({3}), 0, indices, src)) == Values{7, 1, 13});
}

TEST_CASE("gather and scatter: round trip") {
    for (const KernelStyle style : kernel_styles()) {
        const ops::KernelStyleScope scope(style);
        for (const DType dtype : floats())
            for (const DType type : {DType::i32, DType::i64}) {
                const Tensor x = random_tensor({3, 5}, 1, dtype);
                const Tensor indices = Tensor::from<std::int64_t>({4, 0, 1, 3, 2, 2}, {3, 2}).to(type);
                const Tensor rows_out(ops::View::make(x.device(), dtype, {3, 2}));
                const Tensor twice = Tensor::from<std::int64_t>({4, 0, 1, 3, 2, 4}, {3, 2}).to(type);
                ops::gather("gather", x.view(), indices.view(), rows_out.view());
                const Values in = values(x);
                CHECK(values(rows_out) == Values{in[4], in[0], in[6], in[8], in[12], in[12]});
                const Tensor back(ops::View::make(x.device(), dtype, {3, 5}));
                ops::scatter("scatter", rows_out.view(), twice.view(), back.view());
                CHECK(values(back) == Values{in[0], 0, 0, 0, in[4], 0, in[6], 0, in[8], 0, 0, 0, in[12], 0, in[12]});
            }
    }
    const Tensor x = random_tensor({3, 5}, 1), indices = zeros({3, 2}, {DType::i32});
    CHECK_THROWS_AS(ops::gather("gather", x.view(), zeros({2, 2}, {DType::i32}).view(), indices.view()), Error);
    CHECK_THROWS_AS(ops::gather("gather", x.view(), random_tensor({3, 2}, 1).view(), zeros({3, 2}).view()), TypeError);
    CHECK_THROWS_AS(ops::scatter("scatter", x.view(), indices.view(), zeros({3, 9}).view()), ShapeError);
    CHECK_THROWS_AS(ops::sum_rows("sum", x.view(), zeros({2}, {DType::i32}).view(), zeros({4, 5}).view()), ShapeError);
}
