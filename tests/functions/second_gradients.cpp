// Double backward of elementwise functions: their decompositions compared with the generated kernels, and with central
// differences.
#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>
#include <reference/elementwise_cases.hpp>
#include <tests/support/devices.hpp>
#include <tests/support/gradient_check.hpp>
#include <tests/support/skip.hpp>
#include <tests/support/values.hpp>

#include "autograd/graph.hpp"
#include "ops/engine/expression.hpp"
#include "tensor/access.hpp"

using namespace declivity;
using namespace declivity::test;

namespace {

bool has_gradient(ops::Function function) {
    return std::ranges::any_of(ops::info(function).gradient, [](std::string_view rule) { return !rule.empty(); });
}

/// All functions that tensors call, except dropout, whose random numbers are not a tensor.
std::vector<const ElementwiseCase*> cases() {
    std::vector<const ElementwiseCase*> all;
    for (const ElementwiseCase& elementwise_case : elementwise_cases())
        if (has_gradient(elementwise_case.function) && elementwise_case.function != ops::Function::dropout)
            all.push_back(&elementwise_case);
    return all;
}

bool is_condition(const ElementwiseCase& test_case, int input) {
    return ops::info(test_case.function).domain == ops::Domain::choose && input == 0;
}

/// Random inputs of different shapes, broadcast with each other, at a distance from kinks of at least the step of a
/// central difference.
std::vector<Tensor> inputs_of(const ElementwiseCase& test_case, DType dtype, double distance) {
    const int count = ops::info(test_case.function).inputs;
    const Shape shape{3, 5};
    std::vector<std::vector<double>> in;
    for (int i = 0; i < count; ++i)
        in.push_back(random_values(15, static_cast<std::uint64_t>(i) + 7, std::max(test_case.low, -3.0),
                                   std::min(test_case.high, 3.0)));
    for (std::size_t i = 0; i < 15; ++i) {
        const auto at = [&](int input) { return input < count ? in[static_cast<std::size_t>(input)][i] : 0.0; };
        const auto kink = [&] {
            return test_case.kink({at(0), at(1), at(2), test_case.parameters.empty() ? 0 : test_case.parameters[0],
                                   test_case.parameters.size() < 2 ? 0 : test_case.parameters[1]});
        };
        for (int attempt = 0; kink() < distance && attempt < 100; ++attempt)
            in[static_cast<std::size_t>(attempt % count)][i] += 2 * distance;
        REQUIRE(kink() >= distance);
    }
    std::vector<Tensor> out;
    for (int i = 0; i < count; ++i) {
        std::vector<double> values = in[static_cast<std::size_t>(i)];
        if (is_condition(test_case, i))
            for (double& value : values) value = value > 0 ? 1 : 0;
        Tensor input_tensor = tensor(values, shape, is_condition(test_case, i) ? DType::boolean : dtype);
        out.push_back(is_condition(test_case, i) ? input_tensor : input_tensor.set_requires_grad());
    }
    return out;
}

std::vector<Tensor> with_gradients(const std::vector<Tensor>& inputs) {
    std::vector<Tensor> out;
    for (const Tensor& input : inputs)
        if (input.requires_grad()) out.push_back(input);
    return out;
}

Tensor call_function(const ElementwiseCase& test_case, const std::vector<Tensor>& inputs) {
    return elementwise(test_case.function, inputs, scalars(test_case.parameters));
}

/// Gradients of a weighted sum of the function.
std::vector<Tensor> gradients(const ElementwiseCase& test_case, const std::vector<Tensor>& inputs, bool create_graph) {
    const Tensor y = call_function(test_case, inputs);
    const Tensor weights = tensor(random_values(15, 3, 0.5, 1.5), y.shape(), y.dtype());
    return grad({sum(y * weights)}, with_gradients(inputs), {.create_graph = create_graph});
}

}  // namespace

TEST_CASE("elementwise gradients: the decomposition matches the generated kernels") {
    for (const DType dtype : floats())
        for (const ElementwiseCase* test_case : cases()) {
            CAPTURE(ops::info(test_case->function).name);
            const auto inputs = inputs_of(*test_case, dtype, 0);
            const auto by_formula = gradients(*test_case, inputs, false),
                       decomposed = gradients(*test_case, inputs, true);
            REQUIRE(by_formula.size() == decomposed.size());
            const double exact = dtype == DType::f64 ? 1e-12 : 2e-5;
            for (std::size_t i = 0; i < by_formula.size(); ++i)
                CHECK(difference(decomposed[i], values(by_formula[i]), {.absolute = exact, .relative = exact}) == "");
        }
}

