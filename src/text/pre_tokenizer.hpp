// Layer 7, private. Pre-tokenizers: split a text into pieces, which the model tokenizes independently.
#pragma once

#include <memory>

#include "byte_level.hpp"
#include "json_reader.hpp"

namespace declivity::text {

class PreTokenizer {
  public:
    virtual ~PreTokenizer() = default;
    /// Splits the pieces further, and may change the text. No piece is empty afterwards.
    virtual void apply(Pieces& pieces) const = 0;
};

/// @throws FormatError for a malformed or unknown description
std::shared_ptr<const PreTokenizer> make_pre_tokenizer(const JsonValue& description);

/// GPT-2's pattern of words.
inline constexpr std::string_view kByteLevelPattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

}  // namespace declivity::text
