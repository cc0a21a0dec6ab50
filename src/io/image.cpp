#include <algorithm>
#include <cmath>
#include <utility>

#include <declivity/io/image.hpp>
#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

namespace declivity::io {
namespace {

constexpr int kMaxSide = 1 << 24;

std::size_t count_of(int width, int height, int channels) {
    return static_cast<std::size_t>(width) * static_cast<std::size_t>(height) * static_cast<std::size_t>(channels);
}

void check_sizes(const char* function, int width, int height, int channels) {
    if (width < 1 || height < 1 || width > kMaxSide || height > kMaxSide || (channels != 1 && channels != 3))
        throw ValueError(fmt::format("{}: expected sizes in [1, {}] and 1 or 3 channels, got {} x {} with {}", function,
                                     kMaxSide, width, height, channels));
}

}  // namespace

Image8 Image8::filled(int width, int height, int channels, std::uint8_t value) {
    check_sizes("Image8::filled", width, height, channels);
    return {width, height, channels, std::vector<std::uint8_t>(count_of(width, height, channels), value)};
}

Image8 Image8::from_planes(std::span<const float> values, const Shape& shape) {
    const bool valid_shape = shape.rank() == 3 && (shape[0] == 1 || shape[0] == 3) && shape[1] >= 1 && shape[2] >= 1 &&
                             shape[1] <= kMaxSide && shape[2] <= kMaxSide;
    if (!valid_shape || std::cmp_not_equal(values.size(), shape.numel()))
        throw ShapeError(
            fmt::format("Image8::from_planes: expected shape [1 or 3, height, width], got {} values of shape {}",
                        values.size(), shape.str()));
    Image8 image = filled(static_cast<int>(shape[2]), static_cast<int>(shape[1]), static_cast<int>(shape[0]), 0);
    const auto channels = static_cast<std::size_t>(image.channels);
    const std::size_t plane = values.size() / channels;
    for (std::size_t c = 0; c < channels; ++c)
        for (std::size_t i = 0; i < plane; ++i) {
            const float value = values[c * plane + i];
            // Written so that NaN fails the first comparison.
            const float clamped = value > 0 ? std::min(value, 1.0F) : 0.0F;
            image.pixels[i * channels + c] = static_cast<std::uint8_t>(std::lround(clamped * 255.0F));
        }
    return image;
}

std::vector<float> Image8::to_planes() const {
    check("Image8::to_planes");
    std::vector<float> values(pixels.size());
    const auto count = static_cast<std::size_t>(channels);
    const std::size_t plane = values.size() / count;
    for (std::size_t c = 0; c < count; ++c)
        for (std::size_t i = 0; i < plane; ++i)
            values[c * plane + i] = static_cast<float>(pixels[i * count + c]) / 255.0F;
    return values;
}

void Image8::check(const char* function) const {
    check_sizes(function, width, height, channels);
    if (pixels.size() != count_of(width, height, channels))
        throw ValueError(fmt::format("{}: expected {} pixel bytes for {} x {} with {} channels, got {}", function,
                                     count_of(width, height, channels), width, height, channels, pixels.size()));
}

}  // namespace declivity::io
