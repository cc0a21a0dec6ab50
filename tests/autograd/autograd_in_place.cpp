// In-place writes to tensors that a graph needs are detected; others are allowed.
#include <string>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>
#include <tests/support/devices.hpp>
#include <tests/support/gradient_check.hpp>
#include <tests/support/leaf.hpp>
#include <tests/support/values.hpp>

using namespace declivity;
using namespace declivity::test;

TEST_CASE("in place: leaves that require a gradient are not written, and shapes must match") {
    Tensor x = leaf({1, 2}, {2});
    Tensor plain = tensor({5, 6}, {2});
    const std::string message_end =
        ": expected a tensor that does not require a gradient, got one of shape [2] that requires a gradient; "
        "write "
        "under "
        "NoGrad, or to a detach()ed clone";
    CHECK_THROWS_WITH_AS(x.fill_(1), ("fill_" + message_end).c_str(), ValueError);
    CHECK_THROWS_WITH_AS(x.zero_(), ("zero_" + message_end).c_str(), ValueError);
    CHECK_THROWS_WITH_AS(x.mul_(2), ("mul_" + message_end).c_str(), ValueError);
    CHECK_THROWS_WITH_AS(x.mul_(plain), ("mul_" + message_end).c_str(), ValueError);
    CHECK_THROWS_WITH_AS(x.add_(plain), ("add_" + message_end).c_str(), ValueError);
    CHECK_THROWS_WITH_AS(x.sub_(plain), ("sub_" + message_end).c_str(), ValueError);
    CHECK_THROWS_WITH_AS(x.div_(plain), ("div_" + message_end).c_str(), ValueError);
    CHECK_THROWS_WITH_AS(x.copy_(plain), ("copy_" + message_end).c_str(), ValueError);
    CHECK_THROWS_WITH_AS(plain.add_(ones({3, 2})), "add_: expected a shape that broadcasts to [2], got [3, 2]",
                         ShapeError);
    CHECK_THROWS_WITH_AS(plain.copy_(ones({1, 2})), "copy_: expected the source of shape [2], got [1, 2]", ShapeError);
    CHECK_THROWS_WITH_AS(plain.copy_(ones({2}, {DType::i32})), "copy_: expected a source of type f32, got i32",
                         TypeError);
    CHECK_THROWS_WITH_AS(Tensor().fill_(1), "fill_: expected a tensor, got an undefined one", ValueError);
    CHECK_THROWS_WITH_AS(plain.add_(Tensor()), "add_: expected a tensor, got an undefined one", ValueError);
    CHECK(values(plain) == Values{5, 6});
    plain.add_(ones({1})).mul_(2);
    CHECK(values(plain) == Values{12, 14});
    plain.copy_(tensor({1, 2}, {2}, DType::f32));
    CHECK(values(plain) == Values{1, 2});
}

TEST_CASE("in place: a write after a tensor was saved is detected") {
    for (const DType dtype : floats()) {
        // An input, ...
        Tensor x = leaf({1, 2}, {2}, dtype), w = tensor({3, 4}, {2}, dtype);
        const Tensor y = sum(x * w);
        w.fill_(0);
        try {
            y.backward();
            FAIL("a stale value was used");
        } catch (const ValueError& error) {
            const std::string message = error.what();
            CHECK(message.find("backward of mul: a tensor of shape [2] that it needs was written in place after the "
                               "forward call") == 0);
            CHECK(message.find("clone()") != std::string::npos);
        }
        CHECK_FALSE(x.grad().defined());
        // ... the leaf itself, ...
        const Tensor z = sum(square(x));
        {
            const NoGrad guard;
            x.mul_(2);
        }
        CHECK_THROWS_AS(z.backward(), ValueError);
        // ... a result, through another handle to its memory, ...
        const Tensor e = exp(x);
        e.detach().fill_(1);
        CHECK_THROWS_AS(sum(e).backward(), ValueError);
        // ... and a view of it.
        const Tensor p = sum(x * slice(w, 0, 0, 1));
        slice(w, 0, 1, 2).fill_(9);
        CHECK_THROWS_AS(p.backward(), ValueError);
        // Functions that need no value are not affected.
        const Tensor s = sum(x + w);
        w.fill_(5);
        CHECK_NOTHROW(s.backward());
        CHECK(values(x.grad()) == Values{1, 1});
    }
}

TEST_CASE("in place: assignment to a tensor after the forward call") {
    Tensor x = leaf({1, 2, 3}, {3}), w = leaf({4, 5, 6}, {3});
    const Tensor product = sum(x * w);
    w.assign(leaf({100, 100, 100}, {3}));
    product.backward();
    CHECK(values(x.grad()) == Values{4, 5, 6});
    w = leaf({4, 5, 6}, {3});
    const Tensor again = sum(x * w);
    w.assign(leaf({100, 100, 100}, {3}));
    CHECK_THROWS_AS((void)grad({again}, {x}, {.create_graph = true}), ValueError);
}

TEST_CASE("in place: an optimizer step between two forward calls is allowed") {
    Tensor w = leaf({1, 2}, {2});
    for (int step = 0; step < 3; ++step) {
        w.zero_grad();
        sum(square(w)).backward();
        const NoGrad guard;
        w.add_(w.grad() * -0.25);
    }
    CHECK(values(w) == Values{0.125, 0.25});
}
