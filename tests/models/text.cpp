// Text classifiers and the translator: compared with themselves on unpadded texts, invariance to padding, and learning
// of simple tasks.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/functions/random.hpp>
#include <declivity/models/text_classifier.hpp>
#include <declivity/models/translator.hpp>
#include <declivity/nn/nn.hpp>
#include <declivity/optim/adam.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>
#include <tests/support/devices.hpp>
#include <tests/support/values.hpp>
#include <tests/support/weights.hpp>

using namespace declivity;
using namespace declivity::test;

namespace {

using Values = std::vector<double>;

Tensor tokens(const std::vector<std::int64_t>& ids, std::int64_t rows) {
    return Tensor::from(ids, {rows, static_cast<std::int64_t>(ids.size()) / rows});
}

/// Tolerance in the widest type.
double exact() { return widest() == DType::f64 ? 1e-12 : 2e-5; }

/// In plain C++: the text without padding, extended by zero rows to the longest filter.
Values text_cnn(const models::TextCNNConfig& config, const Weights& weights, const std::vector<std::int64_t>& text) {
    std::int64_t largest_filter = 0;
    for (const std::int64_t size : config.filter_sizes) largest_filter = std::max(largest_filter, size);
    const auto length = std::max(static_cast<std::int64_t>(text.size()), largest_filter);
    const auto x = [&](std::int64_t t, std::int64_t d) {
        if (t >= static_cast<std::int64_t>(text.size())) return 0.0;
        return weights.at(
            "embedding.weight")[static_cast<std::size_t>(text[static_cast<std::size_t>(t)] * config.embedding_dim + d)];
    };
    Values features;
    for (std::size_t i = 0; i < config.filter_sizes.size(); ++i) {
        const std::int64_t size = config.filter_sizes[i];
        const Values &weight = weights.at("convolutions." + std::to_string(i) + ".weight"),
                     &bias = weights.at("convolutions." + std::to_string(i) + ".bias");
        // Windows that end within the text, and always the first one.
        const std::int64_t windows = std::max<std::int64_t>(1, static_cast<std::int64_t>(text.size()) - size + 1);
        for (std::int64_t f = 0; f < config.num_filters; ++f) {
            double maximum = 0;
            for (std::int64_t at = 0; at < windows && at + size <= length; ++at) {
                double sum = bias[static_cast<std::size_t>(f)];
                for (std::int64_t d = 0; d < config.embedding_dim; ++d)
                    for (std::int64_t k = 0; k < size; ++k)
                        sum +=
                            weight[static_cast<std::size_t>((f * config.embedding_dim + d) * size + k)] * x(at + k, d);
                maximum = std::max(maximum, sum);
            }
            features.push_back(maximum);
        }
    }
    Values scores = weights.at("classifier.bias");
    for (std::size_t c = 0; c < scores.size(); ++c)
        for (std::size_t i = 0; i < features.size(); ++i)
            scores[c] += weights.at("classifier.weight")[c * features.size() + i] * features[i];
    return scores;
}

void check_close(const Tensor& y, const Values& expected, double tolerance) {
    const Values got = values(y);
    REQUIRE(got.size() == expected.size());
    for (std::size_t i = 0; i < got.size(); ++i)
        CHECK_MESSAGE(std::abs(got[i] - expected[i]) <= tolerance, i, ": ", got[i], ", expected ", expected[i]);
}

}  // namespace

TEST_CASE("TextCNN: the maximum of each filter, independent of padding") {
    manual_seed(5);
    const models::TextCNNConfig config{.vocab_size = 13,
                                       .num_classes = 3,
                                       .embedding_dim = 7,
                                       .num_filters = 5,
                                       .filter_sizes = {2, 4, 3},
                                       .dropout = 0.3};
    models::TextCNN model(config, {.dtype = widest()});
    model.eval();
    const auto weights = weights_of(model);
    const std::vector<std::vector<std::int64_t>> texts{{3, 1, 12, 5, 5, 9, 2}, {4, 8, 1}, {7}, {11, 2, 6, 10}};
    std::vector<std::int64_t> all;
    Values expected;
    for (const auto& text : texts) {
        std::vector<std::int64_t> padded = text;
        padded.resize(9, 0);
        all.insert(all.end(), padded.begin(), padded.end());
        const Values scores = text_cnn(config, weights, text);
        expected.insert(expected.end(), scores.begin(), scores.end());
        check_close(model(tokens(text, 1)), scores, exact());
    }
    check_close(model(tokens(all, 4)), expected, exact());
}

