// Text metrics compared with plain implementations of their definitions, and with results of sacreBLEU and rouge-score.
#include <declivity/text/metrics.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>

#include <declivity/data/random.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/text/vocabulary.hpp>
#include <doctest/doctest.h>

using namespace declivity;
using namespace declivity::text;

namespace {

Tokens random_tokens(data::Random& random, std::int64_t longest, std::int64_t kinds) {
    Tokens out;
    for (std::int64_t i = 0; i < random.below(longest + 1); ++i)
        out.push_back(std::string(1, static_cast<char>('a' + random.below(kinds))));
    return out;
}

/// Recursive definition.
std::int64_t plain_distance(const Tokens& a, const Tokens& b, std::size_t i, std::size_t k) {
    if (i == a.size() || k == b.size()) return static_cast<std::int64_t>(a.size() - i + b.size() - k);
    const std::int64_t both = plain_distance(a, b, i + 1, k + 1) + (a[i] == b[k] ? 0 : 1);
    return std::min({both, plain_distance(a, b, i + 1, k) + 1, plain_distance(a, b, i, k + 1) + 1});
}

std::size_t plain_lcs(const Tokens& a, const Tokens& b, std::size_t i, std::size_t k) {
    if (i == a.size() || k == b.size()) return 0;
    if (a[i] == b[k]) return 1 + plain_lcs(a, b, i + 1, k + 1);
    return std::max(plain_lcs(a, b, i + 1, k), plain_lcs(a, b, i, k + 1));
}

/// Clipped n-gram matches: each one of the hypothesis consumes one of the reference.
std::pair<double, double> plain_ngrams(const Tokens& hypothesis, Tokens reference, std::size_t n) {
    const auto ngrams = [&](const Tokens& tokens) {
        std::vector<Tokens> out;
        for (std::size_t i = 0; i + n <= tokens.size(); ++i)
            out.emplace_back(tokens.begin() + static_cast<std::ptrdiff_t>(i),
                             tokens.begin() + static_cast<std::ptrdiff_t>(i + n));
        return out;
    };
    std::vector<Tokens> left = ngrams(reference);
    double matches = 0, all = 0;
    for (const Tokens& ngram : ngrams(hypothesis)) {
        ++all;
        const auto at = std::ranges::find(left, ngram);
        if (at == left.end()) continue;
        left.erase(at);
        ++matches;
    }
    return {matches, all};
}

}  // namespace

TEST_CASE("metrics: edit distance") {
    data::Random random(6, 0, 0, data::Purpose::user);
    for (int round = 0; round < 60; ++round) {
        const Tokens a = random_tokens(random, 7, 3), b = random_tokens(random, 7, 3);
        const EditCounts counts = edits(a, b);
        const std::int64_t expected = plain_distance(a, b, 0, 0);
        CHECK(counts.distance() == expected);
        CHECK(counts.matches + counts.substitutions + counts.insertions == static_cast<std::int64_t>(a.size()));
        CHECK(counts.matches + counts.substitutions + counts.deletions == static_cast<std::int64_t>(b.size()));
        std::string joined_a, joined_b;
        std::vector<std::int64_t> ids_a, ids_b;
        for (const auto& token : a) joined_a += token, ids_a.push_back(token[0]);
        for (const auto& token : b) joined_b += token, ids_b.push_back(token[0]);
        CHECK(edit_distance(joined_a, joined_b) == expected);
        CHECK(edit_distance(ids_a, ids_b) == expected);
    }
    CHECK(edit_distance("kitten", "sitting") == 3);
    CHECK(edit_distance("né", "ne") == 1);  // of characters, not of bytes
    const std::vector<std::string> predictions{"the cat sat", "a  b"}, targets{"the cat sat down", "a c"};
    CHECK(word_error_rate(predictions, targets) == doctest::Approx(2.0 / 6));
    CHECK(character_error_rate(predictions, targets) == doctest::Approx((5.0 + 2) / (16 + 3)));
    CHECK_THROWS_AS((void)word_error_rate(predictions, std::vector<std::string>{"a"}), ValueError);
    CHECK_THROWS_AS((void)word_error_rate(predictions, std::vector<std::string>{"", ""}), ValueError);
}

TEST_CASE("metrics: BLEU matches its definition") {
    data::Random random(8, 0, 0, data::Purpose::user);
    for (int round = 0; round < 40; ++round) {
        std::vector<Tokens> hypotheses;
        std::vector<std::vector<Tokens>> references;
        for (int i = 0; i < 6; ++i) {
            hypotheses.push_back(random_tokens(random, 20, 3));
            references.push_back({random_tokens(random, 20, 3)});
        }
        std::array<double, 4> matches{}, all{};
        double length = 0, expected_length = 0;
        for (std::size_t i = 0; i < hypotheses.size(); ++i) {
            length += static_cast<double>(hypotheses[i].size());
            expected_length += static_cast<double>(references[i][0].size());
            for (std::size_t n = 1; n <= 4; ++n) {
                const auto [m, count] = plain_ngrams(hypotheses[i], references[i][0], n);
                matches[n - 1] += m;
                all[n - 1] += count;
            }
        }
        double mean = 0;
        for (std::size_t n = 0; n < 4; ++n) mean += std::log(matches[n] / all[n]) / 4;
        const double expected =
            100 * std::exp(mean) * (length < expected_length ? std::exp(1 - expected_length / length) : 1);
        const Bleu got = corpus_bleu(hypotheses, references, {.smoothing = BleuSmoothing::none});
        if (matches[3] > 0) CHECK(got.score == doctest::Approx(expected));
        else CHECK(got.score == 0);
        CHECK(got.hypothesis_length == static_cast<std::int64_t>(length));
        CHECK(got.reference_length == static_cast<std::int64_t>(expected_length));
    }
}

