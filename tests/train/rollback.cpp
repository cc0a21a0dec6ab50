// A failed fit leaves model, optimizer and trainer as they were before the failed step, and another fit continues with
// it.
#include <atomic>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <declivity/data/random.hpp>
#include <declivity/data/synthetic_digits.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/functions/random.hpp>
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
#include "tests/support/child.hpp"

using namespace declivity;

namespace {

constexpr std::int64_t kExamples = 120, kBatch = 4, kBad = 90;  // an example of batch 22

enum class Fault { none, infinite, throws };

/// Points and their class; one example is invalid while `fault` says so.
struct Points {
    std::atomic<Fault> fault = Fault::none;
    data::FunctionDataset set{kExamples,
                              {{.name = "x", .dtype = DType::f32, .shape = Shape{4}},
                               {.name = "label", .dtype = DType::i64, .shape = Shape{}}},
                              [this](std::int64_t index) {
                                  data::Random random(3, 0, static_cast<std::uint64_t>(index), data::Purpose::user);
                                  std::vector<float> x(4);
                                  for (float& value : x) value = random.normal();
                                  const std::int64_t label = x[0] + x[1] > 0 ? 1 : 0;
                                  if (index == kBad && fault == Fault::infinite)
                                      x[2] = std::numeric_limits<float>::infinity();
                                  if (index == kBad && fault == Fault::throws)
                                      throw ValueError("a file that cannot be read");
                                  return std::vector{io::HostArray::of({4}, x), io::HostArray::of(label)};
                              }};
};

/// Running statistics, random numbers of the device and of a generator, a metric.
struct RollbackTraining {
    std::uint64_t seed = (manual_seed(5), 5);  // seed of the weights
    nn::Sequential model;
    optim::Adam optimizer;
    Generator generator{17};
    train::Trainer trainer;

    RollbackTraining()
        : model(nn::Linear(4, 6), nn::BatchNorm1d(6), nn::ReLU(), nn::Dropout(0.2), nn::Linear(6, 2)),
          optimizer(model.parameters(), {.lr = 0.01}),
          trainer(model, optimizer, nn::CrossEntropyLoss(),
                  {.metrics = {{"accuracy", std::make_shared<train::Accuracy>()},
                               {"perplexity", std::make_shared<train::Perplexity>()}},
                   .generators = {{"own", generator}}}) {
        manual_seed(6);
        random = random_state(default_device());
    }

    /// The random state of this training, whatever others sampled in between.
    RandomState random;
    template <class... Arguments>
    bool fit(const Arguments&... arguments) {
        set_random_state(default_device(), random);
        struct KeepRandomState {
            RandomState& saved;
            ~KeepRandomState() { saved = random_state(default_device()); }
        } const keep{random};
        return trainer.fit(arguments...);
    }

    std::vector<double> state() const {
        std::vector<double> all;
        for (const auto& [name, tensor] : model.state_dict())
            for (const double value : test::values(tensor)) all.push_back(value);
        for (const auto& [name, tensor] : optimizer.state_dict())
            for (const double value : test::values(tensor)) all.push_back(value);
        all.push_back(static_cast<double>(random.offset));
        all.push_back(static_cast<double>(trainer.progress().batch));
        all.push_back(static_cast<double>(trainer.progress().step));
        all.push_back(static_cast<double>(trainer.progress().epoch));
        return all;
    }
    std::vector<double> metrics() const {
        std::vector<double> all;
        for (const auto& epoch : trainer.progress().history)
            for (const auto& [name, value] : epoch)
                if (name != "seconds") all.push_back(value);
        return all;
    }
};

struct StopAfter : train::Callback {
    std::int64_t step;
    explicit StopAfter(std::int64_t last_step) : step(last_step) {}
    void after_step(train::Trainer& trainer) override {
        if (trainer.progress().step == step) trainer.stop();
    }
};

train::FitOptions options(std::int64_t epochs, bool record, std::int64_t accumulate) {
    return {.epochs = epochs,
            .batch = kBatch,
            .shuffle = false,
            .accumulate = accumulate,
            .quiet = true,
            .capture = record};
}

}  // namespace

