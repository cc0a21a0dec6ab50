// Layer 7, private. Tokenizer models: from a piece of text to tokens.
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

/// Bidirectional map of unique tokens and ids. Ids may have gaps.
class TokenTable {
  public:
    TokenTable() = default;
    TokenTable(TokenTable&&) = default;
    TokenTable& operator=(TokenTable&&) = default;

    void reserve(std::size_t tokens);
    /// Adds a token with this id; an existing token gets this id as well.
    void put(const std::string& token, Id id);
    /// Adds a token with the next id, and returns its id; that of an existing one.
    Id add(const std::string& token);
    [[nodiscard]] std::optional<Id> id(std::string_view token) const {
        const auto found = ids_.find(token);
        return found == ids_.end() ? std::nullopt : std::optional(found->second);
    }
    /// Null if there is none.
    [[nodiscard]] const std::string* token(std::int64_t id) const noexcept {
        return id >= 0 && id < static_cast<std::int64_t>(tokens_.size()) ? tokens_[static_cast<std::size_t>(id)]
                                                                         : nullptr;
    }
    [[nodiscard]] std::size_t size() const noexcept { return ids_.size(); }
    [[nodiscard]] Id end() const noexcept { return static_cast<Id>(tokens_.size()); }  ///< larger than all ids
    /// Sorted by id.
    [[nodiscard]] std::vector<std::pair<std::string, Id>> sorted() const;

  private:
    Ids ids_;
    std::vector<const std::string*> tokens_;  ///< keys of ids_, whose addresses are stable
};

/// Limits the length of a piece: finding the longest one at each position of a text takes time proportional to it.
/// @throws FormatError for a text of more than 4096 bytes
void check_piece(const JsonValue& text);
/// Reads an object of tokens and ids. @throws FormatError for invalid or duplicate ids, or ids so sparse that memory
/// would be wasted
TokenTable read_vocab(const JsonValue& vocab);
std::string vocab_json(const TokenTable& table);
std::string json_string(std::string_view text);

/// A token of a piece.
struct ModelToken {
    Id id = 0;
    std::uint32_t begin = 0, end = 0;  ///< bytes of the piece
    /// The token's text is that part of the piece, rather than the text of its id.
    bool literal = false;
};

class Model {
  public:
    Model() = default;
    Model(const Model&) = delete;
    Model& operator=(const Model&) = delete;
    virtual ~Model() = default;
    /// Appends the tokens of a piece. @param dropout generator for BPE dropout; null for none
    /// @throws ValueError for unknown text, if there is no unknown token
    virtual void tokenize(std::string_view piece, data::Random* dropout, std::vector<ModelToken>& out) const = 0;
    /// The value of "model" in a tokenizer.json.
    [[nodiscard]] virtual std::string to_json() const = 0;
    /// Trains a model with the same settings on words and their counts.
    using Counts = std::unordered_map<std::string, std::int64_t, StringHash, std::equal_to<>>;
    [[nodiscard]] virtual std::shared_ptr<const Model> train(const Counts& words,
                                                             const TrainOptions& options) const = 0;

    [[nodiscard]] const TokenTable& table() const noexcept { return table_; }

  protected:
    TokenTable table_;
};

/// @throws FormatError for a malformed or unknown description
std::shared_ptr<const Model> make_model(const JsonValue& description);
std::shared_ptr<const Model> make_bpe(const JsonValue& description);
std::shared_ptr<const Model> make_word_piece(const JsonValue& description);
std::shared_ptr<const Model> make_unigram(const JsonValue& description);
std::shared_ptr<const Model> make_word_level(const JsonValue& description);

}  // namespace declivity::text
