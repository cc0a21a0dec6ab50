// User-defined steps, losses over whole batches, validation sets, gradient accumulation: trained, resumed and captured
// bit for bit.
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/data/random.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/io/safetensors.hpp>
#include <declivity/nn/nn.hpp>
#include <declivity/optim/adam.hpp>
#include <declivity/optim/sgd.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <declivity/train/callbacks.hpp>
#include <declivity/train/metrics.hpp>
#include <declivity/train/trainer.hpp>
#include <doctest/doctest.h>

#include <tests/support/values.hpp>
#include <tests/train/training.hpp>
#include "tests/support/temp_folder.hpp"

using namespace declivity;

namespace {

/// Points x, a number y that depends on them, and a class z.
data::TensorDataset points(std::int64_t count, std::uint64_t seed) {
    data::Random random(seed, 0, 0, data::Purpose::user);
    std::vector<float> x, y;
    std::vector<std::int64_t> z;
    for (std::int64_t i = 0; i < count; ++i) {
        float sum = 0;
        for (int k = 0; k < 4; ++k) x.push_back(random.normal()), sum += x.back() * static_cast<float>(k - 1);
        y.push_back(sum + 0.1F * random.normal());
        z.push_back(sum > 0 ? 1 : 0);
    }
    return data::TensorDataset({{"x", io::HostArray::of({count, 4}, x)},
                                {"y", io::HostArray::of({count, 1}, y)},
                                {"z", io::HostArray::of({count}, z)}});
}

std::vector<double> figures_of(const train::Trainer& trainer) {
    std::vector<double> all;
    for (const train::EpochMetrics& epoch : trainer.progress().history)
        for (const auto& [name, value] : epoch)
            // A loaded learning rate is rounded to f32.
            if (name != "seconds" && !name.ends_with("learning_rate")) all.push_back(value);
    return all;
}

/// A generator of points and a critic that distinguishes them from real ones; every third step is also the generator's.
struct Pair {
    nn::Sequential generator, critic;
    optim::Adam generator_optimizer, critic_optimizer;
    std::shared_ptr<train::Accuracy> accuracy = std::make_shared<train::Accuracy>();
    train::Trainer trainer;
    double nan_factor = 0;

    explicit Pair(std::uint64_t seed, std::int64_t every = 3)
        : generator((manual_seed(seed), nn::Sequential(nn::Linear(3, 8), nn::Tanh(), nn::Linear(8, 4)))),
          critic(nn::Linear(4, 8), nn::ReLU(), nn::Dropout(0.2), nn::Linear(8, 2)),
          generator_optimizer(generator.parameters(), {.lr = 2e-3}),
          critic_optimizer(critic.parameters(), {.lr = 4e-3}),
          trainer({.modules = {{"generator", generator}, {"critic", critic}},
                   .optimizers = {{"generator", generator_optimizer}, {"critic", critic_optimizer}},
                   .metrics = {{"accuracy", accuracy}},
                   .evaluate = [this](train::Step& step, const data::Batch& batch) { evaluate(step, batch); },
                   .predict = [this](const data::Batch& batch) { return critic(batch["x"]); }},
                  [this, every](train::Step& step, const data::Batch& batch) { train(step, batch, every); }) {}