TEST_CASE("elementwise gradients: at kinks and in corner cases the decomposition matches the generated kernels") {
    using F = ops::Function;
    struct Corner {
        F function;
        std::vector<std::vector<double>> inputs;
        std::vector<double> parameters = {};
    };
    const std::vector<Corner> corners{{F::relu, {{0, -1, 2}}},
                                      {F::abs, {{0, -1, 2}}},
                                      {F::leaky_relu, {{0, -1, 2}}, {0.1}},
                                      {F::clamp, {{-1, 1, 0.5, 3}}, {-1, 1}},
                                      {F::min, {{1, 2, 3}, {1, 3, 2}}},
                                      {F::max, {{1, 2, 3}, {1, 3, 2}}},
                                      {F::pow, {{0, 0, 2, 3}, {2, 0, 0, 1}}},
                                      {F::pow_scalar, {{0, 1, -2}}, {0}},
                                      {F::pow_scalar, {{0, 1, -2}}, {2}},
                                      {F::square, {{0, 1, -2}}}};
    for (const Corner& corner : corners) {
        CAPTURE(ops::info(corner.function).name);
        std::vector<Tensor> inputs;
        const auto count = static_cast<std::int64_t>(corner.inputs[0].size());
        for (const auto& column : corner.inputs) inputs.push_back(tensor(column, {count}).set_requires_grad());
        const auto gradients_of = [&](bool create_graph) {
            return grad({sum(elementwise(corner.function, inputs, scalars(corner.parameters)))}, inputs,
                        {.create_graph = create_graph});
        };
        const auto by_formula = gradients_of(false), decomposed = gradients_of(true);
        for (std::size_t i = 0; i < inputs.size(); ++i)
            CHECK(difference(decomposed[i], values(by_formula[i]), {.absolute = 1e-6, .relative = 1e-6}) == "");
        // Double backward: unselected elements must not introduce NaN.
        for (const Tensor& first : decomposed) {
            if (!first.requires_grad()) continue;
            for (const Tensor& second : grad({sum(first)}, inputs, {.retain_graph = true, .allow_unused = true}))
                if (second.defined())
                    for (const double value : values(second)) CHECK(value == value);
        }
    }
}

TEST_CASE("elementwise gradients: double backward matches central differences") {
    if (!default_device().info().fp64) return skip("f64: the device has no double precision");
    for (const ElementwiseCase* test_case : cases()) {
        CAPTURE(ops::info(test_case->function).name);
        const auto inputs = inputs_of(*test_case, DType::f64, 0.01);
        const auto expected = with_gradients(inputs);
        // A scalar to which each element of each gradient contributes.
        const auto weighted = [&](bool create_graph) {
            Tensor all;
            std::uint64_t seed = 20;
            for (const Tensor& gradient : gradients(*test_case, inputs, create_graph)) {
                const Tensor part = sum(gradient * tensor(random_values(15, ++seed), gradient.shape(), DType::f64));
                all = all.defined() ? all + part : part;
            }
            return all;
        };
        const Tensor first = weighted(true);
        std::vector<Tensor> second(expected.size());
        if (first.requires_grad()) second = grad({first}, expected, {.allow_unused = true});
        CHECK(numeric_difference(expected, second, [&] { return weighted(false).item<double>(); }, {.step = 1e-5}) ==
              "");
    }
}

TEST_CASE("elementwise gradients: to any order") {
    if (!default_device().info().fp64) return skip("f64: the device has no double precision");
    // x exp(x) has (n + x) exp(x) as its n-th derivative.
    Tensor x = tensor({0.5, -1.25}, {2}, DType::f64).set_requires_grad();
    Tensor derivative = x * exp(x);
    for (int n = 1; n <= 5; ++n) {
        derivative = grad({sum(derivative)}, {x}, {.create_graph = true})[0];
        std::vector<double> expected;
        for (const double at : {0.5, -1.25}) expected.push_back((n + at) * std::exp(at));
        CHECK(difference(derivative, expected, {.absolute = 1e-12, .relative = 1e-12}) == "");
    }
    // Third derivative of gelu: phi(x) (x^3 - 4 x).
    Tensor third = gelu(x);
    for (int n = 0; n < 3; ++n) third = grad({sum(third)}, {x}, {.create_graph = true})[0];
    std::vector<double> expected;
    for (const double at : {0.5, -1.25})
        expected.push_back(0.39894228040143267794 * std::exp(-0.5 * at * at) * (at * at * at - 4 * at));
    CHECK(difference(third, expected, {.absolute = 1e-12, .relative = 1e-12}) == "");
}

TEST_CASE("elementwise gradients: a saved result appears in the graph once") {
    // The graph of a gradient leads back to the function, not to a copy of it: hooks and gradients of its result work.
    std::weak_ptr<detail::GradNode> node;
    {
        const Tensor x = tensor({0.5, -1.25}, {2}).set_requires_grad();
        const Tensor y = tanh(x);
        node = state_of(y)->node;
        const Tensor first = grad({sum(y)}, {x}, {.create_graph = true})[0];
        const auto second = grad({sum(first)}, {y}, {.retain_graph = true});
        std::vector<double> expected;  // of 1 - y^2 for y
        for (const double at : {0.5, -1.25}) expected.push_back(-2 * std::tanh(at));
        CHECK(difference(second[0], expected, {.absolute = 1e-6, .relative = 1e-5}) == "");
        CHECK_FALSE(node.expired());
    }
    CHECK(node.expired());  // no reference cycle
}
