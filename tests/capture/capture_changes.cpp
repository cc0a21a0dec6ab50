// no-oclgrind: it replays kernels that other tests launch there
//
// Captured steps whose tensors, weights or commands change between calls.
#include <declivity/capture/capture.hpp>

#include <memory>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/nn/nn.hpp>
#include <declivity/optim/sgd.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>

#include <tests/support/values.hpp>

using namespace declivity;
using namespace declivity::test;

TEST_CASE("capture changes: a step is captured again when its tensors are replaced") {
    Tensor w = random_tensor({9}, 1).set_requires_grad();
    const Tensor x = random_tensor({9}, 2);
    const auto function = [&](const Tensor& t) {
        w.zero_grad();
        const Tensor loss = sum(w * t);
        if (w.requires_grad()) loss.backward();
        return loss.detach();
    };
    auto step = capture(function);
    const auto check_same = [&] { CHECK(step(x).to_vector<float>() == function(x).to_vector<float>()); };
    check_same(), check_same();
    CHECK(step.replayed() == 1);
    w.assign(random_tensor({9}, 3));
    CHECK(!step.replays());
    check_same(), check_same();
    CHECK(step.replayed() == 2);
    w.set_requires_grad(false);
    check_same(), check_same();
    CHECK(!w.grad().defined());
    CHECK(step.replayed() == 3);
    step.reset();
    CHECK(!step.command_list());
    check_same();
    CHECK(step.replayed() == 3);
}

TEST_CASE("capture changes: packed weights are packed again when they were written") {
    nn::Sequential model(nn::Conv2d(3, 32, 3, {.padding = 1}), nn::BatchNorm(32), nn::ReLU(),
                         nn::Conv2d(32, 64, 3, {.padding = 1}));
    model.eval();
    const NoGrad no_grad;
    auto infer = capture([&](const Tensor& t) { return model(t); });
    for (int number = 0; number < 8; ++number) {
        const Tensor x = random_tensor({2, 3, 16, 16}, 10 + static_cast<std::uint64_t>(number));
        CHECK(infer(x).to_vector<float>() == model(x).to_vector<float>());
        if (number == 3)
            for (const Tensor& tensor : model.parameters()) Tensor(tensor).mul_(1.5);
        if (number == 5) Tensor(model.named_buffers()[0].tensor).fill_(0.25);
    }
    CHECK(infer.replayed() >= 4);
    CHECK(infer.replayed() <= 6);
}

TEST_CASE("capture changes: a step that writes weights and uses them as constants matches eager calls") {
    const Tensor x = random_tensor({2, 32, 16, 16}, 1);
    const auto outcome = [&](bool captured, bool before_as_well) {
        Tensor weight = random_tensor({64, 32, 3, 3}, 2).set_requires_grad();
        const auto function = [&](const Tensor& t) {
            const NoGrad no_grad;
            Tensor before = before_as_well ? conv2d(t, weight) : t.clone();
            weight.mul_(0.9);
            return conv2d(t, weight) + mean(before);
        };
        auto step = capture(function, {.when_refused = WhenRefused::run});
        std::vector<std::vector<float>> out;
        for (int i = 0; i < 9; ++i) out.push_back((captured ? step(x) : function(x)).to_vector<float>());
        // Weights overwritten in the same step would have to be packed each time. simt kernels use weights unpacked.
        const bool prepares = default_device().kernel_style() == KernelStyle::simd;
        CHECK(step.replayed() == (captured && !(before_as_well && prepares) ? 8 : 0));
        return out;
    };
    for (const bool before_as_well : {true, false})
        CHECK(outcome(true, before_as_well) == outcome(false, before_as_well));
}

TEST_CASE("capture changes: eager optimizer steps between replays are harmless, and memory in a table is kept alive") {
    const Tensor x = random_tensor({7}, 1);
    struct TrainingSetup {
        Tensor a = random_tensor({7}, 2).set_requires_grad(), b = random_tensor({7}, 3).set_requires_grad();
        optim::SGD optimizer{{a, b}, {.lr = 0.1, .momentum = 0.9}};
        void step(const Tensor& in) {
            optimizer.zero_grad();
            sum(square(a * in) + b).backward();
            optimizer.step();
        }
        void other(const Tensor& in) {  // gradients have other addresses, so that the table differs
            optimizer.zero_grad();
            sum(a * in + b).backward();
            optimizer.step();
        }
    };
    TrainingSetup plain;
    auto captured = std::make_unique<TrainingSetup>();
    auto step = std::make_unique<CapturedAction>(capture([&] { captured->step(x); }));
    for (int i = 0; i < 4; ++i) {
        plain.step(x), (*step)();
        plain.other(x), captured->other(x);
        plain.step(x), (*step)();
    }
    CHECK(step->replayed() >= 6);
    CHECK(captured->a.to_vector<float>() == plain.a.to_vector<float>());
    CHECK(captured->b.to_vector<float>() == plain.b.to_vector<float>());
    const CommandList retained_list = step->command_list();
    step.reset();
    captured.reset();
    std::vector<Tensor> later_tensors;
    std::vector<std::vector<float>> before;
    for (std::uint64_t i = 0; i < 200; ++i)
        later_tensors.push_back(random_tensor({7}, 100 + i)), before.push_back(later_tensors.back().to_vector<float>());
    retained_list.replay();
    for (std::size_t i = 0; i < later_tensors.size(); ++i) CHECK(later_tensors[i].to_vector<float>() == before[i]);
}

TEST_CASE("capture changes: a step with different commands each time is detected") {
    int calls = 0;
    const auto counts = [&](const Tensor& t) { return t * static_cast<double>(++calls); };
    auto step = capture(counts, {.when_refused = WhenRefused::run, .warmup_captures = 2});
    const Tensor ones = full({3}, 1.0);
    for (int i = 1; i <= 9; ++i) CHECK(step(ones).to_vector<float>() == std::vector<float>(3, static_cast<float>(i)));
    CHECK(step.refused().find("differ from call to call") != std::string::npos);
}

TEST_CASE("capture changes: with confirmation a step may change from time to time") {
    double factor = 1;
    auto step = capture([&](const Tensor& t) { return t * factor; }, {.warmup_captures = 2});
    const Tensor ones = full({3}, 1.0);
    const auto first = [&] { return step(ones).to_vector<float>()[0]; };
    for (int i = 0; i < 3; ++i) CHECK(first() == 1);
    CHECK(step.replayed() == 1);
    factor = 2;
    CHECK(first() == 1);  // no confirmation
    CHECK(step.replayed() == 2);
    step.confirm();
    for (int i = 0; i < 3; ++i) CHECK(first() == 2);
    CHECK(step.replayed() == 3);
    step.confirm();
    for (int i = 0; i < 2; ++i) CHECK(first() == 2);
    CHECK(step.replayed() == 4);
    CHECK(step.refused().empty());
}
