// Products of tensors: batches, vectors, broadcasting, gradients.
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>
#include <tests/support/devices.hpp>
#include <tests/support/gradient_check.hpp>
#include <tests/support/skip.hpp>
#include <tests/support/strided.hpp>
#include <tests/support/values.hpp>

using namespace declivity;
using namespace declivity::test;

namespace {

/// The element of a tensor (row-major values) at an index of a shape that it broadcasts to.
double at(const std::vector<double>& elements, const Shape& shape, const Dims& index) {
    std::int64_t offset = 0;
    const int missing = index.rank() - shape.rank();
    for (int axis = 0; axis < shape.rank(); ++axis)
        offset = offset * shape[axis] + (shape[axis] == 1 ? 0 : index[axis + missing]);
    return elements[static_cast<std::size_t>(offset)];
}

/// (..., M, K) x (..., K, N) in plain C++.
std::vector<double> product(const Tensor& a, const Tensor& b, const Shape& out) {
    const auto left = values(a), right = values(b);
    std::vector<double> result;
    for_each_index(out, [&](const Dims& index) {
        double sum = 0;
        for (std::int64_t k = 0; k < a.size(-1); ++k) {
            Dims i = index, j = index;
            i[out.rank() - 1] = k;
            j[out.rank() - 2] = k;
            sum += at(left, a.shape(), i) * at(right, b.shape(), j);
        }
        result.push_back(sum);
    });
    return result;
}

void check(const Tensor& a, const Tensor& b, const Shape& expected) {
    CAPTURE(a.shape().str());
    CAPTURE(b.shape().str());
    const Tensor c = matmul(a, b);
    REQUIRE(c.shape() == expected);
    CHECK(difference(c, product(a, b, expected), tolerance(DType::f32, 10)) == "");
}

}  // namespace

TEST_CASE("matmul: two matrices, a matrix and a vector; linear") {
    using List = std::vector<double>;
    const Tensor a = tensor({1, 2, 3, 4}, {2, 2}), v = tensor({10, 1}, {2});
    CHECK(values(matmul(a, a)) == List{7, 10, 15, 22});
    CHECK(values(matmul(a, v)) == List{12, 34});
    CHECK(values(matmul(v, a)) == List{13, 24});
    // x weight^T + bias.
    const Tensor x = tensor({1, 2}, {1, 2}), weight = tensor({3, 4, 5, 6, 7, 8}, {3, 2}),
                 bias = tensor({0, 0, 100}, {3});
    CHECK(values(linear(x, weight, bias)) == List{11, 17, 123});
}

TEST_CASE("matmul: batches broadcast") {
    const auto x = [](const Shape& shape) { return random_tensor(shape, static_cast<std::uint64_t>(shape.numel())); };
    check(x({3, 4}), x({4, 5}), {3, 5});
    check(x({2, 3, 4}), x({4, 5}), {2, 3, 5});
    check(x({3, 4}), x({2, 4, 5}), {2, 3, 5});
    check(x({2, 3, 4}), x({2, 4, 5}), {2, 3, 5});
    check(x({1, 3, 4}), x({2, 4, 5}), {2, 3, 5});
    check(x({2, 1, 3, 4}), x({3, 4, 5}), {2, 3, 3, 5});
    check(x({2, 3, 2, 4}), x({1, 3, 4, 2}), {2, 3, 2, 2});
    check(x({2, 1, 2, 2, 4}), x({3, 1, 4, 2}), {2, 3, 2, 2, 2});
    check(x({3, 4}), x({2, 3, 4, 2}), {2, 3, 3, 2});  // broadcast over two axes
    check(permute(x({4, 2, 3}), {1, 2, 0}), x({2, 4, 5}), {2, 3, 5});
    check(permute(x({3, 2, 2, 4}), {1, 2, 0, 3}), permute(x({4, 2, 2, 5}), {1, 2, 0, 3}), {2, 2, 3, 5});
    check(slice(x({5, 3, 4}), 0, 0, 5, 2), x({3, 4, 2}), {3, 3, 2});
    check(x({2, 0, 4}), x({4, 5}), {2, 0, 5});
    check(x({0, 3, 4}), x({4, 5}), {0, 3, 5});
    check(x({2, 3, 0}), x({0, 5}), {2, 3, 5});
    check(x({2, 3, 0}), x({2, 0, 5}), {2, 3, 5});
}

