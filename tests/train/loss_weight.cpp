// Means over several batches are weighted by the divisor of each batch's loss, so that the result does not depend on
// the batch size.
#include <declivity/train/loss_value.hpp>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include <declivity/data/random.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/io/state_dict.hpp>
#include <declivity/models/ranking_loss.hpp>
#include <declivity/nn/nn.hpp>
#include <declivity/optim/adam.hpp>
#include <declivity/optim/sgd.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <declivity/train/metrics.hpp>
#include <declivity/train/trainer.hpp>
#include <doctest/doctest.h>

#include <tests/support/values.hpp>

using namespace declivity;

namespace {

constexpr std::int64_t kCount = 23, kPositions = 4, kClasses = 3;

std::vector<float> normals(std::int64_t count, std::uint64_t seed) {
    data::Random random(seed, 0, 0, data::Purpose::user);
    std::vector<float> out;
    for (std::int64_t i = 0; i < count; ++i) out.push_back(random.normal());
    return out;
}

/// x (5), a label that is ignored (-100) increasingly often, tokens (4) padded by 0, y (3) with weights, signs.
data::TensorDataset examples() {
    std::vector<std::int64_t> label, tokens, positive;
    std::vector<float> y, weight, sign, bits;
    data::Random random(5, 0, 0, data::Purpose::user);
    for (std::int64_t i = 0; i < kCount; ++i) {
        label.push_back(i > 8 && i % 3 != 0 ? -100 : i % kClasses);
        positive.push_back(i % kClasses);
        for (std::int64_t k = 0; k < kPositions; ++k) tokens.push_back(k <= i % 4 ? 1 + (i + k) % 2 : 0);
        for (std::int64_t k = 0; k < kClasses; ++k) {
            y.push_back(random.normal());
            weight.push_back(random.uniform() * static_cast<float>(i));
            sign.push_back((i + k) % 2 == 0 ? 1.0F : -1.0F);
            bits.push_back((i + k) % 2 == 0 ? 1.0F : 0.0F);
        }
    }
    return data::TensorDataset({{"x", io::HostArray::of({kCount, 5}, normals(kCount * 5, 3))},
                                {"label", io::HostArray::of({kCount}, label)},
                                {"class", io::HostArray::of({kCount}, positive)},
                                {"tokens", io::HostArray::of({kCount, kPositions}, tokens)},
                                {"y", io::HostArray::of({kCount, kClasses}, y)},
                                {"weight", io::HostArray::of({kCount, kClasses}, weight)},
                                {"sign", io::HostArray::of({kCount, kClasses}, sign)},
                                {"bits", io::HostArray::of({kCount, kClasses}, bits)}});
}

struct Model {
    nn::Linear network;
    optim::SGD optimizer;
    explicit Model(std::int64_t outputs = kClasses, double lr = 0.1)
        : network((manual_seed(11), nn::Linear(5, outputs))), optimizer(network.parameters(), {.lr = lr}) {}
};

train::FitOptions weighted_options(std::int64_t batch, std::int64_t accumulate = 1, bool record = true,
                                   std::int64_t epochs = 1) {
    return {
        .epochs = epochs, .batch = batch, .shuffle = false, .accumulate = accumulate, .quiet = true, .capture = record};
}

/// The loss over all examples as one batch equals that with other batch sizes, in an evaluation and in an epoch without
/// updates; and accumulated gradients equal those of one batch.
void check(const std::string& name, const train::BatchLoss& loss, std::int64_t outputs = kClasses) {
    CAPTURE(name);
    const auto set = examples();
    const auto evaluated = [&](std::int64_t batch) {
        Model model(outputs);
        return train::Trainer(model.network, model.optimizer, loss).evaluate(set, {.batch = batch})["loss"];
    };
    const double full_batch = evaluated(kCount);
    REQUIRE(std::isfinite(full_batch));
    for (const std::int64_t batch : {1, 4, 10}) CHECK(evaluated(batch) == doctest::Approx(full_batch).epsilon(1e-5));
    for (const bool record : {false, true}) {
        Model still(outputs, 0);
        train::Trainer trainer(still.network, still.optimizer, loss);
        trainer.fit(set, weighted_options(4, 1, record, 4));
        for (const auto& epoch : trainer.progress().history)
            CHECK(epoch["train_loss"] == doctest::Approx(full_batch).epsilon(1e-5));
        CHECK((trainer.replays().replayed > 0) == record);
        Model single(outputs), several(outputs);
        train::Trainer(single.network, single.optimizer, loss).fit(set, weighted_options(kCount, 1, record));
        train::Trainer(several.network, several.optimizer, loss).fit(set, weighted_options(4, 6, record));
        const auto expected = test::values(single.network.parameters()[0]),
                   got = test::values(several.network.parameters()[0]);
        for (std::size_t i = 0; i < expected.size(); ++i) CHECK(got[i] == doctest::Approx(expected[i]).epsilon(1e-4));
    }
}

Tensor class_weights() { return Tensor::from<float>({0.2F, 3.0F, 1.0F}, {kClasses}); }

train::BatchLoss field_loss(const char* field, const train::Loss& loss) {
    return [field = std::string(field), loss](const Tensor& out, const data::Batch& batch) {
        return loss(out, batch[field]);
    };
}

}  // namespace

