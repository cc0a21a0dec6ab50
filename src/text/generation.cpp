#include <declivity/text/generation.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <unordered_map>
#include <utility>

#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

namespace declivity::text {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

template <class T>
void require(bool holds, const char* name, const char* wanted, T got) {
    if (!holds) throw ValueError(fmt::format("GenerationOptions: wants {} {}, got {}", name, wanted, got));
}

std::vector<double> probabilities(std::span<const float> logits) {
    std::vector<double> out = log_softmax(logits);
    for (double& one : out) one = std::exp(one);
    return out;
}

/// Leaves the tokens that come first in an order until their probabilities come to p, at least one.
void keep_mass(std::span<float> logits, std::span<const double> p_of, const std::vector<std::size_t>& order, double p) {
    double sum = 0;
    std::size_t kept = 0;
    while (kept < order.size() && (kept == 0 || sum < p)) sum += p_of[order[kept++]];
    for (; kept < order.size(); ++kept) logits[order[kept]] = kNever;
}

template <class Before>
std::vector<std::size_t> order_by(std::size_t count, const Before& before) {
    std::vector<std::size_t> order(count);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, before);
    return order;
}

void warp(std::span<float> logits, const GenerationOptions& options) {
    for (float& logit : logits) logit = static_cast<float>(logit / options.temperature);
    if (options.top_k > 0 && options.top_k < static_cast<std::int64_t>(logits.size())) {
        std::vector<float> sorted(logits.begin(), logits.end());
        const auto last = sorted.begin() + (options.top_k - 1);
        std::ranges::nth_element(sorted, last, std::greater<>());
        for (float& logit : logits)
            if (logit < *last) logit = kNever;
    }
    if (options.top_p < 1) {
        const std::vector<double> p = probabilities(logits);
        keep_mass(logits, p, order_by(logits.size(), [&](std::size_t a, std::size_t b) { return p[a] > p[b]; }),
                  options.top_p);
    }
    if (options.min_p > 0) {
        const std::vector<double> p = probabilities(logits);
        const double least = options.min_p * std::ranges::max(p);
        for (std::size_t i = 0; i < p.size(); ++i)
            if (p[i] < least) logits[i] = kNever;
    }
    if (options.typical_p < 1) {
        const std::vector<double> log_p = log_softmax(logits), p = probabilities(logits);
        double entropy = 0;
        for (std::size_t i = 0; i < p.size(); ++i)
            if (p[i] > 0) entropy -= p[i] * log_p[i];
        const auto distance = [&](std::size_t i) { return std::abs(-log_p[i] - entropy); };
        keep_mass(logits, p,
                  order_by(logits.size(), [&](std::size_t a, std::size_t b) { return distance(a) < distance(b); }),
                  options.typical_p);
    }
}

void ban_repeated_ngrams(std::span<float> logits, std::span<const std::int64_t> tokens, std::size_t n) {
    if (tokens.size() + 1 < n) return;
    const std::span<const std::int64_t> last = tokens.last(n - 1);
    for (std::size_t at = 0; at + n <= tokens.size(); ++at)
        if (std::ranges::equal(tokens.subspan(at, n - 1), last))
            logits[static_cast<std::size_t>(tokens[at + n - 1])] = kNever;
}

bool ends_with(std::span<const std::int64_t> tokens, std::span<const std::int64_t> what) {
    return !what.empty() && tokens.size() >= what.size() && std::ranges::equal(tokens.last(what.size()), what);
}

bool is_end(std::int64_t token, const GenerationOptions& options) {
    return std::ranges::find(options.eos_token_id, token) != options.eos_token_id.end();
}

/// What was generated has come to its end.
bool stops(std::span<const std::int64_t> generated, const GenerationOptions& options) {
    return (!generated.empty() && is_end(generated.back(), options)) ||
           std::ranges::any_of(options.stop_sequences, [&](const auto& stop) { return ends_with(generated, stop); });
}

/// A sequence under way.
struct Beam {
    std::vector<std::int64_t> tokens;  ///< the prompt, too
    double score = 0;
    std::int64_t parent = 0;
};

/// Calls the model, and checks what it gives.
class Model {
  public:
    Model(const NextLogits& next, std::size_t prompt, const GenerationOptions& options)
        : next_(next), prompt_(prompt), options_(options) {}

    /// The processed logits of what follows each sequence.
    std::vector<std::vector<float>> operator()(const std::vector<Beam>& beams) {
        GenerationStep step;
        for (const Beam& beam : beams) {
            step.sequences.push_back(beam.tokens);
            step.parents.push_back(beam.parent);
        }
        std::vector<std::vector<float>> logits = next_(step);
        if (logits.size() != beams.size())
            throw ValueError(
                fmt::format("generate: wants logits of {} sequences, got {}", beams.size(), logits.size()));
        for (std::size_t i = 0; i < beams.size(); ++i) {
            if (size_ == 0) size_ = logits[i].size();
            if (logits[i].size() != size_ || size_ == 0)
                throw ValueError(fmt::format("generate: wants {} logits, got {}", std::max<std::size_t>(size_, 1),
                                             logits[i].size()));
            process_logits(logits[i], beams[i].tokens, prompt_, options_);
        }
        return logits;
    }

