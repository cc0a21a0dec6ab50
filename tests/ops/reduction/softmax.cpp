#include <reference/softmax_cases.hpp>
#include <tests/support/values.hpp>

#include <cmath>

#include <declivity/ops/softmax.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>
#include <tests/support/devices.hpp>
#include <tests/support/skip.hpp>

#include "ops/support/work_split.hpp"
#include "tests/support/gradient_check.hpp"

using namespace declivity;
using namespace declivity::test;

namespace {

Tensor backward_of(const Tensor& y, Tensor& x, const Tensor& gradient) {
    x.zero_grad();
    y.backward(gradient);
    return x.grad();
}

}  // namespace

TEST_CASE("softmax: the logarithms of 1, 2 and 4 become 1/7, 2/7 and 4/7") {
    const Tensor x = tensor({0, std::log(2.0), std::log(4.0)}, {1, 3}).set_requires_grad();
    const Tensor y = softmax(x, 1);
    CHECK(difference(y, {1.0 / 7, 2.0 / 7, 4.0 / 7}, {1e-6}) == "");
    CHECK(difference(log_softmax(x, 1), {std::log(1.0 / 7), std::log(2.0 / 7), std::log(4.0 / 7)}, {1e-5}) == "");
    // The gradient of x is y (g - sum of g y), and the sum is 1 here.
    y.backward(tensor({7, 0, 0}, {1, 3}));
    CHECK(difference(x.grad(), {6.0 / 7, -2.0 / 7, -4.0 / 7}, {1e-5}) == "");
}

TEST_CASE("softmax: results and gradients match the reference") {
    for (const SoftmaxCase& softmax_case : softmax_cases()) {
        if (softmax_case.large && small_cases()) continue;
        for (const DType dtype : floats()) {
            Tensor x = random_tensor(softmax_case.shape, 1, dtype, -8, 8).set_requires_grad();
            const Tensor g = random_tensor(softmax_case.shape, 2, dtype);
            const auto elements = values(x), gradient = values(g);
            for (const KernelStyle style : kernel_styles()) {
                const ops::KernelStyleScope scope(style);
                CAPTURE(softmax_case.name);
                CAPTURE(name_of(dtype));
                CAPTURE(style == KernelStyle::simd ? "simd" : "simt");
                const Tensor y = softmax(x, softmax_case.axis), log_y = log_softmax(x, softmax_case.axis);
                CHECK(difference(y, reference_softmax(elements, softmax_case.shape, softmax_case.axis),
                                 softmax_case.tolerance(dtype)) == "");
                CHECK(difference(log_y, reference_log_softmax(elements, softmax_case.shape, softmax_case.axis),
                                 softmax_case.tolerance(dtype, 8)) == "");
                CHECK(difference(
                          backward_of(y, x, g),
                          reference_softmax_backward(false, elements, gradient, softmax_case.shape, softmax_case.axis),
                          softmax_case.tolerance(dtype)) == "");
                CHECK(difference(
                          backward_of(log_y, x, g),
                          reference_softmax_backward(true, elements, gradient, softmax_case.shape, softmax_case.axis),
                          softmax_case.tolerance(dtype, 8)) == "");
            }
        }
    }
}

TEST_CASE("softmax: inputs of any magnitude") {
    for (const KernelStyle style : kernel_styles()) {
        const ops::KernelStyleScope scope(style);
        for (const bool columns : {false, true}) {
            const auto arranged = [&](const Tensor& x) {
                return columns ? expand(reshape(x, {x.numel(), 1}), {x.numel(), 2}) : x;
            };
            const auto first = [&](const Tensor& y) { return values(columns ? slice(y, 1, 0, 1) : y); };
            const Tensor big = arranged(Tensor::from<float>({1e30f, 1e30f, -1e30f, 3}, {4}));
            CHECK(first(softmax(big, 0)) == std::vector<double>{0.5, 0.5, 0, 0});
            CHECK(difference(first(log_softmax(big, 0)), {-std::log(2.0), -std::log(2.0), -2e30, -1e30},
                             {1e-6, 1e-6}) == "");
            const Tensor masked = arranged(Tensor::from<float>({-INFINITY, 2, -INFINITY, 2}, {4}));
            CHECK(first(softmax(masked, 0)) == std::vector<double>{0, 0.5, 0, 0.5});
            CHECK(first(log_softmax(masked, 0))[0] == -INFINITY);
            for (const float bad : {-INFINITY, NAN}) {
                const Tensor none = arranged(Tensor::from<float>({bad, bad, bad}, {3}));
                for (const double value : first(softmax(none, 0))) CHECK(std::isnan(value));
                for (const double value : first(log_softmax(none, 0))) CHECK(std::isnan(value));
            }
        }
    }
}

TEST_CASE("softmax: strided inputs") {
    const Tensor x = random_tensor({6, 4, 10}, 3);
    const Tensor view = permute(slice(x, 2, 1, 10, 2), {1, 2, 0});
    CHECK(difference(softmax(view, 1), reference_softmax(values(view), view.shape(), 1), {1e-6, 1e-6}) == "");
}

TEST_CASE("softmax: numeric gradients") {
    if (widest() != DType::f64) return skip("the device has no fp64");
    for (const KernelStyle style : kernel_styles()) {
        const ops::KernelStyleScope scope(style);
        for (const Shape& shape : {Shape{7}, Shape{3, 5}, Shape{2, 4, 3}})
            for (int axis = 0; axis < shape.rank(); ++axis) {
                const Tensor x = random_tensor(shape, 4, DType::f64, -2, 2);
                CHECK(gradient_difference([&](const auto& in) { return softmax(in[0], axis); }, {x}) == "");
                CHECK(gradient_difference([&](const auto& in) { return log_softmax(in[0], axis); }, {x}) == "");
            }
    }
    const Tensor x = random_tensor({3, 4}, 5, DType::f64);
    CHECK(gradient_difference([&](const auto& in) { return softmax(transpose(in[0]), 0); }, {x}) == "");
}

TEST_CASE("softmax: error messages") {
    CHECK_THROWS_WITH_AS(softmax(zeros({2, 3}), 2), "softmax: expected an axis in [-2, 1], got 2", ShapeError);
    CHECK_THROWS_WITH_AS(log_softmax(zeros({2}, {.dtype = DType::i32})),
                         "log_softmax: expected f32, f64, f16 or bf16 as x, got i32 (convert with .to(DType::f32))",
                         TypeError);
    CHECK_THROWS_WITH_AS(softmax(Tensor()), "softmax: expected a tensor, got an undefined one", ValueError);
    const Tensor x = zeros({2, 3});
    CHECK_THROWS_AS(ops::softmax_backward(ops::SoftmaxKind::softmax, x.view(), zeros({3, 2}).view(), 1), ShapeError);
}
