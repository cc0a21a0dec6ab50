// Layer 7, private. Added tokens, which are matched before the text is pre-tokenized.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <declivity/text/tokenizer.hpp>

#include "model.hpp"
#include "normalizer.hpp"
#include "unigram.hpp"

namespace declivity::text {

class AddedVocabulary {
  public:
    /// Adds a token with the model's id, or the next free one. Returns whether it is new to both.
    bool add(const AddedToken& token, const Model& model);
    /// To be called after add(): normalizes the tokens to be matched.
    void refresh(const Normalizer* normalizer);

    [[nodiscard]] std::optional<Id> id(std::string_view content) const;
    [[nodiscard]] const AddedToken* token(std::int64_t id) const;
    [[nodiscard]] const std::map<Id, AddedToken>& all() const noexcept { return tokens_; }
    /// Number of tokens that the model does not have.
    [[nodiscard]] std::size_t count_missing_in(const Model& model) const;

    struct Segment {
        Range range;
        std::optional<Id> id;  ///< empty for text between tokens
    };
    /// Splits a text at the tokens in it. @param normalized whether normalized or literal tokens are matched
    void split(std::string_view text, bool normalized, std::vector<Segment>& out) const;

  private:
    struct Matcher {
        Trie trie;
        std::array<bool, 256> first{};  ///< bytes that a token may start with
        bool any = false;
        void put(std::string_view content, Id id);
    };
    std::map<Id, AddedToken> tokens_;
    std::map<std::string, Id, std::less<>> ids_;
    std::array<Matcher, 2> matchers_;
};

}  // namespace declivity::text
