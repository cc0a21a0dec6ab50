// Models with several inputs: choice of fields, capture, resuming, and errors.
#include <cmath>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/data/collate.hpp>
#include <declivity/data/loader.hpp>
#include <declivity/data/random.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/nn/nn.hpp>
#include <declivity/optim/adam.hpp>
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

/// Three inputs of different sizes, so that they cannot be confused, and a number y.
data::TensorDataset triples(std::int64_t count, std::uint64_t seed) {
    data::Random random(seed, 0, 0, data::Purpose::user);
    std::vector<float> a, b, scale, y;
    for (std::int64_t i = 0; i < count; ++i) {
        for (int k = 0; k < 3; ++k) a.push_back(random.normal());
        for (int k = 0; k < 2; ++k) b.push_back(random.normal());
        scale.push_back(random.uniform(0.5F, 1.5F));
        const float* at = &a[a.size() - 3];
        y.push_back((at[0] - 2 * at[1] + at[2] * b[b.size() - 2]) * scale.back() + b.back());
    }
    return data::TensorDataset({{"a", io::HostArray::of({count, 3}, a)},
                                {"b", io::HostArray::of({count, 2}, b)},
                                {"scale", io::HostArray::of({count, 1}, scale)},
                                {"y", io::HostArray::of({count, 1}, y)}});
}

struct Joined : nn::Callable<Tensor(Tensor, Tensor, Tensor)> {
    nn::Linear& linear_a = add("of_a", nn::Linear(3, 16));
    nn::Linear& linear_b = add("of_b", nn::Linear(2, 16));
    nn::Dropout& dropout = add("dropout", nn::Dropout(0.1));
    nn::Linear& head = add("head", nn::Linear(16, 1));

    Tensor forward(Tensor a, Tensor b, Tensor scale) override {
        Tensor inner = head(dropout(tanh(linear_a(a) + linear_b(b))));
        return scale.defined() ? inner * scale : inner;
    }
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(Joined); }
};

struct InputTraining {
    Joined model;
    optim::Adam optimizer;
    train::Trainer trainer;

    explicit InputTraining(std::uint64_t seed, train::ModelOptions options = {})
        : model((manual_seed(seed), Joined())),
          optimizer(model.parameters(), {.lr = 0.02}),
          trainer(model, optimizer, nn::MSELoss(), with_metric(std::move(options))) {}
    static train::ModelOptions with_metric(train::ModelOptions options) {
        options.metrics = {{"error", std::make_shared<train::MeanAbsoluteError>()}};
        return options;
    }
    /// Weights, and the metrics that do not depend on time.
    [[nodiscard]] std::vector<double> all() const {
        std::vector<double> all = test::weights(model);
        for (const train::EpochMetrics& epoch : trainer.progress().history)
            for (const auto& [name, value] : epoch)
                if (name.ends_with("loss") || name.ends_with("error")) all.push_back(value);
        return all;
    }
};

train::FitOptions input_options(std::int64_t epochs, std::vector<std::shared_ptr<train::Callback>> callbacks = {}) {
    return {.epochs = epochs, .batch = 8, .seed = 3, .callbacks = std::move(callbacks), .quiet = true};
}

/// Sequences of numbers and, after the label, their lengths, which padding adds.
data::FunctionDataset sequences(std::int64_t count, std::uint64_t seed) {
    const std::vector<data::Field> fields = {{.name = "numbers"},
                                             {.name = "label", .dtype = DType::i64, .shape = Shape{}}};
    return data::FunctionDataset(count, fields, [seed](std::int64_t index) {
        data::Random random(seed, 0, static_cast<std::uint64_t>(index), data::Purpose::user);
        std::vector<float> sequence(static_cast<std::size_t>(1 + random.below(9)));
        float sum = 0;
        for (float& number : sequence) sum += number = random.normal();
        return std::vector{io::HostArray::of({static_cast<std::int64_t>(sequence.size())}, sequence),
                           io::HostArray::of(std::int64_t{sum > 0})};
    });
}

/// Scores of two classes from the mean of the unpadded elements.
struct Pooled : nn::Callable<Tensor(Tensor, Tensor)> {
    nn::Linear& embedding_layer = add("lift", nn::Linear(1, 6));
    nn::Linear& head = add("head", nn::Linear(6, 2));

    Tensor forward(Tensor sequence, Tensor length) override {
        const Tensor rows = reshape(length, {-1, 1});
        const Tensor mask = (arange(0, sequence.size(1), 1, {DType::i64}) < rows).to(DType::f32);
        const Tensor lifted =
            embedding_layer(reshape(sequence, {sequence.size(0), -1, 1})) * reshape(mask, {sequence.size(0), -1, 1});
        return head(sum(lifted, {1}) / rows);
    }
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(Pooled); }
};

}  // namespace

