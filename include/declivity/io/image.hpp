// Layer 6. 8-bit gray or colour images.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <declivity/export.hpp>
#include <declivity/ops/shape.hpp>

namespace declivity::io {

/// @addtogroup io
/// @{

/// Pixels in row-major order from the top left, interleaved channels: 1 (gray) or 3 (red, green, blue).
struct DECLIVITY_API Image8 {
    int width = 0;
    int height = 0;
    int channels = 1;
    /// width * height * channels bytes; 0 is black.
    std::vector<std::uint8_t> pixels;

    /// An image of constant value. @throws ValueError unless sizes are in 1 .. 2^24 and channels 1 or 3
    static Image8 filled(int width, int height, int channels, std::uint8_t value);
    /// Converts floats of shape C,H,W; 0 to 1 is mapped to 0 to 255 with rounding, values outside are clamped, NaN
    /// becomes 0. @throws ShapeError unless C is 1 or 3, and if the number of values does not match the shape
    static Image8 from_planes(std::span<const float> values, const Shape& shape);

    /// Converts to C,H,W floats in [0, 1].
    [[nodiscard]] std::vector<float> to_planes() const;
    [[nodiscard]] Shape shape() const { return {channels, height, width}; }
    /// @throws ValueError naming `function` unless sizes, channels and pixels match
    void check(const char* function) const;

    friend bool operator==(const Image8&, const Image8&) = default;
};

/// @}

}  // namespace declivity::io
