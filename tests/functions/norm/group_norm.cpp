// Group and instance normalisation, local response normalisation, normalisation to length 1: corner cases, and their
// errors. Their regular values and gradients are tested by the catalogue.
#include <cmath>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/autograd/checkpoint.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>
#include <tests/support/devices.hpp>
#include <tests/support/values.hpp>

using namespace declivity;
using namespace declivity::test;

namespace {

using Values = std::vector<double>;

}  // namespace

TEST_CASE("group_norm, instance_norm, normalize: rows of 1, 3 and of 10, 30 become -1, 1") {
    const Tensor x = tensor({1, 3, 10, 30}, {1, 4});
    // Two groups of two channels, each with mean 0 and variance 1 afterwards; eps is 1e-5.
    CHECK(difference(group_norm(x, 2), {-1, 1, -1, 1}, {1e-5}) == "");
    CHECK(difference(group_norm(x, 2, tensor({10, 10, 1, 1}, {4}), tensor({0, 0, 0, 7}, {4})), {-10, 10, -1, 8},
                     {1e-4}) == "");
    CHECK(difference(instance_norm(reshape(x, {1, 2, 2})), {-1, 1, -1, 1}, {1e-5}) == "");
    CHECK(difference(normalize(tensor({3, 4, 0, 2}, {2, 2})), {0.6, 0.8, 0, 1}, {1e-6}) == "");
    CHECK(difference(local_response_norm(tensor({1, 2, 3}, {1, 3, 1}), 3, 3, 1), {1.0 / 6, 2.0 / 15, 3.0 / 14},
                     {1e-6}) == "");
}

TEST_CASE("group_norm, instance_norm: equivalent calls, f16 and bf16, empty inputs, errors") {
    const Tensor x = random_tensor({2, 6, 5, 3}, 1, DType::f32, 2, 5), weight = random_tensor({6}, 2),
                 bias = random_tensor({6}, 3);
    const Tolerance allowed{1e-5, 1e-5};
    CHECK(difference(group_norm(x, 6, weight, bias), values(instance_norm(x, weight, bias)), allowed) == "");
    CHECK(difference(group_norm(x, 1), values(layer_norm(x, {6, 5, 3})), allowed) == "");
    CHECK(difference(instance_norm(slice(x, 0, 1, 2), weight, bias),
                     values(batch_norm(slice(x, 0, 1, 2), weight, bias, {}, {})), allowed) == "");
    for (const DType half : {DType::f16, DType::bf16}) {
        const Tensor reduced = group_norm(x.to(half), 2, weight.to(half), bias.to(half));
        CHECK(reduced.dtype() == half);
        CHECK(difference(reduced,
                         values(group_norm(x.to(half).to(DType::f32), 2, weight.to(half).to(DType::f32),
                                           bias.to(half).to(DType::f32))),
                         {0.01, 0.01}) == "");
    }
    CHECK(group_norm(zeros({0, 6, 5}), 2, weight, bias).shape() == Shape{0, 6, 5});
    CHECK(group_norm(zeros({2, 6, 0}), 2).shape() == Shape{2, 6, 0});
    CHECK(group_norm(random_tensor({4, 6}, 4), 3).shape() == Shape{4, 6});
    CHECK_THROWS_WITH_AS(group_norm(x, 4), "group_norm: expected num_groups that divide the 6 channels of x, got 4",
                         ValueError);
    CHECK_THROWS_AS(group_norm(x, 0), ValueError);
    CHECK_THROWS_WITH_AS(group_norm(random_tensor({6}, 1), 2),
                         "group_norm: expected at least 2 axes (N, C, ...) as x, got [6]", ShapeError);
    CHECK_THROWS_AS(group_norm(x, 2, random_tensor({5}, 1)), ShapeError);
    CHECK_THROWS_AS(group_norm(x, 2, weight.to(DType::i32)), TypeError);
    CHECK_THROWS_AS(group_norm(x, 2, {}, {}, -1), ValueError);
    CHECK_THROWS_WITH_AS(instance_norm(random_tensor({4, 6, 1}, 1)),
                         "instance_norm: expected more than one element per channel in x (N, C, ...), got [4, 6, 1]",
                         ShapeError);
    CHECK_THROWS_WITH_AS(instance_norm(x, {}, {}, {}, {}, {.use_input_stats = false}),
                         doctest::Contains("instance_norm: expected running statistics"), ValueError);
    CHECK_THROWS_AS(instance_norm(x, {}, {}, zeros({5}), ones({5})), ShapeError);
    CHECK_THROWS_AS(instance_norm(x, {}, {}, {}, {}, {.momentum = 2}), ValueError);
}

