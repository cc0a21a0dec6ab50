// Layer 5. Metrics of texts: BLEU, ROUGE, error rates, perplexity.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <declivity/export.hpp>

namespace declivity::text {

using Tokens = std::vector<std::string>;

/// What becomes of an order of n-grams without a match (Chen and Cherry 2014): none: BLEU is 0; floor: so many matches
/// as smooth_value says; add_k: so many more matches and n-grams, of all orders above 1; exp: a half, a fourth, ... of
/// a match for the first, second, ... such order, as NIST has it.
enum class BleuSmoothing : std::uint8_t { exp, none, floor, add_k };

struct BleuOptions {
    int max_order = 4;  ///< 1 to 16
    BleuSmoothing smoothing = BleuSmoothing::exp;
    /// Of floor and add_k; 0.1 and 1 if negative.
    double smooth_value = -1;
    /// Only orders that the hypothesis has n-grams of; that of sentence_bleu, whose texts are short.
    bool effective_order = false;
};
struct Bleu {
    double score = 0;                ///< 0 to 100
    std::vector<double> precisions;  ///< of each order, 0 to 100, smoothed
    double brevity_penalty = 0;
    std::int64_t hypothesis_length = 0;
    std::int64_t reference_length = 0;  ///< of the references whose lengths are nearest
};
/// BLEU of a corpus (Papineni et al. 2002), as sacreBLEU 2 computes it from tokens (its tokenize="none").
/// @param references one or more of each hypothesis
/// @throws ValueError unless there are references of each hypothesis, and for options out of range
DECLIVITY_API Bleu corpus_bleu(std::span<const Tokens> hypotheses, std::span<const std::vector<Tokens>> references,
                               const BleuOptions& options = {});
/// The same of one sentence, by effective orders.
DECLIVITY_API Bleu sentence_bleu(const Tokens& hypothesis, const std::vector<Tokens>& references,
                                 BleuOptions options = {.effective_order = true});
/// The tokens of sacreBLEU's default tokenizer, 13a (that of mteval-v13a).
DECLIVITY_API Tokens tokenize_13a(std::string_view text);

struct Rouge {
    double precision = 0, recall = 0, f1 = 0;  ///< 0 to 1
};
/// Overlap of n-grams (Lin 2004), as rouge-score has it. @throws ValueError unless n >= 1
DECLIVITY_API Rouge rouge_n(const Tokens& hypothesis, const Tokens& reference, int n);
/// By the longest common subsequence.
DECLIVITY_API Rouge rouge_l(const Tokens& hypothesis, const Tokens& reference);
/// Of summaries, sentence by sentence: the union of the longest common subsequences of each sentence of the reference.
DECLIVITY_API Rouge rouge_lsum(std::span<const Tokens> hypothesis, std::span<const Tokens> reference);
/// The tokens of rouge-score: lower case, and what is neither a letter from a to z nor a digit separates them.
DECLIVITY_API Tokens tokenize_rouge(std::string_view text);

/// Insertions, deletions and substitutions that make one of the other (Levenshtein 1966).
struct EditCounts {
    std::int64_t substitutions = 0, deletions = 0, insertions = 0, matches = 0;
    [[nodiscard]] std::int64_t distance() const noexcept { return substitutions + deletions + insertions; }
};
/// Of the fewest, those with the most matches. Memory is one byte for each pair of tokens.
DECLIVITY_API EditCounts edits(const Tokens& hypothesis, const Tokens& reference);
/// Of ids, or of whatever else can be compared and has an integer for each.
DECLIVITY_API std::int64_t edit_distance(std::span<const std::int64_t> a, std::span<const std::int64_t> b);
/// Of characters (code points). Memory is that of one of them.
DECLIVITY_API std::int64_t edit_distance(std::string_view a, std::string_view b);
/// Edits of words, separated by white space, by words of the references: 0 is all right, and 1 is not the worst.
/// @throws ValueError unless there are as many references as hypotheses, with a word among them
DECLIVITY_API double word_error_rate(std::span<const std::string> hypotheses, std::span<const std::string> references);
/// The same of characters.
DECLIVITY_API double character_error_rate(std::span<const std::string> hypotheses,
                                          std::span<const std::string> references);

/// exp of minus the mean of log probabilities (natural). train::Perplexity is that of a model's outputs, on the device.
/// @throws ValueError for none
DECLIVITY_API double perplexity(std::span<const double> log_probabilities);

}  // namespace declivity::text
