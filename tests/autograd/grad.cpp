// grad(): gradients of chosen inputs, double backward, errors.
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>
#include <tests/autograd/identity_function.hpp>
#include <tests/support/devices.hpp>
#include <tests/support/leaf.hpp>
#include <tests/support/values.hpp>

using namespace declivity;
using namespace declivity::test;

TEST_CASE("grad: of chosen inputs, leaving every .grad unchanged") {
    for (const DType dtype : floats()) {
        Tensor a = leaf({1, 2}, {2}, dtype), b = leaf({3, 4}, {2}, dtype);
        const Tensor h = a * b, y = sum(h * h);
        const auto found = grad({y}, {b, h, a, b}, {.retain_graph = true});
        REQUIRE(found.size() == 4);
        CHECK(values(found[0]) == Values{6, 32});   // 2 a^2 b
        CHECK(values(found[1]) == Values{6, 16});   // 2 h
        CHECK(values(found[2]) == Values{18, 64});  // 2 a b^2
        CHECK(values(found[3]) == Values{6, 32});
        CHECK_FALSE(a.grad().defined());
        CHECK_FALSE(b.grad().defined());
        // Several outputs: the gradients of their sum, weighted if weights are given.
        const auto results_of_two =
            grad({y, h}, {a}, {.output_gradients = {{}, tensor({1, 10}, {2}, dtype)}, .retain_graph = true});
        CHECK(values(results_of_two[0]) == Values{18 + 3, 64 + 40});
        CHECK(values(grad({h}, {h}, {.output_gradients = {tensor({7, 8}, {2}, dtype)}, .retain_graph = true})[0]) ==
              Values{7, 8});
        CHECK(values(grad({sum(a)}, {a})[0]) == Values{1, 1});
        CHECK(values(grad({y}, {a})[0]) == Values{18, 64});
        CHECK_THROWS_WITH_AS(grad({y}, {a}),
                             "backward of sum: expected a graph, got one that an earlier backward freed; pass "
                             "retain_graph to the first one to use "
                             "it again",
                             ValueError);
    }
}

TEST_CASE("grad: visits only the paths to the inputs") {
    int calls = 0;
    CustomFunction counting = identity_function();
    counting.backward = [&calls](const auto&, const auto&, const std::vector<Tensor>& g) {
        ++calls;
        return g;
    };
    Tensor a = leaf({1, 2}, {2}), b = leaf({3, 4}, {2});
    const Tensor y = sum(counting({a})[0] * b);
    CHECK(values(grad({y}, {b})[0]) == Values{1, 2});
    CHECK(calls == 0);
    const Tensor z = sum(counting({counting({a})[0]})[0] * b);
    CHECK(values(grad({z}, {a})[0]) == Values{3, 4});
    CHECK(calls == 2);
}

TEST_CASE("grad: a gradient function is told which gradients are needed") {
    std::vector<bool> needs_gradient;
    const auto product = [&needs_gradient](const Tensor& x, const Tensor& y, const Tensor& z) {
        const Tensor out = (x * y * z).detach();
        return attach_backward("product", {x, y, z}, out.view(),
                               [&needs_gradient, x, y, z](const GradientContext& context) {
                                   needs_gradient = {context.needs(0), context.needs(1), context.needs(2)};
                                   const Tensor& g = context.gradient();
                                   return std::vector{g * y * z, g * x * z, g * x * y};
                               });
    };
    Tensor a = leaf({2}, {1}), b = leaf({3}, {1});
    const Tensor constant = tensor({5}, {1});
    CHECK(values(grad({product(a, b, constant)}, {b})[0]) == Values{10});
    CHECK(needs_gradient == std::vector<bool>{false, true, false});
    product(a, b, constant).backward();
    CHECK(needs_gradient == std::vector<bool>{true, true, false});
    CHECK(values(a.grad()) == Values{15});
}

TEST_CASE("grad: unused inputs") {
    Tensor a = leaf({1, 2}, {2}), b = leaf({3, 4}, {2});
    const Tensor y = sum(a * a);
    CHECK_THROWS_WITH_AS(grad({y}, {a, b}, {.retain_graph = true}),
                         "grad: expected outputs that use input 1, got none; allow_unused returns an undefined "
                         "tensor for it",
                         ValueError);
    const auto found = grad({y}, {a, b}, {.allow_unused = true});
    CHECK(values(found[0]) == Values{2, 4});
    CHECK_FALSE(found[1].defined());
}

TEST_CASE("grad: errors") {
    Tensor x = leaf({1, 2}, {2});
    const Tensor y = square(x), plain = tensor({1, 2}, {2});
    const GradOptions keep{.retain_graph = true};
    CHECK_THROWS_WITH_AS(
        grad({y}, {x}, keep),
        "grad: expected a scalar, or a gradient of the output's shape, got a tensor of shape [2] without one",
        ValueError);
    CHECK_THROWS_WITH_AS(grad({y}, {x}, {.output_gradients = {ones({1, 2})}, .retain_graph = true}),
                         "grad: expected a gradient of shape [2], got [1, 2]", ShapeError);
    CHECK_THROWS_WITH_AS(grad({y}, {x}, {.output_gradients = {ones({2}, {DType::i64})}, .retain_graph = true}),
                         "grad: expected a gradient of type f32, got i64", TypeError);
    CHECK_THROWS_WITH_AS(grad({sum(y)}, {x, plain}, keep),
                         "grad: expected inputs that require gradients, got input 1 that does not", ValueError);
    CHECK_THROWS_WITH_AS(grad({sum(y)}, {Tensor()}, keep),
                         "grad: expected inputs that require gradients, got input 0 that does not", ValueError);
    CHECK_THROWS_WITH_AS(grad({Tensor()}, {x}), "grad: expected a tensor, got an undefined one", ValueError);
    CHECK_THROWS_WITH_AS(
        grad({sum(plain)}, {x}),
        "grad: expected a tensor that depends on one that requires a gradient, got one of shape [] that does "
        "not (was it made under NoGrad, or detached?)",
        ValueError);
    CHECK_THROWS_WITH_AS(grad({sum(y)}, {x}, {.output_gradients = {ones({}), ones({})}, .retain_graph = true}),
                         "grad: expected at most 1 gradients, one for each output, got 2", ValueError);
    CHECK(values(grad({sum(y)}, {x})[0]) == Values{2, 4});
}

TEST_CASE("grad: double backward") {
    for (const DType dtype : floats()) {
        Tensor x = leaf({2, -1}, {2}, dtype);
        const Tensor first = grad({sum(x * x * x)}, {x}, {.create_graph = true})[0];
        CHECK(values(first) == Values{12, 3});
        CHECK(first.requires_grad());
        const Tensor second = grad({sum(first)}, {x}, {.create_graph = true})[0];
        CHECK(values(second) == Values{12, -6});
        CHECK(values(grad({sum(second)}, {x})[0]) == Values{6, 6});
        CHECK_FALSE(x.grad().defined());
    }
}
