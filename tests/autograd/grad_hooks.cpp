// no-oclgrind: it is about when hooks are called; its kernels are those of other tests
// Hooks of leaves are called after the last use of the leaf in backward; what they may do.
#include <array>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/autograd/checkpoint.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/optim/sgd.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>
#include <tests/support/launches.hpp>
#include <tests/support/values.hpp>

#include "tensor/access.hpp"

using namespace declivity;
using namespace declivity::test;

namespace {

using Values = std::vector<double>;

Tensor leaf(std::uint64_t seed, const Shape& shape = {5}) { return random_tensor(shape, seed).set_requires_grad(); }

/// Names of the calls, in order.
struct Log {
    std::vector<std::string> names;

    /// A result whose gradient is logged.
    Tensor passing(const char* name, Tensor result) {
        result.register_hook([this, name](const Tensor&) {
            names.emplace_back(name);
            return Tensor();
        });
        return result;
    }
    int watch_leaf(const char* name, Tensor leaf) {
        return leaf.register_post_accumulate_grad_hook([this, name](Tensor&) { names.emplace_back(name); });
    }
    std::string take() {
        std::string all;
        for (const std::string& hook : std::exchange(names, {})) all += (all.empty() ? "" : ", ") + hook;
        return all;
    }
};

}  // namespace

TEST_CASE("leaf hooks: called after the last use, before older nodes") {
    Log log;
    const Tensor a = leaf(1), b = leaf(2), c = leaf(3), both = leaf(4);
    for (const auto& [name, leaf_tensor] : {std::pair{"a", a}, {"b", b}, {"c", c}, {"both", both}})
        log.watch_leaf(name, leaf_tensor);
    const auto loss = [&] {
        const Tensor older = log.passing("one", a * both);
        const Tensor newer = log.passing("two", tanh(older * b));
        return sum(newer * c * both);
    };
    loss().backward();
    CHECK(log.take() == "c, two, b, one, a, both");
    // In the order of the inputs if one function is the last to use both.
    sum(both * a).backward();
    CHECK(log.take() == "both, a");
    sum(a * both).backward();
    CHECK(log.take() == "a, both");
    // A hook for the gradient itself is also called then, before accumulation.
    Tensor(c).register_hook([&](const Tensor& g) {
        log.names.emplace_back("gradient of c");
        return g * 2.0;
    });
    const Values before = values(c.grad());
    loss().backward();
    CHECK(log.take() == "gradient of c, c, two, b, one, a, both");
    Values expected = before;
    for (double& value : expected) value *= 3;
    CHECK(difference(c.grad(), expected, {1e-6, 1e-6}) == "");
    // The scalar may be the leaf.
    const Tensor scalar = leaf(5, {});
    log.watch_leaf("scalar", scalar);
    scalar.backward();
    CHECK(log.take() == "scalar");
}

TEST_CASE("leaf hooks: functions without a gradient delay nothing") {
    Log log;
    const Tensor w = leaf(1), v = leaf(2);
    log.watch_leaf("w", w);
    log.watch_leaf("v", v);
    const CustomFunction stops{
        .name = "stops",
        .forward = [](const std::vector<Tensor>& in) { return std::vector{in[0] + in[1]}; },
        .backward =
            [](const std::vector<Tensor>&, const std::vector<Tensor>&, const std::vector<Tensor>& g) {
                return std::vector{g[0], Tensor()};
            }};
    const Tensor oldest = log.passing("oldest", v * 2.0);
    const Tensor without_hook = tanh(w * 3.0);  // is never visited
    const Tensor youngest = stops({oldest, without_hook})[0];
    sum(youngest * w).backward();
    CHECK(log.take() == "w, oldest, v");
    CHECK(difference(w.grad(), values(youngest), {1e-6, 1e-6}) == "");
    // Without a gradient no hook is called.
    sum(stops({v * 1.0, w * 1.0})[0]).backward();
    CHECK(log.take() == "v");
}

