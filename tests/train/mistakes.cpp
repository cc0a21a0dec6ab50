// Common mistakes have an error message that begins with the called name.
#include <cmath>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <declivity/capture/capture.hpp>
#include <declivity/data/cifar10.hpp>
#include <declivity/data/dataset.hpp>
#include <declivity/data/idx.hpp>
#include <declivity/data/random.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/io/gguf.hpp>
#include <declivity/io/lora.hpp>
#include <declivity/io/png.hpp>
#include <declivity/io/safetensors_reader.hpp>
#include <declivity/io/state_dict.hpp>
#include <declivity/nn/nn.hpp>
#include <declivity/optim/adam.hpp>
#include <declivity/optim/schedule.hpp>
#include <declivity/optim/sgd.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <declivity/text/ngram.hpp>
#include <declivity/text/sequence_dataset.hpp>
#include <declivity/text/tokenizer.hpp>
#include <declivity/text/vocabulary.hpp>
#include <declivity/train/callbacks.hpp>
#include <declivity/train/trainer.hpp>
#include <doctest/doctest.h>

#include <tests/support/error_message.hpp>
#include <tests/support/values.hpp>

using namespace declivity;
using test::error_message;

namespace {

data::InMemoryDataset faulty_points(float first = 0) {
    data::Random random(4, 0, 0, data::Purpose::user);
    std::vector<float> values;
    std::vector<std::int64_t> labels;
    for (std::int64_t i = 0; i < 32; ++i) {
        for (int k = 0; k < 4; ++k) values.push_back(random.normal());
        labels.push_back(i % 3);
    }
    values[0] = first;
    return {{4}, std::move(values), std::move(labels), 3};
}

struct FaultySetup {
    nn::Linear model{4, 3};
    optim::SGD optimizer{model.parameters(), {.lr = 0.1}};
    train::Trainer trainer;
    explicit FaultySetup(train::Loss loss = {}) : trainer(model, optimizer, std::move(loss)) {}
};

struct WithinStep : train::Callback {
    std::function<void(train::Trainer&)> action;
    explicit WithinStep(std::function<void(train::Trainer&)> function) : action(std::move(function)) {}
    void after_step(train::Trainer& trainer) override { action(trainer); }
};

}  // namespace

TEST_CASE("mistakes: moved-from objects") {
    nn::Linear model(2, 2);
    optim::Adam first(model.parameters());
    optim::Adam second(std::move(first));
    for (const std::function<void()>& call : std::vector<std::function<void()>>{
             [&] { first.step(); }, [&] { first.zero_grad(); }, [&] { (void)first.learning_rate(); },
             [&] { (void)first.groups(); }, [&] { (void)first.state_dict(); }, [&] { first.set_learning_rate(1); },
             [&] { first.add_group({ones({2}).set_requires_grad()}, {}); }, [&] { train::Trainer(model, first); }}) {
        const std::string message = error_message<Error>(call);
        CAPTURE(message);
        CHECK(message.starts_with("Optimizer::"));
        CHECK(message.ends_with("got one that was moved from"));
    }
    second.step();
    CapturedFunction step = capture([](const Tensor& x) { return x * 2.0; });
    const Tensor x = ones({2});
    step(x);
    CapturedFunction moved = std::move(step);
    for (const std::function<void()>& call : std::vector<std::function<void()>>{
             [&] { step(x); }, [&] { (void)step.replays(); }, [&] { step.reset(); }, [&] { step.confirm(); }})
        CHECK(error_message<Error>(call) == "CapturedStep: expected a step, got one that was moved from");
    CHECK(test::values(moved(x)) == std::vector<double>{2, 2});
}