  private:
    const NextLogits& next_;
    std::size_t prompt_;
    const GenerationOptions& options_;
    std::size_t size_ = 0;
};

GeneratedSequence finished(const Beam& beam, std::size_t prompt, const GenerationOptions& options) {
    GeneratedSequence out;
    out.tokens.assign(beam.tokens.begin() + static_cast<std::ptrdiff_t>(prompt), beam.tokens.end());
    out.finished = stops(out.tokens, options);
    out.score = beam.score;
    return out;
}

std::vector<GeneratedSequence> without_beams(Model& model, std::span<const std::int64_t> prompt,
                                             const GenerationOptions& options) {
    const auto count = static_cast<std::size_t>(options.num_return_sequences);
    std::vector<Beam> running(count);
    std::vector<std::size_t> which(count);  // of the results
    std::vector<data::Random> random;
    for (std::size_t i = 0; i < count; ++i) {
        running[i].tokens.assign(prompt.begin(), prompt.end());
        running[i].parent = static_cast<std::int64_t>(i);
        which[i] = i;
        random.emplace_back(options.seed, 0, i, data::Purpose::draw);  // NOLINT: a stream for each sequence
    }
    std::vector<GeneratedSequence> out(count);
    for (std::int64_t step = 0; step < options.max_new_tokens && !running.empty(); ++step) {
        const std::vector<std::vector<float>> logits = model(running);
        std::vector<Beam> next;
        std::vector<std::size_t> next_which;
        for (std::size_t i = 0; i < running.size(); ++i) {
            const std::int64_t token = options.do_sample ? sample(logits[i], random[which[i]]) : argmax(logits[i]);
            Beam& beam = running[i];
            beam.score += log_softmax(logits[i])[static_cast<std::size_t>(token)];
            beam.tokens.push_back(token);
            beam.parent = static_cast<std::int64_t>(i);
            if (stops(std::span(beam.tokens).subspan(prompt.size()), options)) {
                out[which[i]] = finished(beam, prompt.size(), options);
                continue;
            }
            next_which.push_back(which[i]);
            next.push_back(std::move(beam));
        }
        running = std::move(next);
        which = std::move(next_which);
    }
    for (std::size_t i = 0; i < running.size(); ++i) out[which[i]] = finished(running[i], prompt.size(), options);
    return out;
}

/// Finished sequences, the best ones.
class Finished {
  public:
    Finished(std::size_t prompt, const GenerationOptions& options) : prompt_(prompt), options_(options) {}

    /// A score as sequences are ranked by, of so many generated tokens.
    [[nodiscard]] double ranked(double score, std::size_t generated) const {
        return score / std::pow(static_cast<double>(std::max<std::size_t>(generated, 1)), options_.length_penalty);
    }
    void add(const Beam& beam) {
        GeneratedSequence one = finished(beam, prompt_, options_);
        one.score = ranked(beam.score, one.tokens.size());
        const auto at = std::ranges::upper_bound(all_, one.score, std::greater<>(), &GeneratedSequence::score);
        all_.insert(at, std::move(one));
        if (all_.size() > static_cast<std::size_t>(options_.num_beams)) all_.pop_back();
    }
    /// Whether no beam of this score, of so many generated tokens, can still become better than what is there.
    [[nodiscard]] bool done(double best, std::size_t generated) const {
        if (all_.size() < static_cast<std::size_t>(options_.num_beams)) return false;
        return options_.early_stopping || all_.back().score >= ranked(best, generated);
    }
    std::vector<GeneratedSequence> best(std::size_t count) && {
        if (all_.size() > count) all_.resize(count);
        return std::move(all_);
    }

  private:
    std::size_t prompt_;
    const GenerationOptions& options_;
    std::vector<GeneratedSequence> all_;
};

