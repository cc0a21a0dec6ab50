#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <numbers>
#include <thread>
#include <utility>
#include <vector>

#include <declivity/data/synthetic_digits.hpp>
#include <declivity/data/random.hpp>
#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

#include "digit_styles.hpp"

namespace declivity::data {
namespace {

constexpr int kLabels = 10;

// A point of the pen's path in pixels, with the radius of the pen and the darkness of its ink there.
struct InkPoint {
    float x = 0;
    float y = 0;
    float radius = 0;
    float ink = 0;
};
using InkPath = std::vector<InkPoint>;

// A smooth curve through the points (Catmull and Rom, 1974), as a path of short straight segments; the points are
// jittered first.
InkPath trace(const PenStroke& stroke, float jitter, Random& random) {
    PenStroke jittered = stroke;
    for (PenPoint& point : jittered) {
        point.x += jitter * random.normal();
        point.y += jitter * random.normal();
    }
    InkPath path;
    constexpr int kSteps = 8;
    for (std::size_t i = 0; i + 1 < jittered.size(); ++i) {
        const PenPoint &from = jittered[i], &to = jittered[i + 1];
        const PenPoint& previous = i > 0 && !from.corner ? jittered[i - 1] : from;
        const PenPoint& next = i + 2 < jittered.size() && !to.corner ? jittered[i + 2] : to;
        const auto interpolate = [](float p0, float p1, float p2, float p3, float t) {
            return 0.5F *
                   (2 * p1 + t * (p2 - p0 + t * (2 * p0 - 5 * p1 + 4 * p2 - p3 + t * (3 * (p1 - p2) + p3 - p0))));
        };
        for (int step = i == 0 ? 0 : 1; step <= kSteps; ++step) {
            const float t = static_cast<float>(step) / kSteps;
            path.push_back({interpolate(previous.x, from.x, to.x, next.x, t),
                            interpolate(previous.y, from.y, to.y, next.y, t), 0, 0});
        }
    }
    return path;
}

// Slants and stretches the digit about the centre of the box, and scales it to pixels.
void apply_affine(std::vector<InkPath>& paths, Random& random) {
    constexpr float kDegree = std::numbers::pi_v<float> / 180;
    const float angle = 6 * kDegree * random.normal();
    const float slant = 0.12F + 0.16F * random.normal();
    const float height = random.uniform(17.5F, 22.0F), width = height * random.uniform(0.66F, 1.05F);
    const float cosine = std::cos(angle), sine = std::sin(angle);
    for (InkPath& path : paths)
        for (InkPoint& point : path) {
            const float v = (point.y - 0.5F) * height, u = (point.x - 0.5F) * width - slant * v;
            point.x = cosine * u - sine * v;
            point.y = sine * u + cosine * v;
        }
}

// A field of random displacements, smooth over several pixels: noise on a coarse grid, blurred and interpolated.
class ElasticField {
  public:
    ElasticField(float strength, Random& random) {
        Grid noise{};
        for (float& value : noise) value = random.uniform(-1, 1);
        // Two passes of 1 4 6 4 1 in each direction: close to a Gaussian with a deviation of 1.4 cells, 5 pixels.
        for (int pass = 0; pass < 2; ++pass) noise = blur(blur(noise, 1, kSide), kSide, 1);
        float sum = 0;
        for (const float value : noise) sum += value * value;
        const float scale = strength / std::sqrt(sum / static_cast<float>(noise.size()));
        for (std::size_t i = 0; i < noise.size(); ++i) values_[i] = noise[i] * scale;
    }

    // Displacement at a position, in pixels from the centre.
    [[nodiscard]] float at(float x, float y) const {
        const float u = std::clamp(x / kCell + kSide / 2.0F, 0.0F, kSide - 1.001F);
        const float v = std::clamp(y / kCell + kSide / 2.0F, 0.0F, kSide - 1.001F);
        const int column = static_cast<int>(u), row = static_cast<int>(v);
        const float du = u - static_cast<float>(column), dv = v - static_cast<float>(row);
        const float* corner = values_.data() + row * kSide + column;
        return (1 - dv) * ((1 - du) * corner[0] + du * corner[1]) +
               dv * ((1 - du) * corner[kSide] + du * corner[kSide + 1]);
    }

  private:
    static constexpr int kSide = 10;
    static constexpr float kCell = 3.5F;  // pixels
    using Grid = std::array<float, std::size_t{kSide} * kSide>;

