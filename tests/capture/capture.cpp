// no-oclgrind: it replays kernels that other tests launch there
//
// Captured steps.
#include <declivity/capture/capture.hpp>

#include <algorithm>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/autograd/checkpoint.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/nn/nn.hpp>
#include <declivity/ops/random.hpp>
#include <declivity/optim/adam.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/runtime/profiler.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>

#include <tests/support/values.hpp>
#include "runtime/capture.hpp"
#include "tests/support/devices.hpp"

using namespace declivity;
using namespace declivity::test;

namespace {

using Values = std::vector<std::vector<float>>;

/// A network with everything a capture must handle: running statistics, random masks, a skip connection, a checkpoint.
struct Net : nn::Layer {
    Tensor forward(Tensor x) override {
        const Tensor h = relu(norm(first(x)));
        const Tensor deep = checkpoint([&](const Tensor& t) { return tanh(second(dropout(t, 0.2))); }, h);
        return dense(flatten(max_pool2d(dropout(deep + h, 0.3), {.kernel_size = 2})));
    }
    nn::Conv2d& first = add("first", nn::Conv2d(3, 6, 3, {.padding = 1}));
    nn::BatchNorm& norm = add("norm", nn::BatchNorm(6));
    nn::Conv2d& second = add("second", nn::Conv2d(6, 6, 3, {.padding = 1}));
    nn::Linear& dense = add("dense", nn::Linear(6 * 3 * 4, 5));
};

Tensor batch(int number) { return random_tensor({4, 3, 7, 9}, 100 + static_cast<std::uint64_t>(number)); }
Tensor labels(int number) {
    std::vector<std::int64_t> out;
    for (const double value : random_values(4, 200 + static_cast<std::uint64_t>(number), 0, 5))
        out.push_back(static_cast<std::int64_t>(value));
    return Tensor::from(out, {4});
}

enum class Mode { plain, captured, captured_twice };

struct Outcome {
    Values values;  // losses, then the state left by the training
    ops::RandomPosition random;
    std::int64_t replayed = 0;
};

/// Seven steps, each on its own batch; between them random numbers are sampled and the learning rate changes.
Outcome train(Mode mode) {
    manual_seed(5);
    Net net;
    optim::Adam optimizer(net.parameters(), {.lr = 0.01});
    const Tensor total = zeros({1});
    const auto step = [&](const std::vector<Tensor>& in) {
        optimizer.zero_grad();
        const Tensor loss = cross_entropy(net(in[0]), in[1]);
        loss.backward();
        optim::clip_grad_norm(net.parameters(), 0.5);
        optimizer.step();
        const NoGrad no_grad;
        Tensor(total).add_(reshape(loss.detach(), {1}));
        return std::vector{loss.detach(), in[1]};
    };
    auto captured = capture(step, {.warmup_captures = mode == Mode::captured_twice ? 2 : 1});
    Outcome out;
    for (int number = 0; number < 7; ++number) {
        const std::vector<Tensor> in{batch(number), labels(number)};
        const auto results = mode == Mode::plain ? step(in) : captured(in);
        out.values.push_back(results.at(0).to_vector<float>());
        CHECK(results.at(1).to_vector<std::int64_t>() == in[1].to_vector<std::int64_t>());
        out.values.push_back(uniform({3}).to_vector<float>());
        if (number == 4) optimizer.set_learning_rate(0.003);
        for (const Tensor& parameter : net.parameters()) out.values.push_back(parameter.grad().to_vector<float>());
    }
    for (const auto& [name, tensor] : net.state_dict())
        if (tensor.dtype() == DType::f32) out.values.push_back(tensor.to_vector<float>());
    for (const auto& [name, tensor] : optimizer.state_dict()) out.values.push_back(tensor.to_vector<float>());
    out.values.push_back(total.to_vector<float>());
    out.random = ops::random_position(total.device());
    out.replayed = captured.replayed();
    return out;
}

}  // namespace

