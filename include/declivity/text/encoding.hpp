// Layer 5. Encoding: what a tokenizer makes of a text.
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

/// Bytes begin .. end - 1 of a text in UTF-8.
struct Offsets {
    std::size_t begin = 0;
    std::size_t end = 0;
    friend bool operator==(const Offsets&, const Offsets&) = default;
};

/// The same part of the text in characters (code points), as Python counts. A character that begins before the end of
/// the span is in it.
/// @throws ValueError for a span that is not in the text
DECLIVITY_API Offsets in_characters(std::string_view text, Offsets bytes);

/// The tokens of a text, or of a pair. All lists but `overflowing` have one element for each token.
struct DECLIVITY_API Encoding {
    std::vector<std::int64_t> ids;
    std::vector<std::string> tokens;
    /// Where the token comes from, in bytes of its own text; {0, 0} for special tokens that were added.
    std::vector<Offsets> offsets;
    std::vector<std::int64_t> type_ids;             ///< 0 and 1 tell the texts of a pair apart (BERT's token_type_ids)
    std::vector<std::int64_t> attention_mask;       ///< 0 for padding
    std::vector<std::int64_t> special_tokens_mask;  ///< 1 for what was added: special tokens and padding
    std::vector<std::int64_t> word_ids;             ///< which piece of the pre-tokenizer; -1 for what was added
    std::vector<std::int64_t> sequence_ids;         ///< 0 for the first text, 1 for the second; -1 for what was added
    /// What truncation cut off, in pieces of the same length that overlap by `stride`.
    std::vector<Encoding> overflowing;

    [[nodiscard]] std::size_t size() const noexcept { return ids.size(); }
};

/// One list of all encodings, such as their ids, as an array (N, T) of i64.
///
///     text::stack(tokenizer.encode_batch(texts), &text::Encoding::ids)
///
/// @throws ShapeError unless they have the same length (Padding); ValueError for none
DECLIVITY_API io::HostArray stack(const std::vector<Encoding>& encodings, std::vector<std::int64_t> Encoding::*list);

enum class Side : std::uint8_t { right, left };
enum class TruncationStrategy : std::uint8_t { longest_first, only_first, only_second };

/// Cuts encodings to at most `max_length` tokens, special tokens counted.
struct Truncation {
    std::int64_t max_length = 512;
    std::int64_t stride = 0;  ///< tokens that a piece in Encoding::overflowing shares with the one before
    /// Which text of a pair is cut: the longer one, until both are as long.
    TruncationStrategy strategy = TruncationStrategy::longest_first;
    Side direction = Side::right;  ///< where it is cut
};

/// Fills encodings up to one length.
struct Padding {
    std::optional<std::int64_t> length = std::nullopt;  ///< up to 2^20; the longest of the batch if none
    Side direction = Side::right;                       ///< where the padding stands
    std::optional<std::int64_t> pad_to_multiple_of = std::nullopt;
    std::int64_t pad_id = 0;
    std::int64_t pad_type_id = 0;
    std::string pad_token = "[PAD]";
};

}  // namespace declivity::text
