#include <algorithm>
#include <cmath>

#include <declivity/io/canvas.hpp>
#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

#include "font.hpp"

namespace declivity::io {
namespace {

bool is_set(char character, int column, int row) {
    if (column < 0 || column >= kGlyphWidth || row < 0 || row >= kGlyphHeight) return false;
    return (glyph_of(character)[static_cast<std::size_t>(row)] >> (kGlyphWidth - 1 - column) & 1) != 0;
}

// Returns whether a point of an enlarged character is ink. (u, v) are font pixels; diagonal neighbours are joined by
// cutting and filling corners at 45 degrees, for smooth curves.
bool is_ink(char character, double u, double v) {
    const int column = static_cast<int>(std::floor(u)), row = static_cast<int>(std::floor(v));
    const double du = u - column - 0.5, dv = v - row - 0.5;  // relative to the centre of the font pixel
    const bool at_corner = std::abs(du) + std::abs(dv) > 0.5;
    const int side = du < 0 ? -1 : 1, end = dv < 0 ? -1 : 1;
    const bool horizontal = is_set(character, column + side, row), vertical = is_set(character, column, row + end);
    const bool diagonal = is_set(character, column + side, row + end);
    if (!is_set(character, column, row)) return at_corner && horizontal && vertical && !diagonal;
    if (!at_corner || horizontal || vertical) return true;
    // A corner is cut only where the stroke turns: if it continues on both other sides.
    const bool turns = is_set(character, column - side, row) && is_set(character, column, row - end);
    return diagonal || !turns;
}

void check_scale(const char* function, int scale) {
    if (scale < 1) throw ValueError(fmt::format("{}: expected a scale of at least 1, got {}", function, scale));
}

}  // namespace

Canvas::Canvas(int width, int height, Color background) : image_(Image8::filled(width, height, 3, 0)) {
    fill_rect(0, 0, width, height, background);
}

void Canvas::blend(int x, int y, Color color, double opacity) {
    if (x < 0 || y < 0 || x >= image_.width || y >= image_.height) return;
    std::uint8_t* pixel =
        image_.pixels.data() +
        3 * (static_cast<std::size_t>(y) * static_cast<std::size_t>(image_.width) + static_cast<std::size_t>(x));
    const std::uint8_t channels[] = {color.red, color.green, color.blue};
    for (int c = 0; c < 3; ++c)
        pixel[c] =
            static_cast<std::uint8_t>(std::lround(pixel[c] + (channels[c] - pixel[c]) * std::clamp(opacity, 0.0, 1.0)));
}

void Canvas::fill_rect(int x, int y, int width, int height, Color color) {
    const int right = static_cast<int>(std::min<std::int64_t>(image_.width, std::int64_t{x} + width));
    const int bottom = static_cast<int>(std::min<std::int64_t>(image_.height, std::int64_t{y} + height));
    for (int row = std::max(y, 0); row < bottom; ++row)
        for (int column = std::max(x, 0); column < right; ++column) blend(column, row, color, 1.0);
}

void Canvas::line(double x0, double y0, double x1, double y1, Color color, double width, double opacity) {
    if (!std::isfinite(x0 + y0 + x1 + y1 + width) || width <= 0) return;
    // Coverage of a pixel from its distance to the segment: 1 within the line, falling to 0 over one pixel at the edge.
    const double radius = width / 2, reach = radius + 1;
    const auto clamp_to_image = [](double value, int limit) {
        return static_cast<int>(std::clamp(value, -1.0, limit + 1.0));
    };
    const int left = std::max(0, clamp_to_image(std::floor(std::min(x0, x1) - reach), image_.width));
    const int right = std::min(image_.width - 1, clamp_to_image(std::ceil(std::max(x0, x1) + reach), image_.width));
    const int top = std::max(0, clamp_to_image(std::floor(std::min(y0, y1) - reach), image_.height));
    const int bottom = std::min(image_.height - 1, clamp_to_image(std::ceil(std::max(y0, y1) + reach), image_.height));
    const double dx = x1 - x0, dy = y1 - y0, length_squared = dx * dx + dy * dy;
    for (int y = top; y <= bottom; ++y)
        for (int x = left; x <= right; ++x) {
            const double px = x + 0.5 - x0, py = y + 0.5 - y0;
            const double t = length_squared > 0 ? std::clamp((px * dx + py * dy) / length_squared, 0.0, 1.0) : 0.0;
            const double distance = std::hypot(px - t * dx, py - t * dy);
            // A line thinner than a pixel is drawn fainter instead.
            const double coverage = std::clamp(radius + 0.5 - distance, 0.0, std::min(width, 1.0));
            if (coverage > 0) blend(x, y, color, coverage * opacity);
        }
}

void Canvas::letter(int x, int y, char character, Color color, int scale, bool upwards) {
    constexpr int kSamples = 4;  // along each side of a pixel
    for (int row = 0; row < kGlyphHeight * scale; ++row)
        for (int column = 0; column < kGlyphWidth * scale; ++column) {
            double coverage = 0;
            if (scale == 1) {
                coverage = is_set(character, column, row) ? 1 : 0;
            } else {
                for (int i = 0; i < kSamples * kSamples; ++i)
                    coverage += is_ink(character, (column + (i % kSamples + 0.5) / kSamples) / scale,
                                       (row + (i / kSamples + 0.5) / kSamples) / scale)
                                    ? 1.0 / (kSamples * kSamples)
                                    : 0.0;
            }
            if (coverage <= 0) continue;
            if (upwards) blend(x + row, y - column, color, coverage);
            else blend(x + column, y + row, color, coverage);
        }
}

void Canvas::text(int x, int y, std::string_view text, Color color, int scale) {
    check_scale("Canvas::text", scale);
    for (const char character : text) {
        letter(x, y, character, color, scale, false);
        x += kGlyphAdvance * scale;
    }
}

void Canvas::text_upwards(int x, int y, std::string_view text, Color color, int scale) {
    check_scale("Canvas::text_upwards", scale);
    for (const char character : text) {
        letter(x, y, character, color, scale, true);
        y -= kGlyphAdvance * scale;
    }
}

void Canvas::draw(int x, int y, const Image8& image, int scale) {
    image.check("Canvas::draw");
    check_scale("Canvas::draw", scale);
    const auto channels = static_cast<std::size_t>(image.channels);
    for (int row = 0; row < image.height; ++row)
        for (int column = 0; column < image.width; ++column) {
            const std::uint8_t* pixel = image.pixels.data() + channels * (static_cast<std::size_t>(row) *
                                                                              static_cast<std::size_t>(image.width) +
                                                                          static_cast<std::size_t>(column));
            const Color color =
                channels == 1 ? Color{pixel[0], pixel[0], pixel[0]} : Color{pixel[0], pixel[1], pixel[2]};
            fill_rect(x + column * scale, y + row * scale, scale, scale, color);
        }
}

int Canvas::text_width(std::string_view text, int scale) {
    return text.empty() ? 0 : (static_cast<int>(text.size()) * kGlyphAdvance - 1) * scale;
}

int Canvas::text_height(int scale) { return kGlyphHeight * scale; }

}  // namespace declivity::io
