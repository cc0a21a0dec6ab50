// Floor 5. What is done to an image between the data set and the batch: normalising, cropping, flipping.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include <declivity/data/random.hpp>
#include <declivity/export.hpp>
#include <declivity/ops/shape.hpp>

namespace declivity::data {

/// An image on the host: channels x height x width floats, row-major.
struct Image {
    std::int64_t channels = 0;
    std::int64_t height = 0;
    std::int64_t width = 0;
    std::vector<float> pixels;

    [[nodiscard]] Shape shape() const { return {channels, height, width}; }
};

/// Changes an image in place. It keeps no state and takes every random number from the stream it is given, whose
/// numbers depend on (seed, epoch, index) alone; so it may run on several threads, in any order.
using Transform = std::function<void(Image& image, Random& random)>;

/// (x - mean[c]) / std[c] in each channel c.
/// @throws ShapeError unless there are as many deviations as means; ValueError unless all are finite and every
/// std is above 0. The transform throws ShapeError for an image with another number of channels.
DECLIVITY_API Transform normalize(std::vector<float> mean, std::vector<float> std);

/// A window of height x width at a random place of the image after `padding` zeros were added on every side.
/// Put it before `normalize`, so that the zeros mean black.
/// @throws ValueError unless height and width are at least 1 and padding at least 0. The transform throws ShapeError
/// when the window is larger than the padded image.
DECLIVITY_API Transform random_crop(std::int64_t height, std::int64_t width, std::int64_t padding = 0);

/// Mirrors the image left to right with the given probability.
/// @throws ValueError unless 0 <= probability <= 1
DECLIVITY_API Transform random_horizontal_flip(float probability = 0.5F);

/// One transform after the other, all from the same stream of random numbers.
/// @throws ValueError when one of them is empty
DECLIVITY_API Transform compose(std::vector<Transform> transforms);

}  // namespace declivity::data