TEST_CASE("matmul: vectors count as a row or a column") {
    const Tensor v = random_tensor({4}, 1), w = random_tensor({4}, 2), m = random_tensor({4, 3}, 3),
                 batch = random_tensor({2, 3, 4}, 4);
    CHECK(matmul(v, w).shape() == Shape());
    CHECK(difference(matmul(v, w), product(reshape(v, {1, 4}), reshape(w, {4, 1}), {1, 1}), tolerance(DType::f32, 4)) ==
          "");
    CHECK(matmul(v, m).shape() == Shape({3}));
    CHECK(difference(matmul(v, m), product(reshape(v, {1, 4}), m, {1, 3}), tolerance(DType::f32, 4)) == "");
    CHECK(matmul(batch, w).shape() == Shape({2, 3}));
    CHECK(difference(matmul(batch, w), product(batch, reshape(w, {4, 1}), {2, 3, 1}), tolerance(DType::f32, 4)) == "");
    CHECK(matmul(v, transpose(batch)).shape() == Shape({2, 3}));
}

TEST_CASE("matmul: gradients match central differences") {
    if (!device().info().fp64) return test::skip("f64: the device has no double precision");
    const auto f = [](const auto& in) { return matmul(in[0], in[1]); };
    for (const auto& [a, b] : std::vector<std::pair<Shape, Shape>>{{{3, 4}, {4, 2}},
                                                                   {{2, 3, 4}, {4, 2}},
                                                                   {{3, 4}, {2, 4, 2}},
                                                                   {{2, 1, 3, 2}, {3, 2, 2}},
                                                                   {{4}, {4}},
                                                                   {{4}, {4, 3}},
                                                                   {{2, 3, 4}, {4}},
                                                                   {{2, 3, 1}, {1, 2}}}) {
        CAPTURE(a.str());
        CAPTURE(b.str());
        CHECK(gradient_difference(f, {random_tensor(a, 1, DType::f64), random_tensor(b, 2, DType::f64)}) == "");
    }
    CHECK(gradient_difference([](const auto& in) { return matmul(transpose(in[0]), transpose(in[1])); },
                              {random_tensor({4, 3}, 1, DType::f64), random_tensor({2, 4}, 2, DType::f64)}) == "");
}

TEST_CASE("matmul: K of 0 has a gradient") {
    Tensor a = zeros({2, 3, 0}).set_requires_grad(), b = zeros({0, 5}).set_requires_grad();
    sum(matmul(a, b)).backward();
    CHECK(a.grad().shape() == Shape({2, 3, 0}));
    CHECK(b.grad().shape() == Shape({0, 5}));
}

TEST_CASE("matmul: double backward") {
    if (!device().info().fp64) return test::skip("f64: the device has no double precision");
    // f = sum(A B * A B); df/dA = 2 (A B) B^T, and for its sum with weights W: d/dB = 2 (A^T W B + (A B)^T W ...),
    // checked by differences of the first gradient.
    Tensor a = random_tensor({2, 3}, 1, DType::f64).set_requires_grad();
    Tensor b = random_tensor({3, 2}, 2, DType::f64).set_requires_grad();
    const auto first = [&](const Tensor& x, const Tensor& y, bool graph) {
        const Tensor c = matmul(x, y);
        return grad({sum(c * c)}, {x}, {.create_graph = graph}).front();
    };
    const Tensor weights = random_tensor({2, 3}, 3, DType::f64);
    sum(first(a, b, true) * weights).backward();
    const auto got = values(b.grad());
    auto point = values(b);
    for (std::size_t i = 0; i < point.size(); ++i) {
        const auto loss_at = [&](double step) {
            auto changed = point;
            changed[i] += step;
            return sum(first(a, tensor(changed, {3, 2}, DType::f64).set_requires_grad(), false) * weights)
                .item<double>();
        };
        CHECK(got[i] == doctest::Approx((loss_at(1e-5) - loss_at(-1e-5)) / 2e-5).epsilon(1e-7));
    }
}

