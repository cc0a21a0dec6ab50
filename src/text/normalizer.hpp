// Layer 5, private. Normalizers: what is done to a text before it is cut into pieces.
#pragma once

#include <memory>

#include "json_reader.hpp"
#include "normalized_text.hpp"

namespace declivity::text {

class Normalizer {
  public:
    virtual ~Normalizer() = default;
    virtual void apply(NormalizedText& text) const = 0;
};

/// @throws FormatError for a description that is malformed or unknown
std::shared_ptr<const Normalizer> make_normalizer(const JsonValue& description);
/// SentencePiece's table of characters, in its own format and base64.
std::shared_ptr<const Normalizer> make_precompiled(const JsonValue& description);

/// A member "pattern", {"String": ...} or {"Regex": ...}, as a regular expression.
Regex pattern_of(const JsonValue& pattern);
/// A literal text as a regular expression.
std::string escape_regex(std::string_view text);

}  // namespace declivity::text