TEST_CASE("instance_norm: running statistics are the mean over the samples") {
    const Tensor x = random_tensor({3, 2, 4, 2}, 1, DType::f32, 1, 4);
    const Values in = values(x);
    Tensor mean = random_tensor({2}, 2), var = random_tensor({2}, 3);
    Values means = values(mean), vars = values(var);
    for (std::size_t c = 0; c < 2; ++c) {
        double batch_mean = 0, batch_variance = 0;
        for (std::size_t n = 0; n < 3; ++n) {
            double sample_mean = 0, squares = 0;
            for (std::size_t i = 0; i < 8; ++i) sample_mean += in[(n * 2 + c) * 8 + i] / 8;
            for (std::size_t i = 0; i < 8; ++i) squares += std::pow(in[(n * 2 + c) * 8 + i] - sample_mean, 2) / 7;
            batch_mean += sample_mean / 3, batch_variance += squares / 3;
        }
        means[c] = 0.75 * means[c] + 0.25 * batch_mean;
        vars[c] = 0.75 * vars[c] + 0.25 * batch_variance;
    }
    const auto call = [&](const Tensor& in_x) { return instance_norm(in_x, {}, {}, mean, var, {.momentum = 0.25}); };
    CHECK(values(call(x)) == values(instance_norm(x)));
    CHECK(difference(mean, means, {1e-6, 1e-6}) == "");
    CHECK(difference(var, vars, {1e-6, 1e-6}) == "");
    // Recomputation in a checkpoint does not count twice.
    const Tensor before = mean.clone(), leaf = x.clone().set_requires_grad();
    sum(square(checkpoint(call, leaf))).backward();
    Tensor updated_mean = before.clone(), other = var.clone();
    (void)instance_norm(x, {}, {}, updated_mean, other, {.momentum = 0.25});
    CHECK(values(mean) == values(updated_mean));
    CHECK(values(mean) != values(before));
    // Evaluation matches batch_norm.
    CHECK(difference(instance_norm(x, {}, {}, mean, var, {.use_input_stats = false}),
                     values((x - reshape(mean, {2, 1, 1})) * rsqrt(reshape(var, {2, 1, 1}) + 1e-5)),
                     {1e-5, 1e-5}) == "");
}

TEST_CASE("local_response_norm, normalize: empty inputs, f16 and bf16, errors") {
    const Tensor x = random_tensor({2, 5, 3}, 1);
    CHECK(local_response_norm(zeros({0, 5, 3}), 3).shape() == Shape{0, 5, 3});
    CHECK(difference(local_response_norm(x, 1, 0, 0.5, 4), values(x * 0.5), {1e-6, 1e-6}) == "");
    CHECK_THROWS_WITH_AS(local_response_norm(x, 0), "local_response_norm: expected a size of at least 1, got 0",
                         ValueError);
    CHECK_THROWS_AS(local_response_norm(zeros({3}), 1), ShapeError);
    CHECK_THROWS_AS(local_response_norm(x.to(DType::i32), 1), TypeError);

    // Zero vectors, and their gradient.
    const Tensor nothing = zeros({2, 3}).set_requires_grad();
    const Tensor y = normalize(nothing);
    CHECK(values(y) == Values(6, 0));
    sum(y).backward();
    for (const double value : values(nothing.grad())) CHECK(value == doctest::Approx(1e12));
    CHECK(values(normalize(full({}, -3), 2, 0)) == Values{-1});
    // Squares that overflow f16.
    CHECK(difference(normalize(full({1, 4}, 30000).to(DType::f16)), Values(4, 0.5), {1e-3, 1e-3}) == "");
    CHECK_THROWS_AS(normalize(x, 2, 3), ShapeError);
    CHECK_THROWS_WITH_AS(normalize(x, 2, 1, -1), "normalize: expected an eps of at least 0, got -1", ValueError);
    CHECK_THROWS_AS(normalize(x.to(DType::i32)), TypeError);
}