TEST_CASE("mistakes: options of fit") {
    const auto set = faulty_points();
    const auto fit = [&](const train::FitOptions& options) {
        return error_message<Error>([&] { FaultySetup().trainer.fit(set, options); });
    };
    CHECK(fit({.epochs = 0, .quiet = true}) == "nothing was thrown");
    CHECK(fit({.epochs = -1, .quiet = true}) == "Trainer::fit: expected epochs of at least 0, got -1");
    CHECK(fit({.batch = 0, .quiet = true}) == "Trainer::fit: expected a batch of at least 1, got 0");
    CHECK(fit({.clip_norm = -1, .quiet = true}) ==
          "Trainer::fit: expected a clip_norm above 0, or 0 for no clipping, got -1");
    CHECK(fit({.clip_norm = NAN, .quiet = true}) ==
          "Trainer::fit: expected a clip_norm above 0, or 0 for no clipping, got nan");
    CHECK(fit({.callbacks = {nullptr}, .quiet = true}) ==
          "Trainer::fit: expected callbacks, got a null pointer among them");
    CHECK(error_message<Error>([&] { (void)FaultySetup().trainer.evaluate(set, {.batch = 0}); }) ==
          "Trainer::evaluate: expected a batch of at least 1, got 0");
    CHECK(error_message<Error>([&] { (void)FaultySetup().trainer.predict(set, {.batch = -3}); }) ==
          "Trainer::predict: expected a batch of at least 1, got -3");
    std::string inner;
    FaultySetup setup;
    CHECK(setup.trainer.fit(set, {.callbacks = {std::make_shared<WithinStep>([&](train::Trainer& trainer) {
                                      inner = error_message<Error>([&] { trainer.fit(set, {.quiet = true}); });
                                  })},
                                  .quiet = true}));
    CHECK(inner.starts_with("Trainer::fit: expected a trainer that is not fitting, got one that is"));
    CHECK(setup.trainer.fit(set, {.epochs = 2, .quiet = true}));  // later it may
    CHECK(error_message<Error>([&] {
              FaultySetup([](const Tensor&, const Tensor&) { return Tensor(); }).trainer.fit(set, {.quiet = true});
          }) == "Trainer: expected a loss of one element, got an undefined tensor from the loss function");
    const data::InMemoryDataset none({4}, std::vector<float>{}, {}, 3);
    FaultySetup empty;
    CHECK(error_message<Error>([&] { empty.trainer.fit(set, none, {.quiet = true}); }) ==
          "Trainer::fit: expected a data set 'test' of at least one example, got an empty one");
    CHECK(empty.trainer.progress().step == 0);
    CHECK(error_message<Error>([&] { empty.trainer.fit(none, {.quiet = true}); }) ==
          "Trainer::fit: expected a data set 'train' of at least one example, got an empty one");
    CHECK(error_message<Error>([&] { (void)empty.trainer.evaluate(none); }) ==
          "Trainer::evaluate: expected a data set of at least one example, got an empty one");
    CHECK(error_message<Error>([&] { (void)empty.trainer.predict(none); }) ==
          "Trainer::predict: expected a data set of at least one example, got an empty one");
    const std::string data_error =
        error_message<Error>([&] { FaultySetup().trainer.fit(faulty_points(NAN), {.quiet = true}); });
    CHECK(data_error.find("in 'input'") != std::string::npos);
    CHECK(data_error.ends_with("Look at the data and its transform"));
}

TEST_CASE("mistakes: optimizers and their parameters") {
    nn::Linear model(2, 2);
    optim::SGD optimizer(model.parameters());
    CHECK(error_message<Error>([&] { optimizer.set_learning_rate(0.1, 3); }) ==
          "Optimizer::set_learning_rate: expected a group below 1, got 3");
    CHECK(error_message<Error>([&] { (void)optimizer.learning_rate(1); }) ==
          "Optimizer::learning_rate: expected a group below 1, got 1");
    CHECK(error_message<Error>([&] { (void)optimizer.parameters(2); }) ==
          "Optimizer::parameters: expected a group below 1, got 2");
    CHECK(error_message<Error>([&] { optim::apply({}, 1, optimizer); }) ==
          "apply: expected a schedule, got an empty function");
    const Tensor leaf = ones({2}).set_requires_grad();
    CHECK(error_message<Error>([&] { optim::SGD({leaf, ones({2})}); }) == "nothing was thrown");  // a frozen one
    CHECK(error_message<Error>([&] { optim::SGD({leaf * 2.0}); }) ==
          "SGD: expected leaf tensors, got the result of a function as parameter 0");
    CHECK(error_message<Error>([&] {
              optim::SGD({leaf, Tensor()});
          }) == "SGD: expected leaf tensors, got an undefined tensor as parameter 1");
    CHECK(error_message<Error>([&] { optim::clip_grad_norm({leaf}, -1); }) ==
          "clip_grad_norm: expected a max_norm above 0, got -1");
    CHECK(error_message<Error>([&] { optim::clip_grad_norm({Tensor()}, 1); }) ==
          "clip_grad_norm: expected tensors, got an undefined one");
    if (default_device().info().fp64) {
        model.to(DType::f64);
        sum(model(ones({1, 2}, {DType::f64}))).backward();
        CHECK(error_message<Error>([&] {
                  optimizer.step();
              }).starts_with("SGD: expected parameters unchanged since the optimizer was created, '0' of f32 "));
    }
}

