#include <declivity/functions/functions.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>
#include <tests/support/devices.hpp>

#include <tests/support/values.hpp>
#include "tests/support/gradient_check.hpp"

using namespace declivity;
using namespace declivity::test;

TEST_CASE("mse_loss: squared differences of two elements, and the gradient of their mean") {
    const Tensor x = tensor({1, 2}, {2}).set_requires_grad(), target = tensor({1, 5}, {2});
    CHECK(values(mse_loss(x, target, Reduction::none)) == std::vector<double>{0, 9});
    CHECK(values(mse_loss(x, target, Reduction::sum)) == std::vector<double>{9});
    const Tensor loss = mse_loss(x, target);
    CHECK(values(loss) == std::vector<double>{4.5});
    loss.backward();
    CHECK(values(x.grad()) == std::vector<double>{0, -3});  // 2 (x - target) / 2
}

TEST_CASE("mse_loss: values") {
    for (const DType dtype : floats()) {
        const Tensor x = random_tensor({5, 7}, 1, dtype), t = random_tensor({5, 7}, 2, dtype);
        const auto a = values(x), b = values(t);
        std::vector<double> squares;
        double total = 0;
        for (std::size_t i = 0; i < a.size(); ++i) {
            squares.push_back((a[i] - b[i]) * (a[i] - b[i]));
            total += squares.back();
        }
        CHECK(difference(mse_loss(x, t, Reduction::none), squares, tolerance(dtype)) == "");
        CHECK(difference(mse_loss(x, t, Reduction::sum), {total}, tolerance(dtype, 35)) == "");
        CHECK(difference(mse_loss(x, t), {total / 35}, tolerance(dtype, 35)) == "");
    }
}

TEST_CASE("mse_loss: numeric gradients") {
    if (widest() != DType::f64) return;
    const Tensor x = random_tensor({4, 3}, 3, DType::f64), t = random_tensor({4, 3}, 4, DType::f64);
    for (const Reduction reduction : {Reduction::mean, Reduction::sum, Reduction::none}) {
        CHECK(gradient_difference([&](const auto& in) { return mse_loss(in[0], in[1], reduction); }, {x, t}) == "");
        CHECK(gradient_difference(
                  [&](const auto& in) { return mse_loss(transpose(in[0]), transpose(in[1]), reduction); }, {x, t}) ==
              "");
    }
}

TEST_CASE("mse_loss: error messages") {
    CHECK_THROWS_WITH_AS(mse_loss(zeros({4}), zeros({4, 1})), "mse_loss: expected the target of shape [4], got [4, 1]",
                         ShapeError);
    CHECK(mse_loss(ones({4}, {.dtype = DType::i32}), full({4}, 3)).item<float>() == 4);  // of several types
    CHECK_THROWS_AS(mse_loss(zeros({4}), Tensor()), ValueError);
}
