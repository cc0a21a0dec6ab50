// Gradients of every function of the elementwise table, and the public functions made from it.
#include <cmath>
#include <limits>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <reference/elementwise_cases.hpp>
#include <tests/support/devices.hpp>
#include <tests/support/gradient_check.hpp>
#include <tests/support/skip.hpp>
#include <tests/support/strided.hpp>
#include <tests/support/values.hpp>

using namespace declivity;
using namespace declivity::test;

namespace {

/// Inputs of a function at differentiable points: a column each, of equal length.
std::vector<std::vector<double>> smooth_inputs(const ElementwiseCase& test_case, std::size_t count,
                                               std::uint64_t seed) {
    const auto inputs = static_cast<std::size_t>(ops::info(test_case.function).inputs);
    std::vector<std::vector<double>> columns(inputs);
    for (std::uint64_t attempt = 0; columns[0].size() < count; ++attempt) {
        auto candidate =
            random_values(static_cast<std::int64_t>(inputs), seed * 100000 + attempt, test_case.low, test_case.high);
        Arguments arguments{.a = candidate[0]};
        if (inputs > 1) arguments.b = candidate[1];
        if (!test_case.parameters.empty()) arguments.p = test_case.parameters[0];
        if (test_case.parameters.size() > 1) arguments.q = test_case.parameters[1];
        if (test_case.kink(arguments) < 0.02) continue;
        for (std::size_t i = 0; i < inputs; ++i) columns[i].push_back(candidate[i]);
    }
    return columns;
}

bool has_gradient(ops::Function function) {
    for (const auto rule : ops::info(function).gradient)
        if (!rule.empty()) return true;
    return false;
}

/// The gradient of sum(weights * f(inputs)) in one type.
std::vector<std::vector<double>> gradients(const ElementwiseCase& test_case, const std::vector<std::vector<double>>& in,
                                           DType dtype) {
    const auto count = static_cast<std::int64_t>(in[0].size());
    std::vector<Tensor> inputs;
    for (std::size_t i = 0; i < in.size(); ++i) {
        const bool condition = ops::info(test_case.function).domain == ops::Domain::choose && i == 0;
        if (condition) inputs.push_back(greater(tensor(in[i], {count}, dtype), zeros({1}, {dtype})));
        else inputs.push_back(tensor(in[i], {count}, dtype).set_requires_grad());
    }
    elementwise(test_case.function, inputs, scalars(test_case.parameters)).backward(random_tensor({count}, 4, dtype));
    std::vector<std::vector<double>> out;
    for (const Tensor& input : inputs)
        out.push_back(input.grad().defined() ? values(input.grad()) : std::vector<double>{});
    return out;
}

}  // namespace

TEST_CASE("elementwise gradients: a product and relu of two numbers") {
    const Tensor x = tensor({-1, 2}, {2}).set_requires_grad(), y = tensor({3, 5}, {2}).set_requires_grad();
    const Tensor z = x * y + relu(x);
    CHECK(values(z) == std::vector<double>{-3, 12});
    sum(z).backward();
    CHECK(values(x.grad()) == std::vector<double>{3, 6});  // y + (0, 1)
    CHECK(values(y.grad()) == std::vector<double>{-1, 2});
}

TEST_CASE("elementwise gradients: every function matches central differences") {
    if (!device().info().fp64) return test::skip("f64: the device has no double precision");
    for (const ops::Function function : all_functions()) {
        const ElementwiseCase* test_case = case_of(function);
        if (test_case == nullptr || !has_gradient(function) || ops::info(function).domain == ops::Domain::choose)
            continue;
        CAPTURE(ops::info(function).name);
        std::vector<Tensor> inputs;
        for (const auto& column : smooth_inputs(*test_case, 12, 1)) inputs.push_back(tensor(column, {12}, DType::f64));
        const bool mask = function == ops::Function::dropout;  // its second input has no gradient
        const std::vector<Tensor> expected(inputs.begin(), mask ? inputs.begin() + 1 : inputs.end());
        CHECK(gradient_difference(
                  [&](auto in) {
                      if (mask) in.push_back(inputs[1]);
                      return elementwise(function, in, scalars(test_case->parameters));
                  },
                  expected) == "");
    }
}

