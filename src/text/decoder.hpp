// Layer 7, private. Decoders: from tokens back to text.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "json_reader.hpp"

namespace declivity::text {

class Decoder {
  public:
    virtual ~Decoder() = default;
    /// Converts tokens to parts of the text, which are concatenated at the end.
    virtual void apply(std::vector<std::string>& tokens) const = 0;
};

/// @throws FormatError for a malformed or unknown description
std::shared_ptr<const Decoder> make_decoder(const JsonValue& description);

}  // namespace declivity::text