TEST_CASE("TransformerClassifier: padding has no effect") {
    manual_seed(6);
    models::TransformerClassifier model({.vocab_size = 17,
                                         .num_classes = 4,
                                         .d_model = 12,
                                         .nhead = 3,
                                         .num_layers = 2,
                                         .dim_feedforward = 20,
                                         .max_length = 11},
                                        {.dtype = widest()});
    model.eval();
    const std::vector<std::int64_t> first{5, 1, 16, 2, 7, 3}, second{9, 4};
    const Values first_logits = values(model(tokens(first, 1))), second_logits = values(model(tokens(second, 1)));
    Values expected = first_logits;
    expected.insert(expected.end(), second_logits.begin(), second_logits.end());
    std::vector<std::int64_t> all = first;
    all.resize(11, 0);
    all.insert(all.end(), second.begin(), second.end());
    all.resize(22, 0);
    check_close(model(tokens(all, 2)), expected, exact());
    // Order matters, and so does each token.
    CHECK(std::abs(values(model(tokens({1, 5, 16, 2, 7, 3}, 1)))[0] - first_logits[0]) > 1e-4);
    CHECK(std::abs(values(model(tokens({5, 1, 16, 2, 7, 4}, 1)))[0] - first_logits[0]) > 1e-4);
    const Values padding_only = values(model(tokens({0, 0, 0}, 1)));
    const Values bias = weights_of(model).at("classifier.bias");
    for (std::size_t i = 0; i < bias.size(); ++i) CHECK(padding_only[i] == bias[i]);
}

TEST_CASE("Translator: no token depends on padding of the source or on later target tokens") {
    manual_seed(7);
    models::Translator model({.source_vocab_size = 19,
                              .target_vocab_size = 15,
                              .d_model = 12,
                              .nhead = 2,
                              .dim_feedforward = 20,
                              .max_length = 12},
                             {.dtype = widest()});
    model.eval();
    const std::vector<std::int64_t> source{4, 18, 7, 2}, target{1, 9, 3, 14, 5};
    const Values expected = values(model(tokens(source, 1), tokens(target, 1)));
    std::vector<std::int64_t> padded = source;
    padded.resize(9, 0);
    check_close(model(tokens(padded, 1), tokens(target, 1)), expected, exact());
    for (std::int64_t length = 1; length < 5; ++length) {
        const Values part = values(model(tokens(source, 1), tokens({target.begin(), target.begin() + length}, 1)));
        for (std::size_t i = 0; i < part.size(); ++i) CHECK(std::abs(part[i] - expected[i]) <= exact());
    }
    CHECK(std::abs(values(model(tokens({4, 18, 7, 3}, 1), tokens(target, 1)))[4] - expected[4]) > 1e-4);
    CHECK(std::abs(values(model(tokens({18, 4, 7, 2}, 1), tokens(target, 1)))[4] - expected[4]) > 1e-4);
    // One memory for several targets.
    const Tensor memory = model.encode(tokens(source, 1));
    const Tensor both = model.decode(tokens({1, 9, 3, 1, 2, 6}, 2), memory, tokens(source, 1));
    CHECK(std::abs(values(both)[4] - expected[4]) <= exact());

    const std::vector<Tensor> weights = model.attention_to_source(tokens(padded, 1), tokens(target, 1));
    REQUIRE(weights.size() == 2);
    for (const Tensor& weight : weights) {
        REQUIRE(weight.shape() == Shape{1, 2, 5, 9});
        check_close(sum(weight, {3}), Values(10, 1.0), exact());
        check_close(slice(weight, 3, 4, 9), Values(50, 0.0), 0);
    }
    CHECK(std::abs(values(weights[0])[0] - values(weights[1])[0]) > 1e-6);
    // The head is tied to the target embedding and counted once.
    CHECK(model.named_parameters().size() ==
          models::Translator({.source_vocab_size = 19, .target_vocab_size = 15, .tie_word_embeddings = false})
                  .named_parameters()
                  .size() -
              1);
}

