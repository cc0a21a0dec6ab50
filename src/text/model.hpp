// Layer 5, private. Models: from a piece of a text to tokens.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <declivity/data/random.hpp>
#include <declivity/text/tokenizer.hpp>

#include "json_reader.hpp"

namespace declivity::text {

using Id = std::uint32_t;

struct StringHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const noexcept { return std::hash<std::string_view>()(text); }
};
using Ids = std::unordered_map<std::string, Id, StringHash, std::equal_to<>>;

/// Tokens and their ids, each once. Ids may have gaps.
class TokenTable {
  public:
    TokenTable() = default;
    TokenTable(TokenTable&&) = default;
    TokenTable& operator=(TokenTable&&) = default;

    void reserve(std::size_t tokens);
    /// A token that is there gets this id as well.
    void put(const std::string& token, Id id);
    /// The next id, or the one it has.
    Id add(const std::string& token);
    [[nodiscard]] std::optional<Id> id(std::string_view token) const {
        const auto found = ids_.find(token);
        return found == ids_.end() ? std::nullopt : std::optional(found->second);
    }
    /// Null where there is none.
    [[nodiscard]] const std::string* token(std::int64_t id) const noexcept {
        return id >= 0 && id < static_cast<std::int64_t>(tokens_.size()) ? tokens_[static_cast<std::size_t>(id)]
                                                                         : nullptr;
    }
    [[nodiscard]] std::size_t size() const noexcept { return ids_.size(); }
    [[nodiscard]] Id end() const noexcept { return static_cast<Id>(tokens_.size()); }  ///< above all ids
    /// By ids.
    [[nodiscard]] std::vector<std::pair<std::string, Id>> sorted() const;

  private:
    Ids ids_;
    std::vector<const std::string*> tokens_;  ///< keys of ids_, which stay where they are
};

/// Finding the longest piece at each place of a text takes time that is proportional to its length.
/// @throws FormatError for a text of more than 4096 bytes
void check_piece(const JsonValue& text);
/// An object of tokens and ids. @throws FormatError for ids that are none, that two tokens have, or so far apart that
/// memory would be wasted
TokenTable read_vocab(const JsonValue& vocab);
std::string vocab_json(const TokenTable& table);
std::string json_string(std::string_view text);

/// A token of a piece.
struct ModelToken {
    Id id = 0;
    std::uint32_t begin = 0, end = 0;  ///< bytes of the piece
    /// The token's text is that part of the piece, not what its id stands for.
    bool literal = false;
};

class Model {
  public:
    Model() = default;
    Model(const Model&) = delete;
    Model& operator=(const Model&) = delete;
    virtual ~Model() = default;
    /// Appends the tokens of a piece. @param dropout where merges are left out at random
    /// @throws ValueError where something is unknown, and there is no token for that
    virtual void tokenize(std::string_view piece, data::Random* dropout, std::vector<ModelToken>& out) const = 0;
    /// The value of "model" in a tokenizer.json.
    [[nodiscard]] virtual std::string to_json() const = 0;
    /// A model with the same settings, trained on words and how often they occur.
    using Counts = std::unordered_map<std::string, std::int64_t, StringHash, std::equal_to<>>;
    [[nodiscard]] virtual std::shared_ptr<const Model> train(const Counts& words,
                                                             const TrainOptions& options) const = 0;

    [[nodiscard]] const TokenTable& table() const noexcept { return table_; }

  protected:
    TokenTable table_;
};

/// @throws FormatError for a description that is malformed or unknown
std::shared_ptr<const Model> make_model(const JsonValue& description);
std::shared_ptr<const Model> make_bpe(const JsonValue& description);
std::shared_ptr<const Model> make_word_piece(const JsonValue& description);
std::shared_ptr<const Model> make_unigram(const JsonValue& description);
std::shared_ptr<const Model> make_word_level(const JsonValue& description);

}  // namespace declivity::text
