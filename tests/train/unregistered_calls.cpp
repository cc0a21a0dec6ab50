// A trainer refuses layers that forward() calls without being its children: they would silently not be trained.
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/data/dataset.hpp>
#include <declivity/data/random.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/nn/nn.hpp>
#include <declivity/optim/sgd.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <declivity/train/trainer.hpp>
#include <doctest/doctest.h>

#include <tests/support/values.hpp>
#include "tests/support/captured_stderr.hpp"

using namespace declivity;

namespace {

data::InMemoryDataset points() {
    data::Random random(4, 0, 0, data::Purpose::user);
    std::vector<float> values;
    std::vector<std::int64_t> labels;
    for (std::int64_t i = 0; i < 32; ++i) {
        for (int k = 0; k < 4; ++k) values.push_back(random.normal());
        labels.push_back(i % 3);
    }
    return {{4}, std::move(values), std::move(labels), 3};
}

struct Net : nn::Layer {
    nn::Linear& a = add("a", nn::Linear(4, 4));
    nn::Linear b{4, 3};
    Tensor forward(Tensor x) override { return b(relu(a(x))); }
    [[nodiscard]] std::string type_name() const override { return "Net"; }
};

/// A network next to one that is trained separately.
struct CallsOther : nn::Layer {
    explicit CallsOther(nn::Layer& other) : other_(other) {}
    nn::Linear& linear = add("own", nn::Linear(4, 3));
    Tensor forward(Tensor x) override { return linear(x) + other_(x); }
    nn::Layer& other_;
};

void fit(nn::Layer& model) {
    optim::SGD optimizer(model.parameters(), {.lr = 0.1});
    train::Trainer trainer(model, optimizer);
    const data::InMemoryDataset set = points();
    trainer.fit(set, {.epochs = 2, .batch = 8, .quiet = true});
    (void)trainer.evaluate(set);
}

}  // namespace

TEST_CASE("unregistered calls: fit names a layer that is a plain member, and trains nothing") {
    Net net;
    const auto before = test::values(net.a.weight());
    for (int i = 0; i < 2; ++i)
        CHECK_THROWS_WITH_AS(fit(net),
                             doctest::Contains("Net: expected the modules that forward() calls to be its children, got "
                                               "Linear, which is not"),
                             ValueError);
    CHECK(test::values(net.a.weight()) == before);
    net.b.set_external();  // intentional
    CHECK(test::stderr_of([&] { fit(net); }) == "");
    CHECK(test::values(net.a.weight()) != before);
}

TEST_CASE("unregistered calls: fit accepts frozen networks, and all modules that it trains itself") {
    nn::Sequential frozen(nn::Linear(4, 3), nn::Dropout(0.5));
    frozen.eval();
    for (Tensor& parameter : frozen.parameters()) parameter.set_requires_grad(false);
    CallsOther teacher(frozen);
    CHECK_NOTHROW(fit(teacher));

    nn::Sequential first(nn::Linear(4, 3));
    CallsOther second(first);
    CHECK_THROWS_AS(fit(second), ValueError);
    optim::SGD first_optimizer(first.parameters(), {.lr = 0.1}), second_optimizer(second.parameters(), {.lr = 0.1});
    train::Trainer trainer({.modules = {{"first", first}, {"second", second}},
                            .optimizers = {{"first", first_optimizer}, {"second", second_optimizer}}},
                           [&](train::Step& step, const data::Batch& batch) {
                               first_optimizer.zero_grad();
                               second_optimizer.zero_grad();
                               const Tensor loss = cross_entropy(second(batch["features"]), batch["label"]);
                               step.backward(loss);
                               first_optimizer.step();
                               second_optimizer.step();
                           });
    const data::InMemoryDataset set = points();
    CHECK(test::stderr_of([&] { trainer.fit(set, {.epochs = 1, .batch = 8, .quiet = true}); }) == "");
}