TEST_CASE("metrics: BLEU matches sacreBLEU 2.6") {
    const Tokens hypothesis = split_whitespace("the cat the cat on the mat");
    const std::vector<Tokens> references{split_whitespace("the cat is on the mat"),
                                         split_whitespace("there is a cat on the mat now")};
    CHECK(sentence_bleu(hypothesis, references).score == doctest::Approx(46.713797772820016));
    CHECK(sentence_bleu(hypothesis, references, {.smoothing = BleuSmoothing::floor, .effective_order = true}).score ==
          doctest::Approx(46.713797772820016));
    CHECK(sentence_bleu(hypothesis, references, {.smoothing = BleuSmoothing::add_k, .effective_order = true}).score ==
          doctest::Approx(56.518871405926895));
    CHECK(sentence_bleu(split_whitespace("the cat"), references).score == doctest::Approx(13.533528323661276));
    CHECK(sentence_bleu(split_whitespace("dog"), references).score == 0);
    CHECK(sentence_bleu({}, references).score == 0);
    const std::vector<Tokens> both{hypothesis, split_whitespace("a b c d e")};
    const std::vector<std::vector<Tokens>> both_references{references,
                                                           {split_whitespace("a b d c e f"), split_whitespace("a")}};
    const Bleu corpus = corpus_bleu(both, both_references);
    CHECK(corpus.score == doctest::Approx(36.298976455773854));
    CHECK(corpus.precisions[3] == doctest::Approx(16.666666666666668));
    CHECK(corpus.brevity_penalty == doctest::Approx(1.0));
    CHECK(corpus.reference_length == 12);
    CHECK(tokenize_13a("Mr. Smith's (2nd) price: $1,234.5-7, \"no\" &amp; yes-\nno... x,y 3,4. \u00e9!") ==
          Tokens{"Mr", ".",  "Smith's", "(",     "2nd", ")", "price", ":", "$", "1,234.5", "-",   "7", ",", "\"",
                 "no", "\"", "&",       "yesno", ".",   ".", ".",     "x", ",", "y",       "3,4", ".", "é", "!"});
    CHECK_THROWS_AS((void)corpus_bleu(both, {}), ValueError);
    CHECK_THROWS_AS((void)sentence_bleu(hypothesis, {}), ValueError);
    CHECK_THROWS_AS((void)sentence_bleu(hypothesis, references, {.max_order = 0}), ValueError);
}

TEST_CASE("metrics: ROUGE") {
    data::Random random(10, 0, 0, data::Purpose::user);
    for (int round = 0; round < 40; ++round) {
        const Tokens a = random_tokens(random, 9, 3), b = random_tokens(random, 9, 3);
        for (const int n : {1, 2}) {
            const auto [matches, all] = plain_ngrams(a, b, static_cast<std::size_t>(n));
            const double reference_count = plain_ngrams(b, a, static_cast<std::size_t>(n)).second;
            const Rouge got = rouge_n(a, b, n);
            CHECK(got.precision == doctest::Approx(all > 0 ? matches / all : 0));
            CHECK(got.recall == doctest::Approx(reference_count > 0 ? matches / reference_count : 0));
            CHECK(got.f1 == doctest::Approx(matches > 0 ? 2 * matches / (all + reference_count) : 0));
        }
        const Rouge l = rouge_l(a, b);
        const auto common = static_cast<double>(plain_lcs(a, b, 0, 0));
        CHECK(l.f1 == doctest::Approx(common > 0 ? 2 * common / static_cast<double>(a.size() + b.size()) : 0));
        CHECK(rouge_lsum({&a, 1}, {&b, 1}).f1 == doctest::Approx(l.f1));
    }
    // Lin (2004), section 3.2: a sentence of the reference, and two of the summary.
    const Tokens reference{"w1", "w2", "w3", "w4", "w5"};
    const std::vector<Tokens> summary{{"w1", "w2", "w6", "w7", "w8"}, {"w1", "w3", "w8", "w9", "w5"}};
    CHECK(rouge_lsum(summary, {&reference, 1}).recall == doctest::Approx(4.0 / 5));
    CHECK(tokenize_rouge("Don't STOP-it, 2x! \u00c9t\u00e9") == Tokens{"don", "t", "stop", "it", "2x", "t"});
    CHECK_THROWS_AS((void)rouge_n(reference, reference, 0), ValueError);
}

TEST_CASE("metrics: perplexity") {
    CHECK(perplexity(std::vector<double>{std::log(0.25), std::log(0.25)}) == doctest::Approx(4));
    CHECK(perplexity(std::vector<double>{std::log(0.5), std::log(0.125)}) == doctest::Approx(4));
    CHECK_THROWS_AS((void)perplexity(std::vector<double>{}), ValueError);
}
