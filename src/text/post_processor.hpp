// Layer 5, private. Post-processors: special tokens around texts, and pairs put together.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include <declivity/text/encoding.hpp>

#include "json_reader.hpp"

namespace declivity::text {

class PostProcessor {
  public:
    virtual ~PostProcessor() = default;
    /// Tokens that it adds to one text, or to a pair.
    [[nodiscard]] virtual std::size_t added(bool pair) const = 0;
    /// One encoding for each text comes in; what goes out is put together in order.
    virtual void apply(std::vector<Encoding>& encodings, std::span<const std::string_view> texts,
                       bool add_special_tokens) const = 0;
};

/// @throws FormatError for a description that is malformed or unknown
std::shared_ptr<const PostProcessor> make_post_processor(const JsonValue& description);

void set_sequence(Encoding& encoding, std::int64_t id);
void set_type(Encoding& encoding, std::int64_t id);
/// Puts one behind the other; what overflows becomes each combination of what overflows in both.
void merge(Encoding& encoding, const Encoding& other);
/// Cuts to `length` tokens; what is cut off goes to `overflowing`. @throws ValueError unless stride < length
void truncate(Encoding& encoding, std::size_t length, std::size_t stride, Side direction);
void pad(Encoding& encoding, std::size_t length, const Padding& padding);

}  // namespace declivity::text
