// Custom functions: values, gradients, saved tensors, errors.
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
#include <tests/support/values.hpp>

using namespace declivity;
using namespace declivity::test;

namespace {

/// a * b and a + b at once.
CustomFunction product_and_sum() {
    return {.name = "product_and_sum",
            .forward =
                [](const std::vector<Tensor>& in) {
                    return std::vector{in[0] * in[1], in[0] + in[1]};
                },
            .backward =
                [](const std::vector<Tensor>& in, const std::vector<Tensor>&, const std::vector<Tensor>& g) {
                    return std::vector{g[0] * in[1] + g[1], g[0] * in[0] + g[1]};
                }};
}

/// A function whose backward returns the given gradients.
CustomFunction returning(std::vector<Tensor> gradients) {
    CustomFunction out = product_and_sum();
    out.name = "gives";
    out.backward = [gradients = std::move(gradients)](const auto&, const auto&, const auto&) { return gradients; };
    return out;
}

}  // namespace

TEST_CASE("custom function: values and gradients, of each output and of all") {
    for (const DType dtype : floats()) {
        Tensor a = leaf({1, 2, 3}, {3}, dtype), b = leaf({4, 5, 6}, {3}, dtype);
        const auto out = product_and_sum()({a, b});
        REQUIRE(out.size() == 2);
        CHECK(values(out[0]) == Values{4, 10, 18});
        CHECK(values(out[1]) == Values{5, 7, 9});
        CHECK(out[0].requires_grad());
        // The gradient of an unused output is zeros.
        CHECK(values(grad({sum(out[0])}, {a}, {.retain_graph = true})[0]) == Values{4, 5, 6});
        CHECK(values(grad({sum(out[1])}, {b}, {.retain_graph = true})[0]) == Values{1, 1, 1});
        sum(out[0] * out[1]).backward();
        CHECK(values(a.grad()) == Values{4 * 6, 5 * 9, 6 * 12});  // b (2 a + b)
        CHECK(values(b.grad()) == Values{1 * 9, 2 * 12, 3 * 15});
    }
    if (device().info().fp64)
        CHECK(gradient_difference(
                  [](const auto& in) {
                      const auto out = product_and_sum()({in[0], in[1]});
                      return tanh(out[0]) * out[1];
                  },
                  {random_tensor({7}, 1, DType::f64), random_tensor({7}, 2, DType::f64)}) == "");
}

TEST_CASE("custom function: forward runs without grad mode, backward gets the outputs") {
    CustomFunction function{
        .name = "exponential",
        .forward =
            [](const std::vector<Tensor>& in) {
                CHECK_FALSE(grad_enabled());
                return std::vector{exp(in[0])};
            },
        .backward =
            [](const std::vector<Tensor>& in, const std::vector<Tensor>& out, const std::vector<Tensor>& g) {
                CHECK(in.size() == 1);
                return std::vector{g[0] * out[0]};
            }};
    Tensor x = leaf({0, 1}, {2});
    const Tensor y = function({x})[0];
    sum(y).backward();
    CHECK(difference(x.grad(), values(y), {1e-6, 1e-6}) == "");
    CHECK_FALSE(function({x.detach()})[0].requires_grad());
    {
        const NoGrad guard;
        CHECK_FALSE(function({x})[0].requires_grad());
    }
    const Tensor first = grad({sum(function({x})[0])}, {x}, {.create_graph = true})[0];
    CHECK_THROWS_WITH_AS(sum(first).backward(),
                         "backward: expected functions that are twice differentiable, got exponential, which has no "
                         "gradient of its gradient",
                         Unsupported);
    const Tensor stale = function({x})[0];
    stale.detach().fill_(0);
    CHECK_THROWS_AS(sum(stale).backward(), ValueError);
}

TEST_CASE("custom function: inputs without gradient, and integer outputs") {
    CustomFunction pick{
        .name = "pick",
        .forward =
            [](const std::vector<Tensor>& in) {
                return std::vector{in[0] * in[1].to(DType::f32), argmax(in[0])};
            },
        .backward =
            [](const std::vector<Tensor>& in, const std::vector<Tensor>&, const std::vector<Tensor>& g) {
                return std::vector{g[0] * in[1].to(DType::f32), Tensor()};
            }};
    Tensor x = leaf({1, 5, 2}, {3});
    const auto out = pick({x, tensor({1, 0, 2}, {3}, DType::i32)});
    CHECK_FALSE(out[1].requires_grad());
    CHECK(out[1].item<std::int64_t>() == 1);
    sum(out[0]).backward();
    CHECK(values(x.grad()) == Values{1, 0, 2});
    // An undefined gradient is no gradient.
    Tensor a = leaf({1, 2}, {2}), b = leaf({3, 4}, {2});
    sum(returning({ones({2}), Tensor()})({a, b})[0]).backward();
    CHECK(values(a.grad()) == Values{1, 1});
    CHECK_FALSE(b.grad().defined());
}

TEST_CASE("custom function: errors name it") {
    Tensor a = leaf({1, 2}, {2}), b = leaf({3, 4}, {2});
    const auto backward_of = [&](std::vector<Tensor> gradients) {
        sum(returning(std::move(gradients))({a, b})[0]).backward();
    };
    CHECK_THROWS_WITH_AS(backward_of({ones({2})}), "backward of gives: expected 2 gradients, one for each input, got 1",
                         ValueError);
    CHECK_THROWS_WITH_AS(backward_of({}), "backward of gives: expected 2 gradients, one for each input, got 0",
                         ValueError);
    CHECK_THROWS_WITH_AS(backward_of({ones({2}), ones({2}), ones({2})}),
                         "backward of gives: expected 2 gradients, one for each input, got 3", ValueError);
    CHECK_THROWS_WITH_AS(backward_of({ones({2}), ones({3})}),
                         "backward of gives, input 1: expected a gradient of shape [2], got [3]", ShapeError);
    CHECK_THROWS_WITH_AS(backward_of({ones({}), ones({2})}),
                         "backward of gives, input 0: expected a gradient of shape [2], got []", ShapeError);
    CHECK_THROWS_WITH_AS(backward_of({ones({2}, {DType::i32}), ones({2})}),
                         "backward of gives, input 0: expected a gradient of type f32, got i32", TypeError);
    CHECK_FALSE(a.grad().defined());
    CustomFunction undefined_forward = product_and_sum();
    undefined_forward.forward = [](const auto& in) { return std::vector{in[0] + 1, Tensor()}; };
    CHECK_THROWS_WITH_AS(undefined_forward({a, b}),
                         "product_and_sum: expected tensors from forward, got an undefined one", ValueError);
    CustomFunction incomplete = product_and_sum();
    incomplete.forward = {};
    CHECK_THROWS_WITH_AS(incomplete({a, b}),
                         "product_and_sum: expected the functions forward and backward, got no forward", ValueError);
    incomplete = product_and_sum();
    incomplete.backward = {};
    CHECK_THROWS_WITH_AS(incomplete({a, b}),
                         "product_and_sum: expected the functions forward and backward, got no backward", ValueError);
    CHECK_NOTHROW((void)incomplete({a.detach(), b.detach()}));  // not needed
    // An exception thrown in between is passed on unchanged.
    CustomFunction fails = product_and_sum();
    fails.backward = [](const auto&, const auto&, const auto&) -> std::vector<Tensor> {
        throw std::out_of_range("mine");
    };
    CHECK_THROWS_AS(sum(fails({a, b})[0]).backward(), std::out_of_range);
    CHECK(grad_enabled());
}
