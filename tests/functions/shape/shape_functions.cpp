// Shape functions: values, gradients, shared memory, errors.
#include <numeric>
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

/// 0, 1, 2, ... in a shape.
Tensor counted(const Shape& shape, DType dtype = DType::f32) {
    std::vector<double> elements(static_cast<std::size_t>(shape.numel()));
    std::iota(elements.begin(), elements.end(), 0);
    return tensor(elements, shape, dtype);
}

std::string check(const std::function<Tensor(const std::vector<Tensor>&)>& function, const std::vector<Shape>& shapes) {
    if (!device().info().fp64) return "";
    std::vector<Tensor> inputs;
    for (std::size_t i = 0; i < shapes.size(); ++i) inputs.push_back(random_tensor(shapes[i], i + 1, DType::f64));
    // A different weight for each element, so that a misplaced gradient shows.
    return gradient_difference([&](const std::vector<Tensor>& in) { return square(function(in)); }, inputs);
}

}  // namespace

TEST_CASE("reshape: the same elements, one inferred size") {
    const Tensor x = counted({2, 3, 4});
    CHECK(reshape(x, {4, 6}).shape() == Shape({4, 6}));
    CHECK(reshape(x, {-1, 6}).shape() == Shape({4, 6}));
    CHECK(reshape(x, {24}).shape() == Shape({24}));
    CHECK(values(reshape(x, {6, -1})) == values(x));
    CHECK(reshape(counted({1}), {}).rank() == 0);
    CHECK(reshape(zeros({0, 3}), {3, 0, 7}).shape() == Shape({3, 0, 7}));
    CHECK(values(reshape(transpose(counted({2, 3})), {6})) == std::vector<double>{0, 3, 1, 4, 2, 5});
    CHECK(flatten(x).shape() == Shape({2, 12}));
    CHECK(flatten(x, 0).shape() == Shape({24}));
    CHECK(flatten(x, -2).shape() == Shape({2, 12}));
    CHECK(flatten(x, 2).shape() == Shape({2, 3, 4}));
    CHECK_THROWS_WITH_AS(reshape(x, {5, 5}), "reshape: expected a shape of 24 elements (as [2, 3, 4]), got [5, 5]",
                         ShapeError);
    CHECK_THROWS_AS(reshape(x, {-1, 5}), ShapeError);
    CHECK_THROWS_AS(reshape(x, {-1, -1}), ShapeError);
    CHECK_THROWS_AS(reshape(x, {-2, -12}), ShapeError);
    CHECK_THROWS_AS(reshape(x, {0, -1}), ShapeError);
    CHECK_THROWS_AS(flatten(x, 3), ShapeError);
    CHECK_THROWS_AS(reshape(Tensor(), {1}), ValueError);
    CHECK(check([](const auto& in) { return reshape(in[0], {4, -1}); }, {{2, 3, 2}}) == "");
    CHECK(check([](const auto& in) { return reshape(transpose(in[0]), {6}); }, {{2, 3}}) == "");
}

TEST_CASE("permute and transpose: reordered axes without moving data") {
    const Tensor x = counted({2, 3, 4});
    const Tensor permuted = permute(x, {2, 0, 1});
    CHECK(permuted.shape() == Shape({4, 2, 3}));
    CHECK(permuted.view().buffer == x.view().buffer);
    const auto seen = values(permuted);
    std::size_t i = 0;
    for_each_index({4, 2, 3}, [&](const Dims& at) {
        CHECK_UNARY(seen[i++] == static_cast<double>(at[1] * 12 + at[2] * 4 + at[0]));
    });
    CHECK(permute(x, {-1, 0, 1}).shape() == Shape({4, 2, 3}));
    CHECK(transpose(x).shape() == Shape({2, 4, 3}));
    CHECK(transpose(x, 0, 2).shape() == Shape({4, 3, 2}));
    CHECK(values(transpose(transpose(x, 0, 1), 0, 1)) == values(x));
    CHECK_THROWS_AS(permute(x, {0, 1}), ShapeError);
    CHECK_THROWS_AS(permute(x, {0, 1, 1}), ShapeError);
    CHECK_THROWS_AS(permute(x, {0, 1, 3}), ShapeError);
    CHECK_THROWS_AS(transpose(counted({3})), ShapeError);
    CHECK(check([](const auto& in) { return permute(in[0], {1, 2, 0}); }, {{2, 3, 2}}) == "");
}

