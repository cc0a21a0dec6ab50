// Layer 7. Text metrics: BLEU, ROUGE, error rates, perplexity.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <declivity/export.hpp>

namespace declivity::text {

/// @addtogroup text
/// @{

using Tokens = std::vector<std::string>;

/// Smoothing of n-gram orders without matches (Chen and Cherry 2014): none: BLEU is 0; floor: smooth_value matches;
/// add_k: smooth_value is added to matches and n-grams of all orders above 1; exp: 1/2, 1/4, ... matches for the first,
/// second, ... such order, as in NIST.
enum class BleuSmoothing : std::uint8_t { exp, none, floor, add_k };

struct BleuOptions {
    int max_order = 4;  ///< 1 to 16
    BleuSmoothing smoothing = BleuSmoothing::exp;
    /// For floor and add_k; the defaults 0.1 and 1 if negative.
    double smooth_value = -1;
    /// Uses only orders for which the hypothesis has n-grams; for short texts, as in sentence_bleu.
    bool effective_order = false;
};
struct Bleu {
    double score = 0;                ///< 0 to 100
    std::vector<double> precisions;  ///< precision of each order, 0 to 100, smoothed
    double brevity_penalty = 0;
    std::int64_t hypothesis_length = 0;
    std::int64_t reference_length = 0;  ///< sum of the closest reference lengths
};
/// Corpus BLEU (Papineni et al. 2002), as computed by sacreBLEU 2 from tokens (its tokenize="none").
/// @param references one or more for each hypothesis
/// @throws ValueError unless there are references for each hypothesis, and for options out of range
DECLIVITY_API Bleu corpus_bleu(std::span<const Tokens> hypotheses, std::span<const std::vector<Tokens>> references,
                               const BleuOptions& options = {});
/// BLEU of one sentence, with effective_order.
DECLIVITY_API Bleu sentence_bleu(const Tokens& hypothesis, const std::vector<Tokens>& references,
                                 BleuOptions options = {.effective_order = true});
/// Tokenizes as sacreBLEU's default tokenizer, 13a (that of mteval-v13a).
DECLIVITY_API Tokens tokenize_13a(std::string_view text);

struct Rouge {
    double precision = 0, recall = 0, f1 = 0;  ///< 0 to 1
};
/// ROUGE-N, the overlap of n-grams (Lin 2004), as in rouge-score. @throws ValueError unless n >= 1
DECLIVITY_API Rouge rouge_n(const Tokens& hypothesis, const Tokens& reference, int n);
/// ROUGE-L: longest common subsequence.
DECLIVITY_API Rouge rouge_l(const Tokens& hypothesis, const Tokens& reference);
/// ROUGE-Lsum of summaries split into sentences: union of the longest common subsequences of each reference sentence.
DECLIVITY_API Rouge rouge_lsum(std::span<const Tokens> hypothesis, std::span<const Tokens> reference);
/// Tokenizes as rouge-score: lower case, split at everything that is neither a letter from a to z nor a digit.
DECLIVITY_API Tokens tokenize_rouge(std::string_view text);

/// Insertions, deletions and substitutions between two sequences (Levenshtein 1966).
struct EditCounts {
    std::int64_t substitutions = 0, deletions = 0, insertions = 0, matches = 0;
    [[nodiscard]] std::int64_t distance() const noexcept { return substitutions + deletions + insertions; }
};
/// Minimum edits; among minima those with the most matches. Memory is one byte for each pair of tokens.
DECLIVITY_API EditCounts edits(const Tokens& hypothesis, const Tokens& reference);
/// Edit distance of ids, or of anything else mapped to integers.
DECLIVITY_API std::int64_t edit_distance(std::span<const std::int64_t> a, std::span<const std::int64_t> b);
/// Edit distance of characters (code points). Memory is linear in one of the lengths.
DECLIVITY_API std::int64_t edit_distance(std::string_view a, std::string_view b);
/// Word error rate: edits of whitespace-separated words, divided by the number of reference words; 0 is perfect, and
/// values above 1 are possible.
/// @throws ValueError unless references and hypotheses are equal in number, with at least one reference word
DECLIVITY_API double word_error_rate(std::span<const std::string> hypotheses, std::span<const std::string> references);
/// Character error rate, defined as for words.
DECLIVITY_API double character_error_rate(std::span<const std::string> hypotheses,
                                          std::span<const std::string> references);

/// exp of the negative mean of (natural) log probabilities. See train::Perplexity for model outputs on the device.
/// @throws ValueError for no values
DECLIVITY_API double perplexity(std::span<const double> log_probabilities);

/// @}

}  // namespace declivity::text