TEST_CASE("rollback: a fit that failed in a step left everything unchanged, and another fit continues with that step") {
    for (const Fault fault : {Fault::infinite, Fault::throws})
        for (const bool record : {true, false})
            for (const std::int64_t accumulate : {1, 3}) {
                CAPTURE(static_cast<int>(fault));
                CAPTURE(record);
                CAPTURE(accumulate);
                Points points;
                RollbackTraining unbroken, broken, stopped;
                unbroken.fit(points.set, options(2, record, accumulate));
                // The epoch before succeeds, so that steps are replays.
                broken.fit(points.set, options(1, record, accumulate));
                stopped.fit(points.set, options(1, record, accumulate));
                points.fault = fault;
                CHECK_THROWS_AS(broken.fit(points.set, options(2, record, accumulate)), Error);
                points.fault = Fault::none;
                const std::int64_t steps = kExamples / kBatch / accumulate, failed = kBad / kBatch / accumulate;
                CHECK(broken.trainer.progress().step == steps + failed);
                CHECK(broken.trainer.progress().batch == failed * accumulate);
                auto until = options(2, record, accumulate);
                until.callbacks = {std::make_shared<StopAfter>(steps + failed)};
                stopped.fit(points.set, until);
                CHECK(broken.state() == stopped.state());
                CHECK(broken.fit(points.set, options(2, record, accumulate)));
                CHECK(broken.state() == unbroken.state());
                CHECK(broken.metrics() == unbroken.metrics());
            }
}

TEST_CASE("rollback: a fit continues after a callback, a validation set or a module threw") {
    Points points;
    RollbackTraining unbroken;
    unbroken.fit(points.set, points.set, options(3, true, 1));
    RollbackTraining broken;
    struct Throws : train::Callback {
        int position = 0;
        std::int64_t step = 0;
        void before_step(train::Trainer& trainer) override {
            if (position == 0 && trainer.progress().step == step) throw ValueError("before a step");
        }
        void after_step(train::Trainer& trainer) override {
            if (position == 1 && trainer.progress().step == step) throw ValueError("behind a step");
        }
        void after_epoch(train::Trainer&, const train::EpochMetrics&) override {
            if (position == 2) throw ValueError("behind an epoch");
        }
    };
    const auto throwing = std::make_shared<Throws>();
    auto options_with = options(3, true, 1);
    options_with.callbacks = {throwing};
    for (int position = 0; position < 3; ++position) {
        throwing->position = position;
        throwing->step = 7 + 11 * position;
        CHECK_THROWS_AS(broken.fit(points.set, points.set, options_with), ValueError);
    }
    CHECK(broken.trainer.progress().epoch == 1);
    Points unreadable;
    unreadable.fault = Fault::throws;
    CHECK_THROWS_AS(broken.fit(points.set, unreadable.set, options(3, true, 1)), ValueError);
    CHECK(broken.trainer.progress().epoch == 1);
    CHECK(broken.fit(points.set, points.set, options(3, true, 1)));
    CHECK(broken.state() == unbroken.state());
    CHECK(broken.metrics() == unbroken.metrics());
}

TEST_CASE("rollback: an evaluation restores the mode of each module") {
    nn::Sequential model(nn::Linear(4, 4), nn::Dropout(0.5), nn::Sequential(nn::BatchNorm1d(4), nn::Linear(4, 2)));
    optim::SGD optimizer(model.parameters());
    train::Trainer trainer(model, optimizer);
    model[1].eval();
    model.children()[2].second->children()[0].second->eval();
    Points points;
    (void)trainer.evaluate(points.set);
    CHECK(model.training());
    CHECK_FALSE(model[1].training());
    CHECK(model.children()[2].second->training());
    CHECK_FALSE(model.children()[2].second->children()[0].second->training());
    CHECK(model.children()[2].second->children()[1].second->training());
}

