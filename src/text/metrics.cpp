#include <declivity/text/metrics.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

#include <declivity/runtime/error.hpp>
#include <declivity/text/vocabulary.hpp>
#include <fmt/format.h>

#include "ngram_counts.hpp"
#include "unicode.hpp"

namespace declivity::text {
namespace {

Rouge rouge_of(std::size_t matches, std::size_t hypothesis, std::size_t reference) {
    Rouge out;
    const auto count = static_cast<double>(matches);
    if (hypothesis > 0) out.precision = count / static_cast<double>(hypothesis);
    if (reference > 0) out.recall = count / static_cast<double>(reference);
    if (out.precision + out.recall > 0) out.f1 = 2 * out.precision * out.recall / (out.precision + out.recall);
    return out;
}

/// Lengths of the longest common subsequences of all prefixes: table[i * (columns + 1) + k].
std::vector<std::uint32_t> lcs_table(const Tokens& a, const Tokens& b) {
    const std::size_t columns = b.size() + 1;
    std::vector<std::uint32_t> table((a.size() + 1) * columns);
    for (std::size_t i = 1; i <= a.size(); ++i)
        for (std::size_t k = 1; k < columns; ++k)
            table[i * columns + k] = a[i - 1] == b[k - 1]
                                         ? table[(i - 1) * columns + k - 1] + 1
                                         : std::max(table[(i - 1) * columns + k], table[i * columns + k - 1]);
    return table;
}

/// Indices in the reference of a longest common subsequence; among several the one that rouge-score finds.
void mark_lcs(const Tokens& reference, const Tokens& hypothesis, std::vector<bool>& marked) {
    const std::vector<std::uint32_t> table = lcs_table(reference, hypothesis);
    const std::size_t columns = hypothesis.size() + 1;
    for (std::size_t i = reference.size(), k = hypothesis.size(); i > 0 && k > 0;) {
        if (reference[i - 1] == hypothesis[k - 1]) {
            marked[i - 1] = true;
            --i, --k;
        } else if (table[i * columns + k - 1] > table[(i - 1) * columns + k]) {
            --k;
        } else {
            --i;
        }
    }
}

template <class List>
std::int64_t distance(const List& a, const List& b) {
    std::vector<std::int64_t> row(b.size() + 1);
    for (std::size_t k = 0; k < row.size(); ++k) row[k] = static_cast<std::int64_t>(k);
    for (std::size_t i = 0; i < a.size(); ++i) {
        std::int64_t diagonal = row[0]++;
        for (std::size_t k = 0; k < b.size(); ++k) {
            const std::int64_t best = std::min({diagonal + (a[i] == b[k] ? 0 : 1), row[k] + 1, row[k + 1] + 1});
            diagonal = row[k + 1];
            row[k + 1] = best;
        }
    }
    return row.back();
}

double error_rate(const char* function, std::span<const std::string> hypotheses,
                  std::span<const std::string> references, std::vector<std::string> (*split)(std::string_view)) {
    if (hypotheses.size() != references.size())
        throw ValueError(fmt::format("{}: expected a reference for each of {} hypotheses, got {}", function,
                                     hypotheses.size(), references.size()));
    std::int64_t total_edits = 0, total = 0;
    for (std::size_t i = 0; i < hypotheses.size(); ++i) {
        const Tokens reference = split(references[i]);
        total_edits += distance(split(hypotheses[i]), reference);
        total += static_cast<std::int64_t>(reference.size());
    }
    if (total == 0) throw ValueError(fmt::format("{}: expected references that are not all empty", function));
    return static_cast<double>(total_edits) / static_cast<double>(total);
}

}  // namespace

Rouge rouge_n(const Tokens& hypothesis, const Tokens& reference, int n) {
    if (n < 1) throw ValueError(fmt::format("rouge_n: expected n-grams of at least 1 token, got {}", n));
    const auto size = static_cast<std::size_t>(n);
    const NgramCounts reference_counts = count_ngrams(reference, size);
    std::size_t matches = 0;
    for (const auto& [key, count] : count_ngrams(hypothesis, size))
        if (const auto found = reference_counts.find(key); found != reference_counts.end())
            matches += static_cast<std::size_t>(std::min(count, found->second));
    const auto ngrams = [&](const Tokens& tokens) { return tokens.size() + 1 > size ? tokens.size() + 1 - size : 0; };
    return rouge_of(matches, ngrams(hypothesis), ngrams(reference));
}

Rouge rouge_l(const Tokens& hypothesis, const Tokens& reference) {
    return rouge_of(lcs_table(reference, hypothesis).back(), hypothesis.size(), reference.size());
}

Rouge rouge_lsum(std::span<const Tokens> hypothesis, std::span<const Tokens> reference) {
    NgramCounts remaining_hypothesis, remaining_reference;
    std::size_t hypothesis_length = 0, reference_length = 0, matches = 0;
    for (const Tokens& sentence : hypothesis)
        for (const std::string& token : sentence) ++remaining_hypothesis[token], ++hypothesis_length;
    for (const Tokens& sentence : reference)
        for (const std::string& token : sentence) ++remaining_reference[token], ++reference_length;
    for (const Tokens& sentence : reference) {
        std::vector<bool> marked(sentence.size());
        for (const Tokens& other : hypothesis) mark_lcs(sentence, other, marked);
        for (std::size_t i = 0; i < sentence.size(); ++i) {
            if (!marked[i]) continue;
            // Each token counts at most as often as it occurs.
            std::int64_t &hypothesis_count = remaining_hypothesis[sentence[i]],
                         &reference_count = remaining_reference[sentence[i]];
            if (hypothesis_count > 0 && reference_count > 0) ++matches, --hypothesis_count, --reference_count;
        }
    }
    return rouge_of(matches, hypothesis_length, reference_length);
}

Tokens tokenize_rouge(std::string_view text) {
    const std::string valid = to_valid(text);
    std::u32string lower;
    for (std::size_t pos = 0; pos < valid.size();) {
        const Decoded decoded = decode_at(valid, pos);
        append_lower(lower, decoded.c);
        pos += decoded.size;
    }
    Tokens out;
    std::string token;
    for (const char32_t c : lower + U' ') {
        if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) {
            token += static_cast<char>(c);
        } else if (!token.empty()) {
            out.push_back(std::move(token));
            token.clear();
        }
    }
    return out;
}

