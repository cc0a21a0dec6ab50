// Synthetic digits: reproducible, all different, balanced, readable but not trivial.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <set>
#include <vector>

#include <declivity/data/synthetic_digits.hpp>
#include <declivity/runtime/error.hpp>
#include <doctest/doctest.h>

using namespace declivity;
using namespace declivity::data;

namespace {

std::vector<float> pixels_of(const ClassificationDataset& set, std::int64_t index) {
    std::vector<float> pixels(std::size_t{kDigitSize} * kDigitSize);
    set.read(index, pixels);
    return pixels;
}

float distance(const std::vector<float>& a, const std::vector<float>& b) {
    float sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
    return sum;
}

}  // namespace

TEST_CASE("synthetic digits: a digit depends on (seed, index) only") {
    const SyntheticDigits set(300, 7), later(50, 7, 200), other(50, 8);
    CHECK(set.size() == 300);
    CHECK(set.shape() == Shape{1, kDigitSize, kDigitSize});
    CHECK(set.classes() == 10);
    for (std::int64_t i = 0; i < 300; ++i) {
        const SyntheticDigit digit = draw_digit(7, static_cast<std::uint64_t>(i));
        CHECK(set.label(i) == digit.label);
        const std::vector<float> pixels = pixels_of(set, i);
        bool same = true;
        for (std::size_t k = 0; k < pixels.size(); ++k)
            same = same && pixels[k] == static_cast<float>(digit.pixels[k]) / 255.0F;
        CHECK(same);
    }
    for (std::int64_t i = 0; i < 50; ++i) {
        CHECK(pixels_of(later, i) == pixels_of(set, 200 + i));
        CHECK(pixels_of(other, i) != pixels_of(set, i));
    }
    CHECK(SyntheticDigits(0, 1).size() == 0);
    CHECK_THROWS_AS(SyntheticDigits(-1, 1), ValueError);
}

TEST_CASE("synthetic digits: labels are balanced, digits differ, strokes stay inside") {
    const int count = 4000;
    std::array<int, 10> counts{};
    std::set<std::array<std::uint8_t, 784>> different;
    double ink = 0, edge = 0;
    for (std::uint64_t i = 0; i < count; ++i) {
        const SyntheticDigit digit = draw_digit(1, i);
        ++counts[static_cast<std::size_t>(digit.label)];
        different.insert(digit.pixels);
        int brightest = 0;
        for (std::size_t k = 0; k < digit.pixels.size(); ++k) {
            const int value = digit.pixels[k];
            ink += value / 255.0;
            brightest = std::max(brightest, value);
            const std::size_t x = k % kDigitSize, y = k / kDigitSize;
            if (std::min({x, y, kDigitSize - 1 - x, kDigitSize - 1 - y}) == 0) edge += value / 255.0;
        }
        CHECK_UNARY(brightest > 100);
    }
    for (const int n : counts) CHECK(std::abs(n - 400) < 95);  // five standard errors
    CHECK(different.size() == count);
    // The mean of MNIST is 0.13; the border has some noise and hardly any strokes.
    const double mean = ink / (count * 784.0), mean_edge = edge / (count * 108.0);
    CHECK(mean > 0.08);
    CHECK(mean < 0.20);
    CHECK(mean_edge < 0.03);
}

TEST_CASE("synthetic digits: nearest neighbours classify them, class means do not suffice") {
    const SyntheticDigits training(1000, 11), tests(200, 12);
    std::vector<std::vector<float>> examples, means(10, std::vector<float>(784, 0.0F));
    std::array<float, 10> counts{};
    for (std::int64_t i = 0; i < training.size(); ++i) {
        examples.push_back(pixels_of(training, i));
        const auto label = static_cast<std::size_t>(training.label(i));
        ++counts[label];
        for (std::size_t k = 0; k < 784; ++k) means[label][k] += examples.back()[k];
    }
    for (std::size_t label = 0; label < 10; ++label)
        for (float& value : means[label]) value /= counts[label];
    int by_neighbour = 0, by_mean = 0;
    for (std::int64_t i = 0; i < tests.size(); ++i) {
        const std::vector<float> pixels = pixels_of(tests, i);
        const auto nearest = [&](const std::vector<std::vector<float>>& all) {
            return std::ranges::min_element(all, {}, [&](const auto& centre) { return distance(centre, pixels); }) -
                   all.begin();
        };
        by_neighbour += training.label(nearest(examples)) == tests.label(i) ? 1 : 0;
        by_mean += nearest(means) == tests.label(i) ? 1 : 0;
    }
    CHECK(by_neighbour > 200 * 0.60);
    CHECK(by_neighbour < 200 * 0.95);
    CHECK(by_mean < by_neighbour);
    CHECK(by_mean > 200 * 0.40);
}