TEST_CASE("loss weight: losses of labels are weighted by the labels that count and by class weights") {
    check("cross_entropy", field_loss("label", nn::CrossEntropyLoss()));
    check("smoothed", field_loss("label", nn::CrossEntropyLoss({.label_smoothing = 0.2})));
    check("weighted", field_loss("class", nn::CrossEntropyLoss({}, class_weights())));
    check("weighted, ignored", field_loss("label", nn::CrossEntropyLoss({.label_smoothing = 0.1}, class_weights())));
    check("ignore_index", field_loss("class", nn::CrossEntropyLoss({.ignore_index = 1})));
    check("nll",
          [](const Tensor& out, const data::Batch& batch) { return nn::NLLLoss()(log_softmax(out), batch["label"]); });
    check("nll, weighted", [weight = class_weights()](const Tensor& out, const data::Batch& batch) {
        return nn::NLLLoss{{}, weight}(log_softmax(out), batch["label"]);
    });
    check("multi_margin", field_loss("class", nn::MultiMarginLoss{{}, class_weights()}));
    check("probabilities",
          [](const Tensor& out, const data::Batch& batch) { return cross_entropy(out, softmax(batch["y"])); });
}

TEST_CASE("loss weight: losses of tokens are weighted by the tokens that are not ignored") {
    const auto token_loss = [](const Tensor& out, const data::Batch& batch) {
        return cross_entropy(reshape(out, {-1, kClasses}), reshape(batch["tokens"], {-1}), {.ignore_index = 0});
    };
    check("tokens", token_loss, kPositions * kClasses);
    check(
        "a multiple", [&](const Tensor& out, const data::Batch& batch) { return token_loss(out, batch) * 2 + 1; },
        kPositions * kClasses);
    check(
        "a sum",
        [&](const Tensor& out, const data::Batch& batch) {
            return token_loss(out, batch) + token_loss(-out, batch) * 0.5;
        },
        kPositions * kClasses);
}

TEST_CASE("loss weight: losses of elements are weighted by their elements or weights") {
    check("mse", field_loss("y", nn::MSELoss()));
    check("l1", field_loss("y", nn::L1Loss()));
    check("smooth_l1", field_loss("y", nn::SmoothL1Loss()));
    check("huber", field_loss("y", nn::HuberLoss()));
    check("bce_with_logits", field_loss("bits", nn::BCEWithLogitsLoss(Reduction::mean, class_weights())));
    check("bce",
          [](const Tensor& out, const data::Batch& batch) { return nn::BCELoss()(sigmoid(out), batch["bits"]); });
    check("soft_margin", field_loss("sign", nn::SoftMarginLoss()));
    check("hinge", field_loss("sign", nn::HingeEmbeddingLoss()));
    check("multilabel_soft_margin", field_loss("bits", nn::MultiLabelSoftMarginLoss()));
    check("poisson",
          [](const Tensor& out, const data::Batch& batch) { return nn::PoissonNLLLoss()(out, abs(batch["y"])); });
    check("sample weights, mse", [](const Tensor& out, const data::Batch& batch) {
        return mse_loss(out, batch["y"], Reduction::mean, batch["weight"]);
    });
    check("sample weights, l1", [](const Tensor& out, const data::Batch& batch) {
        return l1_loss(out, batch["y"], Reduction::mean, batch["weight"]);
    });
    check("sample weights, huber", [](const Tensor& out, const data::Batch& batch) {
        return huber_loss(out, batch["y"], Reduction::mean, 1, batch["weight"]);
    });
    check("mean", [](const Tensor& out, const data::Batch& batch) { return mean(square(out - batch["y"])); });
    check("bpr", [](const Tensor& out, const data::Batch& batch) {
        return models::bpr_loss(sum(out, {1}), sum(batch["y"], {1}));
    });
    check("dice", [](const Tensor& out, const data::Batch& batch) { return dice_loss(sigmoid(out), batch["bits"]); });
}

