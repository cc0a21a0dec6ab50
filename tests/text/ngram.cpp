// n-gram models compared with their formulas in plain code.
#include <declivity/text/ngram.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include <declivity/runtime/error.hpp>
#include <declivity/text/generation.hpp>
#include <doctest/doctest.h>

#include "tests/support/damage.hpp"

using namespace declivity;
using namespace declivity::text;
using namespace declivity::test;

namespace {

using Ids = std::vector<std::int64_t>;
constexpr std::int64_t kVocabulary = 12, kBegin = 10, kEnd = 11;

std::vector<Ids> random_sequences(std::uint64_t seed, int count) {
    data::Random random(seed, 0, 0, data::Purpose::user);
    std::vector<Ids> out;
    for (int i = 0; i < count; ++i) {
        Ids ids;
        for (std::int64_t k = 0; k < random.below(12); ++k) ids.push_back(std::min(random.below(9), random.below(9)));
        out.push_back(ids);
    }
    return out;
}

/// Interpolated modified Kneser-Ney (Chen and Goodman), directly from its formulas.
class PlainKneserNey {
  public:
    PlainKneserNey(const std::vector<Ids>& sequences, std::size_t order) : order_(order), counts_(order) {
        for (const Ids& sequence : sequences) {
            Ids all{kBegin};
            all.insert(all.end(), sequence.begin(), sequence.end());
            all.push_back(kEnd);
            for (std::size_t end = 2; end <= all.size(); ++end)
                for (std::size_t n = 1; n <= order && n <= end; ++n)
                    ++counts_[n - 1][Ids(all.begin() + static_cast<std::ptrdiff_t>(end - n),
                                         all.begin() + static_cast<std::ptrdiff_t>(end))];
        }
    }
    /// The count of an n-gram: its frequency, or the number of distinct preceding tokens.
    [[nodiscard]] double count(const Ids& ngram) const {
        const std::size_t n = ngram.size();
        if (n == order_ || ngram[0] == kBegin)
            return counts_[n - 1].contains(ngram) ? static_cast<double>(counts_[n - 1].at(ngram)) : 0;
        double out = 0;
        for (std::int64_t before = 0; before < kVocabulary; ++before) {
            Ids longer{before};
            longer.insert(longer.end(), ngram.begin(), ngram.end());
            out += counts_[n].contains(longer) ? 1 : 0;
        }
        return out;
    }
    [[nodiscard]] double discount(std::size_t n, double occurrences) const {
        std::array<double, 5> number{};
        std::set<Ids> all;
        for (const auto& [ngram, count] : counts_[n - 1]) all.insert(ngram);
        for (const Ids& ngram : all)
            if (const double c = count(ngram); c >= 1 && c <= 4) number[static_cast<std::size_t>(c)] += 1;
        if (occurrences <= 0) return 0;
        if (number[1] == 0 || number[2] == 0) return 0.5;
        const double y = number[1] / (number[1] + 2 * number[2]);
        if (number[3] == 0 || number[4] == 0) return y;
        const double i = std::min(occurrences, 3.0);
        return i - (i + 1) * y * number[static_cast<std::size_t>(i) + 1] / number[static_cast<std::size_t>(i)];
    }
    [[nodiscard]] double probability(const Ids& context, std::int64_t token) const {
        const double shorter =
            context.empty() ? 1.0 / kVocabulary : probability(Ids(context.begin() + 1, context.end()), token);
        double total = 0, backoff_mass = 0, discounted = 0;
        for (std::int64_t w = 0; w < kVocabulary; ++w) {
            Ids ngram = context;
            ngram.push_back(w);
            const double c = count(ngram), d = discount(ngram.size(), c);
            total += c;
            backoff_mass += d;
            if (w == token) discounted = c - d;
        }
        return total > 0 ? (discounted + backoff_mass * shorter) / total : shorter;
    }

  private:
    std::size_t order_;
    std::vector<std::map<Ids, std::int64_t>> counts_;
};

double total_probability(const NgramModel& model, const Ids& context) {
    double sum = 0;
    for (std::int64_t token = 0; token < model.vocab_size(); ++token)
        sum += std::exp(model.log_probability(token, context));
    return sum;
}

}  // namespace