    static Grid blur(const Grid& from, int stride, int line_stride) {
        constexpr std::array<float, 5> kWeights{1.0F / 16, 4.0F / 16, 6.0F / 16, 4.0F / 16, 1.0F / 16};
        Grid to{};
        for (int line = 0; line < kSide; ++line)
            for (int i = 0; i < kSide; ++i)
                for (int k = -2; k <= 2; ++k) {
                    const int j = std::clamp(i + k, 0, kSide - 1);
                    to[static_cast<std::size_t>(line * line_stride + i * stride)] +=
                        kWeights[static_cast<std::size_t>(k + 2)] *
                        from[static_cast<std::size_t>(line * line_stride + j * stride)];
                }
        return to;
    }

    Grid values_{};
};

void apply_elastic(std::vector<InkPath>& paths, Random& random) {
    const float strength = random.uniform(0.3F, 1.3F);  // pixels, root mean square
    const ElasticField field_x(strength, random), field_y(strength, random);
    for (InkPath& path : paths)
        for (InkPoint& point : path) {
            const float dx = field_x.at(point.x, point.y), dy = field_y.at(point.x, point.y);
            point.x += dx;
            point.y += dy;
        }
}

// Varies the thickness and darkness of the pen along the line.
void apply_pen(std::vector<InkPath>& paths, Random& random) {
    const float radius = 0.55F + 0.95F * random.uniform() * random.uniform() + 0.35F * random.uniform();
    const float nib = random.uniform(0, 0.3F), nib_angle = random.uniform(0, std::numbers::pi_v<float>);
    const float pressure = random.uniform(0, 0.3F), taper = random.chance(0.5F) ? random.uniform(0.2F, 0.7F) : 0.0F;
    const float darkness = random.uniform(0.78F, 1.0F);
    for (InkPath& path : paths) {
        const float phase = random.uniform(0, 2 * std::numbers::pi_v<float>), waves = random.uniform(2, 7);
        const auto count = static_cast<float>(path.size() - 1);
        for (std::size_t i = 0; i < path.size(); ++i) {
            const InkPoint &previous = path[i > 0 ? i - 1 : 0], &next = path[std::min(i + 1, path.size() - 1)];
            const float direction = std::atan2(next.y - previous.y, next.x - previous.x);
            const float t = static_cast<float>(i) / count, swell = pressure * std::sin(phase + waves * t);
            constexpr float kTaperBegin = 0.75F;
            const float thin = t > kTaperBegin ? 1 - taper * (t - kTaperBegin) / (1 - kTaperBegin) : 1;
            path[i].radius = radius * (1 + swell) * thin * (1 + nib * std::sin(2 * (direction - nib_angle)));
            path[i].ink = darkness * std::min(1.0F, 1 + 0.5F * swell) * (0.6F + 0.4F * thin);
        }
    }
}

// Centres the digit approximately, and shrinks it if it would leave the image.
void fit_to_image(std::vector<InkPath>& paths, Random& random) {
    float left = 1e9F, right = -1e9F, top = 1e9F, bottom = -1e9F;
    for (const InkPath& path : paths)
        for (const InkPoint& point : path) {
            left = std::min(left, point.x - point.radius);
            right = std::max(right, point.x + point.radius);
            top = std::min(top, point.y - point.radius);
            bottom = std::max(bottom, point.y + point.radius);
        }
    constexpr float kMargin = 1.0F;
    constexpr float kAvailable = kDigitSize - 2 * kMargin;
    const float scale = std::min({1.0F, kAvailable / (right - left), kAvailable / (bottom - top)});
    const float free_x = kAvailable - scale * (right - left), free_y = kAvailable - scale * (bottom - top);
    constexpr float kMaxShift = 1.5F;
    const auto offset = [&](float free) {
        return kMargin + std::clamp(free / 2 + random.uniform(-kMaxShift, kMaxShift), 0.0F, free);
    };
    const float x0 = offset(free_x), y0 = offset(free_y);
    for (InkPath& path : paths)
        for (InkPoint& point : path) {
            point.x = x0 + scale * (point.x - left);
            point.y = y0 + scale * (point.y - top);
        }
}

using Paper = std::array<float, std::size_t{kDigitSize} * kDigitSize>;

// Renders a line segment: each pixel takes the maximum ink of the segments that cover it, weighted by coverage.
void ink_segment(Paper& paper, const InkPoint& from, const InkPoint& to, float softness) {
    const float reach = std::max(from.radius, to.radius) + softness;
    const auto first = [&](float a, float b) { return std::max(0, static_cast<int>(std::min(a, b) - reach)); };
    const auto last = [&](float a, float b) {
        return std::min(kDigitSize - 1, static_cast<int>(std::max(a, b) + reach));
    };
    const float dx = to.x - from.x, dy = to.y - from.y, length_squared = dx * dx + dy * dy;
    for (int y = first(from.y, to.y); y <= last(from.y, to.y); ++y)
        for (int x = first(from.x, to.x); x <= last(from.x, to.x); ++x) {
            const float px = static_cast<float>(x) + 0.5F - from.x, py = static_cast<float>(y) + 0.5F - from.y;
            const float t = length_squared > 0 ? std::clamp((px * dx + py * dy) / length_squared, 0.0F, 1.0F) : 0.0F;
            const float ex = px - t * dx, ey = py - t * dy;
            const float distance = std::sqrt(ex * ex + ey * ey), radius = from.radius + t * (to.radius - from.radius);
            const float coverage = std::clamp((radius - distance) / softness + 0.5F, 0.0F, 1.0F);
            float& pixel = paper[static_cast<std::size_t>(y * kDigitSize + x)];
            pixel = std::max(pixel, coverage * (from.ink + t * (to.ink - from.ink)));
        }
}

Paper render(const std::vector<InkPath>& paths, Random& random) {
    Paper paper{};
    const float softness = random.uniform(0.9F, 1.6F);  // pixels from full ink to none at the edge of a line
    for (const InkPath& path : paths)
        for (std::size_t i = 0; i + 1 < path.size(); ++i) ink_segment(paper, path[i], path[i + 1], softness);
    return paper;
}

// Noise in the ink, and on some digits in the background.
void apply_noise(Paper& paper, Random& random) {
    const float grain = random.uniform(0, 0.2F);
    const float dirt = random.chance(0.35F) ? random.uniform(0.02F, 0.12F) : 0.0F;
    for (float& pixel : paper) {
        pixel *= 1 - grain * random.uniform();
        if (dirt > 0) pixel += dirt * std::abs(random.uniform(-1, 1) + random.uniform(-1, 1));
    }
}

}  // namespace

SyntheticDigit draw_digit(std::uint64_t seed, std::uint64_t index) {
    Random random(seed, 0, index, Purpose::draw);
    SyntheticDigit digit;
    digit.label = random.below(kLabels);
    const std::vector<DigitStyle>& styles = digit_styles()[static_cast<std::size_t>(digit.label)];
    const DigitStyle& style = styles[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(styles.size())))];

    const float jitter = random.uniform(0.01F, 0.03F);
    std::vector<InkPath> paths;
    for (const PenStroke& stroke : style) paths.push_back(trace(stroke, jitter, random));
    apply_affine(paths, random);
    apply_elastic(paths, random);
    apply_pen(paths, random);
    fit_to_image(paths, random);
    Paper paper = render(paths, random);
    apply_noise(paper, random);
    for (std::size_t i = 0; i < paper.size(); ++i)
        digit.pixels[i] = static_cast<std::uint8_t>(std::lround(255 * std::clamp(paper[i], 0.0F, 1.0F)));
    return digit;
}

