// Logits processing: penalties and bans, filtering of tokens, and sampling.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <unordered_map>

#include <declivity/runtime/error.hpp>
#include <declivity/text/generation.hpp>
#include <fmt/format.h>

namespace declivity::text {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

template <class T>
void require(bool holds, const char* name, const char* wanted, T got) {
    if (!holds) throw ValueError(fmt::format("GenerationOptions: expected {} {}, got {}", name, wanted, got));
}

std::vector<double> probabilities(std::span<const float> logits) {
    std::vector<double> out = log_softmax(logits);
    for (double& output : out) output = std::exp(output);
    return out;
}

/// Tokens that can still be selected.
std::vector<std::size_t> left(std::span<const float> logits) {
    std::vector<std::size_t> tokens;
    for (std::size_t i = 0; i < logits.size(); ++i)
        if (logits[i] > kNever) tokens.push_back(i);
    return tokens;
}

/// Keeps the first tokens of an order, ties by lower id, until take(token) is false or none is left. Sorts only as far
/// as needed: most of a vocabulary is never visited.
template <class Before, class Take>
void keep_first(std::span<float> logits, const Before& before, const Take& take) {
    std::vector<std::size_t> order = left(logits);
    const auto in_order = [&](std::size_t a, std::size_t b) {
        if (before(a, b)) return true;
        return !before(b, a) && a < b;
    };
    std::size_t sorted = 0;
    for (std::size_t rank = 0; rank < order.size(); ++rank) {
        if (rank == sorted) {
            const std::size_t next = std::min(order.size(), std::max<std::size_t>(64, 4 * sorted));
            std::partial_sort(order.begin() + static_cast<std::ptrdiff_t>(sorted),
                              order.begin() + static_cast<std::ptrdiff_t>(next), order.end(), in_order);
            sorted = next;
        }
        if (take(order[rank])) continue;
        for (; rank < order.size(); ++rank) logits[order[rank]] = kNever;
    }
}

/// Keeps tokens in an order until their cumulative probability reaches p, at least one.
template <class Before>
void keep_mass(std::span<float> logits, std::span<const double> p_of, const Before& before, double p) {
    double sum = 0;
    bool first = true;
    keep_first(logits, before, [&](std::size_t token) {
        if (!first && sum >= p) return false;
        first = false;
        sum += p_of[token];
        return true;
    });
}

void warp(std::span<float> logits, const GenerationOptions& options) {
    if (options.temperature != 1) {
        const double largest = std::ranges::max(logits);
        // If the quotient of the maximum overflows, the difference to it is used; next to an infinite logit no other
        // becomes infinite.
        const bool overflows =
            std::isfinite(largest) && !std::isfinite(static_cast<float>(largest / options.temperature));
        for (float& logit : logits) {
            const double quotient = (logit - (overflows ? largest : 0)) / options.temperature;
            if (std::isfinite(logit))
                logit = static_cast<float>(std::min<double>(quotient, std::numeric_limits<float>::max()));
        }
    }
    if (options.top_k > 0 && options.top_k < static_cast<std::int64_t>(logits.size())) {
        std::int64_t taken = 0;
        keep_first(
            logits, [&](std::size_t a, std::size_t b) { return logits[a] > logits[b]; },
            [&](std::size_t) { return taken++ < options.top_k; });
    }
    if (options.top_p < 1) {
        const std::vector<double> p = probabilities(logits);
        keep_mass(
            logits, p, [&](std::size_t a, std::size_t b) { return p[a] > p[b]; }, options.top_p);
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
        keep_mass(
            logits, p, [&](std::size_t a, std::size_t b) { return distance(a) < distance(b); }, options.typical_p);
    }
}

void ban_repeated_ngrams(std::span<float> logits, std::span<const std::int64_t> tokens, std::size_t n) {
    if (tokens.size() + 1 < n) return;
    const std::span<const std::int64_t> last = tokens.last(n - 1);
    for (std::size_t at = 0; at + n <= tokens.size(); ++at)
        if (std::ranges::equal(tokens.subspan(at, n - 1), last))
            logits[static_cast<std::size_t>(tokens[at + n - 1])] = kNever;
}

}  // namespace