TEST_CASE("mistakes: modules") {
    nn::Sequential model(nn::Linear(2, 2), nn::BatchNorm2d(4));
    CHECK(error_message<Error>([&] { model.to(DType::i32); }) == "Module::to: expected a floating type, got i32");
    CHECK(error_message<Error>([&] { model.to(DType::boolean); }) == "Module::to: expected a floating type, got bool");
    CHECK(model.parameters()[0].dtype() == DType::f32);
    nn::BatchNorm2d norm(4);
    for (const bool training : {true, false}) {
        norm.train(training);
        CHECK(error_message<Error>([&] {
                  norm(ones({2, 3, 2, 2}));
              }) ==
              "batch_norm: expected x of shape (N, C, ...) with as many channels as the running mean has elements, got "
              "x of shape "
              "[2, 3, 2, 2] and the "
              "running mean of shape [4] (in BatchNorm2d)");
    }
    CHECK(error_message<Error>([] { nn::BatchNorm2d(0); }) == "BatchNorm: expected num_features of at least 1, got 0");
    CHECK(
        error_message<Error>([] { nn::MaxPool2d(0); }).starts_with("MaxPool2d: expected a kernel size of at least 1"));
    CHECK(error_message<Error>([] {
              nn::AvgPool2d(2, {.padding = 2});
          }).starts_with("AvgPool2d: expected a kernel size of at least 1"));
    CHECK(error_message<Error>([] { nn::Lambda(nullptr)(ones({1})); }) ==
          "Lambda: expected a function, got an empty one (in Lambda)");
    nn::Linear linear(2, 2);
    auto state = linear.state_dict();
    state.push_back(state[0]);
    CHECK(error_message<Error>([&] { linear.load_state_dict(state); }) ==
          "load_state_dict: expected each name once, got 'weight' again");
}

TEST_CASE("mistakes: shapes and types of new tensors") {
    CHECK(error_message<Error>([] {
              (void)rand({4}, {.dtype = DType::i32});
          }).starts_with("rand: expected a floating type, got i32"));
    CHECK(error_message<Error>([] {
              (void)randn({4}, {.dtype = DType::i64});
          }).starts_with("randn: expected a floating type, got i64"));
    CHECK(error_message<Error>([] {
              (void)normal({4}, 0, 1, {.dtype = DType::u8});
          }).starts_with("normal: expected a floating type, got u8"));
    Dims sizes{2, 3, 5};
    CHECK(sizes[-1] == 5);
    CHECK(sizes[-3] == 2);
    CHECK(sizes.back() == 5);
    CHECK(error_message<Error>([&] { (void)sizes[3]; }) == "Dims: expected an axis in [-3, 3), got 3 of [2, 3, 5]");
    CHECK(error_message<Error>([&] { sizes[-4] = 1; }) == "Dims: expected an axis in [-3, 3), got -4 of [2, 3, 5]");
    CHECK(error_message<Error>([] { (void)Dims().back(); }).starts_with("Dims: expected an axis in [0, 0)"));
    CHECK(error_message<Error>([&] { sizes.erase(3); }) == "Dims::erase: expected a position in [0, 3), got 3");
    CHECK(error_message<Error>([&] { sizes.insert(4, 1); }) == "Dims::insert: expected a position in [0, 3], got 4");
}

