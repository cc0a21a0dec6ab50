// The trainer: learns, is reproducible bit for bit, resumes, does not synchronise needlessly, and reports errors.
#include <declivity/train/trainer.hpp>

#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>

#include <declivity/data/synthetic_digits.hpp>
#include <declivity/nn/nn.hpp>
#include <declivity/optim/adam.hpp>
#include <declivity/optim/sgd.hpp>
#include <declivity/tensor/creation.hpp>
#include <declivity/train/callbacks.hpp>
#include <doctest/doctest.h>

#include <tests/support/values.hpp>
#include <tests/train/training.hpp>
#include "tests/support/opencl_calls.hpp"
#include "tests/support/temp_folder.hpp"

using namespace declivity;

namespace {

/// Two clusters of points; learnt quickly.
data::InMemoryDataset clouds(std::int64_t count, std::uint64_t seed) {
    data::Random random(seed, 0, 0, data::Purpose::user);
    std::vector<float> values;
    std::vector<std::int64_t> labels;
    for (std::int64_t i = 0; i < count; ++i) {
        const float center = i % 2 == 0 ? -1.0F : 1.0F;
        for (int k = 0; k < 5; ++k) values.push_back(center + 0.7F * random.normal());
        labels.push_back(i % 2);
    }
    return {{5}, std::move(values), std::move(labels), 2};
}

/// A network with every kind of state: dropout uses random numbers, batch normalisation has statistics.
struct Setup {
    nn::Sequential model;
    optim::Adam optimizer;
    train::Trainer trainer;

    explicit Setup(std::uint64_t seed)
        : model(
              (manual_seed(seed), nn::Sequential(nn::Linear(5, 16), nn::ReLU(), nn::Dropout(0.3), nn::Linear(16, 2)))),
          optimizer(model.parameters(), {.lr = 1e-2}),
          trainer(model, optimizer) {}
};

train::FitOptions trainer_options(std::int64_t epochs, std::vector<std::shared_ptr<train::Callback>> callbacks = {}) {
    return {.epochs = epochs, .batch = 16, .seed = 7, .callbacks = std::move(callbacks), .quiet = true};
}

}  // namespace

TEST_CASE("trainer: learns and reports") {
    const auto train_set = clouds(200, 1), test_set = clouds(100, 2);
    Setup setup(1);
    CHECK(setup.trainer.fit(train_set, test_set, trainer_options(4)));
    const auto& history = setup.trainer.progress().history;
    REQUIRE(history.size() == 4);
    CHECK(history[3]["train_loss"] < history[0]["train_loss"]);
    CHECK(setup.trainer.evaluate(test_set)["accuracy"] > 0.95);
    CHECK(setup.trainer.progress().step == 4 * 13);
    // Outputs and labels agree as often as evaluate reports.
    const auto scores = test::values(setup.trainer.predict(test_set));
    int right = 0;
    for (std::size_t i = 0; i < 100; ++i)
        right += (scores[2 * i + 1] > scores[2 * i]) == (test_set.label(static_cast<std::int64_t>(i)) == 1);
    CHECK(right / 100.0 == doctest::Approx(setup.trainer.evaluate(test_set)["accuracy"]));
}

TEST_CASE("trainer: the same seed gives the same weights bit for bit, another seed others") {
    const auto train_set = clouds(100, 1);
    const auto run = [&](std::uint64_t seed) {
        Setup setup(seed);
        setup.trainer.fit(train_set, trainer_options(2));
        return test::weights(setup.model);
    };
    const auto first = run(3);
    CHECK(first == run(3));
    CHECK(first != run(4));
}

TEST_CASE("trainer: resumed from a checkpoint, also in the middle of an epoch, it equals an uninterrupted training") {
    const auto train_set = clouds(200, 1), test_set = clouds(50, 2);
    const test::TempFolder folder;
    const auto schedule = [] {
        return std::make_shared<train::LearningRate>(optim::cosine(39), train::LearningRate::Unit::step);
    };
    Setup unbroken(5);
    unbroken.trainer.fit(train_set, test_set, trainer_options(3, {schedule()}));
    for (const std::int64_t stop_at : {1, 13, 20, 38}) {
        CAPTURE(stop_at);
        const auto file = folder.path() / "checkpoint.safetensors";
        {
            Setup broken(5);
            broken.trainer.fit(
                train_set, test_set,
                trainer_options(3, {schedule(), std::make_shared<test::CallAt>(stop_at, [&](train::Trainer& trainer) {
                                        trainer.save(file);
                                        trainer.stop();
                                    })}));
            CHECK(broken.trainer.progress().step == stop_at);
        }
        Setup resumed(99);  // everything must come from the file
        resumed.trainer.load(file);
        resumed.trainer.fit(train_set, test_set, trainer_options(3, {schedule()}));
        CHECK(test::weights(resumed.model) == test::weights(unbroken.model));
        const auto& a = resumed.trainer.progress().history;
        const auto& b = unbroken.trainer.progress().history;
        REQUIRE(a.size() == b.size());
        for (std::size_t i = 0; i < a.size(); ++i) {
            CHECK(a[i]["train_loss"] == b[i]["train_loss"]);
            CHECK(a[i]["train_accuracy"] == b[i]["train_accuracy"]);
            CHECK(a[i]["test_loss"] == b[i]["test_loss"]);
        }
    }
}