TEST_CASE("loss weight: a loss with reduction sum is summed over batches, and reported per example") {
    const auto set = examples();
    check("sum", field_loss("y", nn::MSELoss(Reduction::sum)));
    Model model;
    const double mean_loss =
        train::Trainer(model.network, model.optimizer, field_loss("y", nn::MSELoss())).evaluate(set)["loss"];
    CHECK(train::Trainer(model.network, model.optimizer, field_loss("y", nn::MSELoss(Reduction::sum)))
              .evaluate(set)["loss"] == doctest::Approx(mean_loss * kClasses));
}

TEST_CASE("loss weight: a user-defined loss returns its weight, as a tensor or a number") {
    check("tensor", [](const Tensor& out, const data::Batch& batch) -> train::LossValue {
        const Tensor weight = batch["weight"];
        return {sum(square(out - batch["y"]) * weight) / sum(weight), sum(weight)};
    });
    check("number", [](const Tensor& out, const data::Batch& batch) -> train::LossValue {
        return {sum(square(out - batch["y"])) / static_cast<double>(batch.size), static_cast<double>(batch.size)};
    });
    const auto set = examples();
    Model model;
    const auto evaluated = [&](const train::LossValue& value) {
        return train::Trainer(model.network, model.optimizer, [&](const Tensor&, const data::Batch&) { return value; })
            .evaluate(set);
    };
    CHECK_THROWS_WITH_AS((void)evaluated({zeros({}), -1.0}), "Trainer: expected a weight of at least 0, got -1",
                         ValueError);
    CHECK_THROWS_WITH_AS((void)evaluated({zeros({}), zeros({2})}), "Trainer: expected a weight of one element, got [2]",
                         ShapeError);
    CHECK(std::isnan(evaluated({zeros({}), 0.0})["loss"]));
    CHECK_THROWS_WITH_AS((void)evaluated({}), doctest::Contains("expected a loss of one element"), ValueError);
}

TEST_CASE("loss weight: metrics reported by user-defined steps are weighted like losses") {
    const auto set = examples();
    const auto reported = [&](std::int64_t batch, bool record) {
        Model model(kPositions * kClasses, 0);
        train::Trainer trainer({.modules = {{"model", model.network}}, .optimizers = {{"sgd", model.optimizer}}},
                               [&](train::Step& step, const data::Batch& field_loss) {
                                   model.optimizer.zero_grad();
                                   const Tensor out = reshape(model.network(field_loss["x"]), {-1, kClasses});
                                   const Tensor loss =
                                       cross_entropy(out, reshape(field_loss["tokens"], {-1}), {.ignore_index = 0});
                                   step.backward(loss);
                                   model.optimizer.step();
                                   const Tensor counted = sum(field_loss["weight"]);
                                   step.report("loss", loss.detach());
                                   step.report("own", {sum(field_loss["y"] * field_loss["weight"]) / counted, counted});
                                   step.report("twice", {loss * 2, sum(field_loss["tokens"] != 0)});
                               });
        trainer.fit(set, weighted_options(batch, 1, record, 3));
        const auto& epoch = trainer.progress().history.back();
        CHECK(epoch["train_twice"] == doctest::Approx(2 * epoch["train_loss"]).epsilon(1e-6));
        return std::vector{epoch["train_loss"], epoch["train_own"]};
    };
    const auto reported_loss = reported(kCount, false);
    for (const bool record : {false, true})
        for (const std::int64_t batch : {1, 5, 9}) {
            const auto got = reported(batch, record);
            for (std::size_t i = 0; i < reported_loss.size(); ++i)
                CHECK(got[i] == doctest::Approx(reported_loss[i]).epsilon(1e-5));
        }
}