    Tensor labels(std::int64_t count, std::int64_t value) { return full({count}, value, {DType::i64}); }
    void train(train::Step& step, const data::Batch& batch, std::int64_t every) {
        const Tensor real = batch["x"];
        const Tensor generated = generator(randn({real.size(0), 3}));
        critic_optimizer.zero_grad();
        const Tensor scores = critic(real);
        const Tensor critic_loss = cross_entropy(scores, labels(real.size(0), 1)) +
                                   cross_entropy(critic(generated.detach()), labels(real.size(0), 0));
        step.backward(critic_loss);
        critic_optimizer.step();
        accuracy->update(scores, labels(real.size(0), 1));
        step.report("critic_loss", critic_loss);
        if (every > 1 && step.number() % every != 0) return;
        generator_optimizer.zero_grad();
        Tensor generator_loss = cross_entropy(critic(generated), labels(real.size(0), 1));
        if (nan_factor != 0 && step.number() == 7) generator_loss = generator_loss + log(full({}, -1.0));
        step.backward(generator_loss);
        generator_optimizer.step();
        step.report("generator_loss", generator_loss);
    }
    void evaluate(train::Step& step, const data::Batch& batch) {
        const Tensor scores = critic(batch["x"]);
        step.report("loss", cross_entropy(scores, labels(batch.size, 1)));
        accuracy->update(scores, labels(batch.size, 1));
    }
    std::vector<double> all_weights() const {
        std::vector<double> all = test::weights(generator);
        for (const double value : test::weights(critic)) all.push_back(value);
        return all;
    }
};

train::FitOptions step_options(std::int64_t epochs, std::vector<std::shared_ptr<train::Callback>> callbacks = {}) {
    return {.epochs = epochs, .batch = 8, .seed = 3, .callbacks = std::move(callbacks), .quiet = true};
}

std::vector<std::string> names_of(const train::Metrics& metrics) {
    std::vector<std::string> names;
    for (const auto& [name, value] : metrics) names.push_back(name);
    return names;
}

}  // namespace

TEST_CASE(
    "custom steps: two optimizers and metrics, resumed in the middle of an epoch, equal an uninterrupted training") {
    const auto set = points(83, 1), test_set = points(30, 2);
    const test::TempFolder folder;
    const auto file = folder.path() / "checkpoint.safetensors";
    Pair unbroken(5);
    CHECK(unbroken.trainer.fit(set, test_set, step_options(3)));
    const auto& history = unbroken.trainer.progress().history;
    REQUIRE(history.size() == 3);
    CHECK(names_of(history[0]) ==
          std::vector<std::string>{"train_critic_loss", "train_generator_loss", "train_accuracy", "test_loss",
                                   "test_accuracy", "generator_learning_rate", "critic_learning_rate", "seconds"});
    for (const std::int64_t stop_at : {1, 7, 11, 20, 32}) {
        CAPTURE(stop_at);
        {
            Pair broken(5);
            broken.trainer.fit(set, test_set,
                               step_options(3, {std::make_shared<test::CallAt>(stop_at, [&](train::Trainer& trainer) {
                                                trainer.save(file);
                                                trainer.stop();
                                            })}));
            CHECK(broken.trainer.progress().step == stop_at);
        }
        Pair resumed(99);  // everything must come from the file
        resumed.trainer.load(file);
        resumed.trainer.fit(set, test_set, step_options(3));
        CHECK(resumed.all_weights() == unbroken.all_weights());
        CHECK(figures_of(resumed.trainer) == figures_of(unbroken.trainer));
        CHECK(names_of(resumed.trainer.progress().history[1]) == names_of(history[1]));
    }
    // The file's format: parts by name.
    const auto arrays = io::read_safetensors(file).arrays;
    CHECK(arrays.contains("modules.generator.0.weight"));
    CHECK(arrays.contains("metrics.accuracy.right"));
    CHECK(unbroken.trainer.predict(test_set).shape() == Shape{30, 2});
}

TEST_CASE("custom steps: captured if declared capture-safe, with the same bits, and eager if not") {
    const auto set = points(8 * 12 + 5, 1), test_set = points(30, 2);
    const auto run = [&](std::optional<bool> record, train::Replays* replays) {
        Pair pair(5, 1);
        auto options = step_options(3);
        options.capture = record;
        pair.trainer.fit(set, test_set, options);
        if (replays != nullptr) *replays = pair.trainer.replays();
        std::vector<double> all = pair.all_weights();
        for (const double value : figures_of(pair.trainer)) all.push_back(value);
        return all;
    };
    train::Replays replays, by_default;
    const auto plain = run(false, nullptr);
    CHECK(run(true, &replays) == plain);
    CAPTURE(replays.refused);
    CHECK(replays.replayed >= 3 * 12 - 2 - 3);
    CHECK(run({}, &by_default) == plain);
    CHECK(by_default.replayed == 0);
    CHECK(by_default.refused == "the step is a user-defined function (FitOptions::capture)");
    // Functions of the step number are called each time.
    auto options = step_options(2);
    options.capture = true;
    Pair counting(5);
    counting.trainer.fit(set, options);
    Pair twin(5);
    twin.trainer.fit(set, step_options(2));
    CHECK(counting.all_weights() == twin.all_weights());
    CHECK(figures_of(counting.trainer) == figures_of(twin.trainer));
}

