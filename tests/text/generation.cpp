// Sampling of tokens compared with plain references, and beam search compared with exhaustive search.
#include <declivity/text/generation.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <string>

#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>

using namespace declivity;
using namespace declivity::text;

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
using Ids = std::vector<std::int64_t>;

std::vector<float> random_logits(std::uint64_t seed, std::size_t count) {
    data::Random random(seed, 0, 0, data::Purpose::user);
    std::vector<float> out(count);
    for (float& output : out) output = 2 * random.normal();
    return out;
}

std::vector<std::size_t> finite_indices(const std::vector<float>& logits) {
    std::vector<std::size_t> out;
    for (std::size_t i = 0; i < logits.size(); ++i)
        if (logits[i] > -kInfinity) out.push_back(i);
    return out;
}

std::vector<float> processed(std::vector<float> logits, const GenerationOptions& options, const Ids& tokens = {},
                             std::size_t prompt = 0) {
    process_logits(logits, tokens, prompt, options);
    return logits;
}

/// A deterministic model of few tokens: logits from the last two tokens.
std::vector<float> table_model(std::span<const std::int64_t> tokens, std::size_t vocabulary) {
    std::uint64_t seed = 1;
    for (std::size_t i = tokens.size() > 2 ? tokens.size() - 2 : 0; i < tokens.size(); ++i)
        seed = seed * 31 + static_cast<std::uint64_t>(tokens[i]) + 1;
    return random_logits(seed, vocabulary);
}

}  // namespace

TEST_CASE("generation: filters of tokens") {
    for (const std::uint64_t seed : {1U, 2U, 3U, 4U}) {
        const std::vector<float> logits = random_logits(seed, 23);
        std::vector<std::size_t> order(logits.size());
        std::iota(order.begin(), order.end(), std::size_t{0});
        std::ranges::sort(order, [&](std::size_t a, std::size_t b) { return logits[a] > logits[b]; });
        std::vector<double> p = log_softmax(logits);
        for (double& value : p) value = std::exp(value);
        CHECK(std::accumulate(p.begin(), p.end(), 0.0) == doctest::Approx(1));
        const auto first = [&](std::size_t count) {
            std::vector<std::size_t> out(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count));
            std::ranges::sort(out);
            return out;
        };
        CHECK(finite_indices(processed(logits, {.do_sample = true, .top_k = 5})) == first(5));
        CHECK(finite_indices(processed(logits, {.do_sample = true, .top_k = 100})) == first(23));
        CHECK(finite_indices(processed(logits, {.top_k = 5})) == first(23));  // only when sampling
        for (const double top_p : {0.05, 0.5, 0.9}) {
            std::size_t count = 0;
            double sum = 0;
            while (sum < top_p) sum += p[order[count++]];
            CHECK(finite_indices(processed(logits, {.do_sample = true, .top_p = top_p})) == first(count));
        }
        for (const double min_p : {0.05, 0.5, 1.0}) {
            const auto count = std::ranges::count_if(p, [&](double value) { return value >= min_p * p[order[0]]; });
            CHECK(finite_indices(processed(logits, {.do_sample = true, .min_p = min_p})) ==
                  first(static_cast<std::size_t>(count)));
        }
        // Typical: closest to the entropy first.
        double entropy = 0;
        for (const double value : p) entropy -= value * std::log(value);
        std::vector<std::size_t> typical = order;
        std::ranges::sort(typical, [&](std::size_t a, std::size_t b) {
            return std::abs(-std::log(p[a]) - entropy) < std::abs(-std::log(p[b]) - entropy);
        });
        std::size_t count = 0;
        for (double sum = 0; sum < 0.4;) sum += p[typical[count++]];
        std::vector<std::size_t> expected(typical.begin(), typical.begin() + static_cast<std::ptrdiff_t>(count));
        std::ranges::sort(expected);
        CHECK(finite_indices(processed(logits, {.do_sample = true, .typical_p = 0.4})) == expected);
        // Temperature is applied before the others.
        CHECK(finite_indices(processed(logits, {.do_sample = true, .temperature = 0.01, .top_p = 0.9})) == first(1));
        CHECK(processed(logits, {.do_sample = true, .temperature = 2})[3] == doctest::Approx(logits[3] / 2));
    }
}

