// no-oclgrind: it calls functions twice; its kernels are those of other tests
//
// Activation checkpointing.
#include <declivity/autograd/checkpoint.hpp>

#include <functional>
#include <thread>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/nn/nn.hpp>
#include <declivity/ops/random.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>

#include <tests/support/values.hpp>
#include "tests/support/devices.hpp"

using namespace declivity;
using namespace declivity::test;

namespace {

/// A block with the difficult cases: an activation with two uses, a skip connection, dropout, running statistics.
struct Block : nn::Layer {
    explicit Block(std::int64_t channels)
        : first(add("first", nn::Conv2d(channels, channels, 3, {.padding = 1}))),
          norm(add("norm", nn::BatchNorm(channels))),
          second(add("second", nn::Conv2d(channels, channels, 3, {.padding = 1, .bias = false}))) {}
    Tensor forward(Tensor x) override {
        const Tensor h = dropout(relu(norm(first(x))), 0.3);
        return tanh(second(h) * h + x * 0.5);
    }
    nn::Conv2d& first;
    nn::BatchNorm& norm;
    nn::Conv2d& second;
};

struct Outcome {
    std::vector<std::vector<float>> values;
    ops::RandomPosition random;
};

enum class Mode { plain, checkpointed, nested };

/// Loss, gradients and statistics of two steps of a network whose middle blocks share a weight with layers outside of
/// them.
Outcome train(Mode mode) {
    manual_seed(7);
    Block block_a(4), block_b(4);
    Tensor weight = random_tensor({4, 4, 1, 1}, 3).set_requires_grad(),
           x = random_tensor({3, 4, 7, 5}, 4).set_requires_grad();
    Outcome out;
    const auto block = [&](Block& block_module, const Tensor& in) { return block_module(conv2d(in, weight)); };
    const auto both = [&](const Tensor& in) {
        const Tensor first_result = mode == Mode::nested
                                        ? checkpoint([&](const Tensor& t) { return block(block_a, t); }, in)
                                        : block(block_a, in);
        return block(block_b, first_result) + first_result;
    };
    for (int step = 0; step < 2; ++step) {
        const Tensor in = conv2d(x, weight) * 2.0;
        const Tensor middle = mode == Mode::plain ? both(in) : checkpoint(both, in);
        const Tensor loss = mean(square(conv2d(middle, weight) + in));
        loss.backward();
        out.values.push_back(loss.to_vector<float>());
    }
    for (const Tensor& tensor : {x, weight}) out.values.push_back(tensor.grad().to_vector<float>());
    for (Block* block_module : {&block_a, &block_b}) {
        for (const auto& parameter : block_module->parameters())
            out.values.push_back(parameter.grad().to_vector<float>());
        for (const auto& [name, tensor] : block_module->named_buffers())
            if (tensor.dtype() == DType::f32) out.values.push_back(tensor.to_vector<float>());
    }
    out.random = ops::random_position(x.device());
    return out;
}

}  // namespace

TEST_CASE("checkpoint: losses, gradients, running statistics and random numbers are identical bit for bit") {
    const Outcome plain = train(Mode::plain);
    CHECK(plain.values.size() >= 14);
    for (const Mode mode : {Mode::checkpointed, Mode::nested}) {
        CAPTURE(static_cast<int>(mode));
        const Outcome other = train(mode);
        CHECK(other.values == plain.values);
        CHECK(other.random.offset == plain.random.offset);
    }
}

TEST_CASE("checkpoint: grad() of tensors within it, and double backward") {
    if (widest() != DType::f64) return;
    const Tensor x = random_tensor({5, 3}, 1, DType::f64).set_requires_grad(),
                 w = random_tensor({5, 3}, 2, DType::f64).set_requires_grad();
    const Tensor unused = random_tensor({2}, 3, DType::f64).set_requires_grad();
    const auto function = [&](const Tensor& in) { return in * in * w + w * w * 0.5; };
    const auto expected = grad({sum(function(x) * x)}, {w, x});
    const auto got = grad({sum(checkpoint(function, x) * x)}, {w, x});
    for (std::size_t i = 0; i < 2; ++i) CHECK(got[i].to_vector<double>() == expected[i].to_vector<double>());
    CHECK_THROWS_AS(grad({sum(checkpoint(function, x))}, {unused}), ValueError);
    CHECK(values(grad({sum(checkpoint(function, x))}, {w})[0]) == values(grad({sum(function(x))}, {w})[0]));

    const auto second = [&](const Tensor& y) {
        const Tensor first = grad({sum(y * x)}, {x}, {.create_graph = true})[0];
        return grad({sum(first * first)}, {x, w});
    };
    const auto plain = second(function(x)), again = second(checkpoint(function, x));
    for (std::size_t i = 0; i < 2; ++i) CHECK(again[i].to_vector<double>() == plain[i].to_vector<double>());
}