EditCounts edits(const Tokens& hypothesis, const Tokens& reference) {
    enum Step : std::uint8_t { match, substitute, insert, erase };
    struct Cell {
        std::int64_t edits = 0, matches = 0;
        [[nodiscard]] bool better(const Cell& other) const {
            return edits != other.edits ? edits < other.edits : matches > other.matches;
        }
    };
    const std::size_t columns = hypothesis.size() + 1;
    std::vector<Step> steps((reference.size() + 1) * columns);
    std::vector<Cell> row(columns);
    for (std::size_t k = 1; k < columns; ++k) row[k] = {static_cast<std::int64_t>(k), 0}, steps[k] = insert;
    for (std::size_t i = 1; i <= reference.size(); ++i) {
        Cell diagonal = row[0];
        row[0] = {static_cast<std::int64_t>(i), 0};
        steps[i * columns] = erase;
        for (std::size_t k = 1; k < columns; ++k) {
            const bool same = reference[i - 1] == hypothesis[k - 1];
            Cell best{diagonal.edits + (same ? 0 : 1), diagonal.matches + (same ? 1 : 0)};
            Step step = same ? match : substitute;
            const Cell erased{row[k].edits + 1, row[k].matches}, inserted{row[k - 1].edits + 1, row[k - 1].matches};
            if (erased.better(best)) best = erased, step = erase;
            if (inserted.better(best)) best = inserted, step = insert;
            diagonal = row[k];
            row[k] = best;
            steps[i * columns + k] = step;
        }
    }
    EditCounts out;
    for (std::size_t i = reference.size(), k = hypothesis.size(); i > 0 || k > 0;) {
        const Step step = steps[i * columns + k];
        if (step == match) ++out.matches;
        else if (step == substitute) ++out.substitutions;
        else if (step == insert) ++out.insertions;
        else ++out.deletions;
        if (step != insert) --i;
        if (step != erase) --k;
    }
    return out;
}

std::int64_t edit_distance(std::span<const std::int64_t> a, std::span<const std::int64_t> b) { return distance(a, b); }

std::int64_t edit_distance(std::string_view a, std::string_view b) { return distance(characters(a), characters(b)); }

double word_error_rate(std::span<const std::string> hypotheses, std::span<const std::string> references) {
    return error_rate("word_error_rate", hypotheses, references, split_whitespace);
}

double character_error_rate(std::span<const std::string> hypotheses, std::span<const std::string> references) {
    return error_rate("character_error_rate", hypotheses, references, characters);
}

double perplexity(std::span<const double> log_probabilities) {
    if (log_probabilities.empty()) throw ValueError("perplexity: expected at least one log probability, got none");
    double sum = 0;
    for (const double log_probability : log_probabilities) sum += log_probability;
    return std::exp(-sum / static_cast<double>(log_probabilities.size()));
}

}  // namespace declivity::text