TEST_CASE("custom steps: metrics are means over examples, of the batches that report them") {
    const auto set = points(20, 1);
    nn::Linear model(4, 1);
    optim::SGD optimizer(model.parameters(), {.lr = 0});
    train::Trainer trainer({.modules = {{"model", model}}, .optimizers = {{"sgd", optimizer}}},
                           [&](train::Step& step, const data::Batch& batch) {
                               optimizer.zero_grad();
                               step.backward(mse_loss(model(batch["x"]), batch["y"]));
                               optimizer.step();
                               step.report("mean", mean(batch["y"]));
                               if (batch.number % 2 == 1) step.report("odd", mean(batch["y"]));
                           });
    auto options = step_options(1);
    options.shuffle = false;
    trainer.fit(set, options);
    double all = 0, odd_sum = 0;
    for (std::int64_t i = 0; i < 20; ++i) {
        const double y = static_cast<double>(set.example(i)["y"].as<float>()[0]);
        all += y / 20;
        if (i >= 8 && i < 16) odd_sum += y / 8;
    }
    const train::EpochMetrics& metrics = trainer.progress().history[0];
    CHECK(metrics["train_mean"] == doctest::Approx(all).epsilon(1e-5));
    CHECK(metrics["train_odd"] == doctest::Approx(odd_sum).epsilon(1e-5));
    CHECK_THROWS_WITH_AS((void)metrics["train_even"],
                         "Metrics: expected the name of a metric, one of [\"train_mean\", \"train_odd\", "
                         "\"learning_rate\", \"seconds\"], got 'train_even'",
                         ValueError);
}

TEST_CASE("custom steps: a non-finite loss ends the training before any optimizer changes anything") {
    const auto set = points(80, 1);
    for (const bool record : {false, true}) {
        Pair pair(5, 1), good(5, 1);
        pair.nan_factor = 1;
        auto options = step_options(2);
        options.capture = record;
        std::vector<double> before;
        options.callbacks.push_back(
            std::make_shared<test::CallAt>(7, [&](train::Trainer&) { before = pair.all_weights(); }));
        if (record) options.callbacks.clear();
        try {
            pair.trainer.fit(set, options);
            FAIL("no exception");
        } catch (const train::NonFiniteLoss& error) {
            CHECK(error.step() == 8);
            CHECK(error.layer() == "loss");
            CHECK(std::string(error.what()).find("epoch 1, batch 7") != std::string::npos);
        }
        // The critic's step of the eighth batch was before the generator's loss; the generator is unchanged.
        if (!record) {
            const auto generator = test::weights(pair.generator);
            CHECK(std::equal(generator.begin(), generator.end(), before.begin()));
        }
        for (const double value : pair.all_weights()) CHECK(std::isfinite(value));
    }
    std::vector<float> x(80 * 4, 0.5F);
    x[4 * 30] = NAN;
    const data::TensorDataset with_nan({{"x", io::HostArray::of({80, 4}, x)}});
    Pair pair(5);
    auto options = step_options(1);
    options.shuffle = false;
    CHECK_THROWS_WITH_AS(pair.trainer.fit(with_nan, options),
                         doctest::Contains("at step 4 (epoch 1, batch 3); the first non-finite value is in 'input'"),
                         train::NonFiniteLoss);
}