void check(const GenerationOptions& of) {
    require(of.max_new_tokens >= 0, "max_new_tokens", "of at least 0", of.max_new_tokens);
    require(of.min_new_tokens >= 0, "min_new_tokens", "of at least 0", of.min_new_tokens);
    require(of.min_new_tokens <= of.max_new_tokens, "min_new_tokens",
            fmt::format("of at most max_new_tokens, {}", of.max_new_tokens).c_str(), of.min_new_tokens);
    require(of.temperature > 0 && std::isfinite(of.temperature), "temperature", "above 0", of.temperature);
    require(of.top_k >= 0, "top_k", "of at least 0", of.top_k);
    require(of.top_p > 0 && of.top_p <= 1, "top_p", "above 0 and at most 1", of.top_p);
    require(of.min_p >= 0 && of.min_p <= 1, "min_p", "from 0 to 1", of.min_p);
    require(of.typical_p > 0 && of.typical_p <= 1, "typical_p", "above 0 and at most 1", of.typical_p);
    require(of.repetition_penalty > 0 && std::isfinite(of.repetition_penalty), "repetition_penalty", "above 0",
            of.repetition_penalty);
    require(std::isfinite(of.presence_penalty), "presence_penalty", "that is finite", of.presence_penalty);
    require(std::isfinite(of.frequency_penalty), "frequency_penalty", "that is finite", of.frequency_penalty);
    require(of.no_repeat_ngram_size >= 0, "no_repeat_ngram_size", "of at least 0", of.no_repeat_ngram_size);
    require(of.num_beams >= 1, "num_beams", "of at least 1", of.num_beams);
    require(std::isfinite(of.length_penalty), "length_penalty", "that is finite", of.length_penalty);
    require(of.num_return_sequences >= 1, "num_return_sequences", "of at least 1", of.num_return_sequences);
    if (of.num_beams > 1)
        require(of.num_return_sequences <= of.num_beams, "num_return_sequences",
                fmt::format("of at most num_beams, {}", of.num_beams).c_str(), of.num_return_sequences);
    else
        require(of.do_sample || of.num_return_sequences == 1, "num_return_sequences",
                "of 1 without do_sample and beams", of.num_return_sequences);
    for (const auto& stop : of.stop_sequences)
        if (stop.empty())
            throw ValueError("GenerationOptions: expected stop_sequences of at least one token, got none");
    for (const std::string& stop : of.stop_strings)
        if (stop.empty()) throw ValueError("GenerationOptions: expected stop_strings of at least one byte, got \"\"");
    if (!of.stop_strings.empty() && !of.decode)
        throw ValueError("GenerationOptions: expected decode, which returns the text of tokens, with stop_strings");
    if (of.on_token && of.num_beams > 1)
        throw ValueError(fmt::format("GenerationOptions: expected num_beams of 1 with on_token, got {}", of.num_beams));
    require(of.eos_interval >= 1, "eos_interval", "of at least 1", of.eos_interval);
}

std::vector<double> log_softmax(std::span<const float> logits) {
    double largest = -std::numeric_limits<double>::infinity();
    for (const float logit : logits) {
        if (std::isnan(logit)) throw ValueError("log_softmax: expected logits without NaN, got NaN");
        largest = std::max(largest, static_cast<double>(logit));
    }
    std::vector<double> out(logits.begin(), logits.end());
    if (!std::isfinite(largest)) {
        // If all are -infinity there are no probabilities; those at +infinity share all of it.
        const auto many = static_cast<double>(std::ranges::count(out, largest));
        for (double& output : out)
            output = largest > 0 && output == largest ? -std::log(many) : -std::numeric_limits<double>::infinity();
        return out;
    }
    double sum = 0;
    for (const double output : out) sum += std::exp(output - largest);
    for (double& output : out) output -= largest + std::log(sum);
    return out;
}

std::int64_t argmax(std::span<const float> logits) {
    if (logits.empty()) throw ValueError("argmax: expected at least one logit, got none");
    for (const float logit : logits)
        if (std::isnan(logit)) throw ValueError("argmax: expected logits without NaN, got NaN");
    return std::ranges::max_element(logits) - logits.begin();
}

std::int64_t sample(std::span<const float> logits, data::Random& random) {
    const std::vector<double> p = probabilities(logits);
    double sum = 0;
    for (const double value : p) sum += value;
    if (!(sum > 0)) throw ValueError("sample: expected a token with a probability above 0, got none");
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
            fmt::format("process_logits: expected a prompt of at most the {} tokens, got {}", tokens.size(), prompt));
    const auto size = static_cast<std::int64_t>(logits.size());
    const auto in_vocabulary = [&](std::int64_t token) {
        if (token < 0 || token >= size)
            throw ValueError(fmt::format("process_logits: expected tokens from 0 to {}, got {}", size - 1, token));
        return static_cast<std::size_t>(token);
    };
    for (const std::int64_t token : tokens) (void)in_vocabulary(token);
    for (std::size_t i = 0; i < logits.size(); ++i)
        if (std::isnan(logits[i]))
            throw ValueError(fmt::format("process_logits: expected logits without NaN, got NaN for token {}", i));
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
            "process_logits: no token can be selected; relax no_repeat_ngram_size, suppress_tokens or "
            "min_new_tokens");
    if (options.do_sample) warp(logits, options);
}

}  // namespace declivity::text
