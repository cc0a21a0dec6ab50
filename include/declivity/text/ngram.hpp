// Layer 5. Language models that count n-grams.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <declivity/data/random.hpp>
#include <declivity/export.hpp>

namespace declivity::text {

/// kneser_ney: interpolated, with three discounts for each order, as Chen and Goodman (1998) modified it (one discount
/// where too few n-grams are there to estimate three, and a half where there are next to none). add_k: k more
/// of each token in each context. backoff: the longest context that was met, times `backoff_factor` for each that was
/// not, down to the frequencies of tokens ("stupid backoff", Brants et al. 2007), made to come to 1.
enum class NgramSmoothing : std::uint8_t { kneser_ney, add_k, backoff };

struct NgramOptions {
    int order = 3;  ///< tokens of an n-gram, 1 to 8: one more than what is looked back at
    NgramSmoothing smoothing = NgramSmoothing::kneser_ney;
    double k = 1;                 ///< of add_k, above 0
    double backoff_factor = 0.4;  ///< of backoff, above 0 and at most 1
    /// Stand before and behind each sequence while it is counted, where they are given: how sequences begin and end is
    /// learned.
    std::optional<std::int64_t> bos_id = std::nullopt;
    std::optional<std::int64_t> eos_id = std::nullopt;
};

/// Probabilities of the next token after up to order - 1 tokens, over all tokens of a vocabulary: they come to 1 in
/// every context, and none is 0 (but that of the first token, which nothing predicts).
class DECLIVITY_API NgramModel {
  public:
    // What is moved from keeps its counts: a move is a copy.
    NgramModel(const NgramModel&) = default;
    NgramModel& operator=(const NgramModel&) = default;
    /// @param vocab_size tokens are 0 .. vocab_size - 1
    /// @throws ValueError for options out of range
    explicit NgramModel(std::int64_t vocab_size, const NgramOptions& options = {});

    /// Counts the n-grams of further sequences. @throws ValueError for a token that is not in the vocabulary
    void train(std::span<const std::vector<std::int64_t>> sequences);
    void train(std::span<const std::int64_t> sequence);

    /// The natural logarithm of the probability of a token after others, of which the last order - 1 count; with fewer
    /// in the begin of a sequence, bos_id stands before. @throws ValueError for a token that is not in the vocabulary
    [[nodiscard]] double log_probability(std::int64_t token, std::span<const std::int64_t> context) const;
    /// Of each token of a sequence, and of eos_id behind it, where there is one.
    [[nodiscard]] std::vector<double> log_probabilities(std::span<const std::int64_t> sequence) const;
    /// Of all tokens of some sequences. @throws ValueError for none
    [[nodiscard]] double perplexity(std::span<const std::vector<std::int64_t>> sequences) const;
    /// log probabilities of all tokens after others: logits, as generate() takes them.
    [[nodiscard]] std::vector<float> logits(std::span<const std::int64_t> context) const;
    /// Draws tokens after others, until eos_id or `count` of them.
    [[nodiscard]] std::vector<std::int64_t> sample(std::int64_t count, data::Random& random,
                                                   std::span<const std::int64_t> context = {}) const;

    [[nodiscard]] std::int64_t vocab_size() const noexcept;
    [[nodiscard]] const NgramOptions& options() const noexcept;
    /// How often an n-gram of up to `order` tokens was counted.
    [[nodiscard]] std::int64_t count(std::span<const std::int64_t> ngram) const;

    /// Writes a binary file of the options and counts. @throws IoError
    void save(const std::filesystem::path& path) const;
    /// @throws IoError; FormatError for a file that is none, or damaged
    static NgramModel load(const std::filesystem::path& path);

  private:
    struct State;
    std::shared_ptr<State> state_;
};

}  // namespace declivity::text
