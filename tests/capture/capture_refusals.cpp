// no-oclgrind: it replays kernels that other tests launch there
//
// Steps that cannot be captured: refused with a message, or run eagerly.
#include <declivity/capture/capture.hpp>

#include <functional>
#include <string>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/nn/nn.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/runtime/event.hpp>
#include <declivity/runtime/interop.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>

#include <tests/support/values.hpp>
#include "runtime/capture.hpp"
#include "tests/support/devices.hpp"
#include "tests/support/error_message.hpp"

using namespace declivity;
using namespace declivity::test;

TEST_CASE("capture refusals: steps that cannot be captured are refused with a message, or run eagerly") {
    const Tensor x = random_tensor({8}, 1).set_requires_grad(), y = random_tensor({8}, 2);
    const Device other = fresh_device();
    Tensor assigned = random_tensor({8}, 3);
    const struct {
        std::function<Tensor(const Tensor&)> step;
        const char* message;
    } cases[] = {
        {[](const Tensor& t) { return t * sum(t).item<float>(); }, "a read to the host"},
        {[](const Tensor& t) { return t * Tensor::from(std::vector<float>{2}, {1}); }, "upload from the host"},
        {[&](const Tensor& t) { return t * x; }, "a result that requires a gradient"},
        {[](const Tensor& t) { return slice(t, 0, 2, 4); }, "shares the memory of an input"},
        {[&](const Tensor& t) {
             assigned.assign(t * 2.0);
             return t * 3.0;
         },
         "assign()"},
        {[&](const Tensor& t) {
             return zeros({2}, {DType::f32, other}), t * 2.0;
         },
         "another device"},
        {[&](const Tensor& t) {
             Tensor leaf = t.clone().set_requires_grad();
             leaf.register_hook([](const Tensor& g) { return g * sum(g).item<float>(); });
             sum(leaf * t).backward();
             return leaf.grad();
         },
         "a read to the host"},
        {[](const Tensor& t) { return interop::compute_queue(t.device()), t * 2.0; }, "interop::compute_queue"},
        {[](const Tensor& t) {
             return Queue::compute(t.device()).wait_for(Queue::transfer(t.device()).marker()), t * 2.0;
         },
         "a wait of the compute queue"},
    };
    for (const auto& test_case : cases) {
        CAPTURE(test_case.message);
        auto strict = capture(test_case.step);
        CHECK(error_message<Unsupported>([&] { strict(y); }).find(test_case.message) != std::string::npos);
        auto fallback = capture(test_case.step, {.when_refused = WhenRefused::run});
        for (int i = 0; i < 3; ++i) CHECK(fallback(y).to_vector<float>() == test_case.step(y).to_vector<float>());
        CHECK(fallback.refused().find(test_case.message) != std::string::npos);
        CHECK(fallback.replayed() == 0);
        // No state remains from it.
        CHECK((y * 2.0).to_vector<float>().size() == 8);
        CHECK(Capture::current() == nullptr);
    }
    auto step = capture([](const Tensor& t) { return t * 2.0; });
    CHECK(
        error_message<Unsupported>([&] { step(x); }) ==
        "capture: an input that requires a gradient cannot be captured, since a replay builds no graph that leads back "
        "to it; detach() it, or make it a tensor from before the step");
    // Each with its own reason, and the called function.
    const auto error_of = [&](const std::function<Tensor(const Tensor&)>& function) {
        auto strict = capture(function);
        return error_message<Unsupported>([&] { strict(y); });
    };
    CHECK(
        error_of([&](const Tensor& t) { return t * x; }) ==
        "capture: a result that requires a gradient cannot be captured, since its graph is that of the first call, and "
        "a replay builds none; call backward within the step, or detach() it");
    CHECK(error_of([](const Tensor& t) { return slice(t, 0, 2, 4); }) ==
          "capture: a result that shares the memory of an input cannot be captured, since the inputs of the next call "
          "are in other memory; clone() it");
    CHECK(error_of([](const Tensor& t) {
              return t * sum(t).item<float>();
          }).starts_with("capture: item (a read to the host) cannot be captured, since a replay would not repeat it"));
    CHECK(error_of([](const Tensor& t) {
              return t * t.to_vector<float>()[0];
          }).starts_with("capture: to_vector (a read to the host) cannot"));
    CHECK(error_of([](const Tensor& t) {
              return t * Tensor::from<float>({2}, {1});
          }).starts_with("capture: Tensor::from (an upload from the host) cannot be captured"));
}

TEST_CASE("capture refusals: a captured step that calls itself is refused") {
    constexpr const char* message =
        "capture: expected a call of the step after the previous one has ended, got one within it";
    for (const WhenRefused on_refusal : {WhenRefused::fail, WhenRefused::run}) {
        CapturedStep* self = nullptr;
        int depth = 0;
        CapturedStep direct(
            [&](const std::vector<Tensor>& in) {
                return ++depth > 100 ? in : (*self)({in[0] + 1.0});  // ends a test that would fail
            },
            {.when_refused = on_refusal});
        self = &direct;
        for (int call = 0; call < 2; ++call) {
            depth = 0;
            CHECK_THROWS_WITH_AS(direct({ones({4})}), doctest::Contains(message), ValueError);
            CHECK(depth == 1);
        }
        CapturedStep* first = nullptr;
        CapturedStep second([&](const std::vector<Tensor>& in) { return ++depth > 100 ? in : (*first)({in[0] * 2.0}); },
                            {.when_refused = on_refusal});
        CapturedStep through([&](const std::vector<Tensor>& in) { return second(in); }, {.when_refused = on_refusal});
        first = &through;
        CHECK_THROWS_WITH_AS(through({ones({4})}), doctest::Contains(message), ValueError);
        CHECK_THROWS_WITH_AS(second({ones({4})}), doctest::Contains(message), ValueError);
    }
    // One that reads elements runs eagerly, and may not call itself either.
    CapturedStep* self = nullptr;
    int depth = 0;
    CapturedStep reads(
        [&](const std::vector<Tensor>& in) {
            (void)in[0].to_vector<float>();
            return self == nullptr || ++depth > 100 ? in : (*self)(in);
        },
        {.when_refused = WhenRefused::run});
    CHECK(reads({ones({4})}).size() == 1);
    CHECK_FALSE(reads.refused().empty());
    self = &reads;
    CHECK_THROWS_WITH_AS(reads({ones({4})}), doctest::Contains(message), ValueError);
    self = nullptr;
    CHECK(reads({ones({4})}).size() == 1);
}

TEST_CASE("capture refusals: errors name the layer") {
    struct Reads : nn::Layer {
        nn::Linear& dense = add("dense", nn::Linear(3, 2));
        Tensor forward(Tensor x) override { return dense(x) * sum(x).item<float>(); }
        std::string type_name() const override { return "Reads"; }
    };
    nn::Sequential model(nn::Linear(3, 3), Reads());
    const NoGrad no_grad;
    auto fails = capture([&](const Tensor& x) { return model(x); });
    CHECK_THROWS_WITH_AS(fails(ones({1, 3})), doctest::Contains("(in Sequential/1"), Unsupported);
    auto runs = capture([&](const Tensor& x) { return model(x); }, {.when_refused = WhenRefused::run});
    (void)runs(ones({1, 3}));
    CHECK(runs.refused() == "item (a read to the host), in Sequential/1");
}
