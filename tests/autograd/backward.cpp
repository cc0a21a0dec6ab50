// backward: gradients of leaves, lifetimes of tensors and nodes, errors.
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>
#include <tests/autograd/identity_function.hpp>
#include <tests/support/devices.hpp>
#include <tests/support/gradient_check.hpp>
#include <tests/support/leaf.hpp>
#include <tests/support/values.hpp>

using namespace declivity;
using namespace declivity::test;

TEST_CASE("backward: of a scalar, and of more elements with a gradient") {
    for (const DType dtype : floats()) {
        Tensor x = leaf({1, 2, 3}, {3}, dtype);
        sum(square(x)).backward();
        CHECK(values(x.grad()) == Values{2, 4, 6});
        CHECK(x.grad().dtype() == dtype);
        CHECK(x.grad().shape() == Shape({3}));

        Tensor y = leaf({1, 2, 3}, {3}, dtype);
        square(y).backward(tensor({1, 10, 100}, {3}, dtype));
        CHECK(values(y.grad()) == Values{2, 40, 600});

        // One element in any number of axes is a scalar, too.
        Tensor z = leaf({4}, {1, 1}, dtype);
        square(z).backward();
        CHECK(values(z.grad()) == Values{8});
        CHECK(z.grad().shape() == Shape({1, 1}));
        Tensor scaled = leaf({4}, {}, dtype);
        square(scaled).backward(tensor({0.5}, {}, dtype));
        CHECK(values(scaled.grad()) == Values{4});

        Tensor none = leaf({}, {0, 3}, dtype);
        square(none).backward(zeros({0, 3}, {dtype}));
        CHECK(none.grad().shape() == Shape({0, 3}));
    }
}

TEST_CASE("backward: of a leaf itself") {
    Tensor x = leaf({3}, {1});
    x.backward();
    CHECK(values(x.grad()) == Values{1});
    // The grad is accumulated in place by the next backward, so it must not be the tensor that was passed in.
    Tensor y = leaf({1, 2}, {2});
    const Tensor out_gradient = tensor({5, 6}, {2});
    y.backward(out_gradient);
    y.backward(out_gradient);
    CHECK(values(y.grad()) == Values{10, 12});
    CHECK(values(out_gradient) == Values{5, 6});
}

TEST_CASE("backward: gradients of two calls accumulate until zero_grad") {
    for (const DType dtype : floats()) {
        Tensor x = leaf({1, 2}, {2}, dtype);
        sum(x * 3).backward();
        const Tensor first = x.grad();
        sum(x * x).backward();
        CHECK(values(x.grad()) == Values{5, 7});
        CHECK(values(first) == Values{5, 7});  // the same tensor
        x.zero_grad();
        CHECK_FALSE(x.grad().defined());
        CHECK(values(first) == Values{5, 7});
        sum(x).backward();
        CHECK(values(x.grad()) == Values{1, 1});
        x.set_grad(tensor({10, 20}, {2}, dtype));
        sum(x).backward();
        CHECK(values(x.grad()) == Values{11, 21});
        x.set_grad({});
        CHECK_FALSE(x.grad().defined());
    }
}

TEST_CASE("backward: leaves with the same gradient have separate memory") {
    Tensor a = leaf({1, 2}, {2}), b = leaf({3, 4}, {2});
    const Tensor out_gradient = tensor({5, 6}, {2});
    (a + b).backward(out_gradient);
    CHECK(values(a.grad()) == Values{5, 6});
    a.grad().fill_(0);
    CHECK(values(b.grad()) == Values{5, 6});
    CHECK(values(out_gradient) == Values{5, 6});
    // A broadcast gradient is materialised.
    Tensor c = leaf({1, 2}, {2});
    sum(c).backward();
    c.grad().add_(tensor({1, 2}, {2}));
    CHECK(values(c.grad()) == Values{2, 3});
}

TEST_CASE("backward: a value used twice") {
    for (const DType dtype : floats()) {
        Tensor x = leaf({2, -3}, {2}, dtype);
        const Tensor shared = x * x;  // x^2
        const Tensor left = shared * 3, right = shared * shared;
        sum(left + right).backward();  // 3 x^2 + x^4
        CHECK(values(x.grad()) == Values{6 * 2 + 4 * 8, 6 * -3 + 4 * -27});
        // Both operands, and paths of different length.
        x.zero_grad();
        sum(x + x).backward();
        CHECK(values(x.grad()) == Values{2, 2});
        x.zero_grad();
        Tensor path = x;
        for (int i = 0; i < 5; ++i) path = path + x;
        sum(path).backward();
        CHECK(values(x.grad()) == Values{6, 6});
    }
    if (device().info().fp64)
        CHECK(gradient_difference(
                  [](const auto& in) {
                      const Tensor h = tanh(in[0]);
                      return h * in[0] + exp(h) * sum(h * in[1]);
                  },
                  {random_tensor({3}, 1, DType::f64), random_tensor({3}, 2, DType::f64)}) == "");
}

TEST_CASE("backward: each node is visited once, after all nodes that depend on it") {
    // Twenty-five squarings as products of a value with itself: 2^25 paths.
    int calls = 0;
    CustomFunction counting = identity_function();
    counting.backward = [&calls](const auto&, const auto&, const std::vector<Tensor>& g) {
        ++calls;
        return g;
    };
    Tensor x = leaf({1}, {1});
    Tensor y = x;
    for (int i = 0; i < 25; ++i) {
        y = counting({y})[0];
        y = y * y;
    }
    y.backward();
    CHECK(calls == 25);
    CHECK(values(x.grad()) == Values{33554432});
}

