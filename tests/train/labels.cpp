// Labels out of range: the trainer reports the label instead of a too high learning rate.
#include <cmath>
#include <memory>
#include <optional>
#include <string>

#include <declivity/data/dataset.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/nn/nn.hpp>
#include <declivity/ops/classification.hpp>
#include <declivity/optim/sgd.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <declivity/train/trainer.hpp>
#include <doctest/doctest.h>
#include <tests/support/devices.hpp>

#include <tests/support/values.hpp>

using namespace declivity;

namespace {

/// Examples of four features with given labels, independent of classes().
struct Labelled : data::ClassificationDataset {
    std::vector<std::int64_t> labels;
    float feature = 0.25F;
    explicit Labelled(std::vector<std::int64_t> targets, float feature_value = 0.25F)
        : labels(std::move(targets)), feature(feature_value) {}
    std::int64_t size() const override { return static_cast<std::int64_t>(labels.size()); }
    Shape shape() const override { return {4}; }
    std::int64_t classes() const override { return 3; }
    void do_features(std::int64_t index, std::span<float> features) const override {
        for (float& value : features) value = feature * static_cast<float>(1 + index % 3);
    }
    std::int64_t do_label(std::int64_t index) const override { return labels[static_cast<std::size_t>(index)]; }
};

std::vector<std::int64_t> repeated_labels(std::int64_t count) {
    std::vector<std::int64_t> out;
    for (std::int64_t i = 0; i < count; ++i) out.push_back(i % 3);
    return out;
}

struct LabelSetup {
    nn::Sequential model;
    optim::SGD optimizer;
    train::Trainer trainer;
    explicit LabelSetup(std::int64_t outputs, train::Loss loss = {})
        : model((manual_seed(1), nn::Sequential(nn::Linear(4, outputs)))),
          optimizer(model.parameters(), {.lr = 0.1}),
          trainer(model, optimizer, std::move(loss)) {}
};

train::FitOptions options(bool record) {
    return {.epochs = 2, .batch = 4, .shuffle = false, .quiet = true, .capture = record};
}

}  // namespace

TEST_CASE("labels: fit names a label out of range, with its step, and the parameters are those from before") {
    for (const bool record : {false, true})
        for (const std::int64_t wrong :
             {std::int64_t{3}, std::int64_t{-1}, std::int64_t{-100000}, std::int64_t{1} << 40}) {
            auto labels = repeated_labels(40);
            labels[26] = wrong;  // of the seventh batch
            LabelSetup setup(3);
            CHECK_THROWS_WITH_AS(
                setup.trainer.fit(Labelled(labels), options(record)),
                ("Trainer: expected labels in [0, 3), as many as the model has outputs, got label " +
                 std::to_string(wrong) + " at step 7 (epoch 1, batch 6). The parameters are those from before the step")
                    .c_str(),
                ValueError);
            LabelSetup good(3);
            good.trainer.fit(Labelled(repeated_labels(24)),
                             {.epochs = 1, .batch = 4, .shuffle = false, .quiet = true, .capture = record});
            CHECK(test::values(setup.model.parameters()[0]) == test::values(good.model.parameters()[0]));
        }
}

TEST_CASE("labels: fit and evaluate with fewer outputs than classes") {
    LabelSetup setup(2);
    CHECK_THROWS_WITH_AS(setup.trainer.fit(Labelled(repeated_labels(40)), options(true)),
                         "Trainer: expected labels in [0, 2), as many as the model has outputs, got label 2 at step 1 "
                         "(epoch 1, batch 0). The parameters are those "
                         "from before the step",
                         ValueError);
    CHECK_THROWS_WITH_AS(
        (void)setup.trainer.evaluate(Labelled(repeated_labels(40)), {.batch = 2}),
        "Trainer::evaluate: expected labels in [0, 2), as many as the model has outputs, got label 2 in batch 1",
        ValueError);
}

TEST_CASE("labels: evaluate names a label out of range") {
    auto labels = repeated_labels(40);
    labels[30] = 7;
    labels[35] = 9;
    LabelSetup setup(3);
    CHECK_THROWS_WITH_AS(
        (void)setup.trainer.evaluate(Labelled(labels), {.batch = 8}),
        "Trainer::evaluate: expected labels in [0, 3), as many as the model has outputs, got label 7 in batch 3",
        ValueError);
    CHECK(std::isfinite(setup.trainer.evaluate(Labelled(repeated_labels(40)))["loss"]));
}

