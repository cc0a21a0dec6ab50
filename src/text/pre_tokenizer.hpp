// Layer 5, private. Pre-tokenizers: how a text is cut into pieces, each of which the model sees alone.
#pragma once

#include <memory>

#include "byte_level.hpp"
#include "json_reader.hpp"

namespace declivity::text {

class PreTokenizer {
  public:
    virtual ~PreTokenizer() = default;
    /// Cuts the pieces further, and may change the text. It leaves no empty piece.
    virtual void apply(Pieces& pieces) const = 0;
};

/// @throws FormatError for a description that is malformed or unknown
std::shared_ptr<const PreTokenizer> make_pre_tokenizer(const JsonValue& description);

/// GPT-2's pattern of words.
inline constexpr std::string_view kByteLevelPattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

}  // namespace declivity::text