TEST_CASE(
    "capture: training matches eager training bit for bit: losses, gradients, statistics, moments, random numbers") {
    const Outcome plain = train(Mode::plain);
    for (const Mode mode : {Mode::captured, Mode::captured_twice}) {
        CAPTURE(static_cast<int>(mode));
        const Outcome other = train(mode);
        CHECK(other.replayed == (mode == Mode::captured ? 6 : 5));
        CHECK(other.values.size() == plain.values.size());
        for (std::size_t i = 0; i < plain.values.size(); ++i) {
            CAPTURE(i);
            CHECK(other.values[i] == plain.values[i]);
        }
        CHECK(other.random.seed == plain.random.seed);
        CHECK(other.random.offset == plain.random.offset);
    }
}

TEST_CASE("capture: without a warm-up the result is the same") {
    // Kernels are compiled, weights packed and strategies tuned during it.
    const Environment tuned("DECLIVITY_TUNE", "1");
    const Device fresh = fresh_device();
    const Tensor weight = random_tensor({8, 3, 3, 3}, 1).to(fresh), dense = random_tensor({5, 8 * 5 * 7}, 2).to(fresh);
    const auto forward = [&](const Tensor& x) {
        const NoGrad no_grad;
        return linear(flatten(relu(conv2d(x, weight))), dense);
    };
    auto captured = capture(forward, {.device = fresh});
    for (int number = 0; number < 3; ++number) {
        const Tensor x = batch(number).to(fresh);
        const auto got = captured(x).to_vector<float>();
        CHECK(got == forward(x).to_vector<float>());
    }
    CHECK(captured.replayed() == 2);
}

TEST_CASE("capture: replays enqueue the commands of the call, and a step without results needs no inputs") {
    const Tensor x = random_tensor({37, 11}, 1), sums = zeros({37});
    auto step = capture([&] { Tensor(sums).add_(sum(exp(x) * 2.0, {1})); });
    const auto profiled = [&] {
        Profiler profiler(x.device());
        step();
        profiler.stop();
        auto rows = profiler.rows();
        std::ranges::sort(rows, {}, &Profiler::Row::name);
        return rows;
    };
    const auto launched = profiled(), replayed = profiled();
    REQUIRE(launched.size() == replayed.size());
    REQUIRE(!launched.empty());
    for (std::size_t i = 0; i < launched.size(); ++i) {
        CAPTURE(launched[i].name);
        CHECK(replayed[i].name == launched[i].name);
        CHECK(replayed[i].calls == launched[i].calls);
        CHECK(replayed[i].flops == launched[i].flops);
        CHECK(replayed[i].bytes == launched[i].bytes);
    }
    CHECK(step.command_list().commands() >= launched.size());
    CHECK(step.command_list().memory() > 0);
    std::vector<double> expected(37);
    const auto from = values(x);
    for (std::size_t i = 0; i < from.size(); ++i) expected[i / 11] += 2 * 2 * std::exp(from[i]);
    CHECK(difference(sums, expected, tolerance(DType::f32, 22, 3)) == "");
}

TEST_CASE(
    "capture: results are in the capture's memory, and values pending on them have the elements from their call") {
    auto affine = capture([](const Tensor& x) { return x * 2.0 + 1.0; });
    const Tensor a = random_tensor({513}, 1), b = random_tensor({513}, 2);
    const Tensor y = affine(a);
    const Tensor pending_result = y * 10.0;
    const Tensor z = affine(b);
    CHECK(y.value().view().buffer == z.value().view().buffer);
    std::vector<double> expected_a, expected_b;
    for (const double value : values(a)) expected_a.push_back(10 * (2 * value + 1));
    for (const double value : values(b)) expected_b.push_back(2 * value + 1);
    CHECK(difference(pending_result, expected_a, tolerance(DType::f32, 4, 30)) == "");
    CHECK(difference(y, expected_b, tolerance(DType::f32, 4, 3)) == "");
}

TEST_CASE("capture: values pending before a capture are evaluated once, outside of it") {
    Tensor base = random_tensor({65}, 1);
    const Tensor before = base * 3.0;  // pending
    auto step = capture([&](const Tensor& x) { return x + before; });
    const Tensor x = random_tensor({65}, 2);
    const auto first = step(x).to_vector<float>();
    base.fill_(0);
    CHECK(step(x).to_vector<float>() == first);
    CHECK(step.replayed() == 1);
    CHECK(step.command_list().commands() == 1);
}