TEST_CASE("checkpoint: several tensors, some without gradients") {
    const Tensor a = random_tensor({4}, 1).set_requires_grad(), b = random_tensor({4}, 2);
    const auto function = [&](const std::vector<Tensor>& in) {
        return std::vector{in[0] * in[1], in[1] + 1.0, in[0], exp(in[0])};
    };
    const auto plain = function({a, b});
    const auto outputs = checkpoint(function, {a, b});
    REQUIRE(outputs.size() == 4);
    for (std::size_t i = 0; i < 4; ++i) {
        CHECK(outputs[i].to_vector<float>() == plain[i].to_vector<float>());
        CHECK(outputs[i].requires_grad() == plain[i].requires_grad());
    }
    const auto gradient = [&](const std::vector<Tensor>& from) {
        return grad({sum(from[0] + from[2] * from[1])}, {a})[0].to_vector<float>();
    };
    CHECK(gradient(outputs) == gradient(plain));  // the last one is not used
    CHECK_FALSE(checkpoint(function, {b, b})[3].requires_grad());
    const NoGrad no_grad;
    CHECK_FALSE(checkpoint(function, {a, b})[0].requires_grad());
}

TEST_CASE("checkpoint: duplicate inputs, leaves and results give the same bits") {
    const Tensor a = random_tensor({300}, 1).set_requires_grad(), w = random_tensor({300}, 2).set_requires_grad();
    const auto gradients = [&](const std::vector<Tensor>& function_inputs) {
        std::vector<std::vector<float>> out;
        for (const Tensor& tensor :
             grad({sum(function_inputs[0] * function_inputs[1] * 0.3 + function_inputs[2] * function_inputs[3])},
                  {a, w}))
            out.push_back(tensor.to_vector<float>());
        return out;
    };
    const auto check = [&](const std::function<std::vector<Tensor>(const std::vector<Tensor>&)>& function) {
        const auto gradients_with = [&](bool checkpointed) {
            const Tensor x = tanh(a * 1.7);
            const auto out = checkpointed ? checkpoint(function, std::vector{x}) : function({x});
            return gradients({out[0], out[1], x * 0.7, out[2]});
        };
        CHECK(gradients_with(true) == gradients_with(false));
    };
    check([&](const std::vector<Tensor>& in) { return std::vector{in[0], in[0] * w, w}; });
    check([&](const std::vector<Tensor>& in) {
        const Tensor h = sigmoid(in[0] * w);
        return std::vector{h, h, h * w};
    });
}

TEST_CASE("checkpoint: fused reductions and normalisation give the same bits") {
    const Tensor a = random_tensor({40, 77}, 1).set_requires_grad(), b = random_tensor({40, 77}, 2).set_requires_grad();
    const Tensor w = random_tensor({77}, 3).set_requires_grad(),
                 t[] = {random_tensor({40, 77}, 4), random_tensor({40, 77}, 5), random_tensor({40, 77}, 6),
                        random_tensor({40, 77}, 7)};
    const auto check = [&](const std::function<Tensor(const Tensor&)>& function, const auto& loss) {
        std::vector<std::vector<float>> got[2];
        for (const int checkpointed : {0, 1}) {
            const Tensor x = a * b;  // pending
            for (const Tensor& tensor :
                 grad({loss(checkpointed == 1 ? checkpoint(function, x) : function(x))}, {a, b, w}))
                got[checkpointed].push_back(tensor.to_vector<float>());
        }
        CHECK(got[0] == got[1]);
    };
    check([&](const Tensor& x) { return x * w * sum(x, {1}, true); }, [](const Tensor& y) { return sum(square(y)); });
    check([&](const Tensor& x) { return sigmoid(batch_norm(x, w, {}, {}, {})); },
          [&](const Tensor& y) { return sum(y * t[0] * t[1] * t[2] * t[3]); });
}

