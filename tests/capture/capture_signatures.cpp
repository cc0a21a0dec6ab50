// no-oclgrind: it replays kernels that other tests launch there
//
// Captured steps with inputs of several shapes and types.
#include <declivity/capture/capture.hpp>

#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

#include <declivity/functions/functions.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>

#include <tests/support/values.hpp>
#include "tests/support/devices.hpp"
#include "tests/support/error_message.hpp"

using namespace declivity;
using namespace declivity::test;

namespace {

using Values = std::vector<std::vector<float>>;

}  // namespace

TEST_CASE("capture signatures: captures for several shapes are cached, the least recently used one is evicted") {
    CHECK(error_message<ValueError>([] {
              capture([](const Tensor& x) { return x; }, {.signatures = 0});
          }).find("at least 1 signature, got 0") != std::string::npos);
    Tensor total = zeros({1});
    int calls = 0;
    auto step = capture(
        [&](const Tensor& x) {
            ++calls;
            total.add_(reshape(sum(x), {1}));
            return exp(x) * 0.5;
        },
        {.signatures = 2});
    const auto rows_of = [](std::int64_t n) { return random_tensor({n, 3}, static_cast<std::uint64_t>(n)); };
    double expected = 0;
    const auto call = [&](std::int64_t n) {
        const Tensor x = rows_of(n);
        for (const float element : x.to_vector<float>()) expected += element;
        CHECK(step(x).to_vector<float>() == (exp(x) * 0.5).to_vector<float>());
        return calls;
    };
    CHECK(call(4) == 1);
    CHECK(call(7) == 2);
    CHECK(call(4) == 2);
    CHECK(call(7) == 2);
    CHECK(call(4) == 2);
    const auto memory = step.command_list().memory();
    CHECK(memory > 0);
    CHECK(call(9) == 3);  // replaces 7
    CHECK(call(4) == 3);
    CHECK(call(7) == 4);  // replaces 9
    CHECK(call(4) == 4);
    CHECK(call(9) == 5);
    CHECK(step.replayed() == 5);
    CHECK(std::abs(total.item<float>() - expected) < 1e-3);
    step.reset();
    CHECK(call(9) == 6);
}

TEST_CASE(
    "capture signatures: with more signatures than the cache holds, refused() reports it until calls are replays "
    "again") {
    for (const WhenRefused when : {WhenRefused::fail, WhenRefused::run}) {
        auto step = capture([](const Tensor& x) { return x * 2.0; }, {.when_refused = when, .signatures = 2});
        const auto call_each = [&](std::int64_t kinds) {
            for (std::int64_t n = 1; n <= kinds; ++n) CHECK(step(ones({n})).to_vector<float>()[0] == 2);
        };
        for (int i = 0; i < 4; ++i) call_each(2);
        CHECK(step.refused().empty());
        if (when == WhenRefused::run) continue;
        const std::int64_t before = step.replayed();
        call_each(3);
        CHECK(step.refused().empty());  // a single eviction is not reported
        for (int i = 0; i < 3; ++i) call_each(3);
        CHECK(step.replayed() == before + 2);
        CHECK(step.refused() ==
              "alternating inputs of more signatures (shapes, types) than the 2 for which captures are kept: each call "
              "evicts the capture that a later one needs, and is captured itself (raise CaptureOptions::signatures)");
        for (int i = 0; i < 3; ++i) call_each(2);
        CHECK(step.refused().empty());
    }
}