TEST_CASE("capture: values left pending by a step are a part of it") {
    Tensor escaped;
    const Tensor state = random_tensor({33}, 1);
    auto step = capture([&] { escaped = state * 2.0; });
    step();
    Tensor(state).fill_(7);
    step();
    CHECK(step.replayed() == 1);
    for (const float value : escaped.to_vector<float>()) CHECK(value == 14);
}

TEST_CASE("capture: statistics of an unused normalisation are updated, by eager and captured calls in any order") {
    const auto outcome = [](int first_plain, bool captured) {
        nn::BatchNorm norm(6);
        norm.train();
        auto step = capture([&](const Tensor& t) {
            const NoGrad no_grad;
            norm(t);
            return t * 2.0;
        });
        Values out;
        for (int i = 0; i < 6; ++i) {
            const Tensor x = random_tensor({3, 6, 20, 20}, 50 + static_cast<std::uint64_t>(i));
            if (!captured || i % 3 == first_plain) {
                const NoGrad no_grad;
                norm(x);
            } else {
                step(x);
            }
            if (i == 3)
                for (const auto& [name, tensor] : norm.named_buffers())
                    out.push_back(tensor.to(DType::f32).to_vector<float>());
        }
        for (const auto& [name, tensor] : norm.named_buffers()) out.push_back(tensor.to(DType::f32).to_vector<float>());
        return out;
    };
    for (const int first_plain : {0, 1, 2}) CHECK(outcome(first_plain, true) == outcome(first_plain, false));
}

TEST_CASE("capture: inputs in any kind of memory; a capture for each signature") {
    const auto function = [](const Tensor& x) { return sum(square(x), {1}); };
    auto strict = capture(function);
    auto fallback = capture(function, {.when_refused = WhenRefused::run});
    const Tensor matrix = random_tensor({12, 30}, 1);
    const Tensor transposed = permute(random_tensor({30, 5}, 2), {1, 0}), part = slice(matrix, 0, 3, 8);
    for (auto* step : {&strict, &fallback}) {
        for (const Tensor& x : {slice(matrix, 0, 0, 5), part, transposed, part.clone()})
            CHECK((*step)(x).to_vector<float>() == function(x).to_vector<float>());
        CHECK(step->replayed() == 3);
    }
    for (int i = 0; i < 2; ++i) {
        CHECK(strict(matrix).to_vector<float>() == function(matrix).to_vector<float>());
        CHECK(strict(part.to(DType::f16)).shape() == Shape{5});
        CHECK(strict(part).to_vector<float>() == function(part).to_vector<float>());
    }
    CHECK(strict.replayed() == 3 + 1 + 3);
    CHECK(fallback(matrix).to_vector<float>() == function(matrix).to_vector<float>());
    CHECK(fallback(part).to_vector<float>() == function(part).to_vector<float>());
    CHECK(fallback.replayed() == 4);  // a single odd batch changes nothing
    for (int i = 0; i < 4; ++i) CHECK(fallback(matrix).to_vector<float>() == function(matrix).to_vector<float>());
    CHECK(fallback.replayed() == 7);  // others are captured when they occur again
    CHECK(fallback(part).to_vector<float>() == function(part).to_vector<float>());
    CHECK(fallback.replayed() == 8);
}