namespace {

/// Twelve examples; the labels of the middle batch of four are all ignored.
data::TensorDataset with_ignored_batch(bool with_it, DType dtype = DType::i64) {
    std::vector<float> x;
    std::vector<std::int64_t> label;
    const std::vector<float> all = normals(12 * 5, 9);
    for (std::int64_t i = 0; i < 12; ++i) {
        if (!with_it && i / 4 == 1) continue;
        for (std::int64_t k = 0; k < 5; ++k) x.push_back(all[static_cast<std::size_t>(i * 5 + k)]);
        label.push_back(i / 4 == 1 ? -100 : i % kClasses);
    }
    const auto count = static_cast<std::int64_t>(label.size());
    return data::TensorDataset(
        {{"x", io::HostArray::of({count, 5}, x)}, {"label", io::to_host(Tensor::from(label, {count}).to(dtype))}});
}

struct WeightedRun {
    std::vector<double> weights, metrics;
};

WeightedRun fitted(const data::Dataset& set, bool record, double clip, std::int64_t accumulate, bool custom_step) {
    manual_seed(2);
    nn::Sequential model(nn::Linear(5, 8), nn::Tanh(), nn::Linear(8, kClasses));
    optim::Adam optimizer(model.parameters(), {.lr = 0.02, .weight_decay = 0.01});
    train::Trainer trainer(model, optimizer);
    train::Trainer step_trainer({.modules = {{"model", model}}, .optimizers = {{"adam", optimizer}}},
                                [&](train::Step& step, const data::Batch& batch) {
                                    optimizer.zero_grad();
                                    const Tensor loss = cross_entropy(model(batch["x"]), batch["label"]);
                                    step.backward(loss);
                                    optimizer.step();
                                    step.report("loss", loss);
                                });
    train::Trainer& used = custom_step ? step_trainer : trainer;
    auto options = weighted_options(4, accumulate, record, 5);
    options.clip_norm = clip;
    used.fit(set, options);
    WeightedRun run;
    for (const auto& [name, tensor] : optimizer.state_dict())
        for (const double value : test::values(tensor)) run.weights.push_back(value);
    for (const Tensor& parameter : model.parameters())
        for (const double value : test::values(parameter)) run.weights.push_back(value);
    for (const auto& epoch : used.progress().history)
        for (const auto& [name, value] : epoch)
            if (name != "seconds") run.metrics.push_back(value);
    return run;
}

}  // namespace

TEST_CASE("loss weight: a batch whose labels are all ignored has weight 0") {
    const auto with = with_ignored_batch(true), without = with_ignored_batch(false);
    for (const bool custom_step : {false, true})
        for (const bool record : {false, true})
            for (const double clip : {0.0, 0.1}) {
                if (custom_step && clip != 0) continue;
                CAPTURE(custom_step);
                CAPTURE(record);
                CAPTURE(clip);
                const WeightedRun expected = fitted(without, record, clip, 1, custom_step),
                                  got = fitted(with, record, clip, 1, custom_step);
                CHECK(got.weights == expected.weights);
                REQUIRE(got.metrics.size() == expected.metrics.size());
                for (std::size_t i = 0; i < got.metrics.size(); ++i)
                    CHECK(got.metrics[i] == doctest::Approx(expected.metrics[i]).epsilon(1e-6));
            }
    for (const bool record : {false, true}) {
        const WeightedRun expected = fitted(without, record, 0, 2, false), got = fitted(with, record, 0, 3, false);
        REQUIRE(got.weights.size() == expected.weights.size());
        for (std::size_t i = 0; i < got.weights.size(); ++i)
            CHECK(got.weights[i] == doctest::Approx(expected.weights[i]).epsilon(1e-4));
    }
    Model model;
    train::Trainer trainer(model.network, model.optimizer);
    const train::Evaluation a = trainer.evaluate(with, {.batch = 4}), b = trainer.evaluate(without, {.batch = 4});
    CHECK(a["loss"] == doctest::Approx(b["loss"]).epsilon(1e-6));
    CHECK(a["accuracy"] == b["accuracy"]);  // of the labels that count
}