TEST_CASE("labels: ignored labels are not reported, and a wrong one after them is found") {
    const auto loss = [](const Tensor& output, const Tensor& labels) {
        return cross_entropy(output, labels, {.ignore_index = 255});
    };
    auto labels = repeated_labels(40);
    labels[1] = labels[9] = 255;
    {
        LabelSetup setup(3, loss);
        CHECK_NOTHROW(setup.trainer.fit(Labelled(labels), options(true)));
        CHECK(std::isfinite(setup.trainer.evaluate(Labelled(labels))["loss"]));
    }
    labels[10] = 3;  // after the ignored label of its batch
    {
        LabelSetup setup(3, loss);
        CHECK_THROWS_WITH_AS(setup.trainer.fit(Labelled(labels), options(true)),
                             doctest::Contains("got label 3 at step 3 (epoch 1, batch 2)"), ValueError);
        CHECK_THROWS_WITH_AS((void)setup.trainer.evaluate(Labelled(labels), {.batch = 4}),
                             doctest::Contains("got label 3 in batch 2"), ValueError);
    }
    // A loss that is non-finite for another reason, with ignored labels.
    {
        LabelSetup setup(
            3, [&](const Tensor& output, const Tensor& targets) { return loss(output, targets) + log(full({}, -1)); });
        CHECK_THROWS_AS(setup.trainer.fit(Labelled(repeated_labels(40)), options(true)), train::NonFiniteLoss);
    }
    {
        LabelSetup setup(3, loss);
        const Labelled large(
            labels =
                [] {
                    auto out = repeated_labels(40);
                    out[1] = 255;
                    return out;
                }(),
            1e38F);
        CHECK_THROWS_AS(setup.trainer.fit(large, options(true)), train::NonFiniteLoss);
        CHECK_FALSE(std::isfinite(
            setup.trainer.evaluate(large)["loss"]));  // as before: non-finite, without a label as the cause
    }
    // All ignored: the mean of zero labels has weight 0.
    {
        LabelSetup setup(3, loss);
        CHECK(setup.trainer.fit(Labelled(std::vector<std::int64_t>(8, 255)), options(true)));
    }
}

TEST_CASE("labels: a loss that diverged before a wrong label is reported as diverged") {
    auto labels = repeated_labels(40);
    labels[38] = 3;
    LabelSetup setup(3);
    auto all = options(true);
    all.batch = 4;
    struct Poison : train::Callback {
        nn::Module& model;
        explicit Poison(nn::Module& targets) : model(targets) {}
        void before_step(train::Trainer& trainer) override {
            if (trainer.progress().step == 4) model.parameters()[0].detach().fill_(NAN);
        }
    };
    all.callbacks = {std::make_shared<Poison>(setup.model)};
    try {
        setup.trainer.fit(Labelled(labels), all);
        FAIL("no exception");
    } catch (const train::NonFiniteLoss& error) {
        CHECK(error.step() == 5);
        CHECK(std::string(error.what()).find("label") == std::string::npos);
    }
}

TEST_CASE("labels: plain cross_entropy gives NaN for labels out of range") {
    CHECK(std::isnan(cross_entropy(zeros({2, 3}), Tensor::from<std::int64_t>({0, 3}, {2})).item<float>()));
    const auto rows = test::values(
        cross_entropy(zeros({2, 3}), Tensor::from<std::int32_t>({0, -1}, {2}), {.reduction = Reduction::none}));
    CHECK(rows[0] == doctest::Approx(std::log(3.0)));
    CHECK(std::isnan(rows[1]));
}

TEST_CASE("labels: add_classification records the first call with a non-finite loss, and two of its labels") {
    for (const DType type : {DType::i32, DType::i64})
        for (const DType real : test::floats()) {
            if (real == DType::f64 && !default_device().info().fp64) continue;
            const Tensor scores = test::random_tensor({5, 3}, 1, real), totals = zeros({4}),
                         label_errors = zeros({4}, {DType::i64});
            const auto call = [&](const std::vector<std::int64_t>& labels, double loss) {
                ops::add_classification(scores.view(), Tensor::from(labels, {5}).to(type).view(),
                                        full({}, loss, {real}).view(), {.value = 5}, totals.view(),
                                        label_errors.view());
                return label_errors.to_vector<std::int64_t>();
            };
            CHECK(call({0, 1, 2, 1, 0}, 1) == std::vector<std::int64_t>{1, 0, 0, 0});
            CHECK(call({0, 1, 7, 1, 0}, 1) == std::vector<std::int64_t>{2, 0, 0, 0});  // a custom loss may accept it
            CHECK(call({0, 1, 2, 1, 0}, NAN) == std::vector<std::int64_t>{3, 0, 0, 0});
            CHECK(call({0, -5, -5, 3, 9}, INFINITY) == std::vector<std::int64_t>{4, 4, -5, 3});
            CHECK(call({8, 8, 8, 8, 8}, NAN) == std::vector<std::int64_t>{5, 4, -5, 3});
            label_errors.detach().fill_(0);
            CHECK(call({0, 1, 2, 1, 4}, NAN) == std::vector<std::int64_t>{1, 1, 4, 4});
            CHECK_THROWS_AS(ops::add_classification(scores.view(), zeros({5}, {type}).view(), zeros({}, {real}).view(),
                                                    {.value = 5}, totals.view(), zeros({3}, {DType::i64}).view()),
                            ShapeError);
            CHECK_THROWS_AS(ops::add_classification(scores.view(), zeros({5}, {type}).view(), zeros({}, {real}).view(),
                                                    {.value = 5}, totals.view(), zeros({4}).view()),
                            TypeError);
        }
}