TEST_CASE("generation: penalties and bans") {
    const std::vector<float> logits{2, -2, 1, 0, 3};
    const Ids tokens{0, 1, 0, 4, 0};
    CHECK(processed(logits, {.repetition_penalty = 2}, tokens, 5) == std::vector<float>{1, -4, 1, 0, 1.5F});
    CHECK(processed(logits, {.presence_penalty = 1, .frequency_penalty = 0.5}, tokens, 2) ==
          std::vector<float>{0, -2, 1, 0, 1.5F});
    CHECK(processed(logits, {.no_repeat_ngram_size = 2}, tokens, 5) ==
          std::vector<float>{2, -kInfinity, 1, 0, -kInfinity});
    CHECK(processed(logits, {.no_repeat_ngram_size = 3}, {0, 4, 1, 0, 4}, 5) ==
          std::vector<float>{2, -kInfinity, 1, 0, 3});
    CHECK(processed(logits, {.no_repeat_ngram_size = 1}, tokens, 5) ==
          std::vector<float>{-kInfinity, -kInfinity, 1, 0, -kInfinity});
    CHECK(processed(logits, {.suppress_tokens = {4, 0}})[0] == -kInfinity);
    CHECK(processed(logits, {.min_new_tokens = 2, .eos_token_id = {3}}, {0, 1}, 1)[3] == -kInfinity);
    CHECK(processed(logits, {.min_new_tokens = 2, .eos_token_id = {3}}, {0, 1, 2}, 1)[3] == 0);
    CHECK_THROWS_AS((void)processed(logits, {}, {5}), ValueError);
    CHECK_THROWS_AS((void)processed(logits, {}, {1}, 2), ValueError);
    CHECK_THROWS_AS((void)processed(logits, {.suppress_tokens = {0, 1, 2, 3, 4}}), ValueError);
    for (const GenerationOptions& bad : {GenerationOptions{.max_new_tokens = -1},
                                         {.temperature = 0},
                                         {.top_k = -1},
                                         {.top_p = 0},
                                         {.top_p = 1.1},
                                         {.min_p = -0.1},
                                         {.typical_p = 0},
                                         {.repetition_penalty = 0},
                                         {.no_repeat_ngram_size = -1},
                                         {.num_beams = 0},
                                         {.num_return_sequences = 2},
                                         {.num_beams = 2, .num_return_sequences = 3},
                                         {.max_new_tokens = 4, .min_new_tokens = 5},
                                         {.temperature = -1},
                                         {.temperature = NAN},
                                         {.top_p = NAN},
                                         {.min_p = NAN},
                                         {.stop_sequences = {{1}, {}}},
                                         {.stop_strings = {"x"}},
                                         {.stop_strings = {""}, .decode = [](auto) { return std::string(); }},
                                         {.num_beams = 2, .on_token = [](const GeneratedToken&) { return true; }},
                                         {.eos_interval = 0}})
        CHECK_THROWS_AS(check(bad), ValueError);
    CHECK_THROWS_WITH_AS(check({.max_new_tokens = 4, .min_new_tokens = 5}),
                         "GenerationOptions: expected min_new_tokens of at most max_new_tokens, 4, got 5", ValueError);
}

TEST_CASE("generation: samples follow the probabilities") {
    const std::vector<float> logits{0, std::log(2.0F), -kInfinity, std::log(5.0F)};
    data::Random random(1, 0, 0, data::Purpose::draw);
    std::array<int, 4> counts{};
    constexpr int kDraws = 40000;
    for (int i = 0; i < kDraws; ++i) ++counts[static_cast<std::size_t>(sample(logits, random))];
    CHECK(counts[2] == 0);
    for (const auto& [token, p] : {std::pair<std::size_t, double>{0, 0.125}, {1, 0.25}, {3, 0.625}})
        CHECK(std::abs(counts[token] - kDraws * p) < 5 * std::sqrt(kDraws * p * (1 - p)));
    CHECK(argmax(std::vector<float>{1, 3, 3, 2}) == 1);
    CHECK_THROWS_AS((void)argmax(std::vector<float>{1, NAN}), ValueError);
    CHECK_THROWS_AS((void)argmax(std::vector<float>{}), ValueError);
    CHECK_THROWS_AS((void)sample(std::vector<float>{-kInfinity, -kInfinity}, random), ValueError);
    CHECK(sample(std::vector<float>{0, kInfinity}, random) == 1);
}

