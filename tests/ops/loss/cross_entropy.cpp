#include <reference/cross_entropy_cases.hpp>
#include <tests/support/values.hpp>

#include <cmath>

#include <declivity/ops/cross_entropy.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>
#include <tests/support/devices.hpp>

#include "ops/support/work_split.hpp"
#include "tests/support/gradient_check.hpp"

using namespace declivity;
using namespace declivity::test;

namespace {}

TEST_CASE("cross_entropy: two rows whose softmax is 1/4, 3/4, and the gradients") {
    const Tensor x = tensor({0, std::log(3.0), 0, std::log(3.0)}, {2, 2}).set_requires_grad();
    const Tensor labels = Tensor::from<std::int64_t>({1, 0}, {2});
    const Tensor losses = cross_entropy(x, labels, {.reduction = Reduction::none});
    CHECK(difference(losses, {0.287682, 1.386294}, {1e-5}) == "");  // -log(3/4), -log(1/4)
    losses.backward(ones_like(losses));
    CHECK(difference(x.grad(), {0.25, -0.25, -0.75, 0.75}, {1e-5}) == "");  // softmax, less 1 at the label
}

TEST_CASE("cross_entropy: results and gradients match the reference") {
    for (const CrossEntropyCase& cross_entropy_case : cross_entropy_cases()) {
        if (cross_entropy_case.large && small_cases()) continue;
        const auto labels = cross_entropy_case.labels();
        const Tensor labels_i32 = Tensor::from(labels, {cross_entropy_case.rows});
        for (const DType dtype : floats()) {
            Tensor x = random_tensor({cross_entropy_case.rows, cross_entropy_case.classes}, 1, dtype, -8, 8)
                           .set_requires_grad();
            const auto expected =
                reference_cross_entropy(values(x), cross_entropy_case.classes, labels, cross_entropy_case.options);
            for (const KernelStyle style : kernel_styles()) {
                const ops::KernelStyleScope scope(style);
                CAPTURE(cross_entropy_case.name);
                CAPTURE(name_of(dtype));
                CAPTURE(style == KernelStyle::simd ? "simd" : "simt");
                x.zero_grad();
                const Tensor loss = cross_entropy(x, dtype == DType::f64 ? labels_i32.to(DType::i64) : labels_i32,
                                                  cross_entropy_case.options);
                CHECK(difference(loss, expected.loss, cross_entropy_case.tolerance(dtype)) == "");
                loss.backward(ones_like(loss));
                CHECK(difference(x.grad(), expected.gradient, cross_entropy_case.tolerance(dtype)) == "");
            }
        }
    }
}

TEST_CASE("cross_entropy: numeric gradients") {
    if (widest() != DType::f64) return;
    for (const KernelStyle style : kernel_styles()) {
        const ops::KernelStyleScope scope(style);
        for (const Reduction reduction : {Reduction::mean, Reduction::sum, Reduction::none}) {
            const Tensor labels = Tensor::from<std::int64_t>({2, 0, -100, 1}, {4});
            const Tensor x = random_tensor({4, 3}, 2, DType::f64, -2, 2);
            const auto loss = [&](const auto& in) {
                return cross_entropy(in[0], labels, {.reduction = reduction, .label_smoothing = 0.2});
            };
            CHECK(gradient_difference(loss, {x}) == "");
            CHECK(gradient_difference(
                      [&](const auto& in) {
                          return cross_entropy(transpose(in[0]), slice(labels, 0, 0, 3), {.reduction = reduction});
                      },
                      {x}) == "");
        }
    }
}

TEST_CASE("cross_entropy: labels out of range give NaN only in their rows") {
    for (const KernelStyle style : kernel_styles()) {
        const ops::KernelStyleScope scope(style);
        std::vector<std::int32_t> labels(50, 1);
        labels[3] = 7;
        labels[20] = -1;
        labels[49] = 6;
        Tensor x = random_tensor({50, 6}, 4).set_requires_grad();
        const Tensor losses = cross_entropy(x, Tensor::from(labels, {50}), {.reduction = Reduction::none});
        losses.backward(ones_like(losses));
        const auto loss = losses.to_vector<float>(), gradient = x.grad().to_vector<float>();
        for (std::size_t row = 0; row < labels.size(); ++row) {
            CAPTURE(row);
            const bool valid = labels[row] == 1;
            CHECK(std::isnan(loss[row]) == !valid);
            for (std::size_t c = 0; c < 6; ++c) CHECK(std::isnan(gradient[row * 6 + c]) == !valid);
        }
    }
}

