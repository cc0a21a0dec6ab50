// Plots of a training: sizes, colours and positions, and unusual input.
#include <array>
#include <limits>
#include <string>
#include <vector>

#include <declivity/runtime/error.hpp>
#include <declivity/train/plot.hpp>
#include <doctest/doctest.h>

using namespace declivity;
using namespace declivity::train;

namespace {

using Rgb = std::array<std::uint8_t, 3>;

Rgb pixel(const io::Image8& image, int x, int y) {
    const std::size_t at = static_cast<std::size_t>(3 * (y * image.width + x));
    return {image.pixels[at], image.pixels[at + 1], image.pixels[at + 2]};
}

int count(const io::Image8& image, Rgb color) {
    int found = 0;
    for (int y = 0; y < image.height; ++y)
        for (int x = 0; x < image.width; ++x) found += pixel(image, x, y) == color ? 1 : 0;
    return found;
}

constexpr Rgb kFirstLine{0, 114, 178}, kSecondLine{213, 94, 0}, kRight{22, 128, 60}, kWrong{200, 36, 36};

// Mean row of a colour within some columns; rows count from the top.
double mean_row(const io::Image8& image, Rgb color, int left, int right) {
    double sum = 0, found = 0;
    for (int y = 0; y < image.height; ++y)
        for (int x = left; x < right; ++x)
            if (pixel(image, x, y) == color) {
                sum += y;
                ++found;
            }
    return sum / found;
}

Prediction prediction(int size, const std::string& predicted, const std::string& label) {
    return {io::Image8::filled(size, size, 1, 90), predicted, label};
}

}  // namespace

TEST_CASE("plot: a falling loss falls, a rising accuracy rises") {
    Series loss{"train", {1, 2, 3, 4, 5}, {2.0, 1.0, 0.5, 0.25, 0.12}},
        accuracy{"test", {1, 2, 3, 4, 5}, {0.2, 0.6, 0.8, 0.9, 0.95}};
    const io::Image8 both = learning_curve({"a title", "epoch", {loss}, {accuracy}});
    both.check("test");
    CHECK(both.channels == 3);
    const int middle = both.width / 2;
    CHECK(mean_row(both, kFirstLine, 60, 140) + 100 < mean_row(both, kFirstLine, middle - 100, middle - 20));
    CHECK(mean_row(both, kFirstLine, middle + 60, middle + 140) >
          80 + mean_row(both, kFirstLine, middle + 380, middle + 440));
    const io::Image8 plot = learning_curve({"", "step", {loss}, {}});
    CHECK(plot.width == middle);
    CHECK(count(plot, kSecondLine) == 0);
    loss.name = "test";
    for (double& y : loss.y) y += 0.5;
    CHECK(count(learning_curve({"", "step", {loss, loss}, {}}), kSecondLine) > 100);
}

TEST_CASE("plot: empty and unusual series are plotted, too") {
    const double none = std::numeric_limits<double>::quiet_NaN(), infinite = std::numeric_limits<double>::infinity();
    const std::vector<Series> edge_cases{{"empty", {}, {}},
                                         {"one", {3}, {0.7}},
                                         {"flat", {0, 1, 2}, {0, 0, 0}},
                                         {"gap", {0, 1, 2, 3}, {1, none, infinite, 2}},
                                         {"nothing", {1, 2}, {none, none}},
                                         {"huge", {0, 1e9}, {1e300, -1e300}},
                                         {"tiny", {0, 1e-9}, {1e-300, 2e-300}},
                                         {"below", {0, 1}, {-5, -4}},
                                         {"near", {0, 1}, {1e6, 1e6 + 1e-7}}};
    for (const Series& series : edge_cases) {
        const io::Image8 image = learning_curve({"", "x", {series}, {series}});
        image.check("test");
        CHECK(image.width > 500);
    }
    CHECK(learning_curve({}).width > 100);
    // A gap leaves the columns between its ends free of the line.
    const Series gap{"", {0, 1, 2, 3, 4}, {1, 1, none, 1, 1}};
    const io::Image8 image = learning_curve({"", "x", {gap}, {}});
    int columns = 0;
    for (int x = 180; x < 400; ++x) {
        bool touched = false;
        for (int y = 100; y < image.height; ++y) touched = touched || pixel(image, x, y) == kFirstLine;
        columns += touched ? 1 : 0;
    }
    CHECK(columns < 60);
    Series noisy{"", {}, {}};
    for (int i = 0; i < 5000; ++i) {
        noisy.x.push_back(i);
        noisy.y.push_back(i % 7 == 0 ? none : 1.0 + i % 2);
    }
    // The mean of alternating 1 and 2 is 1.5, on an axis from 0 to 2: three quarters of the way up.
    const io::Image8 mean = learning_curve({"", "step", {noisy}, {}});
    CHECK(mean_row(mean, kFirstLine, 100, 250) == doctest::Approx(44 + 294 * 0.25).epsilon(0.03));
    CHECK_THROWS_AS((void)learning_curve({"", "x", {{"", {1, 2}, {1}}}, {}}), ValueError);
}