TEST_CASE("slice: every combination of start, end and step") {
    const Tensor x = counted({7});
    for (std::int64_t start = -9; start <= 9; ++start)
        for (std::int64_t end = -9; end <= 9; ++end)
            for (std::int64_t step = 1; step <= 3; ++step) {
                std::vector<double> expected;
                const auto clamped_index = [](std::int64_t at) {
                    return std::clamp<std::int64_t>(at < 0 ? at + 7 : at, 0, 7);
                };
                for (std::int64_t i = clamped_index(start); i < clamped_index(end); i += step)
                    expected.push_back(static_cast<double>(i));
                CHECK_UNARY(values(slice(x, 0, start, end, step)) == expected);
            }
    CHECK(values(slice(counted({3, 4}), 1, 1, 4, 2)) == std::vector<double>{1, 3, 5, 7, 9, 11});
    CHECK(values(slice(counted({3, 4}), -2, 1, 2)) == std::vector<double>{4, 5, 6, 7});
    CHECK_THROWS_AS(slice(x, 0, 0, 3, 0), ShapeError);
    CHECK_THROWS_AS(slice(x, 0, 0, 3, -1), ShapeError);
    CHECK_THROWS_AS(slice(x, 1, 0, 3), ShapeError);
    for (const std::int64_t step : {1, 2, 3}) {
        CHECK(check([=](const auto& in) { return slice(in[0], 1, 1, 6, step); }, {{2, 7, 2}}) == "");
        CHECK(check([=](const auto& in) { return slice(in[0], 0, 2, 2, step); }, {{5}}) == "");  // an empty slice
    }
}

TEST_CASE("expand: repeats axes of size 1 without moving data; the gradient is summed") {
    const Tensor x = counted({3, 1});
    const Tensor expanded = expand(x, {2, 3, 4});
    CHECK(expanded.view().buffer == x.view().buffer);
    CHECK(values(expanded) ==
          std::vector<double>{0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2});
    CHECK_THROWS_AS(expand(x, {3, 4, 1}), ShapeError);
    CHECK_THROWS_AS(expand(x, {4, 4}), ShapeError);
    CHECK_THROWS_AS(expand(x, {3}), ShapeError);
    CHECK(check([](const auto& in) { return expand(in[0], {2, 3, 2}); }, {{3, 1}}) == "");
    Tensor single = tensor({5}, {}).set_requires_grad();
    expand(single, {2, 3}).backward(ones({2, 3}));
    CHECK(single.grad().item<float>() == 6);
}

TEST_CASE("expand: negative sizes that do not keep an axis are refused") {
    CHECK(expand(ones({4}), {3, -1}).shape() == Shape{3, 4});
    CHECK_THROWS_AS(expand(ones({4}), {-1, 4}), ShapeError);
    CHECK_THROWS_AS(expand(zeros({1}), {-7}), ShapeError);
    CHECK_THROWS_WITH_AS(broadcast_to(ones({4}), {-3, 4}),
                         doctest::Contains("expected a shape that broadcasts to [-3, 4]"), ShapeError);
    CHECK_THROWS_WITH_AS(scatter_nd(Tensor::from<std::int64_t>({0}, {1, 1}), ones({1}), {-4}),
                         "scatter_nd: expected sizes of at least 0, got [-4]", ShapeError);
}