namespace {

InMemoryDataset draw_all(std::int64_t count, std::uint64_t seed, std::uint64_t first) {
    if (count < 0) throw ValueError(fmt::format("SyntheticDigits: expected a count of at least 0, got {}", count));
    constexpr std::size_t kPixels = std::tuple_size_v<decltype(SyntheticDigit::pixels)>;
    std::vector<std::uint8_t> pixels(static_cast<std::size_t>(count) * kPixels);
    std::vector<std::int64_t> labels(static_cast<std::size_t>(count));
    // Each digit depends only on its index, so it does not matter which thread renders it.
    std::atomic<std::int64_t> next = 0;
    const auto draw_chunks = [&] {
        constexpr std::int64_t kChunkSize = 64;
        for (std::int64_t begin = next.fetch_add(kChunkSize); begin < count; begin = next.fetch_add(kChunkSize))
            for (std::int64_t i = begin; i < std::min(begin + kChunkSize, count); ++i) {
                const SyntheticDigit digit = draw_digit(seed, first + static_cast<std::uint64_t>(i));
                const auto index = static_cast<std::size_t>(i);
                labels[index] = digit.label;
                std::ranges::copy(digit.pixels, pixels.begin() + static_cast<std::ptrdiff_t>(index * kPixels));
            }
    };
    {
        std::vector<std::jthread> helpers;
        constexpr unsigned kMaxThreads = 16;
        for (unsigned i = 1; i < std::min(std::thread::hardware_concurrency(), kMaxThreads); ++i)
            helpers.emplace_back(draw_chunks);
        draw_chunks();
    }
    return {Shape{1, kDigitSize, kDigitSize}, std::move(pixels), std::move(labels), kLabels};
}

}  // namespace

SyntheticDigits::SyntheticDigits(std::int64_t count, std::uint64_t seed, std::uint64_t first)
    : InMemoryDataset(draw_all(count, seed, first)) {}

SyntheticDigits::~SyntheticDigits() = default;

}  // namespace declivity::data