namespace {

/// Two layers, and a factor whose gradient is NaN if an input is exactly 0: sqrt(0) has no derivative, and 0 times
/// infinity is NaN. The loss is finite.
struct Rooted : nn::Layer {
    nn::Linear& first = add("first", nn::Linear(4, 5));
    nn::Parameter factor = parameter("factor", ones({1}));
    nn::Linear& last = add("last", nn::Linear(5, 2));
    Tensor forward(Tensor x) override {
        const Tensor root = sqrt(square(slice(x, 1, 2, 3)) * factor);
        return last(tanh(first(x))) + root;
    }
    const std::type_info& capture_safe() const override { return typeid(Rooted); }
};

std::vector<double> values_of(const nn::Module& model, const optim::Optimizer& optimizer) {
    std::vector<double> all;
    for (const auto& [name, tensor] : model.state_dict())
        for (const double value : test::values(tensor)) all.push_back(value);
    for (const auto& [name, tensor] : optimizer.state_dict())
        for (const double value : test::values(tensor)) all.push_back(value);
    return all;
}

/// Batches of 4, of which the one with this number has an input of 0.
data::TensorDataset with_zero(std::int64_t batches, std::int64_t bad, std::int64_t end) {
    std::vector<float> x;
    std::vector<std::int64_t> label;
    data::Random random(8, 0, 0, data::Purpose::user);
    for (std::int64_t i = 0; i < std::min(batches, end) * 4; ++i) {
        for (int k = 0; k < 4; ++k) x.push_back(random.normal());
        if (i / 4 == bad) x[x.size() - 2] = 0;
        label.push_back(i % 2);
    }
    const auto count = static_cast<std::int64_t>(label.size());
    return data::TensorDataset({{"x", io::HostArray::of({count, 4}, x)}, {"label", io::HostArray::of({count}, label)}});
}

}  // namespace

TEST_CASE("rollback: a NaN gradient with a finite loss reaches no parameter") {
    constexpr std::int64_t batches = 12, bad = 6;
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16})
        for (const bool record : {true, false})
            for (const double clip : {0.0, 0.5})
                for (const std::int64_t accumulate : {1, 3}) {
                    CAPTURE(name_of(dtype));
                    CAPTURE(record);
                    CAPTURE(clip);
                    CAPTURE(accumulate);
                    const auto run = [&](std::int64_t end) {
                        manual_seed(4);
                        Rooted model;
                        model.to(dtype);
                        optim::Adam optimizer(model.parameters(), {.lr = 0.01});
                        train::Trainer trainer(model, optimizer);
                        train::FitOptions fit_options{.epochs = 1,
                                                      .batch = 4,
                                                      .shuffle = false,
                                                      .accumulate = accumulate,
                                                      .clip_norm = clip,
                                                      .quiet = true,
                                                      .capture = record};
                        try {
                            trainer.fit(with_zero(batches, bad, end), fit_options);
                            CHECK(end == bad);
                        } catch (const train::NonFiniteLoss& error) {
                            CHECK(end == batches);
                            CHECK(error.layer() == "gradient of factor");
                            CHECK(error.step() == bad / accumulate + 1);
                            CHECK(std::string(error.what()).find("the loss was finite, its gradient was infinite") !=
                                  std::string::npos);
                            CHECK(trainer.progress().batch == bad);
                        }
                        return values_of(model, optimizer);
                    };
                    CHECK(run(batches) == run(bad));
                }
}

TEST_CASE("rollback: a NaN gradient reaches no optimizer of a user-defined step") {
    constexpr std::int64_t batches = 12, bad = 5;
    for (const bool record : {true, false})
        for (const bool behind_backward : {false, true}) {
            CAPTURE(record);
            CAPTURE(behind_backward);
            const auto run = [&](std::int64_t end) {
                manual_seed(4);
                Rooted model;
                optim::SGD first(model.first.parameters(), {.lr = 0.01, .momentum = 0.9}),
                    rest({model.factor.value(), model.last.weight(), model.last.bias()}, {.lr = 0.01});
                train::Trainer trainer({.modules = {{"net", model}}, .optimizers = {{"first", first}, {"rest", rest}}},
                                       [&](train::Step& step, const data::Batch& batch) {
                                           first.zero_grad();
                                           rest.zero_grad();
                                           Tensor x = batch["x"];
                                           if (behind_backward) x = where(x == 0, 1, x);
                                           step.backward(cross_entropy(model(x), batch["label"]));
                                           if (behind_backward) {  // gradients changed by the program
                                               const Tensor zeros_in = min(abs(batch["x"]));
                                               Tensor factor = model.factor;
                                               factor.set_grad(factor.grad() / zeros_in * zeros_in);
                                               rest.step();
                                               return;
                                           }
                                           first.step();
                                           rest.step();
                                       });
                try {
                    trainer.fit(with_zero(batches, bad, end),
                                {.epochs = 1, .batch = 4, .shuffle = false, .quiet = true, .capture = record});
                    CHECK(end == bad);
                } catch (const train::NonFiniteLoss& error) {
                    CHECK(end == batches);
                    CHECK(error.layer() == (behind_backward ? "" : "gradient of net.factor"));
                    CHECK(trainer.progress().batch == bad);
                }
                auto all = values_of(model, first);
                for (const auto& [name, tensor] : rest.state_dict())
                    for (const double value : test::values(tensor)) all.push_back(value);
                return all;
            };
            CHECK(run(batches) == run(bad));
        }
}

