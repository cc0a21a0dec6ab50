// Clipping of gradients with a non-finite norm, and by value.
#include <cmath>
#include <limits>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/optim/optimizer.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>

#include <tests/support/values.hpp>
#include "tests/support/devices.hpp"

using namespace declivity;
using test::values;

namespace {

const double kInfinity = std::numeric_limits<double>::infinity();

/// Two parameters: gradients of one value, and one of 5003 elements including another value.
std::vector<Tensor> parameters_with(double value, DType dtype) {
    Tensor a = zeros({7}, {dtype}).set_requires_grad(), b = zeros({5003}, {dtype}).set_requires_grad();
    a.set_grad(full({7}, 2, {dtype}));
    Tensor gradient = full({5003}, -1, {dtype});
    gradient[4100] = value;
    b.set_grad(gradient);
    return {a, b, zeros({2}, {dtype}).set_requires_grad()};  // the last one has no gradient
}

std::vector<DType> types() {
    std::vector<DType> all = test::floats();
    all.push_back(DType::f16);
    all.push_back(DType::bf16);
    return all;
}

}  // namespace

TEST_CASE("clip_grad_norm: a NaN norm makes all gradients NaN") {
    for (const DType dtype : types()) {
        CAPTURE(name_of(dtype));
        const auto parameters = parameters_with(NAN, dtype);
        CHECK(std::isnan(optim::clip_grad_norm(parameters, 1).to(DType::f32).item<float>()));
        for (const std::size_t i : {0, 1})
            for (const double value : values(parameters[i].grad())) CHECK(std::isnan(value));
        CHECK_FALSE(parameters[2].grad().defined());
    }
}

TEST_CASE("clip_grad_norm: an infinite norm makes infinite elements NaN and others 0") {
    for (const DType dtype : types())
        for (const double value : {kInfinity, -kInfinity}) {
            CAPTURE(name_of(dtype));
            const auto parameters = parameters_with(value, dtype);
            CHECK(optim::clip_grad_norm_(parameters, 1).to(DType::f32).item<float>() == kInfinity);
            CHECK(values(parameters[0].grad()) == std::vector<double>(7, 0));
            const auto found = values(parameters[1].grad());
            for (std::size_t k = 0; k < found.size(); ++k)
                if (k == 4100) CHECK(std::isnan(found[k]));
                else CHECK(found[k] == 0);
        }
}

TEST_CASE("clip_grad_norm: error_if_nonfinite throws and leaves the gradients unchanged") {
    for (const double value : {static_cast<double>(NAN), kInfinity}) {
        const auto parameters = parameters_with(value, DType::f32);
        CHECK_THROWS_WITH_AS(
            optim::clip_grad_norm(parameters, 1, {.error_if_nonfinite = true}),
            doctest::Contains("clip_grad_norm: expected a finite norm of the gradients (error_if_nonfinite), got "),
            ValueError);
        CHECK(values(parameters[0].grad()) == std::vector<double>(7, 2));
        CHECK(values(parameters[1].grad())[0] == -1);
    }
    const auto parameters = parameters_with(3, DType::f32);
    CHECK(optim::clip_grad_norm(parameters, 1e6, {.error_if_nonfinite = true}).item<float>() ==
          doctest::Approx(std::sqrt(28.0 + 5002 + 9)));
    CHECK(values(parameters[1].grad())[4100] == 3);
    CHECK(optim::clip_grad_norm(parameters, 1e6).shape() == Shape{});
    CHECK(optim::clip_grad_norm({zeros({2})}, 1).shape() == Shape{});
    CHECK(optim::clip_grad_norm({zeros({2})}, 1, {.error_if_nonfinite = true}).item<float>() == 0);
}

TEST_CASE("clip_grad_value: clamps each element, preserves NaN") {
    for (const DType dtype : types()) {
        CAPTURE(name_of(dtype));
        for (const double value : {0.25, 9.0, -9.0, kInfinity, -kInfinity, static_cast<double>(NAN)}) {
            const auto parameters = parameters_with(value, dtype);
            optim::clip_grad_value(parameters, 0.5);
            CHECK(values(parameters[0].grad()) == std::vector<double>(7, 0.5));
            const auto found = values(parameters[1].grad());
            CHECK(found[4099] == -0.5);
            if (std::isnan(value)) CHECK(std::isnan(found[4100]));
            else CHECK(found[4100] == std::min(0.5, std::max(-0.5, value)));
        }
        const auto parameters = parameters_with(1, dtype);
        optim::clip_grad_value_(parameters, kInfinity);
        CHECK(values(parameters[0].grad()) == std::vector<double>(7, 2));
        optim::clip_grad_value_(parameters, 0);
        CHECK(values(parameters[0].grad()) == std::vector<double>(7, 0));
    }
    optim::clip_grad_value({}, 1);
    const auto parameters = parameters_with(1, DType::f32);
    CHECK_THROWS_WITH_AS(optim::clip_grad_value(parameters, -1),
                         "clip_grad_value: expected a clip_value of at least 0, got -1", ValueError);
    CHECK_THROWS_AS(optim::clip_grad_value(parameters, NAN), ValueError);
    CHECK_THROWS_AS(optim::clip_grad_value({Tensor()}, 1), ValueError);
}

TEST_CASE("clipping: gradients of a sum, which may be the same tensor, are scaled once each") {
    Tensor a = ones({4}).set_requires_grad(), b = ones({4}).set_requires_grad();
    sum(a + b).backward();
    const double norm = std::sqrt(8.0);
    CHECK(optim::clip_grad_norm({a, b}, 1).item<float>() == doctest::Approx(norm));
    for (const Tensor& tensor : {a, b}) CHECK(values(tensor.grad())[3] == doctest::Approx(1 / norm).epsilon(1e-5));
}