TEST_CASE("elementwise gradients: where passes the gradient to the selected input") {
    const DType dtype = device().info().fp64 ? DType::f64 : DType::f32;
    const Tensor condition = greater(random_tensor({4, 1}, 1, dtype), zeros({1}, {dtype}));
    if (dtype == DType::f64)
        CHECK(gradient_difference([&](const auto& in) { return where(condition, in[0], in[1]); },
                                  {random_tensor({4, 3}, 2, dtype), random_tensor({3}, 3, dtype)}) == "");
    Tensor a = random_tensor({4, 3}, 2, dtype).set_requires_grad();
    where(condition, a, zeros({1}, {dtype})).backward(ones({4, 3}, {dtype}));
    const auto chosen = values(condition), gradient = values(a.grad());
    for (std::size_t i = 0; i < 12; ++i) CHECK(gradient[i] == chosen[i / 3]);
}

TEST_CASE("elementwise gradients: f32 matches f64") {
    if (!device().info().fp64) return test::skip("f64: the device has no double precision");
    for (const ops::Function function : all_functions()) {
        const ElementwiseCase* test_case = case_of(function);
        if (test_case == nullptr || !has_gradient(function)) continue;
        CAPTURE(ops::info(function).name);
        auto in = smooth_inputs(*test_case, small_cases() ? 20 : 300, 2);
        for (auto& column : in)
            for (double& value : column) value = static_cast<float>(value);
        const auto gradients_f64 = gradients(*test_case, in, DType::f64),
                   gradients_f32 = gradients(*test_case, in, DType::f32);
        for (std::size_t i = 0; i < gradients_f64.size(); ++i)
            CHECK(difference(gradients_f32[i], gradients_f64[i], {.absolute = 3e-6, .relative = 3e-6}) == "");
    }
}

TEST_CASE("elementwise gradients: sums over broadcast axes") {
    if (!device().info().fp64) return test::skip("f64: the device has no double precision");
    const auto check = [](const Shape& a, const Shape& b) {
        CAPTURE(a.str());
        CAPTURE(b.str());
        const auto f = [](const auto& in) { return in[0] * in[1] - in[1] / (in[0] + 5); };
        CHECK(gradient_difference(f, {random_tensor(a, 1, DType::f64), random_tensor(b, 2, DType::f64)}) == "");
    };
    check({2, 3}, {2, 3});
    check({2, 3}, {3});
    check({2, 3}, {2, 1});
    check({4, 1, 3}, {2, 1});
    check({}, {2, 2});
    check({1, 1}, {3});
    check({5}, {});
    check({1, 2, 1, 2}, {3, 1, 2, 1});
}

TEST_CASE("elementwise gradients: of permuted and sliced operands") {
    if (!device().info().fp64) return test::skip("f64: the device has no double precision");
    const auto f = [](const std::vector<Tensor>& in) {
        const Tensor transposed = transpose(in[0]), part = slice(in[1], 1, 1, 7, 2);
        return exp(transposed) * part + silu(part);
    };
    CHECK(gradient_difference(f, {random_tensor({3, 4}, 1, DType::f64), random_tensor({4, 7}, 2, DType::f64)}) == "");
}

TEST_CASE("elementwise gradients: one half each at ties, zero at the flat side of a kink") {
    Tensor a = tensor({1, 2, 3}, {3}).set_requires_grad(), b = tensor({1, 5, 0}, {3}).set_requires_grad();
    maximum(a, b).backward(ones({3}));
    CHECK(values(a.grad()) == std::vector<double>{0.5, 0, 1});
    CHECK(values(b.grad()) == std::vector<double>{0.5, 1, 0});
    a.zero_grad();
    minimum(a, b).backward(ones({3}));
    CHECK(values(a.grad()) == std::vector<double>{0.5, 1, 0});
    Tensor x = tensor({-1, 0, 2}, {3}).set_requires_grad();
    const auto gradient = [&](const Tensor& y) {
        x.zero_grad();
        y.backward(ones({3}));
        return values(x.grad());
    };
    CHECK(gradient(relu(x)) == std::vector<double>{0, 0, 1});
    CHECK(gradient(abs(x)) == std::vector<double>{-1, 0, 1});
    CHECK(gradient(clamp(x, -1, 1)) == std::vector<double>{0, 1, 0});
    CHECK(gradient(leaky_relu(x, 0.5)) == std::vector<double>{0.5, 0.5, 1});
}

