// Layer 6. Canvas for drawing plots: rectangles, antialiased lines, text, images.
#pragma once

#include <cstdint>
#include <string_view>

#include <declivity/export.hpp>
#include <declivity/io/image.hpp>

namespace declivity::io {

/// @addtogroup io
/// @{

/// Red, green, blue, 0 to 255.
struct Color {
    std::uint8_t red = 0;
    std::uint8_t green = 0;
    std::uint8_t blue = 0;
};

/// A colour image to draw on. Coordinates are pixels from the top left corner; the centre of the first pixel is (0.5,
/// 0.5). Drawing is clipped to the image.
class DECLIVITY_API Canvas {
  public:
    /// @throws ValueError unless the sizes are in 1 .. 2^24
    Canvas(int width, int height, Color background);

    [[nodiscard]] int width() const noexcept { return image_.width; }
    [[nodiscard]] int height() const noexcept { return image_.height; }
    [[nodiscard]] const Image8& image() const noexcept { return image_; }

    /// Fills the pixels x .. x + width - 1, y .. y + height - 1.
    void fill_rect(int x, int y, int width, int height, Color color);
    /// Draws an antialiased straight line with round ends; nothing if a coordinate is not finite.
    /// @param width in pixels
    /// @param opacity 0 to 1
    void line(double x0, double y0, double x1, double y1, Color color, double width = 1.0, double opacity = 1.0);
    /// Draws an antialiased filled circle.
    void disc(double x, double y, double radius, Color color) { line(x, y, x, y, color, 2 * radius); }
    /// Draws a line of text with its top left corner at (x, y); printable ASCII, a box for every other byte.
    /// @param scale size of a font pixel, at least 1; the curves of larger letters are smoothed
    void text(int x, int y, std::string_view text, Color color, int scale = 1);
    /// Text rotated by 90 degrees counterclockwise: (x, y) is the bottom left corner of the text box.
    void text_upwards(int x, int y, std::string_view text, Color color, int scale = 1);
    /// Draws a gray or colour image, each pixel enlarged to scale x scale.
    void draw(int x, int y, const Image8& image, int scale = 1);

    /// Size of a line of text; capitals and digits fill the upper 7/9 of the height.
    static int text_width(std::string_view text, int scale = 1);
    static int text_height(int scale = 1);

  private:
    void blend(int x, int y, Color color, double opacity);
    /// Draws an enlarged font pixel of a glyph; `upwards` selects rotated text.
    void letter(int x, int y, char character, Color color, int scale, bool upwards);

    Image8 image_;
};

/// @}

}  // namespace declivity::io