TEST_CASE("mistakes: a missing validation set is refused before the first epoch, with the callback's name") {
    const data::InMemoryDataset set = faulty_points();
    const auto fit = [&](std::shared_ptr<train::Callback> callback,
                         const std::vector<train::NamedDataset>& validation) {
        FaultySetup setup;
        const std::string message = error_message<Error>(
            [&] { setup.trainer.fit(set, validation, {.callbacks = {std::move(callback)}, .quiet = true}); });
        return std::pair(message, setup.trainer.progress().step);
    };
    const auto best = [](const std::string& metric) {
        return std::make_shared<train::Checkpoint>(
            train::CheckpointOptions{.best = "never.safetensors", .monitor = {metric, train::Monitor::Better::higher}});
    };
    CHECK(
        fit(best("test_accuracy"), {{"easy", set}, {"hard", set}}) ==
        std::pair(std::string("Checkpoint (monitor of best): expected a metric of this training (train_..., easy_..., "
                              "hard_..., learning_rate, seconds), got 'test_accuracy'"),
                  std::int64_t{0}));
    CHECK(
        fit(std::make_shared<train::EarlyStopping>(2), {}) ==
        std::pair(std::string("EarlyStopping: expected a metric of this training (train_..., learning_rate, seconds), "
                              "got 'test_loss'"),
                  std::int64_t{0}));
    CHECK(fit(std::make_shared<train::LearningCurvePicture>("never.png",
                                                            train::LearningCurveOptions{.losses = {"easy_loss"}}),
              {{"hard", set}})
              .first.starts_with("LearningCurvePicture: expected a metric of this training (train_..., hard_..., "));
    // The names of the metrics are known only after the first epoch.
    CHECK(fit(best("hard_bleu"), {{"hard", set}})
              .first.starts_with(
                  "Checkpoint (monitor of best): expected the name of a metric, one of [\"train_loss\", "));
    CHECK(fit(std::make_shared<train::EarlyStopping>(2, 0, train::Monitor{"hard_loss"}), {{"hard", set}}).first ==
          "nothing was thrown");
}

TEST_CASE("mistakes: files that cannot be opened are named with the called function") {
    FaultySetup setup;
    CHECK(error_message<Error>([] { (void)io::load("there is none/x.safetensors"); }) ==
          "cannot open 'there is none/x.safetensors': No such file or directory (called by io::load)");
    CHECK(error_message<Error>([&] { setup.trainer.load("there is none/x.safetensors"); }) ==
          "cannot open 'there is none/x.safetensors': No such file or directory (called by Trainer::load)");
    CHECK(error_message<Error>([&] {
              io::save("there is none/x.safetensors", setup.model.state_dict());
          }).ends_with("No such file or directory (called by io::save)"));
    CHECK(error_message<Error>([&] {
              setup.trainer.save("there is none/x.safetensors");
          }).ends_with("No such file or directory (called by Trainer::save)"));
    const std::filesystem::path none = "/there is none/x";
    const auto check_named = [&](const std::string& function, const std::function<void()>& call) {
        const std::string message = error_message<Error>(call);
        CHECK_MESSAGE(message.ends_with("No such file or directory (called by " + function + ")"), message);
    };
    check_named("io::read_safetensors", [&] { (void)io::read_safetensors(none); });
    check_named("io::write_safetensors", [&] { io::write_safetensors(none, {}); });
    check_named("io::SafetensorsReader", [&] { (void)io::SafetensorsReader(none); });
    check_named("io::load_sharded", [&] { (void)io::load_sharded(none); });
    check_named("io::GgufReader", [&] { (void)io::GgufReader(none); });
    check_named("io::load_gguf", [&] { (void)io::load_gguf(none); });
    check_named("io::read_png", [&] { (void)io::read_png(none); });
    check_named("load_lora", [&] { io::load_lora(setup.model, none); });
    check_named("read_idx", [&] { (void)data::read_idx(none); });
    check_named("load_mnist", [&] { (void)data::load_mnist(none, data::Split::train); });
    check_named("load_cifar10", [&] { (void)data::load_cifar10(none, data::Split::train); });
    check_named("Tokenizer::from_file", [&] { (void)text::Tokenizer::from_file(none); });
    check_named("Tokenizer::save", [&] { text::byte_tokenizer().save(none); });
    check_named("Vocabulary::load", [&] { (void)text::Vocabulary::load(none); });
    check_named("NgramModel::load", [&] { (void)text::NgramModel::load(none); });
    check_named("NgramModel::save", [&] { text::NgramModel(3).save(none); });
    check_named("WindowDataset", [&] { (void)text::WindowDataset(none, {.length = 2}); });
    check_named("write_tokens", [&] { (void)text::write_tokens(none, std::vector<std::int64_t>{1}); });
    check_named("lines_of", [&] { text::lines_of({none}).for_each([](const std::string&) {}); });
}
