// Layer 4. Pictures of 8-bit gray or colour, as they stand in files and on screens.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <declivity/export.hpp>
#include <declivity/ops/shape.hpp>

namespace declivity::io {

/// Pixels row by row from the top left, the channels of a pixel side by side: 1 (gray) or 3 (red, green, blue).
struct DECLIVITY_API Image8 {
    int width = 0;
    int height = 0;
    int channels = 1;
    /// width * height * channels bytes; 0 is black.
    std::vector<std::uint8_t> pixels;

    /// An image of one value. @throws ValueError unless sizes are at least 1, at most 2^24, and channels 1 or 3
    static Image8 filled(int width, int height, int channels, std::uint8_t value);
    /// From floats of shape C,H,W, as tensors hold images; 0 to 1 becomes 0 to 255, rounded, values beyond (and NaN)
    /// go to the nearest end (and 0). @throws ShapeError unless C is 1 or 3, and when the number of values does not fit
    static Image8 from_planes(std::span<const float> values, const Shape& shape);

    /// C,H,W floats of 0 to 1.
    [[nodiscard]] std::vector<float> to_planes() const;
    [[nodiscard]] Shape shape() const { return {channels, height, width}; }
    /// @throws ValueError naming `function` unless sizes, channels and pixels fit together
    void check(const char* function) const;

    friend bool operator==(const Image8&, const Image8&) = default;
};

}  // namespace declivity::io
