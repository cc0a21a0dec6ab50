// Layer 7. Vocabulary: maps tokens to ids.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <declivity/export.hpp>
#include <declivity/text/corpus.hpp>

namespace declivity::text {

/// @addtogroup text
/// @{

struct VocabularyOptions {
    /// Take the first ids, in order; must not be empty.
    std::vector<std::string> specials = {};
    /// Substituted for unknown tokens; one of `specials`, otherwise it takes the first id. Without it, looking up an
    /// unknown token is an error.
    std::optional<std::string> unk_token = std::nullopt;
    std::int64_t min_frequency = 1;                       ///< minimum count of a token
    std::optional<std::int64_t> max_size = std::nullopt;  ///< keeps the most frequent tokens; includes special tokens
};

/// Immutable mapping between tokens and ids 0, 1, ..., with token counts. Copies share it.
///
///     auto vocabulary = text::Vocabulary::of(corpus, text::words, {.specials = {"<pad>"}, .unk_token = "<unk>"});
///     std::vector<std::int64_t> ids = vocabulary.ids(text::words("what is this"));
class DECLIVITY_API Vocabulary {
  public:
    // A moved-from vocabulary keeps its tokens: a move is a copy.
    Vocabulary(const Vocabulary&) = default;
    Vocabulary& operator=(const Vocabulary&) = default;
    using Split = std::function<std::vector<std::string>(std::string_view text)>;

    /// Builds a vocabulary from a corpus: special tokens, then the most frequent ones, with ties in byte order.
    /// @throws ValueError for a min_frequency below 1, a max_size below the specials, and a duplicate special token
    static Vocabulary of(const Corpus& corpus, const Split& split, const VocabularyOptions& options = {});
    /// Builds a vocabulary from one list of tokens.
    static Vocabulary of(std::span<const std::string> tokens, const VocabularyOptions& options = {});
    /// Vocabulary of unique tokens, whose indices are their ids. @throws ValueError for a duplicate token, an unk_token
    /// that is not in the list, and a different number of counts
    explicit Vocabulary(std::vector<std::string> tokens, std::optional<std::string> unk_token = std::nullopt,
                        std::vector<std::int64_t> counts = {});

    [[nodiscard]] std::int64_t size() const noexcept;
    [[nodiscard]] bool has(std::string_view token) const noexcept;
    /// Id of a token; that of the unknown token if it is not in the vocabulary. @throws ValueError if there is no
    /// unknown token
    [[nodiscard]] std::int64_t id(std::string_view token) const;
    [[nodiscard]] std::vector<std::int64_t> ids(std::span<const std::string> tokens) const;
    /// @throws ValueError for an id out of range
    [[nodiscard]] const std::string& token(std::int64_t id) const;
    [[nodiscard]] std::vector<std::string> tokens(std::span<const std::int64_t> ids) const;
    /// Count of a token in the corpus; 0 for special tokens. @throws ValueError for an id out of range
    [[nodiscard]] std::int64_t count(std::int64_t id) const;
    [[nodiscard]] const std::vector<std::string>& tokens() const noexcept;  ///< by ids
    [[nodiscard]] std::optional<std::int64_t> unk_id() const noexcept;

    /// Writes JSON: {"tokens": [...], "counts": [...], "unk_token": ...}. @throws IoError
    void save(const std::filesystem::path& path) const;
    /// @throws IoError; FormatError naming file, byte and JSON pointer
    static Vocabulary load(const std::filesystem::path& path);

  private:
    struct State;
    std::shared_ptr<const State> state_;
};

/// Splits a text into words and runs of punctuation, as the pre-tokenizer Whitespace.
DECLIVITY_API std::vector<std::string> words(std::string_view text);
/// Splits a text into characters (code points).
DECLIVITY_API std::vector<std::string> characters(std::string_view text);
/// Splits a text at white space.
DECLIVITY_API std::vector<std::string> split_whitespace(std::string_view text);

/// @}

}  // namespace declivity::text
