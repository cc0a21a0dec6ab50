// Layer 5. Vocabulary: tokens and their numbers.
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

struct VocabularyOptions {
    /// Get the first ids, in order; none is empty.
    std::vector<std::string> specials = {};
    /// Of tokens that are not there; one of `specials`, or the first id if it is none of them. Without one, asking for
    /// such a token is an error.
    std::optional<std::string> unk_token = std::nullopt;
    std::int64_t min_frequency = 1;                       ///< tokens that occur less often are left out
    std::optional<std::int64_t> max_size = std::nullopt;  ///< the most frequent ones only, special ones counted
};

/// Tokens by ids 0, 1, ..., and how often they were counted. Copies share it; nothing changes after it is made.
///
///     auto vocabulary = text::Vocabulary::of(corpus, text::words, {.specials = {"<pad>"}, .unk_token = "<unk>"});
///     std::vector<std::int64_t> ids = vocabulary.ids(text::words("what is this"));
class DECLIVITY_API Vocabulary {
  public:
    // What is moved from keeps its tokens: a move is a copy.
    Vocabulary(const Vocabulary&) = default;
    Vocabulary& operator=(const Vocabulary&) = default;
    using Split = std::function<std::vector<std::string>(std::string_view text)>;

    /// The tokens of a corpus: special ones, then the most frequent; of those that are as frequent, in order of their
    /// bytes.
    /// @throws ValueError for a min_frequency below 1, a max_size below the specials, and a special token that comes
    /// twice
    static Vocabulary of(const Corpus& corpus, const Split& split, const VocabularyOptions& options = {});
    /// The same of one list of tokens.
    static Vocabulary of(std::span<const std::string> tokens, const VocabularyOptions& options = {});
    /// Of a list of tokens, each once, whose places are their ids. @throws ValueError for a token that comes twice, an
    /// unk_token that is not there, and counts that are not as many
    explicit Vocabulary(std::vector<std::string> tokens, std::optional<std::string> unk_token = std::nullopt,
                        std::vector<std::int64_t> counts = {});

    [[nodiscard]] std::int64_t size() const noexcept;
    [[nodiscard]] bool has(std::string_view token) const noexcept;
    /// That of the unknown token for those that are not there. @throws ValueError where there is no such token
    [[nodiscard]] std::int64_t id(std::string_view token) const;
    [[nodiscard]] std::vector<std::int64_t> ids(std::span<const std::string> tokens) const;
    /// @throws ValueError for an id that there is not
    [[nodiscard]] const std::string& token(std::int64_t id) const;
    [[nodiscard]] std::vector<std::string> tokens(std::span<const std::int64_t> ids) const;
    /// How often it was counted; 0 for special tokens. @throws ValueError for an id that there is not
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

/// The words of a text, and runs of punctuation, as the pre-tokenizer Whitespace cuts.
DECLIVITY_API std::vector<std::string> words(std::string_view text);
/// The characters (code points) of a text.
DECLIVITY_API std::vector<std::string> characters(std::string_view text);
/// What stands between white space.
DECLIVITY_API std::vector<std::string> split_whitespace(std::string_view text);

}  // namespace declivity::text