TEST_CASE("backward: only leaves that require a gradient get one") {
    Tensor a = leaf({1, 2}, {2}), b = tensor({3, 4}, {2});
    const Tensor h = a * b;
    CHECK(h.requires_grad());
    CHECK_FALSE(h.is_leaf());
    CHECK(a.is_leaf());
    CHECK(b.is_leaf());
    CHECK_FALSE((b * b).requires_grad());
    CHECK((b * b).is_leaf());
    sum(h).backward();
    CHECK(values(a.grad()) == Values{3, 4});
    CHECK_FALSE(b.grad().defined());
    CHECK_FALSE(h.grad().defined());  // grad() and hooks give those of intermediate results
    a.set_requires_grad(false);
    CHECK_FALSE((a * b).requires_grad());
}

TEST_CASE("backward: a second pass through a graph needs retain_graph") {
    Tensor x = leaf({2, 3}, {2});
    const Tensor y = sum(x * x * x);
    y.backward({}, true);
    y.backward({}, true);
    CHECK(values(x.grad()) == Values{24, 54});
    y.backward();
    CHECK(values(x.grad()) == Values{36, 81});
    CHECK_THROWS_WITH_AS(
        y.backward(),
        "backward of sum: expected a graph, got one that an earlier backward freed; pass retain_graph to the first one "
        "to use it again",
        ValueError);
    // The failed call changed no gradient, even where the graph was still intact.
    const Tensor trunk = exp(x);
    sum(trunk).backward();
    const auto before = values(x.grad());
    CHECK_THROWS_WITH_AS(
        sum(trunk * x).backward(),
        "backward of exp: expected a graph, got one that an earlier backward freed; pass retain_graph to the "
        "first one to use it again",
        ValueError);
    CHECK(values(x.grad()) == before);
}

TEST_CASE("backward: releases the saved tensors of a used graph") {
    Tensor x = leaf({1, 2}, {2});
    std::weak_ptr<int> alive;
    Tensor y;
    {
        const auto token = std::make_shared<int>(1);
        alive = token;
        CustomFunction holding_function = identity_function();
        holding_function.backward = [token](const auto&, const auto&, const std::vector<Tensor>& g) { return g; };
        y = sum(holding_function({x})[0]);
    }
    CHECK_FALSE(alive.expired());
    y.backward({}, true);
    CHECK_FALSE(alive.expired());
    y.backward();
    CHECK(alive.expired());
}

TEST_CASE("backward: a chain of a hundred thousand calls, backward and destruction") {
    const int length = small_cases() ? 2000 : 100000;
    Tensor x = leaf({1, 2, 3, 4, 5, 6}, {2, 3});
    {
        // Views, which cost no kernel. Only the nodes are kept.
        Tensor y = x;
        for (int i = 0; i < length; ++i) y = transpose(y);
        y.backward(tensor({1, 2, 3, 4, 5, 6}, y.shape()));
        CHECK(values(x.grad()) == Values{1, 2, 3, 4, 5, 6});
    }
    {
        // Each node saves a tensor that owns the node before it, like a product.
        const CustomFunction function = identity_function();
        Tensor y = x;
        for (int i = 0; i < length; ++i) y = function({y})[0];
        x.zero_grad();
        y.backward(ones({2, 3}), true);
        CHECK(values(x.grad()) == Values(6, 1));
        CHECK(values(grad({y}, {x}, {.output_gradients = {ones({2, 3})}})[0]) == Values(6, 1));
    }
    {
        // Never differentiated, and destroyed by a thread with a small stack.
        Tensor y = x;
        const CustomFunction function = identity_function();
        for (int i = 0; i < length; ++i) y = function({y})[0];
        std::thread([last = std::move(y)]() mutable { last = Tensor(); }).join();
    }
    CHECK(values(x) == Values{1, 2, 3, 4, 5, 6});
}

TEST_CASE("backward: errors") {
    Tensor x = leaf({1, 2}, {2});
    const Tensor y = x * 2, plain = tensor({1, 2}, {2});
    CHECK_THROWS_WITH_AS(
        y.backward(),
        "backward: expected a scalar, or a gradient of the output's shape, got a tensor of shape [2] without one",
        ValueError);
    CHECK_THROWS_WITH_AS(y.backward(ones({3})), "backward: expected a gradient of shape [2], got [3]", ShapeError);
    CHECK_THROWS_WITH_AS(y.backward(ones({2, 1})), "backward: expected a gradient of shape [2], got [2, 1]",
                         ShapeError);
    CHECK_THROWS_WITH_AS(sum(y).backward(ones({1})), "backward: expected a gradient of shape [], got [1]", ShapeError);
    CHECK_THROWS_WITH_AS(y.backward(ones({2}, {DType::i32})), "backward: expected a gradient of type f32, got i32",
                         TypeError);
    if (device().info().fp64)
        CHECK_THROWS_WITH_AS(y.backward(ones({2}, {DType::f64})), "backward: expected a gradient of type f32, got f64",
                             TypeError);
    const Device other = fresh_device();
    CHECK_THROWS_WITH_AS(
        y.backward(ones({2}, {.device = other})),
        ("backward: expected a gradient on '" + device().name() + "', got one on '" + other.name() + "'").c_str(),
        DeviceError);
    CHECK_THROWS_WITH_AS(
        sum(plain).backward(),
        "backward: expected a tensor that depends on one that requires a gradient, got one of shape [] that "
        "does not (was it made under NoGrad, or detached?)",
        ValueError);
    CHECK_THROWS_WITH_AS(Tensor().backward(), "backward: expected a tensor, got an undefined one", ValueError);
    // None of these consumed the graph.
    CHECK_FALSE(x.grad().defined());
    y.backward(ones({2}));
    CHECK(values(x.grad()) == Values{2, 2});
}
