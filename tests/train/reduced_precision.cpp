// Networks with f16 or bf16 parameters and activations: they learn like f32, with less memory.
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include <declivity/declivity.hpp>
#include <doctest/doctest.h>
#include <tests/support/devices.hpp>
#include <tests/support/gradient_check.hpp>
#include <tests/support/skip.hpp>
#include <tests/support/values.hpp>

using namespace declivity;
using namespace declivity::test;

namespace {

using Values = std::vector<double>;

std::unique_ptr<nn::Sequential> network(DType dtype) {
    manual_seed(3);
    auto model = std::make_unique<nn::Sequential>(nn::Conv2d(1, 8, 3, {.padding = 1}), nn::BatchNorm2d(8), nn::ReLU(),
                                                  nn::MaxPool2d(2), nn::Conv2d(8, 12, 3), nn::ReLU(), nn::AvgPool2d(2),
                                                  nn::Flatten(), nn::Linear(12 * 6 * 6, 10));
    model->to(dtype);
    return model;
}

/// Accuracy on other digits after six epochs.
double learned(DType dtype, bool adam, train::Replays* replays = nullptr) {
    const data::SyntheticDigits digits(600, 1), others(300, 2);
    const auto model = network(dtype);
    std::unique_ptr<optim::Optimizer> optimizer;
    if (adam) optimizer = std::make_unique<optim::Adam>(model->parameters(), optim::AdamOptions{.lr = 3e-3});
    else optimizer = std::make_unique<optim::SGD>(model->parameters(), optim::SGDOptions{.lr = 0.05, .momentum = 0.9});
    train::Trainer trainer(*model, *optimizer);
    trainer.fit(digits, {.epochs = 6, .batch = 32, .seed = 5, .clip_norm = 5});
    if (replays != nullptr) *replays = trainer.replays();
    return trainer.evaluate(others)["accuracy"];
}

std::vector<double> master_of(const optim::Optimizer& optimizer) {
    for (const auto& [name, tensor] : optimizer.state_dict())
        if (name.ends_with(".master")) return values(tensor);
    return {};
}

}  // namespace

TEST_CASE("reduced precision: convolution and pooling match f32 on the same numbers, forward and backward") {
    for (const DType dtype : {DType::f16, DType::bf16}) {
        CAPTURE(name_of(dtype));
        const double unit = dtype == DType::f16 ? 0x1p-11 : 0x1p-8;
        const auto run = [&](DType in) {
            std::vector<Tensor> leaves{random_tensor({2, 3, 9, 7}, 1, dtype).to(in),
                                       random_tensor({4, 3, 3, 3}, 2, dtype).to(in),
                                       random_tensor({4}, 3, dtype).to(in)};
            for (Tensor& leaf : leaves) leaf = leaf.detach().clone().set_requires_grad();
            const Tensor y = relu(conv2d(leaves[0], leaves[1], leaves[2], {.stride = 1, .padding = 1}));
            const Tensor z = max_pool2d(y, {.kernel_size = 2}), a = avg_pool2d(y, {.kernel_size = 3, .stride = 2});
            CHECK(y.dtype() == in);
            CHECK(z.dtype() == in);
            sum(z.to(DType::f32) * random_tensor(z.shape(), 4) + 0.0).backward();
            const Values first = values(leaves[1].grad());
            for (Tensor& leaf : leaves) leaf.zero_grad();
            const Tensor again = conv2d(leaves[0], leaves[1], leaves[2], {.stride = 2});
            sum(again * random_tensor(again.shape(), 5).to(in)).backward();
            std::vector<Values> out{values(y), values(z), values(a), first};
            for (const Tensor& leaf : leaves) {
                CHECK(leaf.grad().dtype() == in);
                out.push_back(values(leaf.grad()));
            }
            return out;
        };
        const auto reduced = run(dtype), full_precision = run(DType::f32);
        for (std::size_t i = 0; i < reduced.size(); ++i) {
            CAPTURE(i);
            CHECK(difference(reduced[i], full_precision[i], {.absolute = 40 * unit, .relative = 8 * unit}) == "");
        }
    }
}

TEST_CASE("reduced precision: optimizers accumulate updates that are too small for the parameter") {
    for (const DType dtype : {DType::f16, DType::bf16}) {
        Tensor parameter = ones({3}, {dtype}).set_requires_grad();
        optim::SGD optimizer({parameter}, {.lr = 1e-4});
        for (int step = 0; step < 200; ++step) {
            optimizer.zero_grad();
            sum(parameter).backward();
            optimizer.step();
        }
        // 1 - 1e-4 rounds to 1 in either type.
        CHECK(std::abs(values(parameter)[0] - 0.98) < 0.005);
        // Its state continues from a file; an external write to a parameter counts.
        Tensor other = parameter.detach().clone().set_requires_grad();
        optim::SGD resumed({other}, {.lr = 1e-4});
        resumed.load_state_dict(optimizer.state_dict());
        for (int step = 0; step < 7; ++step)
            for (auto* optimizer_case : {&optimizer, &resumed}) {
                Tensor& owned = optimizer_case == &optimizer ? parameter : other;
                owned.set_grad(ones({3}, {dtype}));
                optimizer_case->step();
            }
        CHECK(values(parameter) == values(other));
        CHECK(master_of(optimizer) == master_of(resumed));
        {
            const NoGrad no_grad;
            parameter.fill_(5);
        }
        parameter.set_grad(ones({3}, {dtype}));
        optimizer.step();
        CHECK(std::abs(master_of(optimizer)[0] - 4.9999) < 1e-6);
        parameter.set_grad(full({3}, 3, {dtype}));
        CHECK(optim::clip_grad_norm({parameter}, 1).item<float>() == doctest::Approx(std::sqrt(27.0)));
        CHECK(values(parameter.grad())[0] == doctest::Approx(1 / std::sqrt(3.0)).epsilon(0.01));
    }
}

TEST_CASE("reduced precision: a network learns as well, with captured steps") {
    if (small_cases()) return;
    const double full_precision = learned(DType::f32, false);
    CHECK(full_precision > 0.8);
    for (const DType dtype : {DType::f16, DType::bf16})
        for (const bool adam : {false, true}) {
            CAPTURE(name_of(dtype));
            CAPTURE(adam);
            train::Replays replays;
            CHECK(learned(dtype, adam, &replays) > full_precision - 0.06);
            CHECK(replays.refused == "");
        }
}
