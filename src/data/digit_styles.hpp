// Layer 5, private. How digits are written by hand: strokes of the pen, in several styles for each digit.
#pragma once

#include <array>
#include <vector>

namespace declivity::data {

/// A point that the pen passes. The box of a digit is about 0 to 1, x to the right, y downwards.
struct PenPoint {
    float x = 0;
    float y = 0;
    bool corner = false;  ///< the pen turns sharply here instead of running on smoothly
};

/// Points passed without lifting the pen.
using PenStroke = std::vector<PenPoint>;
/// The strokes of one way to write a digit.
using DigitStyle = std::vector<PenStroke>;

/// The styles of the digits 0 to 9.
const std::array<std::vector<DigitStyle>, 10>& digit_styles();

}  // namespace declivity::data
