#include <reference/batch_norm_cases.hpp>
#include <tests/support/values.hpp>

#include <declivity/autograd/autograd.hpp>
#include <declivity/ops/batch_norm.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>
#include <tests/support/devices.hpp>

#include "ops/support/work_split.hpp"
#include "tests/support/gradient_check.hpp"

using namespace declivity;
using namespace declivity::test;

namespace {

std::vector<double> moving_average(const std::vector<double>& before, const std::vector<double>& batch, double momentum,
                                   double factor = 1) {
    std::vector<double> out;
    for (std::size_t i = 0; i < before.size(); ++i)
        out.push_back((1 - momentum) * before[i] + momentum * batch[i] * factor);
    return out;
}

}  // namespace

TEST_CASE("batch_norm: a channel of two samples, by running and by batch statistics") {
    const Tensor x = tensor({1, 3}, {2, 1}), weight = tensor({10}, {1}), bias = tensor({5}, {1});
    const Tensor mean = tensor({0}, {1}), variance = tensor({1}, {1});
    CHECK(difference(batch_norm(x, weight, bias, mean, variance, {.training = false}), {15, 35}, {1e-3}) == "");
    // The batch has mean 2 and variance 1, or 2 with Bessel's correction.
    CHECK(difference(batch_norm(x, weight, bias, mean, variance), {-5, 15}, {1e-3}) == "");
    CHECK(difference(mean, {0.2}, {1e-6}) == "");
    CHECK(difference(variance, {1.1}, {1e-6}) == "");
}

TEST_CASE("batch_norm: results, statistics and gradients match the reference") {
    for (const BatchNormCase& batch_norm_case : batch_norm_cases()) {
        if (batch_norm_case.large && small_cases()) continue;
        for (const DType dtype : floats()) {
            const Shape channels{batch_norm_case.channels()};
            Tensor x = random_tensor(batch_norm_case.shape, 1, dtype, -1, 3).set_requires_grad();
            Tensor weight = random_tensor(channels, 2, dtype, 0.5, 2).set_requires_grad(),
                   bias = random_tensor(channels, 3, dtype).set_requires_grad();
            const Tensor g = random_tensor(batch_norm_case.shape, 4, dtype);
            const auto elements = values(x), gradient = values(g), weights = values(weight), biases = values(bias);
            const auto mean_before = random_values(batch_norm_case.channels(), 5),
                       variance_before = random_values(batch_norm_case.channels(), 6, 0.5, 1.5);
            const auto trained = reference_batch_norm(batch_norm_case, elements, weights, biases, gradient, 1e-5);
            BatchNormReference running;
            running.mean = mean_before;
            running.variance = variance_before;
            const auto evaluated =
                reference_batch_norm(batch_norm_case, elements, weights, biases, gradient, 1e-5, &running);
            for (const KernelStyle style : kernel_styles()) {
                const ops::KernelStyleScope scope(style);
                CAPTURE(batch_norm_case.name);
                CAPTURE(name_of(dtype));
                CAPTURE(style == KernelStyle::simd ? "simd" : "simt");
                for (const bool training : {true, false}) {
                    CAPTURE(training);
                    Tensor mean = tensor(mean_before, channels, dtype),
                           variance = tensor(variance_before, channels, dtype);
                    for (Tensor* leaf : {&x, &weight, &bias}) leaf->zero_grad();
                    const Tensor y =
                        batch_norm(x, weight, bias, mean, variance, {.training = training, .momentum = 0.2});
                    const auto& expected = training ? trained : evaluated;
                    const double sums = std::sqrt(static_cast<double>(batch_norm_case.terms()));
                    CHECK(difference(y, expected.y, batch_norm_case.tolerance(dtype, 2)) == "");
                    y.backward(g);
                    CHECK(difference(x.grad(), expected.dx, batch_norm_case.tolerance(dtype, 2)) == "");
                    CHECK(difference(weight.grad(), expected.dweight, batch_norm_case.tolerance(dtype, sums)) == "");
                    CHECK(difference(bias.grad(), expected.dbias, batch_norm_case.tolerance(dtype, sums)) == "");
                    const auto terms = static_cast<double>(batch_norm_case.terms());
                    CHECK(difference(mean, training ? moving_average(mean_before, trained.mean, 0.2) : mean_before,
                                     batch_norm_case.tolerance(dtype)) == "");
                    CHECK(difference(variance,
                                     training
                                         ? moving_average(variance_before, trained.variance, 0.2, terms / (terms - 1))
                                         : variance_before,
                                     batch_norm_case.tolerance(dtype)) == "");
                }
            }
        }
    }
}

TEST_CASE("batch_norm: a mean far from zero does not degrade the variance") {
    for (const KernelStyle style : kernel_styles()) {
        const ops::KernelStyleScope scope(style);
        for (const Shape& shape : {Shape{40, 3}, Shape{4, 3, 40}}) {
            auto elements = random_values(shape.numel(), 7);
            for (double& value : elements)
                value = std::round(value * 64) / 64 + 10'000;  // a float of this magnitude has steps of 1/1024
            const Tensor x = tensor(elements, shape);
            const BatchNormCase test_case{.name = "", .shape = shape};
            const std::vector<double> ones(3, 1), zeros(3, 0);
            const auto expected = reference_batch_norm(test_case, elements, ones, zeros, elements, 1e-5);
            // The mean itself is rounded to such a step, which is this fraction of a standard deviation.
            CHECK(difference(batch_norm(x, {}, {}, {}, {}), expected.y, {1e-2, 1e-3}) == "");
        }
    }
}

