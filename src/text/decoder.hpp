// Layer 5, private. Decoders: from tokens back to a text.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "json_reader.hpp"

namespace declivity::text {

class Decoder {
  public:
    virtual ~Decoder() = default;
    /// Changes tokens to parts of the text, which stand one behind the other in the end.
    virtual void apply(std::vector<std::string>& tokens) const = 0;
};

/// @throws FormatError for a description that is malformed or unknown
std::shared_ptr<const Decoder> make_decoder(const JsonValue& description);

}  // namespace declivity::text