TEST_CASE("trainer: a checkpoint of another run or model is refused with a message") {
    const auto train_set = clouds(100, 1), other_set = clouds(120, 1);
    const test::TempFolder folder;
    const auto file = folder.path() / "checkpoint.safetensors";
    Setup setup(5);
    setup.trainer.fit(
        train_set,
        trainer_options(1, {std::make_shared<test::CallAt>(2, [&](train::Trainer& trainer) { trainer.save(file); })}));
    setup.trainer.load(file);
    CHECK_THROWS_AS(setup.trainer.fit(other_set, trainer_options(2)), ValueError);

    nn::Sequential other(nn::Linear(5, 17), nn::Linear(17, 2));
    optim::Adam optimizer(other.parameters());
    train::Trainer trainer(other, optimizer);
    CHECK_THROWS_AS(trainer.load(file), Error);
    std::ofstream(file, std::ios::binary | std::ios::trunc) << "no checkpoint";
    CHECK_THROWS_AS(trainer.load(file), FormatError);
    CHECK_THROWS_AS(trainer.load(folder.path() / "absent"), IoError);
}

TEST_CASE("trainer: a non-finite loss stops the training before it affects the weights, and names the layer") {
    auto values = std::vector<float>(64 * 3, 0.5F);
    values[40 * 3] = 1e38F;  // one example that overflows in the first layer
    const data::InMemoryDataset set({3}, values, std::vector<std::int64_t>(64, 0), 2);
    manual_seed(1);
    nn::Sequential model(nn::Lambda([](const Tensor& x) { return x * 100.0; }, "Scale"), nn::Linear(3, 2));
    optim::SGD optimizer(model.parameters(), {.lr = 0.1});
    train::Trainer trainer(model, optimizer);
    std::vector<double> before;
    auto options = trainer_options(
        1, {std::make_shared<test::CallAt>(2, [&](train::Trainer& t) { before = test::weights(t.model()); })});
    options.shuffle = false;
    try {
        trainer.fit(set, options);
        FAIL("no exception");
    } catch (const train::NonFiniteLoss& error) {
        CHECK(error.step() == 3);  // examples 32 to 47
        CHECK(error.layer() == "Sequential/0");
        CHECK(std::string(error.what()).find("epoch 1, batch 2") != std::string::npos);
    }
    CHECK(test::weights(model) == before);
}

TEST_CASE("trainer: Ctrl-C ends the training after the step, with a checkpoint") {
    const auto train_set = clouds(100, 1);
    const test::TempFolder folder;
    const auto file = folder.path() / "last.safetensors";
    Setup setup(1);
    const bool complete = setup.trainer.fit(
        train_set, trainer_options(5, {std::make_shared<test::CallAt>(9, [](train::Trainer&) { std::raise(SIGINT); }),
                                       std::make_shared<train::Checkpoint>(train::CheckpointOptions{.last = file})}));
    CHECK_FALSE(complete);
    CHECK(setup.trainer.progress().step == 9);
    Setup resumed(2);
    resumed.trainer.load(file);
    CHECK(test::weights(resumed.model) == test::weights(setup.model));
}

TEST_CASE("trainer: callbacks for early stopping, log, best checkpoint") {
    const auto train_set = clouds(100, 1), test_set = clouds(50, 2);
    const test::TempFolder folder;
    Setup setup(1);
    for (std::size_t group = 0; group < setup.optimizer.groups(); ++group) setup.optimizer.set_learning_rate(0, group);
    setup.trainer.fit(
        train_set, test_set,
        trainer_options(
            50, {std::make_shared<train::EarlyStopping>(3), std::make_shared<train::CsvLog>(folder.path() / "log.csv"),
                 std::make_shared<train::Checkpoint>(train::CheckpointOptions{.best = folder.path() / "best"})}));
    CHECK(setup.trainer.progress().epoch == 4);  // nothing improves after the first
    std::ifstream log(folder.path() / "log.csv");
    std::string line;
    int lines = 0;
    while (std::getline(log, line)) ++lines;
    CHECK(lines == 5);
    CHECK(std::filesystem::exists(folder.path() / "best"));
    CHECK_THROWS_AS(train::Checkpoint({.every_steps = 5}), ValueError);
}