TEST_CASE("generation: greedy and sampled sequences, and stopping") {
    const auto model = [](std::span<const std::int64_t> tokens) { return table_model(tokens, 9); };
    const Ids prompt{3, 1};
    const GeneratedSequence greedy = generate(model, prompt, {.max_new_tokens = 12})[0];
    Ids all = prompt;
    double score = 0;
    for (int i = 0; i < 12; ++i) {
        const std::vector<float> logits = table_model(all, 9);
        all.push_back(argmax(logits));
        score += log_softmax(logits)[static_cast<std::size_t>(all.back())];
    }
    CHECK(greedy.tokens == Ids(all.begin() + 2, all.end()));
    CHECK(greedy.score == doctest::Approx(score));
    CHECK(!greedy.finished);
    // Ends with the first of these tokens.
    const std::int64_t fourth = greedy.tokens[3];
    const GeneratedSequence ended = generate(model, prompt, {.max_new_tokens = 12, .eos_token_id = {fourth}})[0];
    CHECK(ended.tokens.back() == fourth);
    CHECK(ended.finished);
    CHECK(std::ranges::count(ended.tokens, fourth) == 1);
    const GeneratedSequence stopped =
        generate(model, prompt, {.max_new_tokens = 12, .stop_sequences = {{greedy.tokens[4], greedy.tokens[5]}}})[0];
    CHECK(stopped.tokens.size() <= 6);
    CHECK(stopped.finished);
    const GeneratedSequence longer =
        generate(model, prompt, {.max_new_tokens = 12, .min_new_tokens = 6, .eos_token_id = {fourth}})[0];
    CHECK(std::ranges::find(longer.tokens, fourth) - longer.tokens.begin() >= 6);

    const GenerationOptions sampling{
        .max_new_tokens = 10, .do_sample = true, .eos_token_id = {0}, .num_return_sequences = 4, .seed = 7};
    const auto some = generate(model, prompt, sampling), again = generate(model, prompt, sampling);
    REQUIRE(some.size() == 4);
    for (std::size_t i = 0; i < 4; ++i) CHECK(some[i].tokens == again[i].tokens);
    CHECK(some[0].tokens != some[1].tokens);
    GenerationOptions single_sequence = sampling;
    single_sequence.num_return_sequences = 1;
    CHECK(generate(model, prompt, single_sequence)[0].tokens == some[0].tokens);  // a random stream for each sequence
    single_sequence.seed = 8;
    CHECK(generate(model, prompt, single_sequence)[0].tokens != some[0].tokens);
    CHECK(generate(model, prompt, {.max_new_tokens = 0})[0].tokens.empty());
    CHECK_THROWS_AS((void)generate(NextLogitsOfOne(), prompt), ValueError);
    CHECK_THROWS_AS((void)generate([](const GenerationStep&) { return std::vector<std::vector<float>>(); }, prompt),
                    ValueError);
    int call = 0;
    CHECK_THROWS_AS(
        (void)generate(
            [&](std::span<const std::int64_t>) { return std::vector<float>(static_cast<std::size_t>(4 + call++)); },
            prompt),
        ValueError);
}

TEST_CASE("generation: with equal scores exactly the requested number remains, lower ids first") {
    const std::vector<float> equal(6, 0.5F), two{1, 3, 0, 3, 3, 1};
    const auto left = [](const std::vector<float>& logits, GenerationOptions options) {
        options.do_sample = true;
        return finite_indices(processed(logits, options));
    };
    using Indices = std::vector<std::size_t>;
    CHECK(left(equal, {.top_k = 2}) == Indices{0, 1});
    CHECK(left(two, {.top_k = 1}) == Indices{1});
    CHECK(left(two, {.top_k = 2}) == Indices{1, 3});
    CHECK(left(two, {.top_k = 4}) == Indices{0, 1, 3, 4});
    CHECK(left(equal, {.top_p = 0.5}) == Indices{0, 1, 2});
    CHECK(left(equal, {.top_p = 1e-9}) == Indices{0});
    CHECK(left(equal, {.top_k = 3, .top_p = 0.5}) == Indices{0, 1});
    CHECK(left(equal, {.min_p = 1}).size() == 6);  // a threshold, not a number
    CHECK(left({0, kInfinity, -kInfinity, kInfinity}, {.top_k = 1}) == Indices{1});
    // A vocabulary that is only partially sorted.
    std::vector<float> many_logits(5000);
    for (std::size_t i = 0; i < many_logits.size(); ++i) many_logits[i] = static_cast<float>((i * 37) % 50);
    Indices first;
    for (std::size_t i = 0; i < many_logits.size() && first.size() < 70; ++i)
        if (many_logits[i] == 49) first.push_back(i);
    CHECK(left(many_logits, {.top_k = 70}) == first);
    // A temperature for which quotients overflow a float.
    CHECK(left({-3, -2, -2.5F}, {.temperature = 1e-45}) == Indices{1});
}

