#include <cmath>

#include <declivity/functions/functions.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>
#include <tests/support/devices.hpp>

#include <tests/support/values.hpp>
#include "tests/support/gradient_check.hpp"

using namespace declivity;
using namespace declivity::test;

namespace {

double expected_result(double x, double t) { return std::max(x, 0.0) - x * t + std::log1p(std::exp(-std::abs(x))); }

}  // namespace

TEST_CASE("bce_with_logits: log 2 for a logit of 0, and the logit itself if it is large and wrong") {
    const Tensor x = tensor({0, 200}, {2}), t = tensor({1, 0}, {2});
    CHECK(difference(bce_with_logits(x, t, Reduction::none), {0.693147, 200}, {1e-5, 1e-6}) == "");
    CHECK(difference(bce_with_logits(x, t), {100.346574}, {1e-4}) == "");
}

TEST_CASE("bce_with_logits: values") {
    for (const DType dtype : floats()) {
        const Tensor x = random_tensor({5, 7}, 1, dtype, -9, 9), t = random_tensor({5, 7}, 2, dtype, 0, 1);
        const auto a = values(x), b = values(t);
        std::vector<double> losses;
        double total = 0;
        for (std::size_t i = 0; i < a.size(); ++i) {
            losses.push_back(expected_result(a[i], b[i]));
            total += losses.back();
        }
        CHECK(difference(bce_with_logits(x, t, Reduction::none), losses, tolerance(dtype)) == "");
        CHECK(difference(bce_with_logits(x, t, Reduction::sum), {total}, tolerance(dtype, 35)) == "");
        CHECK(difference(bce_with_logits(x, t), {total / 35}, tolerance(dtype, 35)) == "");
    }
}

TEST_CASE("bce_with_logits: does not overflow") {
    const Tensor x = Tensor::from<float>({1e30f, -1e30f, 200, -200}, {4}), t = Tensor::from<float>({1, 0, 0, 1}, {4});
    CHECK(difference(bce_with_logits(x, t, Reduction::none), {0, 0, 200, 200}, {0, 1e-6}) == "");
}

TEST_CASE("bce_with_logits: numeric gradients") {
    if (widest() != DType::f64) return;
    const Tensor x = random_tensor({4, 3}, 3, DType::f64, -3, 3), t = random_tensor({4, 3}, 4, DType::f64, 0, 1);
    for (const Reduction reduction : {Reduction::mean, Reduction::sum, Reduction::none})
        CHECK(gradient_difference([&](const auto& in) { return bce_with_logits(in[0], in[1], reduction); }, {x, t}) ==
              "");
}

TEST_CASE("bce_with_logits: error messages") {
    CHECK_THROWS_WITH_AS(bce_with_logits(zeros({4}), zeros({4, 1})),
                         "bce_with_logits: expected the target of shape [4], got [4, 1]", ShapeError);
    CHECK(bce_with_logits(zeros({4}), ones({4}, {.dtype = DType::u8})).item<float>() ==
          bce_with_logits(zeros({4}), ones({4})).item<float>());  // of several types
    CHECK_THROWS_AS(bce_with_logits(Tensor(), zeros({4})), ValueError);
}
