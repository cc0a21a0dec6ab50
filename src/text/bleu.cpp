#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

#include <declivity/runtime/error.hpp>
#include <declivity/text/metrics.hpp>
#include <declivity/text/vocabulary.hpp>
#include <fmt/format.h>

#include "ngram_counts.hpp"
#include "regex.hpp"
#include "unicode.hpp"

namespace declivity::text {
namespace {

/// Statistics summed over sentences.
struct Statistics {
    std::vector<std::int64_t> matches, ngrams;  // of each order
    std::int64_t hypothesis = 0, reference = 0;

    explicit Statistics(int orders)
        : matches(static_cast<std::size_t>(orders)), ngrams(static_cast<std::size_t>(orders)) {}

    void add(const Tokens& tokens, const std::vector<Tokens>& references) {
        const auto length = static_cast<std::int64_t>(tokens.size());
        hypothesis += length;
        // The nearest length; the shorter one of two.
        std::int64_t nearest = static_cast<std::int64_t>(references[0].size());
        for (const Tokens& item : references) {
            const auto size = static_cast<std::int64_t>(item.size());
            if (std::pair(std::abs(size - length), size) < std::pair(std::abs(nearest - length), nearest))
                nearest = size;
        }
        reference += nearest;
        for (std::size_t order = 0; order < matches.size(); ++order) {
            NgramCounts max_counts;
            for (const Tokens& item : references)
                for (const auto& [key, count] : count_ngrams(item, order + 1)) {
                    std::int64_t& max_count = max_counts[key];
                    max_count = std::max(max_count, count);
                }
            for (const auto& [key, count] : count_ngrams(tokens, order + 1)) {
                ngrams[order] += count;
                if (const auto found = max_counts.find(key); found != max_counts.end())
                    matches[order] += std::min(count, found->second);
            }
        }
    }
};

Bleu bleu_of(const Statistics& statistics, const BleuOptions& options) {
    Bleu out;
    const auto orders = static_cast<std::size_t>(options.max_order);
    out.precisions.assign(orders, 0);
    out.hypothesis_length = statistics.hypothesis;
    out.reference_length = statistics.reference;
    const auto length = static_cast<double>(statistics.hypothesis),
               reference = static_cast<double>(statistics.reference);
    out.brevity_penalty = length < reference ? (length > 0 ? std::exp(1 - reference / length) : 0) : 1;
    if (std::ranges::all_of(statistics.matches, [](std::int64_t count) { return count == 0; })) return out;
    const double value = options.smooth_value >= 0                   ? options.smooth_value
                         : options.smoothing == BleuSmoothing::floor ? 0.1
                                                                     : 1;
    double smooth_factor = 1;
    std::size_t effective = orders;
    for (std::size_t order = 0; order < orders; ++order) {
        double matches = static_cast<double>(statistics.matches[order]),
               ngrams = static_cast<double>(statistics.ngrams[order]);
        if (options.smoothing == BleuSmoothing::add_k && order > 0) matches += value, ngrams += value;
        if (ngrams == 0) break;
        // Effective order: the hypothesis has n-grams of these orders.
        if (options.effective_order) effective = order + 1;
        double precision = 100 * matches / ngrams;
        if (matches == 0) {
            if (options.smoothing == BleuSmoothing::exp) precision = 100 / ((smooth_factor *= 2) * ngrams);
            else if (options.smoothing == BleuSmoothing::floor) precision = 100 * value / ngrams;
        }
        out.precisions[order] = precision;
    }
    double sum = 0;
    for (std::size_t order = 0; order < effective; ++order)
        sum += out.precisions[order] > 0 ? std::log(out.precisions[order]) : -9999999999;
    out.score = out.brevity_penalty * std::exp(sum / static_cast<double>(effective));
    return out;
}

void check(const char* function, const BleuOptions& options) {
    if (options.max_order < 1 || options.max_order > 16)
        throw ValueError(fmt::format("{}: expected a max_order from 1 to 16, got {}", function, options.max_order));
}

}  // namespace

Bleu corpus_bleu(std::span<const Tokens> hypotheses, std::span<const std::vector<Tokens>> references,
                 const BleuOptions& options) {
    check("corpus_bleu", options);
    if (hypotheses.size() != references.size())
        throw ValueError(fmt::format("corpus_bleu: expected references for each of {} hypotheses, got {}",
                                     hypotheses.size(), references.size()));
    Statistics statistics(options.max_order);
    for (std::size_t i = 0; i < hypotheses.size(); ++i) {
        if (references[i].empty())
            throw ValueError(
                fmt::format("corpus_bleu: expected at least one reference for hypothesis {}, got none", i));
        statistics.add(hypotheses[i], references[i]);
    }
    return bleu_of(statistics, options);
}

Bleu sentence_bleu(const Tokens& hypothesis, const std::vector<Tokens>& references, BleuOptions options) {
    return corpus_bleu({&hypothesis, 1}, {&references, 1}, options);
}

Tokens tokenize_13a(std::string_view text) {
    std::string line = to_valid(text);
    const auto replace = [&](std::string_view pattern, std::string_view replacement) {
        for (std::size_t pos = line.find(pattern); pos != std::string::npos;
             pos = line.find(pattern, pos + replacement.size()))
            line.replace(pos, pattern.size(), replacement);
    };
    replace("<skipped>", "");
    replace("-\n", "");
    replace("\n", " ");
    if (line.find('&') != std::string::npos)
        for (const auto& [pattern, replacement] : {std::pair<std::string_view, std::string_view>{"&quot;", "\""},
                                                   {"&amp;", "&"},
                                                   {"&lt;", "<"},
                                                   {"&gt;", ">"}})
            replace(pattern, replacement);
    // Punctuation is split off, except for periods, commas and dashes within numbers.
    const auto cut = [&](std::string_view pattern, auto replacement_of) {
        std::string out;
        std::size_t done = 0;
        Regex(pattern).for_each(line, [&](Range match) {
            out.append(line, done, match.begin - done);
            out += replacement_of(std::string_view(line).substr(match.begin, match.end - match.begin));
            done = match.end;
        });
        out.append(line, done);
        line = std::move(out);
    };
    line = " " + line + " ";
    cut(R"([\{-\~\[-\` -\&\(-\+\:-\@\/])", [](std::string_view matched) { return " " + std::string(matched) + " "; });
    const auto between = [](std::size_t left, const char* front, const char* middle, const char* back) {
        return [=](std::string_view matched) {
            return front + std::string(matched.substr(0, left)) + middle + std::string(matched.substr(left)) + back;
        };
    };
    // A period or comma after or before a character that is not a digit; a dash after a digit.
    cut(R"([^0-9][\.,])", [](std::string_view matched) {
        return std::string(matched.substr(0, matched.size() - 1)) + " " +
               std::string(matched.substr(matched.size() - 1)) + " ";
    });
    cut(R"([\.,][^0-9])", between(1, " ", " ", ""));
    cut(R"([0-9]-)", [](std::string_view matched) { return std::string(matched.substr(0, 1)) + " - "; });
    return split_whitespace(line);
}

}  // namespace declivity::text