TEST_CASE("Translator: learns to reverse words, and translate() returns what decode() finds most likely") {
    manual_seed(8);
    constexpr std::int64_t kBegin = 1, kEnd = 2, kLetters = 6;
    models::Translator model({.source_vocab_size = 3 + kLetters,
                              .target_vocab_size = 3 + kLetters,
                              .d_model = 32,
                              .nhead = 2,
                              .num_encoder_layers = 1,
                              .num_decoder_layers = 1,
                              .dim_feedforward = 64,
                              .dropout = 0,
                              .max_length = 8});
    optim::Adam optimizer(model.parameters(), {.lr = 3e-3});
    double loss = 0;
    const int steps = small_cases() ? 2 : 250;
    for (int step = 0; step < steps; ++step) {
        const Tensor word = randint(3, 3 + kLetters, {64, 4});
        const Tensor reversed = flip(word, {1});
        const Tensor begin = full({64, 1}, kBegin, {DType::i64}), end = full({64, 1}, kEnd, {DType::i64});
        const Tensor scores = model(word, concat({begin, reversed}, 1));
        const Tensor nats = cross_entropy(flatten(scores, 0, 1), flatten(concat({reversed, end}, 1), 0));
        optimizer.zero_grad();
        nats.backward();
        optimizer.step();
        if (step + 1 == steps) loss = nats.item<float>();
    }
    CHECK(std::isfinite(loss));
    if (small_cases()) return;
    CHECK(loss < 0.1);
    const std::vector<std::int64_t> word{4, 8, 3, 6};
    for (const std::int64_t beams : {1, 3}) {
        const auto written =
            model.translate(word, {kBegin}, {.max_new_tokens = 6, .eos_token_id = {kEnd}, .num_beams = beams});
        CHECK(written.at(0).tokens == std::vector<std::int64_t>{6, 3, 8, 4, kEnd});
        CHECK(written.at(0).finished);
    }
    CHECK(model.training());
    // The padding token is never generated, even if all others are unlikely.
    const NoGrad no_grad;
    for (const auto& [name, tensor] : model.named_parameters())
        if (name == "target_embedding.weight") Tensor(tensor).mul_(-1);
    const auto written = model.translate(word, {kBegin}, {.max_new_tokens = 6});
    for (const std::int64_t token : written.at(0).tokens) CHECK(token != 0);
}

TEST_CASE("text classifiers and translator: invalid arguments are refused by name") {
    using Options = models::ModelOptions;
    CHECK_THROWS_WITH_AS(models::TextCNN({.vocab_size = 0}, Options{}),
                         "TextCNNConfig: expected vocab_size in 1 .. 2147483648, got 0", ValueError);
    CHECK_THROWS_WITH_AS(models::TextCNN({.vocab_size = 3, .filter_sizes = {}}, Options{}),
                         "TextCNNConfig: expected filter_sizes, got none", ValueError);
    CHECK_THROWS_WITH_AS(models::TextCNN({.vocab_size = 3, .padding_idx = 3}, Options{}),
                         "TextCNNConfig: expected padding_idx in 0 .. 2, got 3", ValueError);
    CHECK_THROWS_WITH_AS(models::TransformerClassifier({.vocab_size = 3, .d_model = 10, .nhead = 3}, Options{}),
                         "TransformerClassifierConfig: expected nhead that divides d_model, got 3 and 10", ValueError);
    CHECK_THROWS_WITH_AS(
        models::Translator({.source_vocab_size = 3, .target_vocab_size = 3, .d_model = 5, .nhead = 1}, Options{}),
        "TranslatorConfig: expected an even number that divides d_model, got 2 and 5", ValueError);
    CHECK_THROWS_WITH_AS(
        models::Translator({.source_vocab_size = 3, .target_vocab_size = 3, .dropout = 1.5}, Options{}),
        "TranslatorConfig: expected dropout in [0, 1], got 1.5", ValueError);
    models::TextCNN cnn({.vocab_size = 5, .embedding_dim = 4, .num_filters = 2});
    CHECK_THROWS_WITH_AS(cnn(Tensor::from<std::int64_t>({1, 2}, {2})),
                         "TextCNN: expected input_ids of shape (N, L), got [2] (in TextCNN)", ShapeError);
    CHECK_THROWS_WITH_AS(cnn(ones({2, 3})), "TextCNN: expected input_ids of i64 or i32, got f32 (in TextCNN)",
                         TypeError);
    models::Translator model(
        {.source_vocab_size = 5, .target_vocab_size = 5, .d_model = 8, .nhead = 2, .max_length = 4});
    CHECK_THROWS_WITH_AS(model(tokens({1, 2, 3, 4, 1}, 1), tokens({1}, 1)),
                         "Translator::encode: expected up to 4 tokens, got 5 (in Translator)", ShapeError);
    CHECK_THROWS_WITH_AS((void)model.decode(tokens({1, 2, 3}, 3), ones({2, 1, 8}), tokens({1, 2, 1}, 3)),
                         "Translator: expected memory for 3 texts, or for 1, got 2", ShapeError);
    CHECK_THROWS_AS((void)model.translate({}, {1}), ValueError);
    CHECK_THROWS_AS((void)model.translate({1}, {}), ValueError);
    CHECK_THROWS_AS((void)model.translate({1}, {1}, {.max_new_tokens = 4}), ValueError);
    CHECK_THROWS_AS((void)model.translate({1}, {1}, {.max_new_tokens = 1, .eos_token_id = {1000}}), ValueError);
}