TEST_CASE("rollback: two trainers may share an optimizer, and leave it without a guard") {
    nn::Linear model(4, 2);
    optim::SGD optimizer(model.parameters(), {.lr = 0.1});
    train::Trainer first(model, optimizer), second(model, optimizer);
    const auto bad = with_zero(3, 100, 3);
    auto nan = io::HostArray::of({4, 4}, std::vector<float>(16, NAN));
    const data::TensorDataset infinite_inputs(
        {{"x", nan}, {"label", io::HostArray::of({4}, std::vector<std::int64_t>(4, 0))}});
    const train::FitOptions fit_options{.epochs = 1, .batch = 4, .quiet = true};
    CHECK_THROWS_AS(first.fit(infinite_inputs, fit_options), train::NonFiniteLoss);
    CHECK_FALSE(std::isnan(test::values(model.parameters()[0])[0]));
    const auto before = test::values(model.parameters()[0]);
    CHECK(second.fit(bad, fit_options));
    const auto last_step = test::values(model.parameters()[0]);
    CHECK(last_step != before);
    optimizer.zero_grad();
    sum(model(ones({1, 4}))).backward();
    optimizer.step();
    CHECK(test::values(model.parameters()[0]) != last_step);
}

TEST_CASE("trainer: data sets as shared pointers") {
    const auto train_set = std::make_shared<const data::SyntheticDigits>(64, 1);
    const auto test_set = std::make_shared<data::SyntheticDigits>(32, 2);
    const std::shared_ptr<const data::Dataset> base = train_set;
    nn::Sequential model(nn::Flatten(), nn::Linear(784, 10));
    optim::SGD optimizer(model.parameters());
    train::Trainer trainer(model, optimizer);
    const train::FitOptions one_epoch{.epochs = 1, .batch = 16, .quiet = true},
        two_epochs{.epochs = 2, .batch = 16, .quiet = true};
    trainer.fit(train_set, test_set, one_epoch);
    trainer.fit(base, {{"a", test_set}, {"b", *test_set}, {"c", data::take(train_set, 5)}}, two_epochs);
    CHECK(trainer.progress().history[1].has("c_loss"));
    trainer.fit(data::take(train_set, 64), {.epochs = 3, .batch = 16, .quiet = true});
    CHECK(trainer.evaluate(test_set)["accuracy"] == trainer.evaluate(*test_set)["accuracy"]);
    CHECK(trainer.predict(test_set).shape() == Shape{32, 10});
    CHECK_THROWS_WITH_AS(trainer.fit(std::shared_ptr<data::Dataset>(), one_epoch),
                         "Trainer::fit: expected a data set, got null", ValueError);
    CHECK_THROWS_WITH_AS((void)trainer.evaluate(std::shared_ptr<data::SyntheticDigits>()),
                         "Trainer::evaluate: expected a data set, got null", ValueError);
}

TEST_CASE("child: two fits of the same number of epochs" * doctest::skip()) {
    const data::SyntheticDigits digits(16, 1);
    nn::Sequential model(nn::Flatten(), nn::Linear(784, 10));
    optim::SGD optimizer(model.parameters());
    train::Trainer trainer(model, optimizer);
    CHECK(trainer.fit(digits, {.epochs = 2, .batch = 16}));
    CHECK(trainer.fit(digits, {.epochs = 2, .batch = 16}));
}

TEST_CASE("trainer: a fit whose epochs are complete reports it") {
    const auto child = test::run_child("child: two fits of the same number of epochs", {});
    CHECK(child.code == 0);
    CHECK(child.output.find("nothing to do: 2 of 2 epochs are complete") != std::string::npos);
}