TEST_CASE("leaf hooks: see the accumulated grad; not called by grad(); called again with retain_graph") {
    Tensor w = leaf(1);
    std::vector<Values> hook_gradients;
    const int number = w.register_post_accumulate_grad_hook([&](Tensor& leaf_tensor) {
        CHECK(state_of(leaf_tensor) == state_of(w));
        CHECK_FALSE(grad_enabled());
        hook_gradients.push_back(values(leaf_tensor.grad()));
    });
    const Tensor loss = sum(w * 2.0);
    (void)grad({loss}, {w}, {.retain_graph = true});
    CHECK(hook_gradients.empty());
    loss.backward({}, true);
    const Tensor gradient = w.grad();
    loss.backward();
    CHECK(hook_gradients == std::vector<Values>{Values(5, 2), Values(5, 4)});
    CHECK(values(gradient) == Values(5, 4));  // added in place
    w.remove_hook(number);
    w.zero_grad();
    sum(w).backward();
    CHECK(hook_gradients.size() == 2);
    // A hook may remove itself, and reset the grad.
    int handle = 0, calls = 0;
    handle = w.register_post_accumulate_grad_hook([&](Tensor& leaf_tensor) {
        ++calls;
        leaf_tensor.zero_grad();
        leaf_tensor.remove_hook(handle);
    });
    sum(w).backward();
    CHECK_FALSE(w.grad().defined());
    sum(w).backward();
    CHECK(calls == 1);
    CHECK(values(w.grad()) == Values(5, 1));
    // A hook added by an earlier hook of the same backward is called.
    Tensor v = leaf(2);
    v.register_post_accumulate_grad_hook(
        [&](Tensor&) { w.register_post_accumulate_grad_hook([&](Tensor&) { ++calls; }); });
    sum(w * 2.0 + v).backward();
    CHECK(calls == 2);
}

TEST_CASE("leaf hooks: an optimizer step in hooks matches one after backward") {
    const auto run = [](bool in_hooks) {
        std::vector<Tensor> parameters{leaf(1), leaf(2), leaf(3)};
        std::vector<Values> out;
        if (in_hooks)
            for (Tensor& parameter : parameters)
                parameter.register_post_accumulate_grad_hook([](Tensor& leaf_tensor) {
                    leaf_tensor.add_(leaf_tensor.grad() * -0.1);
                    leaf_tensor.zero_grad();
                });
        for (int step = 0; step < 3; ++step) {
            Tensor h = random_tensor({5}, 9);
            for (const Tensor& tensor : parameters) h = tanh(h * tensor) + tensor * 0.5;
            sum(square(h)).backward();
            const NoGrad no_grad;
            for (Tensor& tensor : parameters) {
                CHECK(tensor.grad().defined() != in_hooks);
                if (in_hooks) continue;
                tensor.add_(tensor.grad() * -0.1);
                tensor.zero_grad();
            }
        }
        for (const Tensor& tensor : parameters) out.push_back(values(tensor));
        return out;
    };
    const auto expected = run(false), got = run(true);
    for (std::size_t i = 0; i < expected.size(); ++i) CHECK(difference(got[i], expected[i], {1e-6, 1e-6}) == "");
}

TEST_CASE("leaf hooks: an exception ends backward, and earlier gradients remain") {
    const Tensor a = leaf(1), b = leaf(2);
    Tensor(b).register_post_accumulate_grad_hook([](Tensor&) { throw std::runtime_error("no more"); });
    const auto loss = [&] { return sum(tanh(a * 2.0) * b); };
    CHECK_THROWS_WITH_AS(loss().backward(), "no more", std::runtime_error);
    CHECK(b.grad().defined());
    CHECK_FALSE(a.grad().defined());
    CHECK(grad_enabled());
    CHECK_THROWS_WITH_AS(loss().backward(), "no more", std::runtime_error);  // and nothing is broken
}

