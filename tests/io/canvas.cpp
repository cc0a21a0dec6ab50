// The canvas: exact for rectangles, text and images; by covered area for lines and discs.
#include <cmath>
#include <limits>
#include <numbers>
#include <set>
#include <string>
#include <vector>

#include <declivity/io/canvas.hpp>
#include <declivity/runtime/error.hpp>
#include <doctest/doctest.h>

using namespace declivity;
using namespace declivity::io;

namespace {

constexpr Color kBlack{0, 0, 0}, kWhite{255, 255, 255};

int red_at(const Canvas& canvas, int x, int y) {
    return canvas.image().pixels[static_cast<std::size_t>(3 * (y * canvas.width() + x))];
}

// White ink on black, in pixels.
double ink(const Canvas& canvas) {
    double sum = 0;
    for (const std::uint8_t byte : canvas.image().pixels) sum += byte;
    return sum / (3 * 255);
}

std::vector<std::string> rows_of_text(const std::string& text) {
    Canvas canvas(Canvas::text_width(text), Canvas::text_height(), kBlack);
    canvas.text(0, 0, text, kWhite);
    std::vector<std::string> rows;
    for (int y = 0; y < canvas.height(); ++y) {
        rows.emplace_back();
        for (int x = 0; x < canvas.width(); ++x) rows.back() += red_at(canvas, x, y) == 255 ? '#' : '.';
    }
    return rows;
}

}  // namespace

TEST_CASE("canvas: rectangles and images are clipped at the edges") {
    Canvas canvas(6, 4, {1, 2, 3});
    canvas.fill_rect(4, -1, 9, 3, {7, 8, 9});
    CHECK(red_at(canvas, 3, 0) == 1);
    CHECK(red_at(canvas, 4, 1) == 7);
    CHECK(red_at(canvas, 5, 1) == 7);
    CHECK(red_at(canvas, 4, 2) == 1);
    canvas.fill_rect(std::numeric_limits<int>::max() - 1, 0, std::numeric_limits<int>::max(), 9, kWhite);
    canvas.fill_rect(0, 0, -5, 9, kWhite);
    CHECK(red_at(canvas, 0, 0) == 1);
    canvas.draw(-1, 2, Image8{2, 1, 1, {50, 60}}, 2);
    CHECK(red_at(canvas, 0, 2) == 50);
    CHECK(red_at(canvas, 1, 3) == 60);
    CHECK(red_at(canvas, 2, 3) == 60);
    CHECK(red_at(canvas, 3, 3) == 1);
    canvas.draw(0, 0, Image8{1, 1, 3, {10, 20, 30}});
    CHECK(canvas.image().pixels[2] == 30);
    CHECK_THROWS_AS(canvas.draw(0, 0, Image8{2, 2, 1, {1}}), ValueError);
    CHECK_THROWS_AS(Canvas(0, 1, kBlack), ValueError);
}

TEST_CASE("canvas: lines and discs cover their area at every angle") {
    for (int step = 0; step < 24; ++step) {
        const double angle = step * std::numbers::pi / 12, width = 1.0 + step % 5;
        Canvas canvas(120, 120, kBlack);
        const double x = 40.3 * std::cos(angle), y = 40.3 * std::sin(angle);
        canvas.line(60.2 - x, 60.4 - y, 60.2 + x, 60.4 + y, kWhite, width);
        const double area = 80.6 * width + std::numbers::pi * width * width / 4;
        CHECK(ink(canvas) == doctest::Approx(area).epsilon(0.04));
    }
    Canvas disc(40, 40, kBlack);
    disc.disc(20.3, 19.6, 10, kWhite);
    CHECK(ink(disc) == doctest::Approx(std::numbers::pi * 100).epsilon(0.02));
    Canvas translucent(40, 40, kBlack);
    translucent.line(5, 20.5, 35, 20.5, kWhite, 4.0, 0.5);
    CHECK(red_at(translucent, 20, 20) == doctest::Approx(128).epsilon(0.01));
}

TEST_CASE("canvas: lines with invalid coordinates and lines far outside draw nothing") {
    Canvas canvas(10, 10, kBlack);
    const double infinite = std::numeric_limits<double>::infinity(), none = std::numeric_limits<double>::quiet_NaN();
    canvas.line(none, 1, 5, 5, kWhite);
    canvas.line(1, 1, infinite, 5, kWhite);
    canvas.line(-1e300, -1e300, -1e299, 0, kWhite);
    canvas.line(20, 20, 1e15, 30, kWhite, 3);
    canvas.line(1, 1, 5, 5, kWhite, 0);
    CHECK(ink(canvas) == 0);
    canvas.line(-1e6, 5.5, 1e6, 5.5, kWhite);
    CHECK(ink(canvas) == doctest::Approx(10));
}

TEST_CASE("canvas: text, letter by letter") {
    CHECK(rows_of_text("1g") == std::vector<std::string>{"..#........", ".##........", "..#....####", "..#...#...#",
                                                         "..#...#...#", "..#...#...#", ".###...####", "..........#",
                                                         ".......###."});
    std::set<std::vector<std::string>> images;
    for (char c = ' '; c <= '~'; ++c) images.insert(rows_of_text(std::string(1, c)));
    CHECK(images.size() == 95);  // all glyphs differ
    CHECK(rows_of_text("\x01") == rows_of_text("\xc3"));
    CHECK(images.count(rows_of_text("\x01")) == 0);
    CHECK(Canvas::text_width("") == 0);
    CHECK(Canvas::text_width("abc", 2) == 34);
}

TEST_CASE("canvas: scaled text has proportional ink, rotated text is the same text") {
    const std::string text = "loss 0.25 gq&%";
    Canvas plain(100, 100, kBlack), scaled(300, 300, kBlack), upwards(100, 100, kBlack);
    plain.text(2, 3, text, kWhite);
    scaled.text(6, 9, text, kWhite, 3);
    CHECK(ink(scaled) == doctest::Approx(9 * ink(plain)).epsilon(0.08));
    upwards.text_upwards(3, 97, text, kWhite);
    bool same = true;
    for (int y = 0; y < 100; ++y)
        for (int x = 0; x < 100; ++x) same = same && red_at(plain, x, y) == red_at(upwards, y, 99 - x);
    CHECK(same);
    plain.text(-3, -3, text, kWhite);  // partly outside
    plain.text(98, 98, text, kWhite);
    CHECK_THROWS_AS(plain.text(0, 0, text, kWhite, 0), ValueError);
}