TEST_CASE("checkpoint: threads with random numbers do not disturb each other's recomputation") {
    const auto wrong = [] {
        int count = 0;
        for (int round = 0; round < 60; ++round) {
            const Tensor x = ones({64}).set_requires_grad();
            const Tensor y = checkpoint(
                [](const Tensor& in) {
                    const Tensor h = dropout(in, 0.5);
                    (void)h.view();
                    std::this_thread::yield();
                    return dropout(h, 0.5);
                },
                x);
            sum(y).backward();
            count += x.grad().to_vector<float>() != y.to_vector<float>();
        }
        return count;
    };
    int first = -1, second = -1;
    std::thread other([&] { first = wrong(); });
    second = wrong();
    other.join();
    CHECK(first == 0);
    CHECK(second == 0);
}

TEST_CASE("checkpoint: stores only its inputs") {
    const Device device = default_device();
    const auto use = [&](bool checkpointed) {
        const Tensor x = random_tensor({64, 64}, 1).set_requires_grad();
        const auto function = [](const Tensor& in) { return tanh(sigmoid(tanh(sigmoid(tanh(sigmoid(in)))))); };
        device.synchronize();
        const auto before = device.memory().in_use;
        const Tensor y = checkpointed ? checkpoint(function, x) : function(x);
        (void)y.value().view();
        return device.memory().in_use - before;
    };
    CHECK(use(false) > 3 * 64 * 64 * 4);
    CHECK(use(true) == 64 * 64 * 4);  // the result
}

TEST_CASE("checkpoint: a graph is released, or retained") {
    const Tensor x = random_tensor({3}, 1).set_requires_grad();
    const Tensor y = checkpoint([](const Tensor& in) { return sum(in * in); }, x);
    y.backward({}, true);
    y.backward();
    CHECK(difference(x.grad(),
                     [&] {
                         auto v = values(x);
                         for (double& value : v) value *= 4;
                         return v;
                     }(),
                     {1e-6, 1e-6}) == "");
    CHECK_THROWS_AS(y.backward(), ValueError);
}

TEST_CASE("checkpoint: errors") {
    CHECK_THROWS_WITH_AS((void)checkpoint(std::function<Tensor(const Tensor&)>(), zeros({2})),
                         "checkpoint: expected a function, got none", ValueError);
    CHECK_THROWS_WITH_AS((void)checkpoint([](const Tensor&) { return Tensor(); }, zeros({2})),
                         "checkpoint: expected a function that returns tensors, got an undefined one", ValueError);
    Tensor x = random_tensor({3}, 1).set_requires_grad();
    {
        Tensor scale = random_tensor({3}, 2).set_requires_grad();
        const Tensor y = sum(checkpoint([&](const Tensor& in) { return in * scale; }, x));
        const NoGrad no_grad;
        scale.mul_(2);
        CHECK_THROWS_AS(y.backward(), ValueError);  // the recomputation would give another result
    }
    {
        Tensor scale = random_tensor({3}, 2).set_requires_grad();
        const Tensor y = sum(checkpoint([&](const Tensor& in) { return in * scale; }, x));
        scale.assign(random_tensor({3}, 5));
        CHECK_THROWS_WITH_AS(y.backward(),
                             "checkpoint: a tensor of shape [3] was replaced by assign() after the first "
                             "call, and the recomputation would use the new elements",
                             ValueError);
    }
    {
        int draws = 1;
        const Tensor y = sum(checkpoint(
            [&](const Tensor& in) {
                Tensor h = in;
                for (int i = 0; i < draws; ++i) h = dropout(h, 0.1);
                return h;
            },
            x));
        draws = 2;
        CHECK_THROWS_WITH_AS(
            y.backward(),
            "random numbers: expected the same calls when a checkpointed function is recomputed, got others (called "
            "by dropout)",
            ValueError);
    }
    int calls = 0;
    const Tensor y = sum(checkpoint(
        [&](const Tensor& in) {
            return ++calls == 1 ? in * 2.0 : reshape(in, {3, 1});
        },
        x));
    CHECK_THROWS_WITH_AS(
        y.backward(),
        "checkpoint: expected a function that returns the same when it is recomputed, got results of other shapes",
        ValueError);
    // A failure leaves no state behind.
    const Tensor z = sum(checkpoint(
        [&](const Tensor& in) {
            if (++calls == 4) throw std::runtime_error("no");
            return dropout(in);
        },
        x));
    CHECK_THROWS_WITH(z.backward(), "no");
    CHECK(grad_enabled());
    const auto position = ops::random_position(x.device()).offset;
    (void)dropout(x);
    CHECK(ops::random_position(x.device()).offset == position + 1);
}