TEST_CASE("loss weight: a set whose labels are all ignored has no metrics, and changes nothing") {
    const data::TensorDataset set({{"x", io::HostArray::of({6, 5}, normals(30, 1))},
                                   {"label", io::HostArray::of({6}, std::vector<std::int64_t>(6, -100))}});
    Model model;
    const auto before = test::values(model.network.parameters()[0]);
    train::Trainer trainer(model.network, model.optimizer);
    for (const std::int64_t accumulate : {1, 2}) {
        auto options = weighted_options(2, accumulate, true, accumulate);
        CHECK(trainer.fit(set, options));
    }
    CHECK(test::values(model.network.parameters()[0]) == before);
    CHECK(std::isnan(trainer.progress().history[0]["train_loss"]));
    CHECK(std::isnan(trainer.evaluate(set)["accuracy"]));
    model.optimizer.zero_grad();
    mse_loss(model.network(ones({1, 5})), zeros({1, kClasses})).backward();
    model.optimizer.step();  // no guard remains
    CHECK(test::values(model.network.parameters()[0]) != before);
}

TEST_CASE("trainer: labels of any integer type are classes") {
    Model model;
    train::Trainer trainer(model.network, model.optimizer);
    const auto evaluated_batch = with_ignored_batch(false);
    const train::Evaluation expected = trainer.evaluate(evaluated_batch);
    for (const DType type : {DType::u8, DType::i8, DType::i16, DType::u16, DType::i32, DType::u32, DType::u64}) {
        CAPTURE(name_of(type));
        const auto set = with_ignored_batch(false, type);
        CHECK(trainer.evaluate(set)["accuracy"] == expected["accuracy"]);
        CHECK(trainer.evaluate(set)["loss"] == doctest::Approx(expected["loss"]));
    }
    const Tensor x = Tensor::from(normals(6, 4), {2, 3}), labels = Tensor::from<std::int64_t>({2, 0}, {2});
    const Tensor several = Tensor::from<std::int64_t>({2, 0, 1, 1, 0, 2}, {2, 3});
    CHECK(test::values(multi_margin_loss(x, labels.to(DType::u8))) == test::values(multi_margin_loss(x, labels)));
    CHECK(test::values(multilabel_margin_loss(x, several.to(DType::u8))) ==
          test::values(multilabel_margin_loss(x, several)));
}

TEST_CASE("trainer: a parameter without a gradient in an accumulated step has none in that step") {
    struct Branched : nn::Layer {
        nn::Linear& always = add("always", nn::Linear(5, kClasses));
        nn::Linear& at_first = add("at_first", nn::Linear(5, kClasses, {.bias = false}));
        int calls = 0;
        bool reads = false;
        Tensor forward(Tensor x) override {
            if (reads) (void)sum(x).item<float>();  // no captured step reads elements
            return ++calls <= 2 ? always(x) + at_first(x) : always(x);
        }
    };
    for (const bool record : {false, true}) {
        CAPTURE(record);
        Branched model;
        model.reads = record;
        const auto before = test::values(model.at_first.weight());
        optim::Adam optimizer(model.parameters(), {.lr = 0.125});
        train::Trainer trainer(model, optimizer, field_loss("label", [](const Tensor& out, const Tensor& label) {
                                   return cross_entropy(out, label);
                               }));
        trainer.fit(examples(), weighted_options(4, 2, record, 2));
        CHECK(model.calls > 4);
        // The first step of Adam is lr; momentum would continue from there.
        const auto after = test::values(model.at_first.weight());
        for (std::size_t i = 0; i < after.size(); ++i)
            CHECK(std::abs(after[i] - before[i]) == doctest::Approx(0.125).epsilon(1e-3));
    }
}
