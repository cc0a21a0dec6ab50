// Layer 7, private. Post-processors: special tokens around texts, and merging of pairs.
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
    /// Number of tokens added to one text, or to a pair.
    [[nodiscard]] virtual std::size_t added_count(bool pair) const = 0;
    /// Merges the encodings of the texts, in order, into one.
    virtual void apply(std::vector<Encoding>& encodings, std::span<const std::string_view> texts,
                       bool add_special_tokens) const = 0;
};

/// @throws FormatError for a malformed or unknown description
std::shared_ptr<const PostProcessor> make_post_processor(const JsonValue& description);

void set_sequence(Encoding& encoding, std::int64_t id);
void set_type(Encoding& encoding, std::int64_t id);
/// Concatenates two encodings; the overflowing ones become all combinations of both's.
void merge(Encoding& encoding, const Encoding& other);
/// Truncates to `length` tokens; the rest is moved to `overflowing`. @throws ValueError unless stride < length
void truncate(Encoding& encoding, std::size_t length, std::size_t stride, Side direction);
void pad(Encoding& encoding, std::size_t length, const Padding& padding);

}  // namespace declivity::text