TEST_CASE("trainer: a loss over the whole batch, with several targets, weights and any metrics") {
    const auto set = points(200, 1), test_set = points(60, 2);
    manual_seed(4);
    nn::Sequential model(nn::Linear(4, 16), nn::ReLU(), nn::Linear(16, 3));  // y, and two scores
    optim::Adam optimizer(model.parameters(), {.lr = 0.02});
    const auto error = std::make_shared<train::MeanAbsoluteError>();
    const auto accuracy = std::make_shared<train::Accuracy>();
    const auto number = [](const Tensor& output) { return slice(output, 1, 0, 1); };
    const auto scores = [](const Tensor& output) { return slice(output, 1, 1, 3); };
    train::Trainer trainer(
        model, optimizer,
        [=](const Tensor& output, const data::Batch& batch) {
            return mse_loss(number(output), batch["y"]) + cross_entropy(scores(output), batch["z"]);
        },
        {.metrics = {
             {"error", error,
              [=](const Tensor& output, const data::Batch& batch) { return std::pair(number(output), batch["y"]); }},
             {"accuracy", accuracy,
              [=](const Tensor& output, const data::Batch& batch) { return std::pair(scores(output), batch["z"]); }}}});
    trainer.fit(set, test_set, step_options(20));
    const auto& last = trainer.progress().history.back();
    CHECK(names_of(last) == std::vector<std::string>{"train_loss", "train_error", "train_accuracy", "test_loss",
                                                     "test_error", "test_accuracy", "learning_rate", "seconds"});
    CHECK(last["test_accuracy"] > 0.85);
    CHECK(last["test_error"] < 0.6);
    // Metrics of an evaluation, compared with the outputs.
    const auto outputs = test::values(trainer.predict(test_set));
    double expected = 0;
    for (std::int64_t i = 0; i < 60; ++i)
        expected += std::abs(outputs[static_cast<std::size_t>(3 * i)] -
                             static_cast<double>(test_set.example(i)["y"].as<float>()[0])) /
                    60;
    CHECK(trainer.evaluate(test_set, {.batch = 7})["error"] == doctest::Approx(expected).epsilon(1e-5));
}

TEST_CASE("trainer: regression in three lines, and captured") {
    const auto set = points(200, 1);
    manual_seed(4);
    nn::Linear model(4, 1);
    optim::Adam optimizer(model.parameters(), {.lr = 0.05});
    train::Trainer trainer(model, optimizer, nn::MSELoss());
    trainer.fit(set, step_options(20));
    CHECK(trainer.progress().history.back()["train_loss"] < 0.05);
    CHECK(names_of(trainer.progress().history[0]) ==
          std::vector<std::string>{"train_loss", "learning_rate", "seconds"});
    CHECK(trainer.replays().replayed > 400);
    // Another field by name.
    nn::Linear classes(4, 2);
    optim::Adam other(classes.parameters(), {.lr = 0.05});
    train::Trainer classifier(classes, other, {.target = "z"});
    classifier.fit(set, step_options(10));
    CHECK(classifier.progress().history.back()["train_accuracy"] > 0.9);
    train::Trainer misspelt(classes, other, {.target = "zz"});
    CHECK_THROWS_WITH_AS(misspelt.fit(set, step_options(1)), doctest::Contains("got 'zz'"), ValueError);
}

TEST_CASE("trainer: metrics are captured with the steps, and an evaluation in between has no effect") {
    const auto set = points(8 * 12 + 3, 1), test_set = points(30, 2);
    const auto run = [&](std::optional<bool> record, bool read_losses, train::Replays* replays) {
        manual_seed(4);
        nn::Sequential model(nn::Linear(4, 8), nn::ReLU(), nn::Linear(8, 2));
        optim::SGD optimizer(model.parameters(), {.lr = 0.1});
        train::Trainer trainer(model, optimizer,
                               {.target = "z",
                                .metrics = {{"accuracy", std::make_shared<train::Accuracy>()},
                                            {"top2", std::make_shared<train::TopKAccuracy>(2)},
                                            {"iou", std::make_shared<train::MeanIoU>(2)}}});
        auto options = step_options(3);
        options.capture = record;
        if (read_losses)
            options.callbacks.push_back(
                std::make_shared<test::CallAt>(7, [&](train::Trainer& t) { (void)t.evaluate(test_set); }));
        trainer.fit(set, test_set, options);
        if (replays != nullptr) *replays = trainer.replays();
        return figures_of(trainer);
    };
    train::Replays replays;
    const auto plain = run(false, false, nullptr);
    CHECK(run({}, false, &replays) == plain);
    CHECK(replays.replayed > 20);
    CHECK(run({}, true, nullptr) == plain);
    CHECK(plain[2] == 1);  // one of two classes is always among the top two
}