TEST_CASE("elementwise: each public function calls the function of its name") {
    const Tensor a = tensor({0.5, -1.5, 2}, {3}), b = tensor({2, -0.5, 2}, {3}), positive = tensor({0.25, 1, 4}, {3});
    const auto check = [](const Tensor& got, const std::vector<double>& expected) {
        CHECK(difference(got, expected, {.absolute = 1e-6, .relative = 1e-6}) == "");
    };
    check(a + b, {2.5, -2, 4});
    check(a - b, {-1.5, -1, 0});
    check(a * b, {1, 0.75, 4});
    check(a / b, {0.25, 3, 1});
    check(a + 1.5, {2, 0, 3.5});
    check(1.5 + a, {2, 0, 3.5});
    check(a - 1.5, {-1, -3, 0.5});
    check(1.5 - a, {1, 3, -0.5});
    check(a * 2, {1, -3, 4});
    check(2 * a, {1, -3, 4});
    check(a / 2, {0.25, -0.75, 1});
    check(3 / a, {6, -2, 1.5});
    check(-a, {-0.5, 1.5, -2});
    check(neg(a), {-0.5, 1.5, -2});
    check(pow(positive, b), {0.0625, 1, 16});
    check(pow(positive, 0.5), {0.5, 1, 2});
    check(pow(0.9, a), {std::pow(0.9, 0.5), std::pow(0.9, -1.5), 0.81});
    check(minimum(a, b), {0.5, -1.5, 2});
    check(maximum(a, b), {2, -0.5, 2});
    check(abs(a), {0.5, 1.5, 2});
    check(square(a), {0.25, 2.25, 4});
    check(sqrt(positive), {0.5, 1, 2});
    check(reciprocal(positive), {4, 1, 0.25});
    check(exp(a), {std::exp(0.5), std::exp(-1.5), std::exp(2)});
    check(log(positive), {std::log(0.25), 0, std::log(4)});
    check(tanh(a), {std::tanh(0.5), std::tanh(-1.5), std::tanh(2)});
    check(sigmoid(a), {1 / (1 + std::exp(-0.5)), 1 / (1 + std::exp(1.5)), 1 / (1 + std::exp(-2))});
    check(relu(a), {0.5, 0, 2});
    check(leaky_relu(a), {0.5, -0.015, 2});
    check(leaky_relu(a, 0.5), {0.5, -0.75, 2});
    check(gelu(a), {0.5 * normal_distribution(0.5), -1.5 * normal_distribution(-1.5), 2 * normal_distribution(2)});
    check(silu(a), {0.5 / (1 + std::exp(-0.5)), -1.5 / (1 + std::exp(1.5)), 2 / (1 + std::exp(-2))});
    check(clamp(a, -1, 1), {0.5, -1, 1});
    const double nan = std::numeric_limits<double>::quiet_NaN();
    for (const Tensor& with_nan : {clamp(a, nan, 1), clamp(a, -1, nan), clamp_min(a, nan), clamp_max(a, nan)})
        for (const double value : values(with_nan)) CHECK(std::isnan(value));
    check(equal(a, b), {0, 0, 1});
    check(not_equal(a, b), {1, 1, 0});
    check(less(a, b), {1, 1, 0});
    check(less_equal(a, b), {1, 1, 1});
    check(greater(b, a), {1, 1, 0});
    check(greater_equal(a, b), {0, 0, 1});
    check(where(less(a, b), a, b), {0.5, -1.5, 2});
}

