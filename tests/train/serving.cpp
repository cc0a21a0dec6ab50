// no-oclgrind: several threads at once
//
// Inference while other threads train or reload the model: each result uses the parameters from before or after a step,
// and no stale state remains.
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/capture/capture.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/nn/nn.hpp>
#include <declivity/optim/adam.hpp>
#include <declivity/optim/sgd.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>
#include <tests/support/devices.hpp>
#include <tests/support/blocked_build.hpp>
#include <tests/support/threads.hpp>
#include <tests/support/values.hpp>

#include "ops/engine/launch_lock.hpp"

using namespace declivity;

namespace {

using Floats = std::vector<float>;

struct Recurrent : nn::Layer {
    Tensor forward(Tensor x) override { return out(lstm(x).y); }
    nn::LSTM& lstm = add("lstm", nn::LSTM(24, 32, {.batch_first = true}));
    nn::Linear& out = add("out", nn::Linear(32, 640));
};

/// A model whose weights simd kernels pack or transform, and its input.
struct Case {
    std::string name;
    std::function<std::unique_ptr<nn::Layer>()> make;
    Shape x;
};

std::vector<Case> cases() {
    return {{"linear",
             [] { return std::make_unique<nn::Sequential>(nn::Linear(150, 140), nn::ReLU(), nn::Linear(140, 130)); },
             {9, 150}},
            {"convolution",
             [] {
                 return std::make_unique<nn::Sequential>(nn::Conv2d(32, 48, 3, {.padding = 1}), nn::ReLU(),
                                                         nn::Conv2d(48, 32, 3, {.padding = 1}));
             },
             {2, 32, 16, 16}},
            {"recurrent", [] { return std::make_unique<Recurrent>(); }, {6, 5, 24}}};
}

Floats output_of(nn::Layer& model, const Tensor& x) {
    const NoGrad no_grad;
    return model(x).to_vector<float>();
}

/// The result of a separate model with the same parameters.
Floats fresh_output(const Case& c, nn::Layer& model, const Tensor& x) {
    const auto fresh = c.make();
    fresh->load_state_dict(model.state_dict());
    return output_of(*fresh, x);
}

/// An optimizer whose kernel no other test compiles.
struct Unusual : optim::Optimizer {
    explicit Unusual(const optim::Parameters& parameters) : Optimizer("Unusual") { add(parameters, 0.5, {}); }
    void update(std::size_t, optim::Update& x) const override {
        x.parameter = x.parameter - x.lr * (atan(x.gradient) + 0.25 * log1p(abs(x.parameter)) + 0.125);
    }
};

void race(const Case& c, int rounds, bool yielding) {
    CAPTURE(c.name);
    const auto model = c.make();
    const Tensor x = test::random_tensor(c.x, 7);
    optim::SGD optimizer(model->parameters(), {.lr = 1e-3, .momentum = 0.5});
    const auto train = [&](int steps) {
        for (int i = 0; i < steps; ++i) {
            optimizer.zero_grad();
            mean(square((*model)(x))).backward();
            optimizer.step();
        }
    };
    StateDict first;
    for (const NamedTensor& tensor : model->state_dict()) first.push_back({tensor.name, tensor.tensor.clone()});
    train(1);
    for (int round = 0; round < rounds; ++round) {
        CAPTURE(round);
        std::atomic<bool> finished{false};
        const auto moments = yielding ? std::make_unique<ops::LaunchLock::YieldOnLaunch>() : nullptr;
        const auto faults = test::run_in_threads(3, [&](int number) -> std::string {
            if (number == 2) {
                if (round % 3 == 2) model->load_state_dict(first);
                train(4);
                finished = true;
            } else {
                do (void)output_of(*model, x);
                while (!finished && !test::small_cases());
            }
            return "";
        });
        for (const std::string& fault : faults) CHECK(fault == "");
        const Floats expected = fresh_output(c, *model, x);
        for (int call = 0; call < 3; ++call) REQUIRE(output_of(*model, x) == expected);
    }
}

}  // namespace

TEST_CASE("serving: after a race with training and reloading, results use the current parameters") {
    const int rounds = test::small_cases() ? 2 : 25;
    for (const Case& c : cases()) {
        race(c, rounds, false);
        race(c, rounds, true);
    }
}

TEST_CASE("serving: values derived from weights during a step do not outlive the step") {
    if (test::small_cases()) return;
    const Case c = cases()[0];
    const auto model = c.make();
    const Tensor x = test::random_tensor(c.x, 7);
    for (int call = 0; call < 3; ++call) (void)output_of(*model, x);  // all of its kernels are compiled
    Unusual optimizer(model->parameters());
    mean(square((*model)(x))).backward();
    {
        const test::BlockedBuild build;
        std::thread step([&] { optimizer.step(); });
        build.wait();  // the step has bumped the versions of its outputs, and compiles
        for (int call = 0; call < 4; ++call) (void)output_of(*model, x);
        build.release();
        step.join();
    }
    const Floats expected = fresh_output(c, *model, x);
    for (int call = 0; call < 3; ++call) CHECK(output_of(*model, x) == expected);
}

TEST_CASE("serving: after a race with training, a captured inference uses the current parameters") {
    if (test::small_cases()) return;
    for (const Case& c : cases()) {
        CAPTURE(c.name);
        const auto model = c.make();
        const Tensor x = test::random_tensor(c.x, 7);
        optim::Adam optimizer(model->parameters(), {.lr = 1e-3});
        for (int round = 0; round < 8; ++round) {
            auto captured = capture([&](const Tensor& input) {
                const NoGrad no_grad;
                return (*model)(input);
            });
            std::atomic<bool> finished{false};
            const ops::LaunchLock::YieldOnLaunch yielding;
            const auto faults = test::run_in_threads(2, [&](int number) -> std::string {
                if (number == 1) {
                    for (int i = 0; i < 4; ++i) {
                        optimizer.zero_grad();
                        mean(square((*model)(x))).backward();
                        optimizer.step();
                    }
                    finished = true;
                } else {
                    while (!finished) (void)captured(x).to_vector<float>();
                }
                return "";
            });
            for (const std::string& fault : faults) CHECK(fault == "");
            const Floats expected = fresh_output(c, *model, x);
            for (int call = 0; call < 3; ++call) REQUIRE(captured(x).to_vector<float>() == expected);
        }
    }
}
