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

constexpr float kMaskedLogit = -std::numeric_limits<float>::infinity();

template <class T>
void require(bool condition, const char* name, const char* requirement, T got) {
    if (!condition) throw ValueError(fmt::format("GenerationOptions: expected {} {}, got {}", name, requirement, got));
}

std::vector<double> probabilities(std::span<const float> logits) {
    std::vector<double> out = log_softmax(logits);
    for (double& output : out) output = std::exp(output);
    return out;
}

/// Tokens that can still be selected.
std::vector<std::size_t> selectable_tokens(std::span<const float> logits) {
    std::vector<std::size_t> tokens;
    for (std::size_t i = 0; i < logits.size(); ++i)
        if (logits[i] > kMaskedLogit) tokens.push_back(i);
    return tokens;
}

/// Keeps the first tokens of an order, ties by lower id, until take(token) is false or none is left. Sorts only as far
/// as needed: most of a vocabulary is never visited.
template <class Compare, class Take>
void keep_first(std::span<float> logits, const Compare& compare, const Take& take) {
    std::vector<std::size_t> order = selectable_tokens(logits);
    const auto in_order = [&](std::size_t a, std::size_t b) {
        if (compare(a, b)) return true;
        return !compare(b, a) && a < b;
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
        for (; rank < order.size(); ++rank) logits[order[rank]] = kMaskedLogit;
    }
}

/// Keeps tokens in an order until their cumulative probability reaches p, at least one.
template <class Compare>
void keep_mass(std::span<float> logits, std::span<const double> token_probabilities, const Compare& compare, double p) {
    double sum = 0;
    bool first = true;
    keep_first(logits, compare, [&](std::size_t token) {
        if (!first && sum >= p) return false;
        first = false;
        sum += token_probabilities[token];
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
        const double min_probability = options.min_p * std::ranges::max(p);
        for (std::size_t i = 0; i < p.size(); ++i)
            if (p[i] < min_probability) logits[i] = kMaskedLogit;
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
    for (std::size_t pos = 0; pos + n <= tokens.size(); ++pos)
        if (std::ranges::equal(tokens.subspan(pos, n - 1), last))
            logits[static_cast<std::size_t>(tokens[pos + n - 1])] = kMaskedLogit;
}

}  // namespace

void check(const GenerationOptions& options) {
    require(options.max_new_tokens >= 0, "max_new_tokens", "of at least 0", options.max_new_tokens);
    require(options.min_new_tokens >= 0, "min_new_tokens", "of at least 0", options.min_new_tokens);
    require(options.min_new_tokens <= options.max_new_tokens, "min_new_tokens",
            fmt::format("of at most max_new_tokens, {}", options.max_new_tokens).c_str(), options.min_new_tokens);
    require(options.temperature > 0 && std::isfinite(options.temperature), "temperature", "above 0",
            options.temperature);
    require(options.top_k >= 0, "top_k", "of at least 0", options.top_k);
    require(options.top_p > 0 && options.top_p <= 1, "top_p", "above 0 and at most 1", options.top_p);
    require(options.min_p >= 0 && options.min_p <= 1, "min_p", "from 0 to 1", options.min_p);
    require(options.typical_p > 0 && options.typical_p <= 1, "typical_p", "above 0 and at most 1", options.typical_p);
    require(options.repetition_penalty > 0 && std::isfinite(options.repetition_penalty), "repetition_penalty",
            "above 0", options.repetition_penalty);
    require(std::isfinite(options.presence_penalty), "presence_penalty", "that is finite", options.presence_penalty);
    require(std::isfinite(options.frequency_penalty), "frequency_penalty", "that is finite", options.frequency_penalty);
    require(options.no_repeat_ngram_size >= 0, "no_repeat_ngram_size", "of at least 0", options.no_repeat_ngram_size);
    require(options.num_beams >= 1, "num_beams", "of at least 1", options.num_beams);
    require(std::isfinite(options.length_penalty), "length_penalty", "that is finite", options.length_penalty);
    require(options.num_return_sequences >= 1, "num_return_sequences", "of at least 1", options.num_return_sequences);
    if (options.num_beams > 1)
        require(options.num_return_sequences <= options.num_beams, "num_return_sequences",
                fmt::format("of at most num_beams, {}", options.num_beams).c_str(), options.num_return_sequences);
    else
        require(options.do_sample || options.num_return_sequences == 1, "num_return_sequences",
                "of 1 without do_sample and beams", options.num_return_sequences);
    for (const auto& stop : options.stop_sequences)
        if (stop.empty())
            throw ValueError("GenerationOptions: expected stop_sequences of at least one token, got none");
    for (const std::string& stop : options.stop_strings)
        if (stop.empty()) throw ValueError("GenerationOptions: expected stop_strings of at least one byte, got \"\"");
    if (!options.stop_strings.empty() && !options.decode)
        throw ValueError("GenerationOptions: expected decode, which returns the text of tokens, with stop_strings");
    if (options.on_token && options.num_beams > 1)
        throw ValueError(
            fmt::format("GenerationOptions: expected num_beams of 1 with on_token, got {}", options.num_beams));
    require(options.eos_interval >= 1, "eos_interval", "of at least 1", options.eos_interval);
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
        const auto tie_count = static_cast<double>(std::ranges::count(out, largest));
        for (double& output : out)
            output = largest > 0 && output == largest ? -std::log(tie_count) : -std::numeric_limits<double>::infinity();
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
    double remaining = static_cast<double>((high << 32 | low) >> 11) * 0x1p-53 * sum;
    std::size_t last = 0;
    for (std::size_t i = 0; i < p.size(); ++i) {
        if (p[i] <= 0) continue;
        last = i;
        if (remaining < p[i]) break;
        remaining -= p[i];
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
            const auto index = static_cast<std::size_t>(token);
            if (seen[index]) continue;
            seen[index] = true;
            logits[index] = static_cast<float>(logits[index] < 0 ? logits[index] * options.repetition_penalty
                                                                 : logits[index] / options.repetition_penalty);
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
    for (const std::int64_t token : options.suppress_tokens) logits[in_vocabulary(token)] = kMaskedLogit;
    if (static_cast<std::int64_t>(tokens.size() - prompt) < options.min_new_tokens)
        for (const std::int64_t token : options.eos_token_id) logits[in_vocabulary(token)] = kMaskedLogit;
    if (std::ranges::none_of(logits, [](float logit) { return logit > kMaskedLogit; }))
        throw ValueError(
            "process_logits: no token can be selected; relax no_repeat_ngram_size, suppress_tokens or "
            "min_new_tokens");
    if (options.do_sample) warp(logits, options);
}

}  // namespace declivity::text
