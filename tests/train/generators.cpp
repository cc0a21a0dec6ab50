// no-oclgrind: whole trainings; the tests of layers 1 to 3 run under it
// Trainings with user-created generators resume bit for bit, and a mismatched checkpoint changes nothing.
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include <declivity/data/random.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/io/safetensors.hpp>
#include <declivity/nn/nn.hpp>
#include <declivity/optim/adam.hpp>
#include <declivity/optim/sgd.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <declivity/train/callbacks.hpp>
#include <declivity/train/trainer.hpp>
#include <doctest/doctest.h>

#include <tests/support/values.hpp>
#include <tests/train/training.hpp>
#include "tests/support/temp_folder.hpp"

using namespace declivity;

namespace {

data::TensorDataset random_points(std::int64_t count) {
    data::Random random(1, 0, 0, data::Purpose::user);
    std::vector<float> x;
    std::vector<std::int64_t> z;
    for (std::int64_t i = 0; i < count; ++i) {
        for (int k = 0; k < 4; ++k) x.push_back(random.normal());
        z.push_back(x.back() + x[x.size() - 2] > 0 ? 1 : 0);
    }
    return data::TensorDataset({{"x", io::HostArray::of({count, 4}, x)}, {"z", io::HostArray::of({count}, z)}});
}

/// Dropout uses one generator, noise on the outputs another, in a user-defined step or in the model of a trainer.
struct GeneratorTraining {
    Generator masks{3}, noise{4};
    nn::Sequential model;
    optim::Adam optimizer;
    std::unique_ptr<train::Trainer> trainer;

    explicit GeneratorTraining(bool own_step)
        : model((manual_seed(2),
                 nn::Sequential(nn::Linear(4, 9), nn::ReLU(), nn::Dropout(0.5, masks), nn::Linear(9, 2)))),
          optimizer(model.parameters(), {.lr = 0.01}) {
        const std::vector<train::NamedGenerator> generators{{"noise", noise}, {"masks", masks}};
        if (own_step)
            trainer = std::make_unique<train::Trainer>(
                train::Parts{
                    .modules = {{"model", model}}, .optimizers = {{"optimizer", optimizer}}, .generators = generators},
                [this](train::Step& step, const data::Batch& batch) {
                    optimizer.zero_grad();
                    const Tensor scores = noisy(model(batch["x"]));
                    step.backward(cross_entropy(scores, batch["z"]));
                    optimizer.step();
                });
        else
            trainer = std::make_unique<train::Trainer>(
                model, optimizer,
                [this](const Tensor& output, const Tensor& target) { return cross_entropy(noisy(output), target); },
                train::ModelOptions{.generators = generators});
    }
    Tensor noisy(const Tensor& x) const { return x + randn_like(x, noise) * 0.1; }
    [[nodiscard]] std::vector<double> weights() const {
        std::vector<double> all;
        for (const auto& [name, tensor] : model.state_dict())
            for (const double value : test::values(tensor)) all.push_back(value);
        for (const Generator& generator : {masks, noise})
            all.push_back(static_cast<double>(generator.seed())),
                all.push_back(static_cast<double>(generator.position()));
        return all;
    }
};

}  // namespace

TEST_CASE("checkpoints: user-created generators continue at their position, in the middle of an epoch") {
    const auto set = random_points(50);
    for (const bool own_step : {false, true})
        for (const bool record : {false, true}) {
            CAPTURE(own_step);
            CAPTURE(record);
            train::FitOptions options{.epochs = 3, .batch = 8, .quiet = true, .capture = record};
            GeneratorTraining unbroken(own_step);
            unbroken.trainer->fit(set, options);
            const test::TempFolder folder;
            const auto file = folder / "c";
            GeneratorTraining first(own_step), second(own_step);
            auto until = options;
            until.callbacks.push_back(
                std::make_shared<test::CallAt>(10, [&](train::Trainer& t) { t.save(file), t.stop(); }));
            CHECK_FALSE(first.trainer->fit(set, until));
            (void)randn({100}, {}, second.noise);
            second.masks.manual_seed(99);
            second.trainer->load(file);
            CHECK(second.weights() == first.weights());
            second.trainer->fit(set, options);
            CHECK(second.weights() == unbroken.weights());
        }
}

TEST_CASE("checkpoints: a mismatch in any part changes nothing") {
    const test::TempFolder folder;
    const auto set = random_points(20);
    nn::Linear first(4, 2), second(4, 2), wider(4, 3);
    optim::SGD optimizer(first.parameters(), {.momentum = 0.9});
    const Generator generator(5);
    const auto trainer_of = [&](nn::Linear& other, std::vector<train::NamedGenerator> generators = {}) {
        return std::make_unique<train::Trainer>(train::Parts{.modules = {{"a", first}, {"b", other}},
                                                             .optimizers = {{"o", optimizer}},
                                                             .generators = std::move(generators)},
                                                [&](train::Step& step, const data::Batch& batch) {
                                                    optimizer.zero_grad();
                                                    step.backward(cross_entropy(first(batch["x"]), batch["z"]));
                                                    optimizer.step();
                                                });
    };
    const auto trainer = trainer_of(second);
    trainer->fit(set, {.epochs = 1, .batch = 8, .quiet = true});
    trainer->save(folder / "c");
    trainer->fit(set, {.epochs = 2, .batch = 8, .quiet = true});
    const auto before = test::values(first.weight()), velocity = test::values(optimizer.state_dict().front().tensor);
    CHECK_THROWS_AS(trainer_of(wider)->load(folder / "c"),
                    ShapeError);  // its second module, after the first was loaded
    CHECK(test::values(first.weight()) == before);
    CHECK(test::values(optimizer.state_dict().front().tensor) == velocity);
    CHECK_THROWS_WITH_AS(
        trainer_of(second, {{"noise", generator}})->load(folder / "c"),
        doctest::Contains("Trainer::load: expected a checkpoint with the generators [\"noise\"], got []"), ValueError);
    CHECK_THROWS_AS(trainer_of(second, {{"noise", generator}, {"noise", generator}}), ValueError);
    trainer->load(folder / "c");
    CHECK(test::values(first.weight()) != before);
}
