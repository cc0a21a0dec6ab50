// Layer 7, private. Unicode characters: UTF-8, categories, case and normal forms, through utf8proc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace declivity::text {

inline constexpr char32_t kReplacementCharacter = 0xFFFD;

struct Decoded {
    char32_t c = 0;
    std::uint32_t size = 0;  ///< bytes
    bool valid = true;
};
/// Decodes the character at a position in arbitrary bytes: U+FFFD for each maximal invalid part, as Unicode recommends
/// (3.9).
Decoded decode_any(std::string_view text, std::size_t pos) noexcept;
/// Decodes a character of valid text.
inline Decoded decode_at(std::string_view text, std::size_t pos) noexcept {
    const auto byte = [&](std::size_t i) { return static_cast<char32_t>(static_cast<unsigned char>(text[pos + i])); };
    const char32_t first = byte(0);
    if (first < 0x80) return {first, 1};
    if (first < 0xE0) return {(first & 0x1F) << 6 | (byte(1) & 0x3F), 2};
    if (first < 0xF0) return {(first & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F), 3};
    return {(first & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F), 4};
}
/// The character before a position other than 0.
Decoded decode_before(std::string_view text, std::size_t pos) noexcept;
inline std::size_t bytes_of(unsigned char first) noexcept {
    return first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
}
void append(std::string& text, char32_t c);
std::string utf8(char32_t c);
std::size_t count_characters(std::string_view text) noexcept;
/// Replaces invalid parts by U+FFFD.
std::string to_valid(std::string_view text);
bool is_valid(std::string_view text) noexcept;

/// Unicode's property White_Space.
bool is_whitespace(char32_t c) noexcept;
/// ASCII characters that are no letter, digit, space or control character; otherwise the categories P*.
bool is_punctuation(char32_t c) noexcept;
bool is_numeric(char32_t c) noexcept;          ///< categories Nd, Nl, No
bool is_mark(char32_t c) noexcept;             ///< categories Mn, Mc, Me
bool is_nonspacing_mark(char32_t c) noexcept;  ///< category Mn
bool is_other(char32_t c) noexcept;            ///< categories Cc, Cf, Co, Cs
bool is_chinese(char32_t c) noexcept;          ///< blocks of CJK ideographs listed by BERT
/// The definition of \w in the Rust crate regex.
bool is_word(char32_t c);

/// Lower case of a character, up to two.
void append_lower(std::u32string& out, char32_t c);

enum class NormalForm : std::uint8_t { nfc, nfd, nfkc, nfkd };
/// A character of a changed text and its origin: 0 replaces one character, 1 is inserted after the previous one, -n
/// replaces one and the n after it.
struct Change {
    char32_t c = 0;
    std::int32_t change = 0;
};
std::vector<Change> normalize(std::string_view text, NormalForm form);
/// Ends of extended grapheme clusters.
std::vector<std::size_t> grapheme_ends(std::string_view text);

}  // namespace declivity::text