TEST_CASE("cross_entropy: ignore_index, and labels out of range") {
    for (const KernelStyle style : kernel_styles()) {
        const ops::KernelStyleScope scope(style);
        Tensor x = random_tensor({3, 4}, 3).set_requires_grad();
        const Tensor ignored = Tensor::from<std::int32_t>({-100, -100, -100}, {3});
        CHECK(std::isnan(cross_entropy(x, ignored).item<float>()));
        CHECK(cross_entropy(x, ignored, {.reduction = Reduction::sum}).item<float>() == 0);
        cross_entropy(x, ignored).backward();
        CHECK(values(x.grad()) == std::vector<double>(12, 0));

        for (const std::int64_t wrong : {std::int64_t{4}, std::int64_t{-1}, std::int64_t{1} << 40}) {
            const Tensor labels = Tensor::from<std::int64_t>({1, wrong, -100}, {3});
            CHECK(std::isnan(cross_entropy(x, labels).item<float>()));
            const Tensor rows = cross_entropy(x, labels, {.reduction = Reduction::none});
            CHECK(std::isfinite(values(rows)[0]));
            CHECK(std::isnan(values(rows)[1]));
            CHECK(values(rows)[2] == 0);
            x.zero_grad();
            rows.backward(ones({3}));
            const auto gradient = values(x.grad());
            for (std::size_t i = 0; i < 12; ++i) CHECK(std::isnan(gradient[i]) == (i / 4 == 1));
        }
        // An ignored label may be within the classes.
        CHECK(cross_entropy(x, Tensor::from<std::int32_t>({2, 2, 2}, {3}),
                            {.reduction = Reduction::sum, .ignore_index = 2})
                  .item<float>() == 0);
    }
}

TEST_CASE("cross_entropy: logits of any magnitude") {
    for (const KernelStyle style : kernel_styles()) {
        const ops::KernelStyleScope scope(style);
        const Tensor x = Tensor::from<float>({1e4f, 1e4f + 1, -1e30f, 0, -INFINITY, 5}, {2, 3});
        const Tensor labels = Tensor::from<std::int32_t>({0, 2}, {2});
        const auto losses = values(cross_entropy(x, labels, {.reduction = Reduction::none}));
        CHECK(losses[0] == doctest::Approx(std::log(1 + std::exp(1.0))).epsilon(1e-6));
        CHECK(losses[1] == doctest::Approx(std::log(1 + std::exp(-5.0))).epsilon(1e-6));
        CHECK(values(cross_entropy(x, Tensor::from<std::int32_t>({0, 1}, {2}), {.reduction = Reduction::none}))[1] ==
              INFINITY);
    }
}

TEST_CASE("cross_entropy: no rows") {
    const Tensor x = zeros({0, 3}), labels = zeros({0}, {.dtype = DType::i64});
    CHECK(std::isnan(cross_entropy(x, labels).item<float>()));
    CHECK(cross_entropy(x, labels, {.reduction = Reduction::sum}).item<float>() == 0);
    CHECK(cross_entropy(x, labels, {.reduction = Reduction::none}).shape() == Shape({0}));
}

TEST_CASE("cross_entropy: error messages") {
    const Tensor x = zeros({2, 3}), labels = zeros({2}, {.dtype = DType::i64});
    CHECK_THROWS_WITH_AS(cross_entropy(zeros({2, 3, 4}), labels),
                         "cross_entropy: expected labels of shape [2, 4], got [2]", ShapeError);
    CHECK_THROWS_WITH_AS(cross_entropy(x, zeros({3}, {.dtype = DType::i64})),
                         "cross_entropy: expected labels of shape [2], got [3]", ShapeError);
    CHECK_THROWS_WITH_AS(cross_entropy(x, zeros({2})),
                         "cross_entropy: expected labels of an integer type (i8 to i64, u8 to u64), got f32",
                         TypeError);
    CHECK_THROWS_WITH_AS(
        cross_entropy(x.to(DType::i32), labels),
        "cross_entropy: expected f32, f64, f16 or bf16 as logits, got i32 (convert with .to(DType::f32))", TypeError);
    CHECK_THROWS_WITH_AS(cross_entropy(x, labels, {.label_smoothing = 1}),
                         "cross_entropy: expected label_smoothing in [0, 1), got 1", ValueError);
    CHECK_THROWS_WITH_AS(cross_entropy(zeros({2, 0}), labels),
                         "cross_entropy: expected at least one class, got logits of shape [2, 0]", ShapeError);
    CHECK_THROWS_AS(cross_entropy(x, Tensor()), ValueError);
}
