// Layer 7, private. Byte-level encoding: bytes as printable characters, as in GPT-2's tokenizer.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "normalized_text.hpp"

namespace declivity::text {

/// The character of a byte: the byte itself if it is printable and not a space, otherwise one from U+0100 on.
char32_t byte_character(std::uint8_t byte) noexcept;
/// The byte of such a character; none for other characters.
std::optional<std::uint8_t> character_byte(char32_t c) noexcept;

/// A text and the pieces into which it was split.
struct Pieces {
    NormalizedText text;
    std::vector<Range> pieces;
};
/// Replaces each byte of the pieces by its character.
Pieces to_byte_level(const NormalizedText& text, const std::vector<Range>& pieces);
/// Bytes of a token: those of its characters if all are byte-level characters, otherwise its own.
std::string from_byte_level(std::string_view token);

}  // namespace declivity::text