TEST_CASE("capture: enqueue-only hooks are replayed, host side effects occur once") {
    const auto training = [](bool captured_) {
        manual_seed(5);
        Net net;
        int calls = 0;
        std::vector<Tensor> parameters = net.parameters();
        for (Tensor& parameter : parameters) {
            parameter.register_hook([](const Tensor& g) { return clamp(g, -0.02, 0.02); });
            // An optimizer step as soon as the gradient is accumulated.
            parameter.register_post_accumulate_grad_hook([&](Tensor& leaf_tensor) {
                ++calls;
                leaf_tensor.add_(leaf_tensor.grad() * -0.3);
                leaf_tensor.zero_grad();
            });
        }
        const auto commands = [&](const std::vector<Tensor>& in) {
            const Tensor h = net.first(in[0]);
            Tensor(h).register_hook([](const Tensor& g) { return g * 0.5; });
            const Tensor y = net(in[0]);
            const Tensor loss = cross_entropy(y, in[1]) + sum(h) * 0.01;
            loss.backward();
            return std::vector{loss.detach()};
        };
        auto step = capture(commands);
        Values out;
        for (int i = 0; i < 5; ++i)
            out.push_back(
                (captured_ ? step({batch(i), labels(i)}) : commands({batch(i), labels(i)}))[0].to_vector<float>());
        for (const Tensor& parameter : parameters) out.push_back(parameter.to_vector<float>());
        const auto parameter_count = static_cast<int>(parameters.size());
        CHECK(calls == (captured_ ? parameter_count : 5 * parameter_count));
        CHECK(step.replayed() == (captured_ ? 4 : 0));
        return out;
    };
    CHECK(training(true) == training(false));

    // Added or removed hooks are noticed, whatever their number; hooks that are not declared enqueue-only are refused.
    Tensor w = random_tensor({9}, 1).set_requires_grad();
    auto step = capture([&] {
        w.zero_grad();
        sum(square(w)).backward();
    });
    const auto factor = [&] { return w.grad().to_vector<float>()[0] / w.to_vector<float>()[0]; };
    step(), step();
    CHECK(factor() == doctest::Approx(2));
    for (const double hook_factor : {3.0, 5.0}) {
        const int number = w.register_hook([hook_factor](const Tensor& g) { return g * hook_factor; });
        step(), step();
        CHECK(factor() == doctest::Approx(2 * hook_factor));
        w.remove_hook(number);
    }
    const int number = w.register_post_accumulate_grad_hook([](Tensor& leaf_tensor) { leaf_tensor.grad().mul_(7); });
    step(), step();
    CHECK(factor() == doctest::Approx(14));
    w.remove_hook(number);
    step(), step();
    CHECK(factor() == doctest::Approx(2));
    CHECK(step.replayed() == 5);
    for (const bool accumulate_hook : {false, true}) {
        Tensor v = random_tensor({9}, 1).set_requires_grad();
        int calls = 0;
        if (accumulate_hook) v.register_post_accumulate_grad_hook([&](Tensor&) { ++calls; });
        else v.register_hook([&](const Tensor&) { return ++calls, Tensor(); });
        auto fallback = capture([&] { sum(v).backward(); }, {.when_refused = WhenRefused::run, .hooks = false});
        for (int i = 0; i < 3; ++i) fallback();
        CHECK(calls == 3);
        CHECK(fallback.refused().find("a hook of a tensor") != std::string::npos);
    }
}

TEST_CASE("capture: gradients of a step: zeroed within it, outside, or never") {
    const Tensor x = random_tensor({17}, 1);
    for (const int method : {0, 1, 2}) {
        CAPTURE(method);
        Tensor w = random_tensor({17}, 2).set_requires_grad(), v = w.detach().clone().set_requires_grad();
        const auto step_of = [&](Tensor& leaf) {
            return [&] {
                if (method == 0) leaf.zero_grad();
                sum(square(leaf * x)).backward();
            };
        };
        const auto plain = step_of(v);
        auto captured = capture(step_of(w));
        for (int i = 0; i < 6; ++i) {
            if (method == 1) w.zero_grad(), v.zero_grad();
            plain();
            captured();
            REQUIRE(w.grad().defined());
            CHECK(w.grad().to_vector<float>() == v.grad().to_vector<float>());
            if (i != 3) continue;
            const NoGrad no_grad;
            w.mul_(0.5), v.mul_(0.5);
        }
        // With accumulation, the first call finds no gradient and the second one does.
        CHECK(captured.replayed() == (method == 2 ? 4 : 5));
    }
}