TEST_CASE("trainer: several validation sets, and callbacks that use their metrics") {
    const auto set = points(100, 1), first = points(30, 2), second = points(40, 3);
    const test::TempFolder folder;
    manual_seed(4);
    nn::Linear model(4, 1);
    optim::SGD optimizer(model.parameters(), {.lr = 0.05});
    train::Trainer trainer(model, optimizer, nn::MSELoss(),
                           {.metrics = {{"error", std::make_shared<train::MeanAbsoluteError>()}}});
    const auto log = folder.path() / "log.csv";
    auto options = step_options(
        40, {std::make_shared<train::EarlyStopping>(2, 0, train::Monitor{"near_error", train::Monitor::Better::higher}),
             std::make_shared<train::Checkpoint>(
                 train::CheckpointOptions{.best = folder.path() / "best", .monitor = {"far_loss"}}),
             std::make_shared<train::CsvLog>(log),
             std::make_shared<train::LearningCurvePicture>(
                 folder.path() / "curve.png", train::LearningCurveOptions{.losses = {"near_error", "far_error"}})});
    trainer.fit(set, {{"near", first}, {"far", second}}, options);
    CHECK(trainer.progress().epoch == 3);  // the error falls, but is monitored with mode max
    CHECK(std::filesystem::exists(folder.path() / "curve.png"));
    std::ifstream file(log);
    std::string line;
    std::getline(file, line);
    CHECK(line == "epoch,train_loss,train_error,near_loss,near_error,far_loss,far_error,learning_rate,seconds");
    nn::Linear again(4, 1);
    optim::SGD other(again.parameters(), {.lr = 0.05});
    train::Trainer loaded(again, other, nn::MSELoss(),
                          {.metrics = {{"error", std::make_shared<train::MeanAbsoluteError>()}}});
    loaded.load(folder.path() / "best");
    CHECK(loaded.progress().epoch == 3);
    CHECK(loaded.evaluate(first)["loss"] == trainer.progress().history[2]["near_loss"]);
    const auto misspelt = [&](std::shared_ptr<train::Callback> callback) {
        train::Trainer(again, other, nn::MSELoss()).fit(set, first, step_options(1, {std::move(callback)}));
    };
    for (const std::shared_ptr<train::Callback>& callback : std::vector<std::shared_ptr<train::Callback>>{
             std::make_shared<train::EarlyStopping>(2, 0, train::Monitor{"tst_loss"}),
             std::make_shared<train::Checkpoint>(
                 train::CheckpointOptions{.best = folder.path() / "b", .monitor = {"tst_loss"}}),
             std::make_shared<train::LearningCurvePicture>(folder.path() / "c.png",
                                                           train::LearningCurveOptions{.losses = {"tst_loss"}})})
        CHECK_THROWS_WITH_AS(
            misspelt(callback),
            doctest::Contains("expected a metric of this training (train_..., test_..., learning_rate, "
                              "seconds), got 'tst_loss'"),
            ValueError);
    for (const char* name : {"", "train", "near"})
        CHECK_THROWS_WITH_AS(trainer.fit(set, {{"near", first}, {name, second}}, step_options(9)),
                             doctest::Contains("Trainer::fit: expected names of validation sets"), ValueError);
}