TEST_CASE("labels: add_classification weights losses, and leaves out ignored labels") {
    for (const DType real : test::floats()) {
        if (real == DType::f64 && !default_device().info().fp64) continue;
        const Tensor scores = Tensor::from<float>({3, 1, 2, 0, 1, 5}, {3, 2}).to(real),
                     labels = Tensor::from<std::int64_t>({0, -1, 1}, {3});
        const Tensor totals = zeros({4}), label_errors = zeros({4}, {DType::i64});
        const auto call = [&](double loss, const ops::ClassificationWeight& weight) {
            ops::add_classification(scores.view(), labels.view(), full({}, loss, {real}).view(), weight, totals.view(),
                                    label_errors.view());
            return totals.to_vector<float>();
        };
        const Tensor four = full({}, 4), none = zeros({});
        CHECK(call(0.5, {.value = 2}) == std::vector<float>{1, 2, 2, 3});
        CHECK(call(0.5, {.tensor = four.view(), .ignore_index = -1}) == std::vector<float>{3, 4, 6, 5});
        CHECK(call(7, {.value = 3, .is_sum = true}) == std::vector<float>{10, 6, 9, 8});
        CHECK(call(NAN, {.tensor = none.view(), .ignore_index = -1}) == std::vector<float>{10, 8, 9, 10});
        CHECK(label_errors.to_vector<std::int64_t>() == std::vector<std::int64_t>{4, 0, 0, 0});
        (void)call(NAN, {.value = 2, .ignore_index = -1});
        CHECK(label_errors.to_vector<std::int64_t>() == std::vector<std::int64_t>{5, 0, 0, 0});
        (void)call(NAN, {.value = 2});
        CHECK(label_errors.to_vector<std::int64_t>() == std::vector<std::int64_t>{6, 6, -1, -1});
        CHECK_THROWS_AS(ops::add_classification(scores.view(), labels.view(), zeros({}, {real}).view(),
                                                {.tensor = zeros({2}).view()}, totals.view(), label_errors.view()),
                        TypeError);
    }
}

TEST_CASE("trainer: an optimizer with another model's parameters is refused") {
    nn::Sequential model(nn::Linear(4, 3)), other(nn::Linear(4, 3));
    optim::SGD wrong(other.parameters()), right(model.parameters());
    CHECK_THROWS_WITH_AS(train::Trainer(model, wrong),
                         "Trainer: expected an optimizer of the model's parameters, got one without any of them",
                         ValueError);
    CHECK_NOTHROW(train::Trainer(model, right));
    // One of them suffices: others may be frozen, or belong to a loss.
    optim::SGD some({model.parameters()[1]});
    some.add_group(other.parameters(), {});
    CHECK_NOTHROW(train::Trainer(model, some));
    model.to(default_device());
    CHECK_NOTHROW(train::Trainer(model, right));
}

TEST_CASE("labels: fit names a label of one pixel of an image") {
    for (const std::uint8_t wrong : {std::uint8_t{2}, std::uint8_t{255}}) {
        std::vector<std::uint8_t> mask(6 * 4 * 4);
        for (std::size_t i = 0; i < mask.size(); ++i) mask[i] = static_cast<std::uint8_t>(i % 2);
        mask[50] = wrong;
        const data::TensorDataset scenes(
            {{"image", io::HostArray::of({6, 1, 4, 4}, std::vector<float>(6 * 4 * 4, 0.5F))},
             {"mask", io::HostArray::of({6, 4, 4}, mask)}});
        nn::Sequential model{nn::Conv2d(1, 2, 1)};
        optim::SGD optimizer(model.parameters(), {.lr = 0.1});
        train::Trainer trainer(model, optimizer);
        CHECK_THROWS_WITH_AS(trainer.fit(scenes, {.epochs = 1, .batch = 3, .shuffle = false, .quiet = true}),
                             doctest::Contains(("got label " + std::to_string(wrong) + " at step 2").c_str()),
                             ValueError);
    }
}
