// Steps that the trainer captures automatically match eager calls, whatever the program decides from step to step.
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/capture/capture.hpp>
#include <declivity/data/dataset.hpp>
#include <declivity/data/random.hpp>
#include <declivity/nn/nn.hpp>
#include <declivity/optim/adam.hpp>
#include <declivity/optim/sgd.hpp>
#include <declivity/tensor/creation.hpp>
#include <declivity/train/trainer.hpp>
#include <doctest/doctest.h>

#include <tests/support/values.hpp>

using namespace declivity;

namespace {

constexpr std::int64_t kSteps = 24;  // of three epochs

data::InMemoryDataset replay_points() {
    data::Random random(4, 0, 0, data::Purpose::user);
    std::vector<float> values;
    std::vector<std::int64_t> labels;
    for (std::int64_t i = 0; i < 8 * 16; ++i) {
        for (int k = 0; k < 5; ++k) values.push_back(random.normal() + static_cast<float>(i % 3));
        labels.push_back(i % 3);
    }
    return {{5}, std::move(values), std::move(labels), 3};
}

/// Calls a function before each step.
struct BeforeStep : train::Callback {
    std::function<void(std::int64_t step)> action;
    explicit BeforeStep(std::function<void(std::int64_t)> what) : action(std::move(what)) {}
    void before_step(train::Trainer& trainer) override { action(trainer.progress().step); }
};

/// A training with parts that a case replaces.
struct ReplayTraining {
    std::unique_ptr<nn::Layer> model;
    std::unique_ptr<optim::Optimizer> optimizer;
    train::Loss loss;
    train::FitOptions options{.epochs = 3, .batch = 16, .seed = 7, .quiet = true};
    std::function<void(std::int64_t step)> before_step;

    std::vector<double> weights;  // final weights
    train::Replays replays;

    nn::Sequential& sequential() { return dynamic_cast<nn::Sequential&>(*model); }
    void run() {
        if (!optimizer)
            optimizer =
                std::make_unique<optim::SGD>(model->parameters(), optim::SGDOptions{.lr = 0.05, .momentum = 0.9});
        if (before_step) options.callbacks.push_back(std::make_shared<BeforeStep>(before_step));
        train::Trainer trainer(*model, *optimizer, loss);
        trainer.fit(replay_points(), options);
        for (const auto& [name, tensor] : model->state_dict())
            for (const double value : test::values(tensor)) weights.push_back(value);
        replays = trainer.replays();
    }
};

using Prepare = std::function<void(ReplayTraining&)>;

/// Runs the same training with automatic captures (or as `prepare` requests) and eagerly.
train::Replays same_as_plain(const Prepare& prepare) {
    const auto run = [&](bool plain) {
        manual_seed(3);
        auto training = std::make_unique<ReplayTraining>();
        prepare(*training);
        if (plain) training->options.capture = false;
        training->run();
        if (plain) CHECK(training->replays.replayed == 0);
        return training;
    };
    const auto automatic = run(false), plain = run(true);
    CHECK(automatic->weights == plain->weights);
    return automatic->replays;
}

std::unique_ptr<nn::Sequential> network() {
    return std::make_unique<nn::Sequential>(nn::Linear(5, 16), nn::BatchNorm(16), nn::ReLU(), nn::Dropout(0.3),
                                            nn::Linear(16, 3));
}

/// One of two paths, chosen randomly on the host.
struct Branching : nn::Layer {
    nn::Linear& first = add("first", nn::Linear(5, 5));
    nn::Linear& second = add("second", nn::Linear(5, 3));
    std::mt19937 engine{1};
    Tensor forward(Tensor x) override { return second(engine() % 2 == 0 ? x : relu(first(x))); }
    [[nodiscard]] std::string type_name() const override { return "Branching"; }
};

/// A class derived from the library's, with a counter.
struct Counting : nn::Sequential {
    using nn::Sequential::Sequential;
    int calls = 0;
    Tensor forward(Tensor x) override { return nn::Sequential::forward(x) * (++calls > 9 ? 3.0 : 1.0); }
};

/// A library optimizer with a counter.
struct CountingSGD : optim::SGD {
    using optim::SGD::SGD;
    mutable int calls = 0;
    void update(std::size_t group, optim::Update& x) const override {
        if (++calls % 3 != 0) optim::SGD::update(group, x);
        else x.parameter = x.parameter * 0.5;
    }
};

/// A user-defined module that declares capture_safe, and the number it depends on.
struct Tempered : nn::Layer {
    nn::Linear& dense = add("dense", nn::Linear(5, 3));
    double temperature = 1;
    Tensor forward(Tensor x) override { return dense(x) / guarded(&Tempered::temperature); }
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(Tempered); }
};