TEST_CASE("generation: NaN is refused, and so are tokens outside of the vocabulary") {
    const auto constant_logits = [](std::vector<float> logits) {
        return [logits](std::span<const std::int64_t>) { return logits; };
    };
    for (const bool draw : {false, true})
        for (const std::int64_t beams : {1, 2}) {
            const GenerationOptions options{.do_sample = draw, .num_beams = beams};
            CHECK_THROWS_AS((void)generate(constant_logits({1, NAN, 2}), Ids{0}, options), ValueError);
            CHECK_THROWS_AS((void)generate(constant_logits({NAN, NAN}), Ids{0}, options), ValueError);
            CHECK_THROWS_AS((void)generate(constant_logits({-kInfinity, -kInfinity}), Ids{0}, options), ValueError);
        }
    CHECK_THROWS_AS((void)processed({1, NAN}, {}), ValueError);
    const auto three = constant_logits({1, 2, 3});
    CHECK_THROWS_WITH_AS((void)generate(three, Ids{0}, {.eos_token_id = {3}}),
                         "GenerationOptions: expected eos_token_id in 0 .. 2, the vocabulary, got 3", ValueError);
    CHECK_THROWS_AS((void)generate(three, Ids{0}, {.suppress_tokens = {-1}}), ValueError);
    CHECK_THROWS_AS((void)generate(three, Ids{0}, {.stop_sequences = {{0, 7}}}), ValueError);
    CHECK_THROWS_AS((void)generate(three, Ids{0}, {.lengths = zeros({1})}), ValueError);
    CHECK_THROWS_AS((void)generate(three, Ids{0}, {.next = {[](const Tensor& x) { return x; }}}), ValueError);
    CHECK(generate(three, Ids{0}, {.max_new_tokens = 2, .eos_token_ids = {2}})[0].tokens == Ids{2});
}

TEST_CASE("generation: stop strings, streamed text and tokens") {
    // Generates a text byte by byte, whatever the prompt.
    const std::string complete_text = "ab\u00e9 the end. more";
    const auto spelled = [&](std::size_t prompt) {
        return [&complete_text, prompt](std::span<const std::int64_t> tokens) {
            std::vector<float> logits(256);
            logits[static_cast<unsigned char>(complete_text.at(tokens.size() - prompt))] = 9;
            return logits;
        };
    };
    const auto decode = [](std::span<const std::int64_t> tokens) {
        std::string out;
        for (const std::int64_t token : tokens) out += static_cast<char>(token);
        return out;
    };
    const auto length = static_cast<std::int64_t>(complete_text.size());
    const GeneratedSequence all = generate(spelled(2), Ids{1, 2}, {.max_new_tokens = length, .decode = decode})[0];
    CHECK(all.text == complete_text);
    CHECK(all.reason == FinishReason::length);
    CHECK(!all.finished);
    std::vector<std::string> pieces;
    std::vector<std::int64_t> tokens;
    const GenerationOptions options{
        .max_new_tokens = length,
        .stop_strings = {"end!", "end.", "zzz"},
        .decode = decode,
        .on_token = [&](const GeneratedToken& generated_token) {
            pieces.emplace_back(generated_token.text);
            tokens.push_back(generated_token.token);
            CHECK(generated_token.sequence == 0);
            CHECK(Ids(generated_token.tokens.begin(), generated_token.tokens.end()) == tokens);
            return true;
        }};
    const GeneratedSequence stopped = generate(spelled(1), Ids{1}, options)[0];
    CHECK(stopped.text == "ab\u00e9 the ");
    CHECK(decode(stopped.tokens) == "ab\u00e9 the end.");
    CHECK(stopped.tokens == tokens);
    CHECK(stopped.reason == FinishReason::stop_string);
    CHECK(stopped.finished);
    std::string joined;
    for (const std::string& piece : pieces) joined += piece;
    CHECK(joined == stopped.text);
    CHECK(pieces[2].empty());  // half of a character
    CHECK(pieces[3] == "\u00e9");
    CHECK(pieces[4] == " ");
    CHECK(pieces[7].empty());  // "e", the beginning of a stop string
    CHECK(pieces[8] == "e ");
    // A callback ends its own sequence.
    std::vector<std::size_t> sequences;
    const auto two = generate(spelled(1), std::vector<Ids>{{1}, {2}},
                              {.max_new_tokens = 4, .on_token = [&](const GeneratedToken& item) {
                                   sequences.push_back(item.sequence);
                                   return item.sequence == 1 || item.tokens.size() < 2;
                               }});
    CHECK(sequences == std::vector<std::size_t>{0, 1, 0, 1, 1, 1});
    CHECK(two[0].tokens.size() == 2);
    CHECK(two[0].reason == FinishReason::callback);
    CHECK(!two[0].finished);
    CHECK(two[1].tokens.size() == 4);
    const GeneratedSequence beam = generate(
        spelled(1), Ids{1}, {.max_new_tokens = length, .num_beams = 2, .stop_strings = {"end."}, .decode = decode})[0];
    CHECK(beam.reason == FinishReason::stop_string);
    CHECK(beam.text == "ab\u00e9 the ");
}

