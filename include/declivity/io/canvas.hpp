// Layer 4. A small canvas for pictures made by programs: rectangles, smooth lines, text, images.
#pragma once

#include <cstdint>
#include <string_view>

#include <declivity/export.hpp>
#include <declivity/io/image.hpp>

namespace declivity::io {

/// Red, green, blue, 0 to 255.
struct Color {
    std::uint8_t red = 0;
    std::uint8_t green = 0;
    std::uint8_t blue = 0;
};

/// A colour picture to draw on. Coordinates are pixels from the top left corner; the centre of the first pixel is
/// (0.5, 0.5). Whatever lies outside is left out.
class DECLIVITY_API Canvas {
  public:
    /// @throws ValueError unless the sizes are in 1 .. 2^24
    Canvas(int width, int height, Color background);

    [[nodiscard]] int width() const noexcept { return image_.width; }
    [[nodiscard]] int height() const noexcept { return image_.height; }
    [[nodiscard]] const Image8& image() const noexcept { return image_; }

    /// The pixels x .. x + width - 1, y .. y + height - 1.
    void fill_rect(int x, int y, int width, int height, Color color);
    /// A straight line with round ends, smoothed. @param width in pixels @param opacity 0 to 1
    /// Nothing is drawn when a coordinate is not finite.
    void line(double x0, double y0, double x1, double y1, Color color, double width = 1.0, double opacity = 1.0);
    /// A filled circle, smoothed.
    void disc(double x, double y, double radius, Color color) { line(x, y, x, y, color, 2 * radius); }
    /// Text of one line with its top left corner at (x, y); printable ASCII, a box for every other byte.
    /// @param scale size of a font pixel, at least 1; the curves of larger letters are smoothed
    void text(int x, int y, std::string_view text, Color color, int scale = 1);
    /// The same, turned by a quarter to the left, to be read from below: (x, y) is the bottom left corner of its box.
    void text_upwards(int x, int y, std::string_view text, Color color, int scale = 1);
    /// A gray or colour image, each pixel enlarged to scale x scale.
    void draw(int x, int y, const Image8& image, int scale = 1);

    /// Size of a line of text; capitals and digits fill the upper 7/9 of the height.
    static int text_width(std::string_view text, int scale = 1);
    static int text_height(int scale = 1);

  private:
    void blend(int x, int y, Color color, double opacity);
    /// A glyph's font pixel, enlarged; `upwards` tells how it is turned.
    void letter(int x, int y, char character, Color color, int scale, bool upwards);

    Image8 image_;
};

}  // namespace declivity::io