/// Calls the modules of its list and its dictionary.
struct Chain : nn::Layer {
    nn::ModuleList<>& layers = add("layers", nn::ModuleList<>(nn::Linear(5, 5)));
    nn::ModuleDict<>& named = add("named", nn::ModuleDict<>());
    nn::Linear& last = add("last", nn::Linear(5, 3));
    Tensor forward(Tensor x) override {
        for (nn::Layer& layer : layers) x = tanh(layer(x));
        for (auto [name, layer] : named.items()) x = tanh(layer(x));
        return last(x);
    }
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(Chain); }
};

/// Inherits, without its own declaration.
struct TemperedTwice : Tempered {
    int calls = 0;
    Tensor forward(Tensor x) override { return Tempered::forward(x) * (++calls > 9 ? 3.0 : 1.0); }
};

}  // namespace

TEST_CASE("replays: a network, loss and optimizer of the library are captured, and match bit for bit") {
    for (const train::Loss& loss : {train::Loss(), train::Loss(nn::CrossEntropyLoss{{.label_smoothing = 0.1}})}) {
        const auto replays =
            same_as_plain([&](ReplayTraining& training) { training.model = network(), training.loss = loss; });
        CHECK(replays.replayed >= kSteps - 2 - 3);
        CHECK(replays.refused == "");
    }
    CHECK(same_as_plain([](ReplayTraining& training) {
              training.model = network();
              training.optimizer = std::make_unique<optim::AdamW>(training.model->parameters());
          }).replayed > 0);
}

TEST_CASE("replays: a smaller last batch has its own capture, and is replayed from its fourth epoch on") {
    const auto replays = same_as_plain([](ReplayTraining& training) {
        training.model = network();
        training.options.batch = 48;  // of 128: three steps, the last one smaller
        training.options.epochs = 6;
    });
    CHECK(replays.replayed == 5 + 3);
    CHECK(replays.refused == "");
}

TEST_CASE("replays: decisions of user-defined losses, modules and optimizers are made at each step") {
    struct Case {
        const char* reason;
        Prepare prepare;
    };
    const std::vector<Case> cases{
        {"the loss is a user-defined function",
         [](ReplayTraining& training) {
             training.model = network();
             training.loss = [calls = 0](const Tensor& output, const Tensor& labels) mutable {
                 return cross_entropy(output, labels) * (++calls > 5 ? 100.0 : 1.0);
             };
         }},
        {"the model (Branching) is not declared",
         [](ReplayTraining& training) { training.model = std::make_unique<Branching>(); }},
        {"module '1' (Branching) is not declared",
         [](ReplayTraining& training) {
             training.model = std::make_unique<nn::Sequential>(nn::Linear(5, 5), Branching());
         }},
        {"module '0' (Lambda) is not declared",
         [](ReplayTraining& training) {
             training.model = std::make_unique<nn::Sequential>(
                 nn::Lambda([calls = 0](const Tensor& x) mutable { return ++calls % 2 == 0 ? x : x * 2.0; }),
                 nn::Linear(5, 3));
         }},
        {"the model (a class derived from Sequential) is not declared",
         [](ReplayTraining& training) { training.model = std::make_unique<Counting>(nn::Linear(5, 3)); }},
        {"the model (a class derived from Module) is not declared",
         [](ReplayTraining& training) { training.model = std::make_unique<TemperedTwice>(); }},
        {"the optimizer is not declared",
         [](ReplayTraining& training) {
             training.model = network();
             training.optimizer =
                 std::make_unique<CountingSGD>(training.model->parameters(), optim::SGDOptions{.lr = 0.1});
         }},
        {"a hook of a tensor",
         [](ReplayTraining& training) {
             training.model = network();
             Tensor weight = training.model->parameters()[0];
             weight.register_hook([calls = 0](const Tensor& g) mutable { return g * (++calls > 5 ? 3.0 : 1.0); });
         }},
    };
    for (const Case& test_case : cases) {
        CAPTURE(std::string(test_case.reason));
        const auto replays = same_as_plain(test_case.prepare);
        CHECK(replays.replayed == 0);
        CHECK(replays.refused.find(test_case.reason) == 0);
    }
}