TEST_CASE("trainer: captured steps match eager ones bit for bit, whatever callbacks do between them") {
    // Freezes a layer, changes the mode of another, the loss's factor and the learning rate, and reads gradients.
    struct ChangesFactor : train::Callback {
        nn::Sequential& model;
        double& factor;
        std::vector<double> recorded_gradients = {};
        ChangesFactor(nn::Sequential& network, double& factor_reference) : model(network), factor(factor_reference) {}
        void before_step(train::Trainer& trainer) override {
            const auto step = trainer.progress().step;
            if (step == 9) model.children()[2].second->eval();  // dropout
            if (step == 15) model.children()[2].second->train();
            if (step == 30) trainer.optimizer().set_learning_rate(0.002);
        }
        void after_step(train::Trainer& trainer) override {
            if (trainer.progress().step % 5 == 0)
                for (const auto& parameter : model.parameters())
                    recorded_gradients.push_back(parameter.grad().defined() ? test::values(parameter.grad())[0] : 7);
        }
        void after_epoch(train::Trainer& trainer, const train::EpochMetrics&) override {
            if (trainer.progress().epoch == 2) factor = 0.5;
            if (trainer.progress().epoch == 3)
                for (auto parameter : model.children()[0].second->parameters()) parameter.set_requires_grad(false);
        }
    };
    const auto train_set = clouds(16 * 12 + 5, 1), test_set = clouds(50, 2);  // a last batch of five
    struct Outcome {
        std::vector<double> weights, recorded_gradients, losses;
        RandomState random;
    };
    const auto run = [&](bool record) {
        manual_seed(11);
        nn::Sequential model(nn::Linear(5, 16), nn::ReLU(), nn::Dropout(0.3), nn::Linear(16, 2));
        optim::Adam optimizer(model.parameters(), {.lr = 1e-2});
        double factor = 1;
        train::Trainer trainer(model, optimizer, [&](const Tensor& output, const Tensor& labels) {
            return cross_entropy(output, labels) * factor;
        });
        const auto changes_factor = std::make_shared<ChangesFactor>(model, factor);
        auto options = trainer_options(5, {changes_factor});
        options.capture = record;
        options.clip_norm = 0.7;
        trainer.fit(train_set, test_set, options);
        Outcome out{test::weights(model), changes_factor->recorded_gradients, {}, random_state(default_device())};
        for (const auto& epoch : trainer.progress().history)
            out.losses.insert(out.losses.end(), {epoch["train_loss"], epoch["train_accuracy"], epoch["test_loss"]});
        return out;
    };
    const Outcome plain = run(false), captured = run(true);
    CHECK(captured.weights == plain.weights);
    CHECK(captured.recorded_gradients == plain.recorded_gradients);
    CHECK(captured.losses == plain.losses);
    CHECK(captured.random.offset == plain.random.offset);
}

TEST_CASE("trainer: replayed steps do not call the model, except for two captures, one per epoch, and the last batch") {
    struct Counting : nn::Layer {
        nn::Linear& linear = add("linear", nn::Linear(5, 2));
        int calls = 0;
        Tensor forward(Tensor x) override {
            ++calls;
            return linear(x);
        }
    };
    const auto train_set = clouds(16 * 12 + 5, 1);
    for (const bool record : {true, false}) {
        Counting model;
        optim::SGD optimizer(model.parameters(), {.lr = 0.1});
        train::Trainer trainer(model, optimizer);
        auto options = trainer_options(4);
        options.capture = record;
        trainer.fit(train_set, options);
        CHECK(model.calls == (record ? 2 + 3 + 4 : 4 * 13));
    }
}

TEST_CASE("trainer: after the first epoch a step creates no buffer and waits only to report") {
    const auto train_set = clouds(16 * 100, 1);
    Setup setup(1);
    struct Counts : train::Callback {
        std::vector<test::OpenClCalls> at_step;
        void after_step(train::Trainer&) override { at_step.push_back(test::opencl_calls()); }
    };
    const auto counts = std::make_shared<Counts>();
    setup.trainer.fit(train_set, trainer_options(3, {counts}));
    REQUIRE(counts->at_step.size() == 300);
    const auto &start = counts->at_step[101], &end = counts->at_step[198];  // in the second epoch
    CHECK(end.create_buffer == start.create_buffer);
    CHECK(end.finish == start.finish);
    CHECK(end.blocking_transfer == start.blocking_transfer);
    // Every 20 steps two numbers are read whose copies were enqueued 20 steps before.
    CHECK(end.wait_for_events - start.wait_for_events <= 10);
    CHECK(test::opencl_calls().create_buffer > 0);  // the counter works
}