TEST_CASE("capture: a graph's saved tensors of a capture's results count as overwritten by a replay") {
    auto doubled_step = capture([](const Tensor& t) { return t * 2.0; });
    const Tensor x = random_tensor({5}, 1), w = random_tensor({5}, 2).set_requires_grad();
    const Tensor loss = sum(w * doubled_step(x));
    doubled_step(x);
    CHECK_THROWS_AS(loss.backward(), ValueError);
}

TEST_CASE("capture: releases its memory when none is left, and the step continues") {
    const Environment limit("DECLIVITY_MEMORY_LIMIT", "48M");
    const Device small = fresh_device();
    const Tensor x = random_tensor({1 << 20}, 1).to(small);
    const auto function = [](const Tensor& t) { return sum(square(softmax(reshape(t, {1024, 1024}), 1)), {1}); };
    auto step = capture(function);
    const auto expected = step(x).to_vector<float>();
    CHECK(step(x).to_vector<float>() == expected);
    CHECK(step.replayed() == 1);
    const auto list_memory = step.command_list().memory();
    CHECK(list_memory >= 4 << 20);
    bool summarised = false;
    for (const auto& row : small.memory_by_scope())
        summarised = summarised || (row.scope == "captured step" && row.bytes >= list_memory);
    CHECK(summarised);
    {
        // Allocates until the memory of the capture is needed.
        std::vector<Buffer> all;
        try {
            for (;;) all.emplace_back(small, 1 << 20);
        } catch (const OutOfMemory&) {
        }
        CHECK(all.size() >= 32);
        CHECK(step.command_list().stale());
        CHECK(step.command_list().memory() == 0);
        CHECK(!step.replays());
    }
    CHECK(step(x).to_vector<float>() == expected);
    CHECK(step(x).to_vector<float>() == expected);
    CHECK(step.replayed() == 2);
}

TEST_CASE("capture: its memory returns to the pool with its last owner") {
    const Device fresh = fresh_device();
    const Tensor x = random_tensor({1 << 16}, 1).to(fresh);
    const auto before = fresh.memory().in_use;
    std::optional<Tensor> result;
    {
        auto step = capture([](const Tensor& t) { return softmax(reshape(t, {256, 256}), 1); });
        result = step(x);
        for (int i = 0; i < 3; ++i) step(x);
        CHECK(fresh.memory().in_use > before);
    }
    CHECK(result->to_vector<float>().size() == 1 << 16);
    result.reset();
    CHECK(fresh.memory().in_use == before);
}

TEST_CASE("capture: concurrent captures and replays in several threads") {
    const Tensor shared_weight = random_tensor({6, 6}, 1);
    std::vector<std::thread> threads;
    std::vector<int> mismatches(4, 0);
    for (int number = 0; number < 4; ++number)
        threads.emplace_back([&, number] {
            const auto function = [&](const Tensor& t) {
                return relu(matmul(t, shared_weight)) * static_cast<double>(number + 1);
            };
            auto step = capture(function);
            for (int i = 0; i < 20; ++i) {
                const Tensor x = random_tensor({5, 6}, static_cast<std::uint64_t>(100 * number + i));
                const Tensor plain = function(x);
                mismatches[static_cast<std::size_t>(number)] += step(x).to_vector<float>() != plain.to_vector<float>();
            }
            mismatches[static_cast<std::size_t>(number)] += step.replayed() != 19;
        });
    for (auto& thread : threads) thread.join();
    CHECK(mismatches == std::vector<int>(4, 0));
}

TEST_CASE("capture: a captured step within another is a part of it") {
    auto inner = capture([](const Tensor& t) { return t * 3.0; });
    auto outer = capture([&](const Tensor& t) { return inner(t) + 1.0; });
    const Tensor a = full({4}, 1.0), b = full({4}, 2.0);
    CHECK(outer(a).to_vector<float>() == std::vector<float>(4, 4));
    CHECK(outer(b).to_vector<float>() == std::vector<float>(4, 7));
    CHECK(outer.replayed() == 1);
    CHECK(inner.replayed() == 0);
    CHECK(inner(b).to_vector<float>() == std::vector<float>(4, 6));
}
