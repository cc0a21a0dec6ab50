// Layer 5, private. Bytes as printable characters, as GPT-2's tokenizer writes them.
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

/// The character of a byte: itself where it is printable and no space, otherwise one of U+0100 and the following.
char32_t byte_character(std::uint8_t byte) noexcept;
/// The byte of such a character; none of another one.
std::optional<std::uint8_t> character_byte(char32_t c) noexcept;

/// A text and the pieces that it was cut into.
struct Pieces {
    NormalizedText text;
    std::vector<Range> pieces;
};
/// Each byte of the pieces as its character.
Pieces to_byte_level(const NormalizedText& text, const std::vector<Range>& pieces);
/// The bytes that a token stands for: those of its characters if all of them are such, otherwise its own.
std::string from_byte_level(std::string_view token);

}  // namespace declivity::text
