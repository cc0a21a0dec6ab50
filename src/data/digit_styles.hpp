// Layer 7, private. Handwriting styles of digits: pen strokes, in several styles for each digit.
#pragma once

#include <array>
#include <vector>

namespace declivity::data {

/// A point on the pen's path. The box of a digit is about 0 to 1, x to the right, y downwards.
struct PenPoint {
    float x = 0;
    float y = 0;
    bool corner = false;  ///< the pen turns sharply here instead of continuing smoothly
};

/// Points passed without lifting the pen.
using PenStroke = std::vector<PenPoint>;
/// Strokes of one way to write a digit.
using DigitStyle = std::vector<PenStroke>;

/// Styles of the digits 0 to 9.
const std::array<std::vector<DigitStyle>, 10>& digit_styles();

}  // namespace declivity::data