TEST_CASE("replays: changes by callbacks between steps take effect at the next") {
    struct Case {
        const char* what;
        Prepare prepare;
    };
    const std::vector<Case> cases{
        {"a module's mode",
         [](ReplayTraining& training) {
             training.model = network();
             training.before_step = [&training](std::int64_t step) {
                 if (step == 5 || step == 13) training.sequential().children()[1].second->train(step == 13);
             };
         }},
        {"dropout's probability",
         [](ReplayTraining& training) {
             training.model = network();
             training.before_step = [&training](std::int64_t step) {
                 if (step == 12)
                     dynamic_cast<nn::Dropout&>(*training.sequential().children()[3].second) = nn::Dropout(0.8);
             };
         }},
        {"another layer",
         [](ReplayTraining& training) {
             training.model = network();
             training.before_step = [&training](std::int64_t step) {
                 if (step == 12) training.sequential().append(nn::Softmax());
             };
         }},
        {"another module in a list",
         [](ReplayTraining& training) {
             auto model = std::make_unique<Chain>();
             training.before_step = [&layers = model->layers](std::int64_t step) {
                 if (step == 12) layers.append(nn::Linear(5, 5));
             };
             training.model = std::move(model);
         }},
        {"another module in a dictionary",
         [](ReplayTraining& training) {
             auto model = std::make_unique<Chain>();
             training.before_step = [&named = model->named](std::int64_t step) {
                 if (step == 12) named.insert("more", nn::Linear(5, 5));
             };
             training.model = std::move(model);
         }},
        {"a layer that is not capture_safe",
         [](ReplayTraining& training) {
             training.model = network();
             training.before_step = [&training](std::int64_t step) {
                 if (step == 12)
                     training.sequential().append(nn::Lambda(
                         [calls = 0](const Tensor& x) mutable { return x * (++calls % 2 == 0 ? 1.0 : 0.3); }));
             };
         }},
        {"another group",
         [](ReplayTraining& training) {
             auto model = network();
             auto frozen = std::make_unique<nn::Sequential>(nn::Linear(5, 5));
             training.optimizer = std::make_unique<optim::SGD>(model->parameters(), optim::SGDOptions{.lr = 0.1});
             const std::vector<Tensor> more = frozen->parameters();
             frozen->append(std::move(*model));
             training.model = std::move(frozen);
             training.before_step = [&training, more](std::int64_t step) {
                 if (step == 12) dynamic_cast<optim::SGD&>(*training.optimizer).add_group(more, {.lr = 0.03});
             };
         }},
        {"the norm that gradients are clipped to",
         [](ReplayTraining& training) {
             training.model = network();
             training.options.clip_norm = 0.5;
             training.before_step = [&training](std::int64_t step) {
                 training.options.clip_norm = step < 12 ? 0.5 : 0.1;
             };
         }},
        {"a layer that is frozen",
         [](ReplayTraining& training) {
             training.model = network();
             training.before_step = [&training](std::int64_t step) {
                 if (step == 12)
                     training.model->parameters()[0].set_requires_grad(false),
                         training.model->parameters()[0].zero_grad();
             };
         }},
        {"a number of a module's own",
         [](ReplayTraining& training) {
             training.model = std::make_unique<Tempered>();
             training.before_step = [&training](std::int64_t step) {
                 dynamic_cast<Tempered&>(*training.model).temperature = 1 + 0.5 * static_cast<double>(step / 6);
             };
         }},
        {"a number of a loss's own",
         [](ReplayTraining& training) {
             training.model = network();
             const auto factor = std::make_shared<double>(1);
             training.loss = [factor](const Tensor& output, const Tensor& labels) {
                 return cross_entropy(output, labels) * capture_guard([factor] { return *factor; });
             };
             training.before_step = [factor](std::int64_t step) { *factor = step < 12 ? 1 : 4; };
             training.options.capture = true;
         }},
    };
    for (const Case& test_case : cases) {
        CAPTURE(std::string(test_case.what));
        const auto replays = same_as_plain(test_case.prepare);
        CHECK(replays.replayed > 4);
        if (std::string(test_case.what) != "a layer that is not capture_safe") CHECK(replays.replayed < kSteps);
        else CHECK(replays.refused.find("module '5' (Lambda)") == 0);
    }
}

