// Leaves that require gradients, grad mode, casts, devices, hooks, threads; the graph: backward.cpp and grad.cpp.
#include <string>
#include <thread>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>
#include <tests/support/devices.hpp>
#include <tests/support/leaf.hpp>
#include <tests/support/skip.hpp>
#include <tests/support/threads.hpp>
#include <tests/support/values.hpp>

using namespace declivity;
using namespace declivity::test;

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

// ---- threads

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
