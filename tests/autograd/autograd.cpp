// The autograd graph: backward and grad(), lifetimes of tensors and nodes, errors.
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>
#include <tests/support/devices.hpp>
#include <tests/support/gradient_check.hpp>
#include <tests/support/leaf.hpp>
#include <tests/support/skip.hpp>
#include <tests/support/threads.hpp>
#include <tests/support/values.hpp>

using namespace declivity;
using namespace declivity::test;

namespace {

/// The identity as a custom function that moves no data and saves its input.
CustomFunction identity_function() {
    return {.name = "same",
            .forward = [](const std::vector<Tensor>& in) { return std::vector{in[0].detach()}; },
            .backward = [](const std::vector<Tensor>&, const std::vector<Tensor>&,
                           const std::vector<Tensor>& g) { return g; }};
}

}  // namespace

// ---- backward

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
        "backward of sum: the graph was freed by an earlier backward; pass retain_graph to the first one "
        "to use it again",
        ValueError);
    // The failed call changed no gradient, even where the graph was still intact.
    const Tensor trunk = exp(x);
    sum(trunk).backward();
    const auto before = values(x.grad());
    CHECK_THROWS_WITH_AS(sum(trunk * x).backward(),
                         "backward of exp: the graph was freed by an earlier backward; pass retain_graph to the "
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

TEST_CASE("requires_grad: floating leaves only") {
    for (const DType dtype : {DType::i8, DType::u8, DType::i32, DType::i64, DType::boolean}) {
        Tensor tensor_of_dtype = zeros({2}, {dtype});
        const std::string message =
            "set_requires_grad: expected f32, f64, f16 or bf16, got " + std::string(name_of(dtype));
        CHECK_THROWS_WITH_AS(tensor_of_dtype.set_requires_grad(), message.c_str(), TypeError);
        CHECK_NOTHROW(tensor_of_dtype.set_requires_grad(false));
        CHECK_FALSE(tensor_of_dtype.requires_grad());
    }
    Tensor x = leaf({1.5, 2.5}, {2});
    Tensor y = exp(x);
    CHECK_THROWS_WITH_AS(y.set_requires_grad(),
                         "set_requires_grad: expected a leaf, got the result of exp; detach() it first", ValueError);
    CHECK_THROWS_WITH_AS(y.set_requires_grad(false),
                         "set_requires_grad: expected a leaf, got the result of exp; detach() it first", ValueError);
    CHECK_THROWS_WITH_AS(Tensor().set_requires_grad(), "set_requires_grad: expected a tensor, got an undefined one",
                         ValueError);
    // Integer results end the graph.
    CHECK_FALSE(x.to(DType::i32).requires_grad());
    CHECK_FALSE(greater(x, y).requires_grad());
    CHECK_FALSE(argmax(x).requires_grad());
    CHECK_THROWS_WITH_AS(x.set_grad(ones({3})), "set_grad: expected the gradient of shape [2], got [3]", ShapeError);
    CHECK_THROWS_AS(x.set_grad(ones({2}, {DType::i32})), TypeError);
    CHECK_THROWS_WITH_AS(Tensor().grad(), "grad: expected a tensor, got an undefined one", ValueError);
}

// ---- grad()

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
        CHECK_THROWS_WITH_AS(
            grad({y}, {a}),
            "backward of sum: the graph was freed by an earlier backward; pass retain_graph to the first one to use "
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
                         "grad: input 1 is not used by the outputs; allow_unused returns an undefined "
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

// ---- grad mode

TEST_CASE("no_grad: disables the autograd graph") {
    Tensor x = leaf({1, 2}, {2});
    CHECK(grad_enabled());
    {
        const NoGrad outer;
        CHECK_FALSE(grad_enabled());
        CHECK_FALSE(any_requires_grad({x}));
        const Tensor y = x * x;
        CHECK_FALSE(y.requires_grad());
        CHECK(y.is_leaf());
        {
            const NoGrad inner;
            CHECK_FALSE(grad_enabled());
        }
        CHECK_FALSE(grad_enabled());
        CHECK(x.requires_grad());
        x.mul_(2);                                          // a leaf may be written now
        std::thread([] { CHECK(grad_enabled()); }).join();  // other threads are not affected
    }
    CHECK(grad_enabled());
    CHECK(any_requires_grad({Tensor(), x}));
    CHECK_FALSE(any_requires_grad({Tensor(), x.detach()}));
    try {
        const NoGrad guard;
        throw 1;
    } catch (int) {
    }
    CHECK(grad_enabled());
    // An existing graph can be differentiated under it.
    const Tensor y = sum(x * x);
    const NoGrad guard;
    y.backward();
    CHECK(values(x.grad()) == Values{4, 8});
}

TEST_CASE("detach: the same memory, outside of the graph") {
    Tensor x = leaf({1, 2}, {2});
    const Tensor y = x * 3, detached = y.detach();
    CHECK(detached.view().buffer == y.view().buffer);
    CHECK_FALSE(detached.requires_grad());
    CHECK(detached.is_leaf());
    sum(y * detached).backward();
    CHECK(values(x.grad()) == Values{9, 18});  // not twice that
    CHECK_FALSE(x.detach().requires_grad());
    CHECK(x.requires_grad());
    const Tensor copy = y.detach().clone();
    CHECK_FALSE(copy.requires_grad());
    CHECK_FALSE(copy.view().buffer == y.view().buffer);
    CHECK_THROWS_WITH_AS(Tensor().detach(), "detach: expected a tensor, got an undefined one", ValueError);
}

TEST_CASE("casts: differentiable between f32 and f64") {
    if (!device().info().fp64) return test::skip("f64: the device has no double precision");
    Tensor x = leaf({1, 2}, {2});
    const Tensor y = x.to(DType::f64);
    CHECK(y.dtype() == DType::f64);
    sum(y * y).backward();
    CHECK(x.grad().dtype() == DType::f32);
    CHECK(values(x.grad()) == Values{2, 4});
    Tensor x_f64 = leaf({3}, {1}, DType::f64);
    const Tensor gradient = grad({square(x_f64.to(DType::f32))}, {x_f64}, {.create_graph = false})[0];
    CHECK(gradient.dtype() == DType::f64);
    CHECK(values(gradient) == Values{6});
}

TEST_CASE("to another device: the gradient comes back") {
    Tensor x = leaf({1, 2, 3}, {3});
    const Device other = fresh_device();
    const Tensor moved = x.to(other);
    CHECK(moved.device() == other);
    CHECK(values(moved) == Values{1, 2, 3});
    sum(moved * moved).backward();
    CHECK(x.grad().device() == device());
    CHECK(values(x.grad()) == Values{2, 4, 6});
    CHECK_THROWS_AS(x + moved, DeviceError);
}

// ---- hooks

TEST_CASE("hooks: see each gradient once, completely accumulated, and may replace it") {
    for (const DType dtype : floats()) {
        Tensor x = leaf({1, 2}, {2}, dtype);
        Tensor h = x * 3;
        std::vector<Values> hook_gradients;
        const auto record_gradient = [&hook_gradients](const Tensor& g) {
            hook_gradients.push_back(values(g));
            return Tensor();
        };
        x.register_hook(record_gradient);
        h.register_hook(record_gradient);
        sum(h + h * h).backward();  // dh = 1 + 2 h
        CHECK(hook_gradients == std::vector<Values>{{7, 13}, {21, 39}});
        CHECK(values(x.grad()) == Values{21, 39});

        x.zero_grad();
        hook_gradients.clear();
        Tensor k = x * 3;
        k.register_hook([](const Tensor& g) { return g * 10; });
        k.register_hook(record_gradient);  // sees the result of the previous hook
        sum(k).backward();
        CHECK(hook_gradients == std::vector<Values>{{10, 10}, {30, 30}});
        CHECK(values(x.grad()) == Values{30, 30});
    }
}

TEST_CASE("hooks: of a leaf see the gradient of one backward, not the accumulated one") {
    Tensor x = leaf({1, 2}, {2});
    const int first = x.register_hook([](const Tensor& g) { return g * 2; });
    sum(x).backward();
    sum(x).backward();
    CHECK(values(x.grad()) == Values{4, 4});
    CHECK(values(grad({sum(x)}, {x})[0]) == Values{2, 2});
    const int second = x.register_hook([](const Tensor& g) { return g + 1; });
    CHECK(first != second);
    x.zero_grad();
    sum(x).backward();
    CHECK(values(x.grad()) == Values{3, 3});
    x.remove_hook(first);
    x.remove_hook(first);  // already removed: harmless
    x.zero_grad();
    sum(x).backward();
    CHECK(values(x.grad()) == Values{2, 2});
    x.remove_hook(second);
    x.zero_grad();
    sum(x).backward();
    CHECK(values(x.grad()) == Values{1, 1});
}

TEST_CASE("hooks: may remove themselves; their results must match") {
    Tensor x = leaf({1, 2}, {2});
    int number = 0, calls = 0;
    number = x.register_hook([&](const Tensor&) {
        ++calls;
        x.remove_hook(number);
        return Tensor();
    });
    sum(x).backward();
    sum(x).backward();
    CHECK(calls == 1);
    Tensor h = x * 2;
    h.register_hook([](const Tensor&) { return ones({3}); });
    CHECK_THROWS_WITH_AS(sum(h).backward(), "hook: expected a gradient of shape [2], got [3]", ShapeError);
    Tensor k = x * 2;
    k.register_hook([](const Tensor&) { return ones({2}, {DType::i32}); });
    CHECK_THROWS_WITH_AS(sum(k).backward(), "hook: expected a gradient of type f32, got i32", TypeError);
    Tensor plain = tensor({1}, {1});
    CHECK_THROWS_WITH_AS(plain.register_hook({}),
                         "register_hook: expected a tensor that requires a gradient, got one that does not",
                         ValueError);
    CHECK_THROWS_WITH_AS(x.register_hook({}), "register_hook: expected a function, got an empty one", ValueError);
    CHECK_THROWS_WITH_AS(Tensor().register_hook({}), "register_hook: expected a tensor, got an undefined one",
                         ValueError);
}

TEST_CASE("autograd: several threads build and differentiate their own graphs with shared leaves") {
    const Tensor w = leaf({1, 2, 3}, {3});
    std::vector<Values> found(4);
    const auto faults = run_in_threads(4, [&](int number) -> std::string {
        for (int round = 0; round < 20; ++round)
            found[static_cast<std::size_t>(number)] = values(grad({sum(w * w * number)}, {w})[0]);
        return "";
    });
    for (const std::string& fault : faults) CHECK(fault == "");
    for (std::size_t number = 0; number < found.size(); ++number) {
        const auto times = static_cast<double>(number);
        CHECK(found[number] == Values{2 * times, 4 * times, 6 * times});
    }
}