TEST_CASE("concat: along an axis, parts of any kind") {
    const Tensor a = counted({2, 3}), b = counted({2, 1}) * 100, none = zeros({2, 0});
    CHECK(values(concat({a, b, none, a}, 1)) == std::vector<double>{0, 1, 2, 0, 0, 1, 2, 3, 4, 5, 100, 3, 4, 5});
    CHECK(values(concat({a, a}, 0)) == std::vector<double>{0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5});
    CHECK(values(concat({transpose(counted({3, 2})), a}, -2)) ==
          std::vector<double>{0, 2, 4, 1, 3, 5, 0, 1, 2, 3, 4, 5});
    CHECK(values(concat({a}, 0)) == values(a));
    CHECK(concat({counted({2}, DType::i64), counted({1}, DType::i64)}, 0).dtype() == DType::i64);
    CHECK_THROWS_AS(concat({}, 0), ValueError);
    CHECK_THROWS_AS(concat({a, counted({3, 3})}, 1), ShapeError);
    CHECK_THROWS_AS(concat({a, counted({3})}, 0), ShapeError);
    CHECK(concat({counted({2, 3}, DType::i32), a}, 0).dtype() == DType::f32);
    CHECK_THROWS_AS(concat({counted({1}, DType::i8), counted({1}, DType::u64)}, 0), TypeError);
    CHECK_THROWS_AS(concat({a, a}, 2), ShapeError);
    CHECK_THROWS_AS(concat({a, Tensor()}, 0), ValueError);
    CHECK(check([](const auto& in) { return concat({in[0], in[1], in[0]}, 1); }, {{2, 3}, {2, 2}}) == "");
}

TEST_CASE("pad: constant value") {
    CHECK(values(pad(counted({2, 2}), {1, 0}, {0, 2}, 9)) == std::vector<double>{9, 9, 9, 9, 0, 1, 9, 9, 2, 3, 9, 9});
    CHECK(values(pad(counted({3}), {0}, {0})) == std::vector<double>{0, 1, 2});
    CHECK(values(pad(zeros({0}), {2}, {1}, 4)) == std::vector<double>{4, 4, 4});
    CHECK(values(pad(counted({2}, DType::u8), {1}, {0}, 200)) == std::vector<double>{200, 0, 1});
    CHECK_THROWS_AS(pad(counted({2}), {-3}, {0}), ShapeError);
    CHECK_THROWS_AS(pad(counted({2}), {1, 1}, {0, 0}), ShapeError);
    CHECK_THROWS_AS(pad(counted({2}, DType::u8), {1}, {0}, 256), ValueError);
    CHECK(check([](const auto& in) { return pad(in[0], {1, 0}, {2, 1}, 3); }, {{2, 3}}) == "");
}

TEST_CASE("shape functions: double backward") {
    if (!device().info().fp64) return test::skip("f64: the device has no double precision");
    const auto second_order = [&](const std::function<Tensor(const Tensor&)>& function, const Shape& shape) {
        Tensor x = random_tensor(shape, 1, DType::f64).set_requires_grad();
        const Tensor y = function(x);
        const Tensor first = grad({sum(y * y * y)}, {x}, {.create_graph = true}).front();
        const auto weights = random_values(first.numel(), 3);
        first.backward(tensor(weights, first.shape(), DType::f64));
        // d/dx of sum(w * 3 y^2 y') where y only moves, repeats or drops elements: 6 w x n for an element that occurs n
        // times.
        const auto at = values(x), got = values(x.grad());
        Tensor probe = zeros(shape, {DType::f64}).set_requires_grad();
        function(probe).backward(ones(y.shape(), {DType::f64}));
        const auto times = values(probe.grad());
        std::vector<double> expected;
        for (std::size_t i = 0; i < at.size(); ++i) expected.push_back(6 * weights[i] * at[i] * times[i]);
        return difference(got, expected, {.absolute = 1e-12, .relative = 1e-12});
    };
    CHECK(second_order([](const Tensor& x) { return reshape(x, {6}); }, {2, 3}) == "");
    CHECK(second_order([](const Tensor& x) { return permute(x, {1, 0}); }, {2, 3}) == "");
    CHECK(second_order([](const Tensor& x) { return slice(x, 1, 1, 3); }, {2, 4}) == "");
    CHECK(second_order([](const Tensor& x) { return slice(x, 1, 0, 4, 2); }, {2, 5}) == "");
    CHECK(second_order([](const Tensor& x) { return slice(x, 1, 3, 3, 2); }, {2, 5}) == "");
    CHECK(second_order([](const Tensor& x) { return expand(x, {4, 2, 3}); }, {2, 1}) == "");
    CHECK(second_order([](const Tensor& x) { return concat({x, x, slice(x, 0, 0, 1)}, 0); }, {2, 3}) == "");
    CHECK(second_order([](const Tensor& x) { return pad(x, {1, 1}, {0, 2}); }, {2, 3}) == "");
}