TEST_CASE("generation: prompts of different lengths, and tensor functions, match sequential calls") {
    const auto model = [](std::span<const std::int64_t> tokens) { return table_model(tokens, 9); };
    const std::vector<Ids> prompts{{3, 1}, {2}, {3, 1, 4}, {5, 5}};
    for (const GenerationOptions& options : {GenerationOptions{.max_new_tokens = 6, .eos_token_id = {0}},
                                             GenerationOptions{.max_new_tokens = 5, .num_beams = 3}}) {
        const auto all = generate(model, prompts, options);
        REQUIRE(all.size() == 4);
        for (std::size_t i = 0; i < 4; ++i) {
            const auto single = generate(model, prompts[i], options)[0];
            CHECK(all[i].tokens == single.tokens);
            CHECK(all[i].score == doctest::Approx(single.score));
        }
    }
    const GenerationOptions sampling{.max_new_tokens = 6, .do_sample = true, .num_return_sequences = 2, .seed = 3};
    const auto some = generate(model, prompts, sampling);
    CHECK(some.size() == 8);
    CHECK(some[0].tokens == generate(model, prompts[0], sampling)[0].tokens);
    CHECK(some[0].tokens != some[1].tokens);
    CHECK(generate(model, std::vector<Ids>{}, {}).empty());
    // Logits from a tensor, at each position or at the last one.
    const auto rows = [&](const Tensor& tokens, bool all_positions) {
        const Ids all = tokens.to_vector<std::int64_t>();
        const std::int64_t length = tokens.size(1);
        std::vector<float> logits;
        for (std::int64_t row = 0; row < tokens.size(0); ++row)
            for (std::int64_t t = all_positions ? 0 : length - 1; t < length; ++t) {
                const auto scores = table_model(
                    std::span(all).subspan(static_cast<std::size_t>(row * length), static_cast<std::size_t>(t + 1)), 9);
                logits.insert(logits.end(), scores.begin(), scores.end());
            }
        return all_positions ? Tensor::from(logits, {tokens.size(0), length, 9})
                             : Tensor::from(logits, {tokens.size(0), 9});
    };
    for (const bool all_positions : {false, true}) {
        const NextLogitsOfTensor next_logits = [&](const Tensor& tokens) { return rows(tokens, all_positions); };
        const auto got = generate(next_logits, prompts, sampling);
        for (std::size_t i = 0; i < 8; ++i) CHECK(got[i].tokens == some[i].tokens);
    }
    struct Table : nn::Layer {
        std::function<Tensor(const Tensor&)> logits_of;
        nn::Layer* child = nullptr;
        bool was_training = true;
        Tensor forward(Tensor tokens) override {
            was_training = was_training && training();
            return logits_of(tokens);
        }
    };
    Table table;
    table.logits_of = [&](const Tensor& tokens) { return rows(tokens, true); };
    CHECK(generate(table, prompts[2], {.max_new_tokens = 6})[0].tokens ==
          generate(model, prompts[2], {.max_new_tokens = 6})[0].tokens);
    CHECK(!table.was_training);
    CHECK(table.training());
    table.logits_of = [](const Tensor&) { return zeros({1, 1, 1, 1}); };
    CHECK_THROWS_AS((void)generate(table, prompts[2], {}), ShapeError);
    CHECK(table.training());
    CHECK_THROWS_AS((void)generate(table, Ids{}, {}), ValueError);
}

