// Short forms of calls, as in PyTorch, compared with the long ones.
#include <cmath>
#include <cstdint>
#include <vector>

#include <declivity/declivity.hpp>
#include <doctest/doctest.h>
#include <tests/support/values.hpp>

using namespace declivity;
using namespace declivity::test;

TEST_CASE("short forms: creation with one number") {
    CHECK(values(arange(5)) == std::vector<double>{0, 1, 2, 3, 4});
    CHECK(arange(3, {DType::i32}).dtype() == DType::i32);
    CHECK(zeros({2}, DType::i64).dtype() == DType::i64);
    CHECK(ones({2}, DType::u8).dtype() == DType::u8);
    CHECK(values(full({2}, 3, DType::bf16)) == std::vector<double>{3, 3});
    Generator first(3), second(3);
    CHECK(values(randn({7}, first)) == values(randn({7}, {}, second)));
    CHECK(values(rand({7}, first)) == values(rand({7}, {}, second)));
    const Tensor random_ints = randint(10, {100});
    CHECK(random_ints.dtype() == DType::i64);
    CHECK(values(min(random_ints))[0] >= 0);
    CHECK(values(max(random_ints))[0] < 10);
    CHECK(normal(zeros({4}), 0.0).shape() == Shape{4});
}

TEST_CASE("short forms: bounds as numbers take the gradient at a bound, as tensors share it") {
    const Tensor x = random_tensor({5, 7}, 1).set_requires_grad(), low = random_tensor({7}, 2, DType::f32, -1, 0),
                 high = random_tensor({5, 1}, 3, DType::f32, 0, 1);
    const Tensor expected = minimum(maximum(x, low), high);
    CHECK(values(clamp(x, low, high)) == values(expected));
    CHECK(values(clamp(x, low, 0.2)) == values(minimum(maximum(x, low), 0.2)));
    CHECK(values(clamp(x, -0.2, high)) == values(minimum(maximum(x, -0.2), high)));
    CHECK(values(grad(sum(clamp(x, low, high)), x)) == values(grad(sum(expected), x)));
    // The upper bound is applied last.
    CHECK(values(clamp(Tensor::from<float>({1, 2}, {2}), 5, 0)) == std::vector<double>{0, 0});
    const Tensor at = Tensor::from<float>({-1, 1, 3, NAN}, {4}).set_requires_grad();
    CHECK(values(grad(sum(clamp_min(at, 1)), at)) == std::vector<double>{0, 0, 1, 0});
    CHECK(values(grad(sum(clamp_max(at, 1)), at)) == std::vector<double>{1, 0, 0, 0});
    CHECK(values(grad(sum(clamp_min(at, full({4}, 1))), at)) == std::vector<double>{0, 0.5, 1, 1});
    CHECK(std::isnan(values(clamp_min(at, 1))[3]));
    CHECK(std::isnan(values(clamp_min(full({1}, 1), full({1}, NAN)))[0]));
    CHECK(values(clamp_min(Tensor::from<std::int32_t>({-3, 4}, {2}), 1)) == std::vector<double>{1, 4});
    CHECK(clamp_min(Tensor::from<std::int32_t>({-3, 4}, {2}), 1).dtype() == DType::i32);
    CHECK(values(clamp_max(Tensor::from<std::int32_t>({-3, 4}, {2}), 1.5)) == std::vector<double>{-3, 1.5});
    CHECK(values(max(x, low)) == values(maximum(x, low)));
    CHECK(values(min(x, low)) == values(minimum(x, low)));
}

TEST_CASE("short forms: the standard deviation of equal elements has the gradient 0") {
    const Tensor x = Tensor::from<float>({2, 2, 2, 1, 5, 3}, {2, 3}).set_requires_grad();
    const std::vector<double> gradient = values(grad(sum(stddev(x, {1})), x));
    for (int i = 0; i < 3; ++i) CHECK(gradient[static_cast<std::size_t>(i)] == 0);
    CHECK(gradient[3] == doctest::Approx(-0.5));
    CHECK(gradient[4] == doctest::Approx(0.5));
    CHECK(values(stddev(x, {1})) == std::vector<double>{0, 2});
}

TEST_CASE("short forms: axes are not mistaken for a power") {
    const auto norm_of = [](const auto& x) {
        return requires { norm(x, {1}); };
    };
    const auto normalize_of = [](const auto& x) {
        return requires { normalize(x, {1}); };
    };
    CHECK_FALSE(norm_of(Tensor()));
    CHECK_FALSE(normalize_of(Tensor()));
    CHECK(values(norm(full({2, 4}, 1), 2, {1})) == std::vector<double>{2, 2});
}