TEST_CASE("ngram: Kneser-Ney matches its formulas") {
    const std::vector<Ids> sequences = random_sequences(3, 60);
    for (const int order : {1, 2, 3}) {
        NgramModel model(kVocabulary, {.order = order, .bos_id = kBegin, .eos_id = kEnd});
        model.train(sequences);
        const PlainKneserNey plain(sequences, static_cast<std::size_t>(order));
        for (const Ids& context : {Ids{}, Ids{0}, Ids{1, 2}, Ids{7, 7}, Ids{3, 8, 0, 1}, Ids{9, 9}})
            for (std::int64_t token = 0; token < kVocabulary; ++token) {
                Ids history{kBegin};
                history.insert(history.end(), context.begin(), context.end());
                const Ids last(
                    history.end() - std::min<std::ptrdiff_t>(order - 1, static_cast<std::ptrdiff_t>(history.size())),
                    history.end());
                CHECK(std::exp(model.log_probability(token, context)) ==
                      doctest::Approx(plain.probability(last, token)).epsilon(1e-9));
            }
    }
}

TEST_CASE("ngram: probabilities sum to one in each context, and none is zero") {
    const std::vector<Ids> sequences = random_sequences(4, 40);
    for (const NgramSmoothing smoothing : {NgramSmoothing::kneser_ney, NgramSmoothing::add_k, NgramSmoothing::backoff})
        for (const int order : {1, 2, 4, 8})
            for (const bool with_markers : {false, true}) {
                NgramOptions options{.order = order, .smoothing = smoothing, .k = 0.3};
                if (with_markers) options.bos_id = kBegin, options.eos_id = kEnd;
                NgramModel model(kVocabulary, options);
                CHECK(total_probability(model, {1}) == doctest::Approx(1));  // also before training
                model.train(std::span(sequences).first(3));                  // too few to estimate discounts
                CHECK(total_probability(model, {}) == doctest::Approx(1));
                model.train(std::span(sequences).subspan(3));
                for (const Ids& context :
                     {Ids{}, Ids{0}, Ids{1, 2}, Ids{8, 8, 8}, Ids{9}, Ids{0, 1, 0, 2, 1, 0, 0, 3}}) {
                    CHECK(total_probability(model, context) == doctest::Approx(1));
                    const std::vector<float> logits = model.logits(context);
                    for (std::int64_t token = 0; token < kVocabulary; ++token) {
                        CHECK(std::isfinite(logits[static_cast<std::size_t>(token)]));
                        CHECK(logits[static_cast<std::size_t>(token)] ==
                              doctest::Approx(model.log_probability(token, context)).epsilon(1e-5));
                    }
                }
            }
}

TEST_CASE("ngram: add-k and backoff by hand") {
    NgramModel add(3, {.order = 2, .smoothing = NgramSmoothing::add_k, .k = 0.5});
    add.train(Ids{0, 1, 0, 1, 0, 2});
    CHECK(add.count(Ids{0, 1}) == 2);
    CHECK(add.count(Ids{2, 0}) == 0);
    CHECK(std::exp(add.log_probability(1, Ids{0})) == doctest::Approx((2 + 0.5) / (3 + 1.5)));
    CHECK(std::exp(add.log_probability(1, Ids{2})) == doctest::Approx(1.0 / 3));
    NgramModel back(3, {.order = 2, .smoothing = NgramSmoothing::backoff, .backoff_factor = 0.5});
    back.train(Ids{0, 1, 0, 1, 0, 2});
    const double p0 = 4.0 / 9, p1 = 3.0 / 9, p2 = 2.0 / 9;  // one more of each
    const double all = 1 + 0.5 * (1 - p1 - p2);
    CHECK(std::exp(back.log_probability(1, Ids{0})) == doctest::Approx(2.0 / 3 / all));
    CHECK(std::exp(back.log_probability(0, Ids{0})) == doctest::Approx(0.5 * p0 / all));
    CHECK(std::exp(back.log_probability(2, Ids{2})) == doctest::Approx(p2));  // nothing followed 2
}

