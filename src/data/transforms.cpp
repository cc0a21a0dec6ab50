#include <algorithm>
#include <cmath>
#include <utility>

#include <declivity/data/transforms.hpp>
#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

#include "element.hpp"
#include "field_names.hpp"

namespace declivity::data {
namespace {

std::size_t index_of(const Image& image, std::int64_t channel, std::int64_t row) {
    return static_cast<std::size_t>((channel * image.height + row) * image.width);
}

/// The only field of images. @throws ValueError if there is none, or several
std::size_t find_image_field(const Example& example) {
    std::size_t found = example.size();
    for (std::size_t i = 0; i < example.size(); ++i) {
        if (example[i].dtype != DType::f32 || example[i].shape.rank() != 3) continue;
        if (found < example.size())
            throw ValueError(
                fmt::format("Transform: expected one field of images (C, H, W), got '{}' and '{}': select one "
                            "by on_fields",
                            example.names()[found], example.names()[i]));
        found = i;
    }
    if (found == example.size())
        throw ValueError("Transform: expected a field of images (C, H, W) of f32, got an example without one");
    return found;
}

}  // namespace

void Transform::operator()(Image& image, Random& random) const {
    if (!image_function_)
        throw ValueError(example_function_ ? "Transform: expected an example, got an image"
                                           : "Transform: expected a function, got an empty one");
    image_function_(image, random);
}

void Transform::operator()(Example& example, Random& random) const {
    if (example_function_) return example_function_(example, random);
    if (!image_function_) throw ValueError("Transform: expected a function, got an empty one");
    io::HostArray& array = example[find_image_field(example)];
    Image image = to_image(array);
    image_function_(image, random);
    from_image(image, array);
}

Image to_image(const io::HostArray& array) {
    array.check("to_image");
    const int rank = array.shape.rank();
    if (rank != 2 && rank != 3)
        throw ShapeError(
            fmt::format("to_image: expected an array of shape (C, H, W) or (H, W), got shape {}", array.shape.str()));
    Image image{rank == 3 ? array.shape[0] : 1, array.shape[rank - 2], array.shape[rank - 1], {}};
    image.pixels.resize(static_cast<std::size_t>(array.shape.numel()));
    to_floats("to_image", array.dtype, array.bytes, image.pixels);
    return image;
}

void from_image(const Image& image, io::HostArray& array) {
    if (std::cmp_not_equal(image.pixels.size(), image.shape().numel()))
        throw ShapeError(fmt::format("from_image: expected an image with as many pixels as its shape {}, got {}",
                                     image.shape().str(), image.pixels.size()));
    const bool plane = array.shape.rank() == 2;
    if (plane && image.channels != 1)
        throw ShapeError(fmt::format("from_image: expected an image of one channel for an array (H, W), got {}",
                                     image.shape().str()));
    array.shape = plane ? Shape{image.height, image.width} : image.shape();
    array.bytes.resize(image.pixels.size() * size_of(array.dtype));
    from_floats("from_image", array.dtype, image.pixels, array.bytes);
}

Transform on_fields(std::vector<std::string> names, Transform transform) {
    if (names.empty()) throw ValueError("on_fields: expected the names of fields, got none");
    if (!transform.is_image_transform())
        throw ValueError("on_fields: expected a transform of an image, got a transform of an example");
    return [names = std::move(names), transform = std::move(transform)](Example& example, Random& random) {
        const Random initial_random = random;
        for (const std::string& name : names) {
            random = initial_random;
            io::HostArray& array = example[position_of("on_fields", example.names(), name)];
            try {
                Image image = to_image(array);
                transform(image, random);
                from_image(image, array);
            } catch (const ShapeError& error) {
                throw ShapeError(fmt::format("on_fields: field '{}': {}", name, error.what()));
            } catch (const TypeError& error) {
                throw TypeError(fmt::format("on_fields: field '{}': {}", name, error.what()));
            }
        }
    };
}

Transform normalize(std::vector<float> mean, std::vector<float> stddev) {
    if (mean.size() != stddev.size() || mean.empty())
        throw ShapeError(fmt::format("normalize: expected one mean and one std for each channel, got {} and {}",
                                     mean.size(), stddev.size()));
    for (std::size_t c = 0; c < mean.size(); ++c)
        if (!std::isfinite(mean[c]) || !std::isfinite(stddev[c]) || stddev[c] <= 0)
            throw ValueError(
                fmt::format("normalize: expected a finite mean and a std above 0, got {} and {}", mean[c], stddev[c]));
    return [mean = std::move(mean), stddev = std::move(stddev)](Image& image, Random&) {
        if (std::cmp_not_equal(image.channels, mean.size()))
            throw ShapeError(
                fmt::format("normalize: expected an image of {} channels, got {}", mean.size(), image.shape().str()));
        const auto plane = static_cast<std::size_t>(image.height * image.width);
        for (std::size_t c = 0; c < mean.size(); ++c)
            for (std::size_t i = c * plane; i < (c + 1) * plane; ++i)
                image.pixels[i] = (image.pixels[i] - mean[c]) / stddev[c];
    };
}

Transform random_crop(std::int64_t height, std::int64_t width, std::int64_t padding) {
    if (height < 1 || width < 1 || padding < 0)
        throw ValueError(
            fmt::format("random_crop: expected a size of at least 1 x 1 and a padding of at least 0, got {} x "
                        "{} and {}",
                        height, width, padding));
    return [=](Image& image, Random& random) {
        const std::int64_t spare_rows = image.height + 2 * padding - height;
        const std::int64_t spare_columns = image.width + 2 * padding - width;
        if (spare_rows < 0 || spare_columns < 0)
            throw ShapeError(
                fmt::format("random_crop: expected an image of at least {} x {} after padding with {}, got {}", height,
                            width, padding, image.shape().str()));
        // Start of the window in the unpadded image; negative within the padding.
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
        throw ValueError(fmt::format("random_horizontal_flip: expected a probability in [0, 1], got {}", probability));
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
        if (!transform) throw ValueError("compose: expected transforms, got an empty one");
    if (std::ranges::all_of(transforms, &Transform::is_image_transform))
        return [transforms = std::move(transforms)](Image& image, Random& random) {
            for (const Transform& transform : transforms) transform(image, random);
        };
    return [transforms = std::move(transforms)](Example& example, Random& random) {
        for (const Transform& transform : transforms) transform(example, random);
    };
}

}  // namespace declivity::data