TEST_CASE("elementwise: pow with exponents computed as products and roots, and gradients") {
    for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
        if (dtype == DType::f64 && !device().info().fp64) continue;
        CAPTURE(name_of(dtype));
        // f16 and bf16 are rounded once: the result is within half a step.
        const double bound = dtype == DType::f64   ? 1e-14
                             : dtype == DType::f32 ? 1e-6
                             : dtype == DType::f16 ? 0.6 / 1024
                                                   : 0.6 / 128;
        const std::vector<double> from{0.5, 1.25, 3, 7.5, 0.75, 11};
        for (const double p : {-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 3.0, 2.5}) {
            CAPTURE(p);
            Tensor x = tensor(from, {6}, dtype);
            x.set_requires_grad(true);
            const Tensor y = pow(x, p);
            CHECK(y.dtype() == dtype);
            const std::vector<double> power = values(y);
            sum(y).backward();
            const std::vector<double> gradient_values = values(x.grad());
            for (std::size_t i = 0; i < from.size(); ++i) {
                CHECK(power[i] == doctest::Approx(std::pow(from[i], p)).epsilon(bound));
                CHECK(gradient_values[i] == doctest::Approx(p * std::pow(from[i], p - 1)).epsilon(3 * bound));
            }
        }
    }
    CHECK(values(pow(tensor({-2, 3}, {2}, DType::i32), 2)) == std::vector<double>{4, 9});
    CHECK(values(pow(tensor({-3.0, 0.0}, {2}, DType::f32), 3)) == std::vector<double>{-27, 0});
    CHECK(std::isnan(values(pow(tensor({-4.0}, {1}, DType::f32), 0.5))[0]));
    CHECK_THROWS_WITH_AS(pow(Tensor(), 2), doctest::Contains("pow: expected"), ValueError);
}

TEST_CASE("elementwise: undefined tensors are refused, integers by fractions are f32") {
    const Tensor a = tensor({1, 2}, {2}), integers = tensor({4, 6}, {2}, DType::i32);
    Tensor leaf = integers;
    CHECK_THROWS_WITH_AS(a + Tensor(), "operator+: expected 2 tensors, got an undefined one", ValueError);
    CHECK_THROWS_AS(exp(Tensor()), ValueError);
    CHECK(values(integers / 4) == std::vector<double>{1, 1.5});
    CHECK(values(integers * 2) == std::vector<double>{8, 12});
    CHECK(values(a + integers) == std::vector<double>{5, 8});
    CHECK_THROWS_AS(leaf.set_requires_grad(), TypeError);
}

TEST_CASE(
    "elementwise: in-place writes of one element, many, or every other one, with kernels compiled once per device") {
    const std::vector<Shape> shapes{{}, {1}, {1, 1}, {4}, {3, 5}, {2, 1, 7}};
    for (std::size_t first = 0; first < shapes.size(); ++first) {
        const Device device = fresh_device();  // with its own kernels
        for (std::size_t i = 0; i < shapes.size(); ++i) {
            const Shape& shape = shapes[(first + i) % shapes.size()];
            CAPTURE(shape.str());
            Tensor x = random_tensor(shape, 1).to(device), all = random_tensor({2 * shape.numel()}, 2).to(device);
            Tensor strided_view = slice(all, 0, 0, 2 * shape.numel(), 2);
            std::vector<double> expected = values(x), among = values(all);
            const Tensor y = random_tensor(shape, 3).to(device);
            const std::vector<double> other = values(y);
            x.mul_(2);
            x.add_(y);
            strided_view.mul_(0.5);
            for (std::size_t at = 0; at < expected.size(); ++at) expected[at] = expected[at] * 2 + other[at];
            for (std::size_t at = 0; at < among.size(); at += 2) among[at] *= 0.5;
            CHECK(difference(x, expected, tolerance(DType::f32, 4)) == "");
            CHECK(difference(all, among, tolerance(DType::f32, 1)) == "");
        }
    }
}