TEST_CASE("replays: a call observer added during training sees each call") {
    int calls_seen = 0;
    same_as_plain([&calls_seen](ReplayTraining& training) {
        training.model = network();
        const auto observe = std::make_shared<std::unique_ptr<nn::ObserveCalls>>();
        training.before_step = [observe, &calls_seen](std::int64_t step) {
            if (step == 12)
                *observe = std::make_unique<nn::ObserveCalls>(
                    [&calls_seen](const std::string&, const nn::Module&, const auto&, const auto&) { ++calls_seen; });
            if (step == 18) observe->reset();
        };
    });
    CHECK(calls_seen == 2 * 6 * 6);  // two trainings, six steps, five layers and their container
}

TEST_CASE("replays: user-defined parts may be declared capture-safe") {
    const auto loss = [](const Tensor& output, const Tensor& labels) { return cross_entropy(output, labels) * 2.0; };
    CHECK(same_as_plain([&](ReplayTraining& training) {
              training.model = network(), training.loss = loss, training.options.capture = true;
          }).replayed > 0);
    CHECK(same_as_plain([&](ReplayTraining& training) { training.model = std::make_unique<Tempered>(); }).replayed > 0);
}

TEST_CASE("replays: a step is captured again when its modules are moved, destroyed, or change their mode") {
    manual_seed(1);
    auto model = std::make_unique<nn::Sequential>(nn::Linear(4, 6), nn::Dropout(0.5));
    const Tensor x = uniform({3, 4});
    auto step = capture([&](const Tensor& in) {
        const NoGrad no_grad;
        return (*model)(in);
    });
    const auto same = [&] {
        manual_seed(9);
        const auto got = test::values(step(x));
        manual_seed(9);
        const NoGrad no_grad;
        CHECK(got == test::values((*model)(x)));
    };
    same();
    same();
    CHECK(step.replayed() == 1);
    model->eval();
    same();
    CHECK(step.replayed() == 1);
    same();
    CHECK(step.replayed() == 2);
    model = std::make_unique<nn::Sequential>(std::move(*model));
    same();
    CHECK(step.replayed() == 2);
    *model = nn::Sequential(nn::Linear(4, 2));
    same();
    CHECK(step.replayed() == 2);
    same();
    CHECK(step.replayed() == 3);
}

TEST_CASE("replays: a step is captured again when requires_grad changes") {
    Tensor w = test::random_tensor({3, 3}, 1).set_requires_grad();
    const Tensor x = test::random_tensor({3, 3}, 2);
    auto step = capture([&] {
        w.zero_grad();
        const Tensor y = sum(square(matmul(x, w)));
        if (grad_enabled()) y.backward();
    });
    step();
    step();
    CHECK(step.replayed() == 1);
    CHECK(w.grad().defined());
    {
        const NoGrad no_grad;
        step();
    }
    CHECK_FALSE(w.grad().defined());
}