TEST_CASE("generation: with as many beams as sequences, beam search finds the best one") {
    constexpr std::int64_t kEnd = 0;
    for (const std::size_t vocabulary : {3U, 4U})
        for (const double length_penalty : {0.0, 1.0, 2.0}) {
            const Ids prompt{1};
            constexpr std::int64_t kMaxLength = 4;
            std::vector<GeneratedSequence> all;
            const std::function<void(const Ids&, double)> go = [&](const Ids& tokens, double score) {
                const auto generated = static_cast<std::int64_t>(tokens.size()) - 1;
                if (generated > 0 && (generated == kMaxLength || tokens.back() == kEnd)) {
                    all.push_back({Ids(tokens.begin() + 1, tokens.end()),
                                   score / std::pow(static_cast<double>(generated), length_penalty),
                                   tokens.back() == kEnd});
                    return;
                }
                const std::vector<double> p = log_softmax(table_model(tokens, vocabulary));
                for (std::size_t token = 0; token < vocabulary; ++token) {
                    Ids next = tokens;
                    next.push_back(static_cast<std::int64_t>(token));
                    go(next, score + p[token]);
                }
            };
            go(prompt, 0);
            std::ranges::sort(all, std::greater<>(), &GeneratedSequence::score);
            const std::vector<GeneratedSequence> got =
                generate([&](std::span<const std::int64_t> tokens) { return table_model(tokens, vocabulary); }, prompt,
                         {.max_new_tokens = kMaxLength,
                          .eos_token_id = {kEnd},
                          .num_beams = 400,
                          .length_penalty = length_penalty,
                          .num_return_sequences = 10});
            REQUIRE(got.size() == 10);
            for (std::size_t i = 0; i < got.size(); ++i) {
                CHECK(got[i].tokens == all[i].tokens);
                CHECK(got[i].score == doctest::Approx(all[i].score));
                CHECK(got[i].finished == all[i].finished);
            }
        }
}

TEST_CASE("generation: an end token outside of the best beams is dropped") {
    const auto model = [](std::span<const std::int64_t>) {
        return std::vector<float>{std::log(0.35F), std::log(0.2F), std::log(0.3F), std::log(0.15F)};
    };
    const auto got = generate(
        model, Ids{3},
        {.max_new_tokens = 2, .eos_token_id = {0, 1}, .num_beams = 2, .length_penalty = 0, .num_return_sequences = 2});
    CHECK(got[0].tokens == Ids{0});
    CHECK(got[1].tokens == Ids{2, 0});  // not {1}, which was third
}

TEST_CASE("generation: few beams continue from the right parents, and may stop early") {
    const Ids prompt{2, 5};
    std::vector<std::vector<std::int64_t>> before;
    const NextLogits next = [&](const GenerationStep& step) {
        std::vector<std::vector<float>> out;
        for (std::size_t i = 0; i < step.sequences.size(); ++i) {
            if (!before.empty()) {
                const auto& parent = before.at(static_cast<std::size_t>(step.parents[i]));
                CHECK(std::equal(parent.begin(), parent.end(), step.sequences[i].begin(), step.sequences[i].end() - 1));
            }
            out.push_back(table_model(step.sequences[i], 11));
        }
        before = step.sequences;
        return out;
    };
    const GenerationOptions options{
        .max_new_tokens = 9, .eos_token_id = {0, 3}, .num_beams = 4, .num_return_sequences = 4};
    const auto all_finished = generate(next, prompt, options);
    REQUIRE(all_finished.size() == 4);
    for (std::size_t i = 1; i < 4; ++i) CHECK(all_finished[i].score <= all_finished[i - 1].score);
    before.clear();
    GenerationOptions stop_early = options;
    stop_early.early_stopping = true;
    const auto stopped_early = generate(next, prompt, stop_early);
    CHECK(all_finished[0].score >= stopped_early[0].score);
    for (const GeneratedSequence& generated_sequence : stopped_early) CHECK(generated_sequence.finished);
    before.clear();
    GenerationOptions sampling = options;
    sampling.do_sample = true;
    sampling.seed = 3;
    const auto some = generate(next, prompt, sampling);
    before.clear();
    CHECK(generate(next, prompt, sampling)[0].tokens == some[0].tokens);
    // Beam search with one beam is the greedy sequence, or better.
    const auto greedy = generate([](std::span<const std::int64_t> tokens) { return table_model(tokens, 11); }, prompt,
                                 {.max_new_tokens = 9});
    const auto beams = generate([](std::span<const std::int64_t> tokens) { return table_model(tokens, 11); }, prompt,
                                {.max_new_tokens = 9, .num_beams = 6, .length_penalty = 0});
    CHECK(beams[0].score >= greedy[0].score - 1e-9);
}