std::vector<GeneratedSequence> with_beams(Model& model, std::span<const std::int64_t> prompt,
                                          const GenerationOptions& options) {
    const auto width = static_cast<std::size_t>(options.num_beams);
    std::vector<Beam> running(1);
    running[0].tokens.assign(prompt.begin(), prompt.end());
    Finished done(prompt.size(), options);
    data::Random random(options.seed, 0, 0, data::Purpose::draw);
    struct Candidate {
        double score = 0;  // of the sequence
        double order = 0;  // what is chosen by
        std::size_t beam = 0;
        std::int64_t token = 0;
    };
    for (std::int64_t step = 0; step < options.max_new_tokens && !running.empty(); ++step) {
        const std::vector<std::vector<float>> logits = model(running);
        std::vector<Candidate> candidates;
        for (std::size_t beam = 0; beam < running.size(); ++beam) {
            const std::vector<double> log_p = log_softmax(logits[beam]);
            for (std::size_t token = 0; token < log_p.size(); ++token)
                if (std::isfinite(log_p[token]))
                    candidates.push_back(
                        {running[beam].score + log_p[token], 0, beam, static_cast<std::int64_t>(token)});
        }
        for (Candidate& one : candidates) {
            one.order = one.score;
            // The largest of log probabilities plus Gumbel noise are a draw without replacement (Kool et al. 2019).
            if (options.do_sample)
                one.order -= std::log(-std::log((static_cast<double>(random.word()) + 0.5) * 0x1p-32));
        }
        // Twice as many as there are beams, so that enough are left where some end; and one more for each further end.
        const std::size_t wanted =
            std::min(candidates.size(), (1 + std::max<std::size_t>(options.eos_token_id.size(), 1)) * width);
        std::ranges::partial_sort(
            candidates, candidates.begin() + static_cast<std::ptrdiff_t>(wanted),
            [](const Candidate& a, const Candidate& b) {
                return a.order != b.order ? a.order > b.order : std::pair(a.beam, a.token) < std::pair(b.beam, b.token);
            });
        candidates.resize(wanted);
        if (options.do_sample) std::ranges::stable_sort(candidates, std::greater<>(), &Candidate::score);
        std::vector<Beam> next;
        for (std::size_t rank = 0; rank < candidates.size() && next.size() < width; ++rank) {
            const Candidate& one = candidates[rank];
            Beam beam{running[one.beam].tokens, one.score, static_cast<std::int64_t>(one.beam)};
            beam.tokens.push_back(one.token);
            if (!stops(std::span(beam.tokens).subspan(prompt.size()), options)) next.push_back(std::move(beam));
            // One that ends, but is none of the best, would not have been kept either.
            else if (rank < width) done.add(beam);
        }
        running = std::move(next);
        if (!running.empty() && done.done(running[0].score, running[0].tokens.size() - prompt.size())) {
            running.clear();
            break;
        }
    }
    for (const Beam& beam : running) done.add(beam);
    return std::move(done).best(static_cast<std::size_t>(options.num_return_sequences));
}

}  // namespace

void check(const GenerationOptions& of) {
    require(of.max_new_tokens >= 0, "max_new_tokens", "of at least 0", of.max_new_tokens);
    require(of.min_new_tokens >= 0, "min_new_tokens", "of at least 0", of.min_new_tokens);
    require(of.temperature > 0 && std::isfinite(of.temperature), "a temperature", "above 0", of.temperature);
    require(of.top_k >= 0, "top_k", "of at least 0", of.top_k);
    require(of.top_p > 0 && of.top_p <= 1, "top_p", "above 0 and at most 1", of.top_p);
    require(of.min_p >= 0 && of.min_p <= 1, "min_p", "from 0 to 1", of.min_p);
    require(of.typical_p > 0 && of.typical_p <= 1, "typical_p", "above 0 and at most 1", of.typical_p);
    require(of.repetition_penalty > 0 && std::isfinite(of.repetition_penalty), "a repetition_penalty", "above 0",
            of.repetition_penalty);
    require(std::isfinite(of.presence_penalty), "a presence_penalty", "that is finite", of.presence_penalty);
    require(std::isfinite(of.frequency_penalty), "a frequency_penalty", "that is finite", of.frequency_penalty);
    require(of.no_repeat_ngram_size >= 0, "no_repeat_ngram_size", "of at least 0", of.no_repeat_ngram_size);
    require(of.num_beams >= 1, "num_beams", "of at least 1", of.num_beams);
    require(std::isfinite(of.length_penalty), "a length_penalty", "that is finite", of.length_penalty);
    require(of.num_return_sequences >= 1, "num_return_sequences", "of at least 1", of.num_return_sequences);
    if (of.num_beams > 1)
        require(of.num_return_sequences <= of.num_beams, "num_return_sequences",
                fmt::format("of at most num_beams, {}", of.num_beams).c_str(), of.num_return_sequences);
    else
        require(of.do_sample || of.num_return_sequences == 1, "num_return_sequences",
                "of 1 without do_sample and beams", of.num_return_sequences);
}