TEST_CASE("capture signatures: an evicted capture leaves its results and memory in use to their owners") {
    const auto function = [](const Tensor& x) {
        Tensor y = x;
        for (int i = 0; i < 4; ++i) y = matmul(tanh(y), transpose(x, 0, 1)) * 0.1;
        return y + 1.0;
    };
    auto step = capture(function, {.signatures = 1});
    Values expected_results;
    std::vector<Tensor> results;
    for (int i = 0; i < 12; ++i) {
        const std::int64_t n = 40 + 8 * (i % 3);
        const Tensor x = random_tensor({n, n}, 50 + static_cast<std::uint64_t>(i));
        results.push_back(step(x));  // not read yet: the next shape evicts its capture while it is running
        expected_results.push_back(function(x).to_vector<float>());
    }
    for (std::size_t i = 0; i < results.size(); ++i) CHECK(results[i].to_vector<float>() == expected_results[i]);
    CHECK(step.replayed() == 0);
}

TEST_CASE("capture signatures: other types are other signatures, and a failed signature does not affect the next") {
    auto step = capture([](const std::vector<Tensor>& in) { return std::vector{in.at(0) * 2.0 + in.at(1)}; });
    CHECK_THROWS_AS(step({zeros({3})}), std::out_of_range);
    const Tensor floats = random_tensor({3}, 1), integers = Tensor::from<std::int64_t>({4, 5, 6}, {3});
    for (int i = 0; i < 3; ++i) {
        CHECK(step({floats, floats.clone()})[0].to_vector<float>() == (floats * 3.0).to_vector<float>());
        CHECK(step({integers, floats})[0].to_vector<float>() == (integers * 2.0 + floats).to_vector<float>());
        CHECK(step({floats.to(DType::f16), integers})[0].shape() == Shape{3});
    }
    CHECK(step.replayed() == 6);
    CHECK(error_message<ValueError>([&] { step({floats}); }).find("expected 2 inputs, got 1") != std::string::npos);
    CHECK(step({floats, floats.clone()})[0].dtype() == DType::f32);
    CHECK(step.replayed() == 7);
}

TEST_CASE("capture signatures: confirmation compares one call, and captures all again if it differs") {
    double factor = 2;
    int calls = 0;
    auto step = capture([&](const Tensor& x) { return ++calls, x * factor; }, {.warmup_captures = 2});
    const Tensor a = random_tensor({4, 3}, 1), b = random_tensor({7, 3}, 2);
    const auto both = [&] {
        for (const Tensor& x : {a, b}) CHECK(step(x).to_vector<float>() == (x * factor).to_vector<float>());
        return calls;
    };
    CHECK(both() == 2);
    CHECK(both() == 4);
    CHECK(both() == 4);
    for (int i = 0; i < 3; ++i) {
        step.confirm();
        CHECK(both() == 5 + i);
        CHECK(both() == 5 + i);
    }
    factor = 3;
    step.confirm();
    CHECK(both() == 9);
    CHECK(both() == 11);
    CHECK(both() == 11);
    CHECK(step.replayed() == 2 + 3 * 3 + 2);
}

TEST_CASE("capture signatures: inputs without elements") {
    auto step = capture([](const std::vector<Tensor>& in) { return std::vector{concat({in[0], in[1]}, 0) * 2.0}; });
    const Tensor none = zeros({4, 0, 3}), rows = zeros({4, 3}), x = random_tensor({2, 3}, 1);
    for (int i = 0; i < 3; ++i) {
        // An empty buffer, and empty slices of a nonempty one, also at its very end.
        const Tensor part = i == 0 ? reshape(slice(none, 0, i, i + 1), {0, 3}) : slice(rows, 0, 2 * i, 2 * i);
        CHECK(step({part, x})[0].to_vector<float>() == (x * 2.0).to_vector<float>());
    }
    CHECK(step.replayed() == 2);
}

TEST_CASE("capture signatures: a step must return defined tensors") {
    for (const WhenRefused when : {WhenRefused::fail, WhenRefused::run}) {
        auto step = capture(
            [](const std::vector<Tensor>& in) {
                return std::vector{in[0] * 2.0, Tensor()};
            },
            {.when_refused = when});
        CHECK(error_message<ValueError>([&] { step({zeros({3})}); }) ==
              "capture: expected defined tensors from the step, got an undefined one at 1");
    }
}
