// Layer 7, private. Normalizers, applied to a text before it is split into pieces.
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

/// @throws FormatError for a malformed or unknown description
std::shared_ptr<const Normalizer> make_normalizer(const JsonValue& description);
/// SentencePiece's precompiled character map, in its own format and base64.
std::shared_ptr<const Normalizer> make_precompiled(const JsonValue& description);

/// The regular expression of a member "pattern", {"String": ...} or {"Regex": ...}.
Regex pattern_of(const JsonValue& pattern);
/// A literal text as a regular expression.
std::string escape_regex(std::string_view text);

}  // namespace declivity::text