TEST_CASE("batch_norm: numeric gradients") {
    if (widest() != DType::f64) return;
    for (const KernelStyle style : kernel_styles()) {
        const ops::KernelStyleScope scope(style);
        for (const Shape& shape : {Shape{5, 3}, Shape{3, 2, 2, 2}, Shape{2, 3, 20}}) {
            const Shape channels{shape[1]};
            const Tensor x = random_tensor(shape, 8, DType::f64), weight = random_tensor(channels, 9, DType::f64),
                         bias = random_tensor(channels, 10, DType::f64);
            const Tensor mean = random_tensor(channels, 11, DType::f64),
                         variance = random_tensor(channels, 12, DType::f64, 0.5, 2);
            const GradientCheckOptions loose{.tolerance = 1e-5};
            CHECK(gradient_difference(
                      [](const auto& in) { return batch_norm(in[0], in[1], in[2], {}, {}, {.eps = 1e-2}); },
                      {x, weight, bias}, loose) == "");
            CHECK(
                gradient_difference([](const auto& in) { return batch_norm(in[0], {}, in[1], {}, {}, {.eps = 1e-2}); },
                                    {x, bias}, loose) == "");
            CHECK(
                gradient_difference([](const auto& in) { return batch_norm(in[0], in[1], {}, {}, {}, {.eps = 1e-2}); },
                                    {x, weight}, loose) == "");
            CHECK(gradient_difference(
                      [&](const auto& in) {
                          return batch_norm(in[0], in[1], in[2], mean, variance, {.training = false});
                      },
                      {x, weight, bias}) == "");
            CHECK(gradient_difference(
                      [&](const auto& in) { return batch_norm(in[0], {}, {}, mean, variance, {.training = false}); },
                      {x}) == "");
        }
    }
}

TEST_CASE("batch_norm: strided and empty inputs") {
    const Tensor x = random_tensor({4, 6, 10}, 13);
    const Tensor view = permute(slice(x, 2, 0, 10, 3), {2, 1, 0});
    CHECK(difference(batch_norm(view, {}, {}, {}, {}), values(batch_norm(view.clone(), {}, {}, {}, {})), {0, 0}) == "");
    CHECK(batch_norm(zeros({0, 3}), {}, {}, zeros({3}), ones({3}), {.training = false}).shape() == Shape({0, 3}));
}

TEST_CASE("batch_norm: running statistics count as in-place writes") {
    Tensor x = random_tensor({4, 3}, 14).set_requires_grad();
    Tensor mean = zeros({3}), variance = ones({3});
    const Tensor y = batch_norm(x, {}, {}, mean, variance, {.training = false});
    batch_norm(x, {}, {}, mean, variance);
    CHECK_THROWS_AS(sum(y).backward(), ValueError);  // the backward pass needs the original mean
    const Tensor trained = batch_norm(x, {}, {}, mean, variance);
    batch_norm(x, {}, {}, mean, variance);
    sum(trained).backward();  // the batch's own statistics are unchanged
    CHECK(difference(x.grad(), std::vector<double>(12, 0), {1e-6, 0}) == "");
}

TEST_CASE("batch_norm: error messages") {
    const Tensor x = zeros({4, 3}), c = zeros({3});
    CHECK_THROWS_WITH_AS(batch_norm(zeros({4}), c, c, c, c),
                         "batch_norm: expected at least 2 axes (N, C, ...) as x, got [4]", ShapeError);
    CHECK_THROWS_WITH_AS(batch_norm(zeros({1, 3}), c, c, c, c),
                         "batch_norm: expected at least two elements per channel in training, got [1, 3]", ShapeError);
    CHECK_THROWS_WITH_AS(
        batch_norm(x, zeros({4}), c, c, c),
        "batch_norm: expected x of shape (N, C, ...) with as many channels as the weight has elements, got x of "
        "shape [4, 3] and the weight of shape [4]",
        ShapeError);
    CHECK_THROWS_WITH_AS(batch_norm(x, c, c, c, {}, {.training = false}),
                         "batch_norm: expected running statistics to evaluate with, got an undefined tensor",
                         ValueError);
    CHECK_THROWS_WITH_AS(
        batch_norm(x, c, c, c, zeros({2}), {.training = false}),
        "batch_norm: expected x of shape (N, C, ...) with as many channels as the running variance has elements, "
        "got x of shape [4, 3] and the running variance of shape [2]",
        ShapeError);
    CHECK_THROWS_WITH_AS(batch_norm(x, c.to(DType::bf16), c, c, c),
                         "batch_norm: expected x and the weight of one type, got f32 and bf16", TypeError);
    CHECK_THROWS_WITH_AS(batch_norm(x.to(DType::i32), c, c, c, c),
                         "batch_norm: expected f32, f64, f16 or bf16 as x, got i32 (convert with .to(DType::f32))",
                         TypeError);
    CHECK_THROWS_WITH_AS(batch_norm(x, c, c, c, c, {.eps = 0}), "batch_norm: expected eps above 0, got 0", ValueError);
    CHECK_THROWS_WITH_AS(batch_norm(x, c, c, c, c, {.momentum = 2}),
                         "batch_norm: expected a momentum in [0, 1], or none, got 2", ValueError);
}