TEST_CASE("plot: the legend covers no part of a curve, whatever the names and positions of its series") {
    // Flat lines along both edges of the plot area, where a legend in a corner would be.
    const auto picture = [](const std::string& name, std::size_t lines) {
        std::vector<Series> series;
        for (std::size_t i = 0; i < lines; ++i)
            series.push_back({name, {1, 2, 3}, std::vector<double>(3, 0.02 + 0.96 * static_cast<double>(i) / 4)});
        return learning_curve({"", "epoch", series, series});
    };
    constexpr int kTop = 44, kBottom = 338;  // rows of the plot area
    for (const std::size_t lines : {1, 2, 5}) {
        const io::Image8 plain = picture("", lines);
        for (const std::string name : {"train", "the validation loss of the second of two networks"}) {
            const io::Image8 with_name = picture(name, lines);
            REQUIRE(with_name.width == plain.width);
            int changed = 0;
            for (int y = kTop; y < kBottom; ++y)
                for (int x = 0; x < plain.width; ++x) changed += pixel(with_name, x, y) == pixel(plain, x, y) ? 0 : 1;
            CHECK(changed == 0);
            // Each series has its sample line in the legend, and nothing is outside of the picture.
            int strokes = 0;
            for (int y = kBottom + 20; y < with_name.height; ++y) {
                for (int x = 0; x < with_name.width; ++x) strokes += pixel(with_name, x, y) == kFirstLine ? 1 : 0;
                CHECK(pixel(with_name, with_name.width - 1, y) == Rgb{255, 255, 255});
            }
            CHECK(strokes > 60);
        }
    }
}

TEST_CASE("plot: correct predictions are green, wrong ones are red and show the actual class") {
    const std::vector<Prediction> right(4, prediction(28, "7", "7")), wrong(4, prediction(28, "7", "1"));
    const io::Image8 green = prediction_grid(right, 2), red = prediction_grid(wrong, 2);
    CHECK(count(green, kRight) > 50);
    CHECK(count(green, kWrong) == 0);
    CHECK(count(red, kWrong) > 2 * count(green, kRight));  // "7 (1)" is longer than "7"
    CHECK(count(red, kRight) == 0);
    CHECK(count(green, {90, 90, 90}) == 4 * 84 * 84);
    CHECK(prediction_grid(right, 3).width > green.width);
    CHECK(prediction_grid(right, 99).width == prediction_grid(right, 4).width);
    std::vector<Prediction> various{prediction(1, "a", "a"), prediction(300, "a very long name of a class", "x")};
    various.push_back({io::Image8::filled(32, 16, 3, 200), "truck", "truck"});
    prediction_grid(various, 2, "a title").check("test");
    CHECK_THROWS_AS((void)prediction_grid({}, 2), ValueError);
    CHECK_THROWS_AS((void)prediction_grid(right, 0), ValueError);
    const std::vector<Prediction> invalid{{io::Image8{3, 3, 1, {1}}, "", ""}};
    CHECK_THROWS_AS((void)prediction_grid(invalid, 1), ValueError);
}