TEST_CASE("ngram: training data has a lower perplexity, and is generated again") {
    std::vector<Ids> sequences;
    for (int i = 0; i < 30; ++i) sequences.push_back({1, 2, 3, i % 2 == 0 ? 4 : 5, 6});
    for (const NgramSmoothing smoothing :
         {NgramSmoothing::kneser_ney, NgramSmoothing::add_k, NgramSmoothing::backoff}) {
        NgramModel model(kVocabulary,
                         {.order = 3, .smoothing = smoothing, .k = 0.01, .bos_id = kBegin, .eos_id = kEnd});
        model.train(sequences);
        CHECK(model.perplexity(sequences) < 1.5);
        CHECK(model.perplexity(std::vector<Ids>{{6, 5, 4, 3}}) > 5);
        const std::vector<double> per_token = model.log_probabilities(sequences[0]);
        CHECK(per_token.size() == 6);  // including the end token
        CHECK(model.perplexity({&sequences[0], 1}) ==
              doctest::Approx(std::exp(-std::accumulate(per_token.begin(), per_token.end(), 0.0) / 6)));
        data::Random random(1, 0, 0, data::Purpose::draw);
        int right = 0;
        for (int i = 0; i < 40; ++i) {
            const Ids sampled = model.sample(10, random);
            right += std::ranges::find(sequences, sampled) != sequences.end() ? 1 : 0;
        }
        CHECK(right > 10);
        CHECK(model.sample(3, random, Ids{1, 2}).size() <= 3);
        const auto written = generate([&](std::span<const std::int64_t> tokens) { return model.logits(tokens); },
                                      Ids{1}, {.eos_token_id = {kEnd}, .num_beams = 3});
        CHECK((written[0].tokens == Ids{2, 3, 4, 6, kEnd} || written[0].tokens == Ids{2, 3, 5, 6, kEnd}));
    }
}

TEST_CASE("ngram: copies are independent, files round trip, damaged ones are refused") {
    NgramModel model(kVocabulary, {.order = 3, .bos_id = kBegin});
    model.train(random_sequences(5, 20));
    const NgramModel copy = model;
    const double before = copy.log_probability(3, Ids{1, 2});
    model.train(Ids{1, 2, 3, 1, 2, 3, 1, 2, 3});
    CHECK(copy.log_probability(3, Ids{1, 2}) == before);
    CHECK(model.log_probability(3, Ids{1, 2}) > before);
    const TempFolder folder;
    const auto path = folder / "model";
    copy.save(path);
    const NgramModel again = NgramModel::load(path);
    CHECK(again.log_probability(3, Ids{1, 2}) == before);
    CHECK(again.options().bos_id == kBegin);
    CHECK(!again.options().eos_id);
    const Bytes valid = get_file(path);
    const auto read = [](const std::filesystem::path& file) {
        const NgramModel ids = NgramModel::load(file);
        if (ids.vocab_size() < 100) (void)ids.logits({});
    };
    CHECK(truncate_everywhere(valid, path, read).accepted == 0);
    const auto read_damaged = [&](const std::filesystem::path& file) {
        if (get_file(file) == valid) throw FormatError(file.string(), 0, "damage that changed nothing");
        read(file);
    };
    CHECK(damage_at_random(valid, path, 500, read_damaged).accepted == 0);  // the file has a checksum
    CHECK_THROWS_AS(NgramModel(0), ValueError);
    CHECK_THROWS_AS(NgramModel(5, {.order = 9}), ValueError);
    CHECK_THROWS_AS(NgramModel(5, {.k = 0}), ValueError);
    CHECK_THROWS_AS(NgramModel(5, {.backoff_factor = 1.5}), ValueError);
    CHECK_THROWS_AS(NgramModel(5, {.eos_id = 5}), ValueError);
    CHECK_THROWS_AS(model.train(Ids{kVocabulary}), ValueError);
    CHECK_THROWS_AS((void)model.log_probability(-1, Ids{}), ValueError);
    CHECK_THROWS_AS((void)model.count(Ids{}), ValueError);
    CHECK_THROWS_AS((void)model.perplexity(std::vector<Ids>{}), ValueError);
}
