#include <algorithm>
#include <cmath>
#include <utility>

#include <declivity/data/transforms.hpp>
#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

namespace declivity::data {
namespace {

std::size_t index_of(const Image& image, std::int64_t channel, std::int64_t row) {
    return static_cast<std::size_t>((channel * image.height + row) * image.width);
}

}  // namespace

Transform normalize(std::vector<float> mean, std::vector<float> std) {
    if (mean.size() != std.size() || mean.empty())
        throw ShapeError(fmt::format("normalize: wants one mean and one std for each channel, got {} and {}",
                                     mean.size(), std.size()));
    for (std::size_t c = 0; c < mean.size(); ++c)
        if (!std::isfinite(mean[c]) || !std::isfinite(std[c]) || std[c] <= 0)
            throw ValueError(
                fmt::format("normalize: wants a finite mean and a std above 0, got {} and {}", mean[c], std[c]));
    return [mean = std::move(mean), std = std::move(std)](Image& image, Random&) {
        if (std::cmp_not_equal(image.channels, mean.size()))
            throw ShapeError(
                fmt::format("normalize: wants an image of {} channels, got {}", mean.size(), image.shape().str()));
        const auto plane = static_cast<std::size_t>(image.height * image.width);
        for (std::size_t c = 0; c < mean.size(); ++c)
            for (std::size_t i = c * plane; i < (c + 1) * plane; ++i)
                image.pixels[i] = (image.pixels[i] - mean[c]) / std[c];
    };
}

Transform random_crop(std::int64_t height, std::int64_t width, std::int64_t padding) {
    if (height < 1 || width < 1 || padding < 0)
        throw ValueError(
            fmt::format("random_crop: wants a size of at least 1 x 1 and a padding of at least 0, got {} x "
                        "{} and {}",
                        height, width, padding));
    return [=](Image& image, Random& random) {
        const std::int64_t spare_rows = image.height + 2 * padding - height;
        const std::int64_t spare_columns = image.width + 2 * padding - width;
        if (spare_rows < 0 || spare_columns < 0)
            throw ShapeError(
                fmt::format("random_crop: wants an image of at least {} x {} after padding with {}, got {}", height,
                            width, padding, image.shape().str()));
        // Where the window begins in the unpadded image; negative within the padding.
        const std::int64_t top = random.below(spare_rows + 1) - padding;
        const std::int64_t left = random.below(spare_columns + 1) - padding;

        Image window{image.channels, height, width, {}};
        window.pixels.resize(static_cast<std::size_t>(image.channels * height * width), 0.0F);
        const std::int64_t first = std::max<std::int64_t>(0, -left);
        const std::int64_t last = std::min(width, image.width - left);
        for (std::int64_t c = 0; c < image.channels; ++c)
            for (std::int64_t y = std::max<std::int64_t>(0, -top); y < std::min(height, image.height - top); ++y)
                if (first < last)
                    std::copy_n(
                        image.pixels.data() + index_of(image, c, top + y) + static_cast<std::size_t>(left + first),
                        last - first, window.pixels.data() + index_of(window, c, y) + first);
        image = std::move(window);
    };
}

Transform random_horizontal_flip(float probability) {
    if (!(probability >= 0 && probability <= 1))
        throw ValueError(fmt::format("random_horizontal_flip: wants a probability in [0, 1], got {}", probability));
    return [probability](Image& image, Random& random) {
        if (!random.chance(probability)) return;
        for (std::int64_t c = 0; c < image.channels; ++c)
            for (std::int64_t y = 0; y < image.height; ++y) {
                float* row = image.pixels.data() + index_of(image, c, y);
                std::reverse(row, row + image.width);
            }
    };
}

Transform compose(std::vector<Transform> transforms) {
    for (const Transform& transform : transforms)
        if (!transform) throw ValueError("compose: wants transforms, got an empty one");
    return [transforms = std::move(transforms)](Image& image, Random& random) {
        for (const Transform& transform : transforms) transform(image, random);
    };
}

}  // namespace declivity::data