std::vector<double> log_softmax(std::span<const float> logits) {
    double largest = -std::numeric_limits<double>::infinity();
    for (const float logit : logits) {
        if (std::isnan(logit)) throw ValueError("log_softmax: a logit is NaN");
        largest = std::max(largest, static_cast<double>(logit));
    }
    std::vector<double> out(logits.begin(), logits.end());
    if (!std::isfinite(largest)) {
        // All at -infinity have no probabilities; those at +infinity have all of it.
        const auto many = static_cast<double>(std::ranges::count(out, largest));
        for (double& one : out)
            one = largest > 0 && one == largest ? -std::log(many) : -std::numeric_limits<double>::infinity();
        return out;
    }
    double sum = 0;
    for (const double one : out) sum += std::exp(one - largest);
    for (double& one : out) one -= largest + std::log(sum);
    return out;
}

std::int64_t argmax(std::span<const float> logits) {
    if (logits.empty()) throw ValueError("argmax: wants at least one logit, got none");
    for (const float logit : logits)
        if (std::isnan(logit)) throw ValueError("argmax: a logit is NaN");
    return std::ranges::max_element(logits) - logits.begin();
}

std::int64_t sample(std::span<const float> logits, data::Random& random) {
    const std::vector<double> p = probabilities(logits);
    double sum = 0;
    for (const double one : p) sum += one;
    if (!(sum > 0)) throw ValueError("sample: wants a token with a probability above 0, got none");
    const std::uint64_t high = random.word(), low = random.word();
    double left = static_cast<double>((high << 32 | low) >> 11) * 0x1p-53 * sum;
    std::size_t last = 0;
    for (std::size_t i = 0; i < p.size(); ++i) {
        if (p[i] <= 0) continue;
        last = i;
        if (left < p[i]) break;
        left -= p[i];
    }
    return static_cast<std::int64_t>(last);
}

void process_logits(std::span<float> logits, std::span<const std::int64_t> tokens, std::size_t prompt,
                    const GenerationOptions& options) {
    check(options);
    if (prompt > tokens.size())
        throw ValueError(
            fmt::format("process_logits: wants a prompt of at most the {} tokens, got {}", tokens.size(), prompt));
    const auto size = static_cast<std::int64_t>(logits.size());
    const auto in_vocabulary = [&](std::int64_t token) {
        if (token < 0 || token >= size)
            throw ValueError(fmt::format("process_logits: wants tokens from 0 to {}, got {}", size - 1, token));
        return static_cast<std::size_t>(token);
    };
    for (const std::int64_t token : tokens) (void)in_vocabulary(token);
    if (options.repetition_penalty != 1) {
        std::vector<bool> seen(logits.size());
        for (const std::int64_t token : tokens) {
            const auto at = static_cast<std::size_t>(token);
            if (seen[at]) continue;
            seen[at] = true;
            logits[at] = static_cast<float>(logits[at] < 0 ? logits[at] * options.repetition_penalty
                                                           : logits[at] / options.repetition_penalty);
        }
    }
    if (options.presence_penalty != 0 || options.frequency_penalty != 0) {
        std::unordered_map<std::size_t, std::int64_t> counts;
        for (const std::int64_t token : tokens.subspan(prompt)) ++counts[static_cast<std::size_t>(token)];
        for (const auto& [token, count] : counts)
            logits[token] -=
                static_cast<float>(options.presence_penalty + options.frequency_penalty * static_cast<double>(count));
    }
    if (options.no_repeat_ngram_size > 0)
        ban_repeated_ngrams(logits, tokens, static_cast<std::size_t>(options.no_repeat_ngram_size));
    for (const std::int64_t token : options.suppress_tokens) logits[in_vocabulary(token)] = kNever;
    if (static_cast<std::int64_t>(tokens.size() - prompt) < options.min_new_tokens)
        for (const std::int64_t token : options.eos_token_id) logits[in_vocabulary(token)] = kNever;
    if (std::ranges::none_of(logits, [](float logit) { return logit > kNever; }))
        throw ValueError(
            "process_logits: no token is left to choose; loosen no_repeat_ngram_size, suppress_tokens or "
            "min_new_tokens");
    if (options.do_sample) warp(logits, options);
}

std::vector<GeneratedSequence> generate(const NextLogits& next, std::span<const std::int64_t> prompt,
                                        const GenerationOptions& options) {
    check(options);
    if (!next) throw ValueError("generate: wants a function that gives logits, got an empty one");
    Model model(next, prompt.size(), options);
    return options.num_beams > 1 ? with_beams(model, prompt, options) : without_beams(model, prompt, options);
}

std::vector<GeneratedSequence> generate(const NextLogitsOfOne& next, std::span<const std::int64_t> prompt,
                                        const GenerationOptions& options) {
    if (!next) throw ValueError("generate: wants a function that gives logits, got an empty one");
    return generate(
        [&](const GenerationStep& step) {
            std::vector<std::vector<float>> out;
            for (const auto& sequence : step.sequences) out.push_back(next(sequence));
            return out;
        },
        prompt, options);
}

}  // namespace declivity::text