TEST_CASE("linear: x W^T + bias") {
    const Tensor x = random_tensor({2, 5, 4}, 1), weight = random_tensor({3, 4}, 2), bias = random_tensor({3}, 3);
    const auto plain = product(x, transpose(weight), {2, 5, 3}), added = values(bias);
    CHECK(difference(linear(x, weight), plain, tolerance(DType::f32, 4)) == "");
    std::vector<double> expected = plain;
    for (std::size_t i = 0; i < expected.size(); ++i) expected[i] += added[i % 3];
    CHECK(difference(linear(x, weight, bias), expected, tolerance(DType::f32, 5)) == "");
    CHECK(linear(random_tensor({4}, 1), weight, bias).shape() == Shape({3}));
    if (device().info().fp64)
        CHECK(gradient_difference([](const auto& in) { return linear(in[0], in[1], in[2]); },
                                  {random_tensor({2, 4}, 1, DType::f64), random_tensor({3, 4}, 2, DType::f64),
                                   random_tensor({3}, 3, DType::f64)}) == "");
}

TEST_CASE("matmul and linear: shape errors") {
    const Tensor a = random_tensor({2, 3}, 1), b = random_tensor({4, 2}, 2);
    CHECK_THROWS_WITH_AS(matmul(a, b), "matmul: expected (..., M, K) x (..., K, N), got [2, 3] x [4, 2]", ShapeError);
    CHECK_THROWS_AS(matmul(random_tensor({5, 2, 3}, 1), b), ShapeError);
    CHECK_THROWS_AS(matmul(random_tensor({5, 2, 3}, 1), random_tensor({4, 3, 2}, 1)), ShapeError);
    CHECK_THROWS_AS(matmul(a, tensor({1}, {})), ShapeError);
    CHECK_THROWS_WITH_AS(matmul(a, Tensor()), "matmul: expected a tensor as b, got an undefined one", ValueError);
    CHECK_THROWS_AS(matmul(a, random_tensor({3}, 1, DType::i32)), TypeError);
    CHECK_THROWS_AS(matmul(random_tensor({2, 3}, 1, DType::i32), random_tensor({3, 2}, 1, DType::i64)), TypeError);
    CHECK_THROWS_AS(linear(a, random_tensor({5, 4}, 1)), ShapeError);
    CHECK_THROWS_AS(linear(a, random_tensor({2}, 1)), ShapeError);
    CHECK_THROWS_AS(linear(a, random_tensor({3}, 1), random_tensor({3}, 1)), ShapeError);
    CHECK_THROWS_WITH_AS(linear(a, Tensor()), "linear: expected a tensor as weight, got an undefined one", ValueError);
    CHECK_THROWS_AS(linear(Tensor(), a), ValueError);
    CHECK_THROWS_AS(linear(a, random_tensor({5, 3}, 1), random_tensor({4}, 1)), ShapeError);
}

TEST_CASE("bilinear: x1 weight[k] x2 of two vectors") {
    const Tensor x1 = tensor({1, 2}, {1, 2}), x2 = tensor({3, 4}, {1, 2}),
                 weight = tensor({1, 0, 0, 1, 0, 1, 0, 0}, {2, 2, 2});
    // 1 * 3 + 2 * 4 with the identity, and 1 * 4.
    CHECK(values(bilinear(x1, x2, weight)) == std::vector<double>{11, 4});
    CHECK(values(bilinear(x1, x2, weight, tensor({0, 100}, {2}))) == std::vector<double>{11, 104});
}

TEST_CASE("bilinear: vectors, empty inputs, errors") {
    const Tensor weight = random_tensor({4, 2, 3}, 1);
    CHECK(bilinear(zeros({2}), zeros({3}), weight).shape() == Shape{4});
    CHECK(bilinear(zeros({0, 2}), zeros({0, 3}), weight, zeros({4})).shape() == Shape{0, 4});
    CHECK_THROWS_WITH_AS(
        bilinear(zeros({5, 2}), zeros({4, 3}), weight),
        "bilinear: expected x1 of shape (..., 2) and x2 of shape (..., 3) with the same batch axes, got [5, 2] and "
        "[4, 3]",
        ShapeError);
    CHECK_THROWS_AS(bilinear(zeros({5, 2}), zeros({5, 3}), weight, zeros({3})), ShapeError);
    CHECK_THROWS_AS(bilinear(zeros({5, 2}), zeros({5, 3}), zeros({4, 2})), ShapeError);
}