TEST_CASE("several inputs: the first fields of a batch, followed by the target") {
    const auto set = triples(203, 1), test_set = triples(61, 2);
    InputTraining training(4);
    CHECK(training.trainer.fit(set, {{"unseen", test_set}}, input_options(30)));
    CHECK(training.trainer.replays().refused.empty());
    CHECK(training.trainer.replays().replayed > 600);
    const auto& history = training.trainer.progress().history;
    CHECK(history.back()["unseen_error"] < 0.6 * history.front()["unseen_error"]);

    // Outputs and metrics match a direct call of the model.
    training.model.eval();
    data::Loader loader(test_set, {.batch = 61});
    const data::Batch fields = *loader.begin();
    const NoGrad no_grad;
    const std::vector<double> expected = test::values(training.model(fields[0], fields[1], fields[2]));
    const std::vector<double> got = test::values(training.trainer.predict(test_set, {.batch = 61}));
    const std::vector<double> y = test::values(fields[3]);
    REQUIRE(got.size() == 61);
    double error = 0;
    for (std::size_t i = 0; i < 61; ++i) {
        CHECK(got[i] == doctest::Approx(expected[i]).epsilon(1e-5));
        error += std::abs(expected[i] - y[i]) / 61;
    }
    CHECK(training.trainer.evaluate(test_set, {.batch = 7})["error"] == doctest::Approx(error).epsilon(1e-5));
    CHECK(history.back()["unseen_error"] == doctest::Approx(error).epsilon(1e-5));
}

TEST_CASE("several inputs: fields by name, in the order of the arguments") {
    const auto set = triples(83, 1);
    InputTraining by_position(4);
    by_position.trainer.fit(set, input_options(2));
    InputTraining by_name(4, {.inputs = {"a", "b", "scale"}, .target = "y"});
    by_name.trainer.fit(set, input_options(2));
    CHECK(by_position.all() == by_name.all());

    // The same fields in another order: found by name.
    const data::FunctionDataset reordered(83,
                                          {{.name = "y", .shape = Shape{1}},
                                           {.name = "scale", .shape = Shape{1}},
                                           {.name = "b", .shape = Shape{2}},
                                           {.name = "a", .shape = Shape{3}}},
                                          [&](std::int64_t index) {
                                              const data::Example item = set.example(index);
                                              return std::vector{item["y"], item["scale"], item["b"], item["a"]};
                                          });
    InputTraining on_reordered(4, {.inputs = {"a", "b", "scale"}, .target = "y"});
    on_reordered.trainer.fit(reordered, input_options(2));
    CHECK(on_reordered.all() == by_position.all());
    // Without a target name, it is the first field that is not an input.
    InputTraining first_left(4, {.inputs = {"a", "b", "scale"}});
    first_left.trainer.fit(reordered, input_options(2));
    CHECK(first_left.all() == by_position.all());

    // Unnamed inputs are undefined tensors; captured as well.
    InputTraining two_inputs(4, {.inputs = {"a", "b"}, .target = "y"});
    two_inputs.trainer.fit(set, input_options(3));
    CHECK(two_inputs.trainer.replays().replayed > 20);
    auto options = input_options(3);
    options.capture = false;
    InputTraining plain(4, {.inputs = {"a", "b"}, .target = "y"});
    plain.trainer.fit(set, options);
    CHECK(two_inputs.all() == plain.all());
    CHECK(two_inputs.all() != by_position.all());
}

TEST_CASE("several inputs: captured steps match eager ones bit for bit") {
    const auto set = triples(8 * 12 + 5, 1), test_set = triples(30, 2);
    const auto run = [&](std::optional<bool> record) {
        InputTraining training(5);
        auto options = input_options(3);
        options.capture = record;
        training.trainer.fit(set, test_set, options);
        CHECK((training.trainer.replays().replayed > 0) == !record.has_value());
        return training.all();
    };
    CHECK(run({}) == run(false));
}

