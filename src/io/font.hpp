// Layer 6, private. Small bitmap font for images: every printable ASCII character, 5 columns wide.
#pragma once

#include <array>
#include <cstdint>

namespace declivity::io {

inline constexpr int kGlyphWidth = 5;
inline constexpr int kGlyphHeight = 9;  ///< 7 rows above the baseline, 2 below it
inline constexpr int kGlyphAdvance = kGlyphWidth + 1;

/// Rows of a character from top to bottom; in each, bit 4 is the leftmost column. A box for non-printable characters.
const std::array<std::uint8_t, kGlyphHeight>& glyph_of(char character) noexcept;

}  // namespace declivity::io