TEST_CASE("short forms: shapes and windows") {
    const Tensor x = random_tensor({2, 3, 4, 6}, 1);
    CHECK(flatten(x, 0, 1).shape() == Shape{6, 4, 6});
    CHECK(flatten(x, 2).shape() == Shape{2, 3, 24});
    CHECK(flatten(x, -3, -2).shape() == Shape{2, 12, 6});
    CHECK_THROWS_WITH_AS((void)flatten(x, 2, 1), doctest::Contains("flatten: expected a first axis"), ValueError);
    CHECK(values(repeat_interleave(arange(3), 2)) == std::vector<double>{0, 0, 1, 1, 2, 2});
    CHECK(values(quantile(x, 0.25)) == values(quantile(reshape(x, {-1}), 0.25, 0)));
    CHECK(values(max_pool2d(x, 2)) == values(max_pool2d(x, {.kernel_size = 2})));
    CHECK(values(max_pool2d(x, 3, 1)) == values(max_pool2d(x, {.kernel_size = 3, .stride = 1})));
    CHECK(values(avg_pool2d(x, 3, 1)) == values(avg_pool2d(x, {.kernel_size = 3, .stride = 1})));
    CHECK(values(nn::MaxPool2d(3, 1)(x)) == values(max_pool2d(x, 3, 1)));
    CHECK(values(nn::AvgPool2d(2, 1)(x)) == values(avg_pool2d(x, 2, 1)));
    CHECK(values(interpolate(x, {.scale_factor = 2})) == values(interpolate(x, {.size = {8, 12}})));
    CHECK(values(nn::Upsample({.scale_factor = 2})(x)) == values(interpolate(x, {.size = {8, 12}})));
    CHECK_THROWS_WITH_AS((void)flip(x, {0, -4}), doctest::Contains("flip: expected each axis once"), ShapeError);
    CHECK(values(flip(x, {})) == values(x));
    const Tensor a = random_tensor({3, 4}, 5), b = random_tensor({4, 5}, 6);
    CHECK(values(einsum("ij,jk->ik", a, b)) == values(einsum("ij,jk->ik", {a, b})));
}

TEST_CASE("short forms: a selection by tensors has shape, type and elements") {
    const Tensor x = random_tensor({5, 3}, 1), rows = Tensor::from<std::int64_t>({4, 0}, {2});
    CHECK(x[rows].shape() == Shape{2, 3});
    CHECK(x[rows].numel() == 6);
    CHECK(x[rows].dtype() == DType::f32);
    CHECK(x[rows].to_vector<float>() == Tensor(x[rows]).to_vector<float>());
    CHECK(x[{rows, 1}].tensor()[0].item<float>() == x[{4, 1}].item<float>());
    CHECK(Tensor(x[NewAxis()]).shape() == Shape{1, 5, 3});
    CHECK(Tensor(x[Ellipsis()]).shape() == Shape{5, 3});
}

TEST_CASE("short forms: bools in place, and with numbers") {
    const Tensor x = random_tensor({40}, 1), y = random_tensor({40}, 2);
    const Tensor a = x > 0, b = y > 0;
    const auto changed = [&](auto change) {
        Tensor c = a.clone();
        change(c);
        return c;
    };
    CHECK(values(changed([&](Tensor& c) { c &= b; })) == values(a & b));
    CHECK(values(changed([&](Tensor& c) { c |= b; })) == values(a | b));
    CHECK(values(changed([&](Tensor& c) { c ^= b; })) == values(a ^ b));
    CHECK(values(changed([&](Tensor& c) { c += b; })) == values(a | b));
    CHECK(values(changed([&](Tensor& c) { c *= b; })) == values(a & b));
    CHECK(values(changed([&](Tensor& c) { c &= false; })) == std::vector<double>(40, 0));
    CHECK((a + true).dtype() == DType::boolean);
    CHECK(values(a + true) == std::vector<double>(40, 1));
    CHECK(values(a * true) == values(a));
    CHECK((a + 1).dtype() == DType::i64);
    Tensor bits = Tensor::from<std::int32_t>({12, 10}, {2});
    bits &= 6;
    CHECK(values(bits) == std::vector<double>{4, 2});
    CHECK_THROWS_WITH_AS(bits |= Tensor::from<std::int64_t>({1, 2, 3}, {3}), doctest::Contains("operator|=: expected"),
                         ShapeError);
    Tensor real = zeros({2});
    CHECK_THROWS_AS(real &= 1, TypeError);
}

TEST_CASE("short forms: EnableGrad within NoGrad") {
    const Tensor w = full({3}, 2).set_requires_grad();
    const NoGrad no_grad;
    CHECK_FALSE((w * 2).requires_grad());
    {
        const EnableGrad captured_again;
        CHECK(grad_enabled());
        CHECK(values(grad(sum(w * w), w)) == std::vector<double>{4, 4, 4});
    }
    CHECK_FALSE(grad_enabled());
}

TEST_CASE("short forms: multinomial without positive weights returns valid indices") {
    for (const double weight : {0.0, static_cast<double>(NAN), static_cast<double>(INFINITY)})
        for (const double index : values(multinomial(full({4}, weight), 9, true))) {
            CHECK(index >= 0);
            CHECK(index < 4);
        }
}