TEST_CASE("several inputs: a training resumed in the middle of an epoch equals an uninterrupted one") {
    const auto set = triples(83, 1), test_set = triples(30, 2);
    const test::TempFolder folder;
    const auto file = folder.path() / "checkpoint.safetensors";
    InputTraining unbroken(5);
    unbroken.trainer.fit(set, test_set, input_options(3));
    for (const std::int64_t stop_at : {1, 11, 16, 32}) {
        CAPTURE(stop_at);
        {
            InputTraining broken(5);
            broken.trainer.fit(set, test_set,
                               input_options(3, {std::make_shared<test::CallAt>(stop_at, [&](train::Trainer& trainer) {
                                                 trainer.save(file);
                                                 trainer.stop();
                                             })}));
        }
        InputTraining resumed(99);  // everything must come from the file
        resumed.trainer.load(file);
        CHECK(resumed.trainer.progress().step == stop_at);
        resumed.trainer.fit(set, test_set, input_options(3));
        CHECK(resumed.all() == unbroken.all());
    }
}

TEST_CASE("several inputs: padded sequences with lengths, validated and resumed with the same collate") {
    const auto set = sequences(90, 1), test_set = sequences(40, 2);
    const test::TempFolder folder;
    const auto file = folder.path() / "checkpoint.safetensors";
    struct InputSetup {
        Pooled model;
        optim::Adam optimizer;
        train::Trainer trainer;
        explicit InputSetup(std::uint64_t seed)
            : model((manual_seed(seed), Pooled())),
              optimizer(model.parameters(), {.lr = 0.05}),
              trainer(model, optimizer, {.inputs = {"numbers", "numbers_length"}}) {}
    };
    const auto options = [](std::vector<std::shared_ptr<train::Callback>> callbacks, double padding) {
        auto all = input_options(6, std::move(callbacks));
        all.collate = data::pad({.values = {{"numbers", padding}}});
        return all;
    };
    InputSetup unbroken(5), other_padding(5), resumed(99);
    unbroken.trainer.fit(
        set, test_set,
        options({std::make_shared<test::CallAt>(17, [&](train::Trainer& trainer) { trainer.save(file); })}, 0));
    CHECK(unbroken.trainer.progress().history.back()["test_accuracy"] > 0.9);
    resumed.trainer.load(file);
    resumed.trainer.fit(set, test_set, options({}, 0));
    CHECK(test::weights(resumed.model) == test::weights(unbroken.model));
    other_padding.trainer.fit(set, test_set, options({}, 1e3));  // elements beyond an example's length are ignored
    CHECK(test::weights(other_padding.model) == test::weights(unbroken.model));
    const auto by_collate = data::pad({.values = {{"numbers", 0}}});
    CHECK(unbroken.trainer.evaluate(test_set, {.batch = 40, .collate = by_collate})["accuracy"] ==
          unbroken.trainer.progress().history.back()["test_accuracy"]);
}

TEST_CASE("several inputs: error messages") {
    const auto set = triples(20, 1);
    CHECK_THROWS_WITH_AS(
        InputTraining(1, {.inputs = {"a", "b", "scale", "y"}}),
        "Trainer: expected at most 3 inputs, as many as the model takes, got [\"a\", \"b\", \"scale\", "
        "\"y\"]",
        ValueError);
    InputTraining misspelt(1, {.inputs = {"a", "bb"}});
    CHECK_THROWS_WITH_AS(misspelt.trainer.fit(set, input_options(1)), doctest::Contains("got 'bb'"), ValueError);
    InputTraining no_target(1, {.target = "z"});
    CHECK_THROWS_WITH_AS(no_target.trainer.fit(set, input_options(1)), doctest::Contains("got 'z'"), ValueError);

    const data::FunctionDataset two_fields(20, {{.name = "a", .shape = Shape{3}}, {.name = "y", .shape = Shape{1}}},
                                           [&](std::int64_t index) {
                                               const data::Example item = set.example(index);
                                               return std::vector{item["a"], item["y"]};
                                           });
    InputTraining by_position(1);
    CHECK_THROWS_WITH_AS(by_position.trainer.fit(two_fields, input_options(1)),
                         "Trainer: expected a batch with the 3 inputs of the model, got [\"a\", \"y\"] "
                         "(ModelOptions::inputs names them)",
                         ValueError);
    const data::FunctionDataset three_fields(
        20, {{.name = "a", .shape = Shape{3}}, {.name = "b", .shape = Shape{2}}, {.name = "y", .shape = Shape{1}}},
        [&](std::int64_t index) {
            const data::Example item = set.example(index);
            return std::vector{item["a"], item["b"], item["y"]};
        });
    CHECK_THROWS_WITH_AS(
        by_position.trainer.fit(three_fields, input_options(1)),
        "Trainer: expected a target in addition to the inputs of the model, which takes 3, got a batch of [\"a\", "
        "\"b\", \"y\"] (ModelOptions names inputs and target)",
        ValueError);
}