TEST_CASE("trainer: accumulated gradients equal those of one large batch, also in the last group") {
    const auto set = points(8 * 7 + 3, 1);  // with 4 per step: groups of 32 and 27 examples
    const auto run = [&](std::int64_t batch, std::int64_t accumulate, std::optional<bool> record, bool halfway,
                         train::Replays* replays = nullptr) {
        manual_seed(4);
        nn::Sequential model(nn::Linear(4, 8), nn::Tanh(), nn::Linear(8, 2));
        optim::SGD optimizer(model.parameters(), {.lr = 0.2, .momentum = 0.9});
        train::Trainer trainer(model, optimizer, {.target = "z"});
        auto options = step_options(6);
        options.batch = batch;
        options.accumulate = accumulate;
        options.capture = record;
        options.clip_norm = 0.5;
        if (halfway) {
            const test::TempFolder folder;
            options.callbacks.push_back(
                std::make_shared<test::CallAt>(5, [&](train::Trainer& t) { t.save(folder.path() / "c"), t.stop(); }));
            trainer.fit(set, options);
            CHECK(trainer.progress().batch == 4);
            manual_seed(77);
            trainer.load(folder.path() / "c");
            options.callbacks.clear();
        }
        trainer.fit(set, options);
        CHECK(trainer.progress().step == 12);
        if (replays != nullptr) *replays = trainer.replays();
        std::vector<double> all = test::weights(model);
        for (const double value : figures_of(trainer)) all.push_back(value);
        return all;
    };
    train::Replays replays;
    const auto large = run(32, 1, {}, false), plain = run(8, 4, false, false),
               captured = run(8, 4, {}, false, &replays);
    REQUIRE(large.size() == plain.size());
    for (std::size_t i = 0; i < large.size(); ++i) CHECK(plain[i] == doctest::Approx(large[i]).epsilon(1e-4));
    CHECK(captured == plain);
    CHECK(replays.replayed > 30);
    CHECK(run(8, 4, {}, true) == plain);
}

TEST_CASE("custom steps: errors name the argument") {
    const auto set = points(20, 1);
    nn::Linear model(4, 1);
    optim::SGD optimizer(model.parameters());
    const auto step = [&](train::Step& step_object, const data::Batch& batch) {
        optimizer.zero_grad();
        step_object.backward(mse_loss(model(batch["x"]), batch["y"]));
        optimizer.step();
    };
    using train::Trainer;
    CHECK_THROWS_WITH_AS(Trainer({.modules = {}, .optimizers = {}}, step),
                         "Trainer: expected at least one module, got none", ValueError);
    CHECK_THROWS_WITH_AS(Trainer({.modules = {{"a", model}}, .optimizers = {}}, train::TrainStep()),
                         "Trainer: expected a step, got an empty function", ValueError);
    CHECK_THROWS_WITH_AS(Trainer({.modules = {{"a", model}, {"a", model}}, .optimizers = {}}, step),
                         "Trainer: expected names of modules without dots and commas, each once, got [\"a\", \"a\"]",
                         ValueError);
    CHECK_THROWS_AS(Trainer({.modules = {{"a.b", model}}, .optimizers = {}}, step), ValueError);
    CHECK_THROWS_AS(Trainer({.modules = {{"a", model}}, .optimizers = {{"", optimizer}}}, step), ValueError);
    CHECK_THROWS_WITH_AS(Trainer(model, optimizer, {.metrics = {{"m", nullptr}}}),
                         "Trainer: expected a metric as 'm', got null", ValueError);
    Trainer trainer({.modules = {{"a", model}}, .optimizers = {{"o", optimizer}}}, step);
    CHECK_NOTHROW(trainer.fit(set, step_options(1)));
    CHECK_THROWS_WITH_AS((void)trainer.evaluate(set),
                         "Trainer::evaluate: expected a trainer with Parts::evaluate, got one without", ValueError);
    CHECK_THROWS_AS((void)trainer.predict(set), ValueError);
    CHECK_THROWS_WITH_AS(trainer.fit(set, set, step_options(2)), doctest::Contains("a trainer with Parts::evaluate"),
                         ValueError);
    auto options = step_options(2);
    options.accumulate = 2;
    CHECK_THROWS_WITH_AS(trainer.fit(set, options), doctest::Contains("only with a model and a loss"), ValueError);
    options.accumulate = 0;
    CHECK_THROWS_WITH_AS(trainer.fit(set, options), doctest::Contains("of at least 1, got 0"), ValueError);
    CHECK_THROWS_WITH_AS(
        trainer.fit(set, step_options(9, {std::make_shared<train::LearningRate>(
                                             optim::cosine(3), train::LearningRate::Unit::epoch, "other")})),
        "LearningRate: expected an optimizer of the trainer, got 'other'", ValueError);
    const auto error_of = [&](const train::TrainStep& custom_step) {
        try {
            Trainer({.modules = {{"a", model}}, .optimizers = {{"o", optimizer}}, .evaluate = custom_step}, custom_step)
                .fit(set, step_options(1));
        } catch (const Error& error) {
            return std::string(error.what());
        }
        return std::string("nothing");
    };
    CHECK(error_of([&](train::Step& step_object, const data::Batch& batch) { step_object.backward(batch["y"]); }) ==
          "Step::backward: expected a loss of one element, got [8, 1]");
    CHECK(error_of([&](train::Step& step_object, const data::Batch&) { step_object.backward({}); }) ==
          "Step::backward: expected a loss of one element, got an undefined tensor");
    CHECK(error_of([&](train::Step& step_object, const data::Batch& batch) { step_object.report("y", batch["y"]); }) ==
          "Step::report: expected one element as 'y', got [8, 1]");
    CHECK(error_of([&](train::Step& step_object, const data::Batch&) { step_object.report("a,b", ones({})); }) ==
          "Step::report: expected a name without commas, quotes and line ends, got 'a,b'");
    CHECK(error_of([&](train::Step& step_object, const data::Batch&) {
              for (int i = 0; i < 65; ++i) step_object.report("n" + std::to_string(i), ones({}));
          }) == "Step::report: expected at most 64 names, got another one, 'n64'");
    Trainer evaluated({.modules = {{"a", model}}, .optimizers = {{"o", optimizer}}, .evaluate = step}, step);
    CHECK_THROWS_WITH_AS((void)evaluated.evaluate(set), "Step::backward: expected a training step, got an evaluation",
                         ValueError);
    const data::TensorDataset only_x({{"x", io::HostArray::of({4, 4}, std::vector<float>(16))}});
    CHECK_THROWS_WITH_AS(
        Trainer(model, optimizer).fit(only_x, step_options(1)),
        "Trainer: expected a target in addition to the inputs of the model, which takes 1, got a batch of [\"x\"] "
        "(ModelOptions names inputs and target)",
        ValueError);
    CHECK(Trainer(model, optimizer).predict(only_x).shape() == Shape{4, 1});
}

