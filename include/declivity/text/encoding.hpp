// Layer 7. Encoding: the result of tokenizing a text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <declivity/export.hpp>
#include <declivity/io/host_array.hpp>

namespace declivity::text {

/// @addtogroup text
/// @{

/// Byte range begin .. end - 1 of a UTF-8 text.
struct Offsets {
    std::size_t begin = 0;
    std::size_t end = 0;
    friend bool operator==(const Offsets&, const Offsets&) = default;
};

/// Converts a byte range to characters (code points), as in Python. A character that starts before the end of the range
/// is included.
/// @throws ValueError for a range outside of the text
DECLIVITY_API Offsets in_characters(std::string_view text, Offsets bytes);

/// The tokens of a text, or of a pair. All lists except `overflowing` have one element for each token.
struct DECLIVITY_API Encoding {
    std::vector<std::int64_t> ids;
    std::vector<std::string> tokens;
    /// Byte range of the token in its text; {0, 0} for added special tokens.
    std::vector<Offsets> offsets;
    std::vector<std::int64_t> type_ids;             ///< segment ids of a pair, 0 and 1 (BERT's token_type_ids)
    std::vector<std::int64_t> attention_mask;       ///< 0 for padding
    std::vector<std::int64_t> special_tokens_mask;  ///< 1 for added special tokens and padding
    std::vector<std::int64_t> word_ids;             ///< index of the pre-tokenizer's word; -1 for added tokens
    std::vector<std::int64_t> sequence_ids;         ///< 0 for the first text, 1 for the second; -1 for added tokens
    /// The truncated rest, in encodings of the same length that overlap by `stride`.
    std::vector<Encoding> overflowing;

    [[nodiscard]] std::size_t size() const noexcept { return ids.size(); }
};

/// Stacks one list of all encodings, such as their ids, to an array (N, T) of i64.
///
///     text::stack(tokenizer.encode_batch(texts), &text::Encoding::ids)
///
/// @throws ShapeError unless they have the same length (see Padding); ValueError for no encodings
DECLIVITY_API io::HostArray stack(const std::vector<Encoding>& encodings, std::vector<std::int64_t> Encoding::*list);

enum class Side : std::uint8_t { right, left };
enum class TruncationStrategy : std::uint8_t { longest_first, only_first, only_second };

/// Truncates encodings to at most `max_length` tokens, including special tokens.
struct Truncation {
    std::int64_t max_length = 512;
    std::int64_t stride = 0;  ///< overlap of consecutive encodings in Encoding::overflowing, in tokens
    /// The text of a pair that is truncated: the longer one, until both have the same length.
    TruncationStrategy strategy = TruncationStrategy::longest_first;
    Side direction = Side::right;  ///< the side that is truncated
};

/// Pads encodings to a common length.
struct Padding {
    std::optional<std::int64_t> length = std::nullopt;  ///< up to 2^20; the longest of the batch if none
    Side direction = Side::right;                       ///< the side that is padded
    std::optional<std::int64_t> pad_to_multiple_of = std::nullopt;
    std::int64_t pad_id = 0;
    std::int64_t pad_type_id = 0;
    std::string pad_token = "[PAD]";
};

/// @}

}  // namespace declivity::text
