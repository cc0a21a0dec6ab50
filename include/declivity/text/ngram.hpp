// Layer 7. N-gram language models.
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

/// @addtogroup text
/// @{

/// kneser_ney: interpolated modified Kneser-Ney with three discounts per order (Chen and Goodman 1998), or one discount
/// if there are too few n-grams to estimate three, or 0.5 if there are almost none. add_k: adds k to the count of each
/// token in each context. backoff: the longest known context, multiplied by `backoff_factor` for each unknown one, down
/// to token frequencies ("stupid backoff", Brants et al. 2007), normalised to sum to 1.
enum class NgramSmoothing : std::uint8_t { kneser_ney, add_k, backoff };

struct NgramOptions {
    int order = 3;  ///< order of the model, 1 to 8: context length plus one
    NgramSmoothing smoothing = NgramSmoothing::kneser_ney;
    double k = 1;                 ///< for add_k, above 0
    double backoff_factor = 0.4;  ///< for backoff, above 0 and at most 1
    /// If given, added before and after each sequence in training, so that the model learns how sequences begin and
    /// end.
    std::optional<std::int64_t> bos_id = std::nullopt;
    std::optional<std::int64_t> eos_id = std::nullopt;
};

/// Probabilities of the next token after up to order - 1 tokens, over the whole vocabulary: they sum to 1 in every
/// context, and none is 0 (except that of the begin token, which is never predicted).
class DECLIVITY_API NgramModel {
  public:
    // A moved-from model keeps its counts: a move is a copy.
    NgramModel(const NgramModel&) = default;
    NgramModel& operator=(const NgramModel&) = default;
    /// @param vocab_size tokens are 0 .. vocab_size - 1
    /// @throws ValueError for options out of range
    explicit NgramModel(std::int64_t vocab_size, const NgramOptions& options = {});

    /// Counts the n-grams of additional sequences. @throws ValueError for a token that is not in the vocabulary
    void train(std::span<const std::vector<std::int64_t>> sequences);
    void train(std::span<const std::int64_t> sequence);

    /// Natural log probability of a token after a context, of which the last order - 1 tokens count; a shorter context
    /// is taken as the begin of a sequence, preceded by bos_id. @throws ValueError for a token that is not in the
    /// vocabulary
    [[nodiscard]] double log_probability(std::int64_t token, std::span<const std::int64_t> context) const;
    /// Log probability of each token of a sequence, and of eos_id after it, if set.
    [[nodiscard]] std::vector<double> log_probabilities(std::span<const std::int64_t> sequence) const;
    /// Perplexity over all tokens of the sequences. @throws ValueError for no tokens
    [[nodiscard]] double perplexity(std::span<const std::vector<std::int64_t>> sequences) const;
    /// Log probabilities of all tokens after a context: logits for generate().
    [[nodiscard]] std::vector<float> logits(std::span<const std::int64_t> context) const;
    /// Samples tokens after a context, until eos_id or `count` tokens.
    [[nodiscard]] std::vector<std::int64_t> sample(std::int64_t count, data::Random& random,
                                                   std::span<const std::int64_t> context = {}) const;

    [[nodiscard]] std::int64_t vocab_size() const noexcept;
    [[nodiscard]] const NgramOptions& options() const noexcept;
    /// Count of an n-gram of up to `order` tokens in the training data.
    [[nodiscard]] std::int64_t count(std::span<const std::int64_t> ngram) const;

    /// Writes options and counts to a binary file. @throws IoError
    void save(const std::filesystem::path& path) const;
    /// @throws IoError; FormatError for an invalid or corrupt file
    static NgramModel load(const std::filesystem::path& path);

  private:
    struct State;
    std::shared_ptr<State> state_;
};

/// @}

}  // namespace declivity::text