TEST_CASE("custom steps: a checkpoint of other parts, or of another version, is refused with a message") {
    const auto set = points(20, 1);
    const test::TempFolder folder;
    const auto file = folder.path() / "c.safetensors";
    Pair pair(1);
    pair.trainer.fit(set, step_options(1));
    pair.trainer.save(file);
    nn::Linear model(4, 1);
    optim::SGD optimizer(model.parameters());
    train::Trainer other(model, optimizer, nn::MSELoss());
    CHECK_THROWS_WITH_AS(
        other.load(file),
        doctest::Contains(
            "Trainer::load: expected a checkpoint with the modules [\"model\"], got [\"generator\",\"critic\"]"),
        ValueError);
    io::Safetensors content = io::read_safetensors(file);
    std::string& text = content.metadata.at("declivity.checkpoint");
    text.replace(text.find("\"version\":3"), 11, "\"version\":1");
    content.metadata.erase("declivity.crc32");
    io::write_safetensors(file, content);
    CHECK_THROWS_WITH_AS(pair.trainer.load(file),
                         doctest::Contains("expected a checkpoint of version 3, found one of version 1"), FormatError);
    text.replace(text.find("\"version\":1"), 11, "\"version\":2");
    const std::string record = text;
    for (const std::string& deep :
         {std::string(80'000, '['), "{\"version\":" + std::string(80'000, '[') + std::string(80'000, ']') + "}"}) {
        text = deep;
        io::write_safetensors(file, content);
        CHECK_THROWS_WITH_AS(pair.trainer.load(file), doctest::Contains("nested deeper than 64 levels"), FormatError);
    }
    text = record;
    content.arrays.erase("trainer.sums");
    content.arrays.insert_or_assign("trainer.totals", io::HostArray::of({2}, std::vector<float>(2)));
    io::write_safetensors(file, content);
    const auto before = pair.all_weights();
    CHECK_THROWS_WITH_AS(pair.trainer.load(file),
                         doctest::Contains("expected the tensor trainer.sums, f32 [64, 2], found none"), FormatError);
    CHECK(pair.all_weights() == before);
}