TEST_CASE("leaf hooks: within a checkpoint, before it, after it") {
    Log log;
    const Tensor x = leaf(1), first = leaf(2), second = leaf(3), scale = leaf(4);
    for (const auto& [name, leaf_tensor] : {std::pair{"x", x}, {"first", first}, {"second", second}, {"around", scale}})
        log.watch_leaf(name, leaf_tensor);
    const auto inner = [&](const Tensor& in) { return tanh(in * first) * scale; };
    for (const int nested : {0, 1}) {
        CAPTURE(nested);
        const auto block = [&](const Tensor& in) {
            const Tensor h = nested == 1 ? checkpoint(inner, in) : inner(in);
            return tanh(h * second) * scale;
        };
        std::vector<Values> expected;
        for (const int checkpointed : {0, 1}) {
            const Tensor in = log.passing("in", x * scale);
            sum((checkpointed == 1 ? checkpoint(block, in) : block(in)) * 3.0).backward();
            CHECK(log.take() == "second, first, in, x, around");
            for (const Tensor& tensor : {x, first, second, scale}) {
                if (checkpointed == 0) expected.push_back(values(tensor.grad()));
                else {
                    CHECK(difference(tensor.grad(), expected.front(), {0, 0}) == "");
                    expected.erase(expected.begin());
                }
                Tensor(tensor).zero_grad();
            }
        }
        // A leaf used only in the checkpoint is complete before nodes before the checkpoint are visited, and only after
        // the whole recomputed graph.
        const Tensor in = log.passing("in", x * 2.0);
        sum(checkpoint([&](const Tensor& t) { return inner(inner(t)); }, in)).backward();
        CHECK(log.take() == "around, first, in, x");
        for (const Tensor& tensor : {x, first, scale}) Tensor(tensor).zero_grad();
    }
    // The last leaf used by the recomputed graph is complete before its older nodes.
    const Tensor last = leaf(5), earlier = log.passing("old", x * 2.0);
    log.watch_leaf("last", last);
    sum(checkpoint([&](const Tensor& t) { return log.passing("within", tanh(t * first)) * last; }, earlier)).backward();
    CHECK(log.take() == "last, within, first, old, x");
    // Two checkpoints that share a leaf.
    const Tensor in = log.passing("in", x * 2.0);
    const Tensor middle = log.passing("middle", checkpoint(inner, in));
    sum(checkpoint(inner, middle) * second).backward();
    CHECK(log.take() == "second, middle, around, first, in, x");
}

TEST_CASE("leaf hooks: do not launch deferred batched gradient sums") {
    const Tensor x = random_tensor({4, 8, 20, 20}, 1);
    const std::vector<Tensor> filters{leaf(2, {8, 8, 3, 3}), leaf(3, {8, 8, 3, 3}), leaf(4, {8, 8, 3, 3})};
    const auto step = [&] {
        Tensor h = x;
        for (const Tensor& filter : filters) h = relu(conv2d(h, filter, {}, {.padding = 1}));
        sum(h).backward();
        for (const Tensor& filter : filters) materialize(filter.grad());
        for (const Tensor& filter : filters) Tensor(filter).zero_grad();
    };
    step();
    const int launches_without_hooks = launches(step);
    int calls = 0;
    std::vector<int> handles;
    for (const Tensor& filter : filters)
        handles.push_back(Tensor(filter).register_post_accumulate_grad_hook([&](Tensor& leaf_tensor) {
            ++calls;
            CHECK(leaf_tensor.grad().defined());
        }));
    CHECK(launches(step) == launches_without_hooks);
    CHECK(calls == 3);
    // A hook that reads elements gets them.
    for (std::size_t i = 0; i < 3; ++i) Tensor(filters[i]).remove_hook(handles[i]);
    const Tensor copied = filters[2].detach().clone().set_requires_grad();
    Values hook_gradient;
    Tensor(filters[2]).register_post_accumulate_grad_hook([&](Tensor& leaf_tensor) {
        hook_gradient = values(leaf_tensor.grad());
    });
    const auto last = [&](const Tensor& filter) { return sum(relu(conv2d(x, filter, {}, {.padding = 1}))); };
    last(filters[2]).backward();
    last(copied).backward();
    CHECK(hook_gradient == values(copied.grad()));
}

TEST_CASE("leaf hooks: valid tensors") {
    Tensor w = leaf(1);
    const auto nothing = [](Tensor&) {};
    CHECK_THROWS_WITH_AS(
        (w * 2.0).register_post_accumulate_grad_hook(nothing),
        "register_post_accumulate_grad_hook: expected a leaf, got the result of mul_scalar, which has no "
        "grad",
        ValueError);
    CHECK_THROWS_WITH_AS(zeros({2}).register_post_accumulate_grad_hook(nothing),
                         "register_post_accumulate_grad_hook: expected a tensor that requires a gradient, got one that "
                         "does not",
                         ValueError);
    CHECK_THROWS_WITH_AS(w.register_post_accumulate_grad_hook({}),
                         "register_post_accumulate_grad_hook: expected a function, got an empty one", ValueError);
}
