// Layer 7. Transforms of examples (data augmentation): normalising, cropping, flipping.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <declivity/data/example.hpp>
#include <declivity/data/random.hpp>
#include <declivity/export.hpp>
#include <declivity/ops/shape.hpp>

namespace declivity::data {

/// @addtogroup data
/// @{

/// Host image: channels x height x width floats, row-major.
struct Image {
    std::int64_t channels = 0;
    std::int64_t height = 0;
    std::int64_t width = 0;
    std::vector<float> pixels;

    [[nodiscard]] Shape shape() const { return {channels, height, width}; }
};

/// A function that modifies in place either an image, which is the only field of type f32 with axes (channels, height,
/// width), or a whole example, whose fields it accesses by name or position:
///
///     data::Transform brighter = [](data::Image& image, data::Random& random) { ... };
///     data::Transform shorter = [](data::Example& example, data::Random& random) { cut(example["tokens"], random); };
///
/// It must be stateless and take every random number from the given stream, which depends on (seed, epoch, index) only;
/// transforms run on several threads, in any order.
class DECLIVITY_API Transform {
  public:
    using ImageFunction = std::function<void(Image& image, Random& random)>;
    using ExampleFunction = std::function<void(Example& example, Random& random)>;
    using OfImage [[deprecated("Transform::ImageFunction")]] = ImageFunction;
    using OfExample [[deprecated("Transform::ExampleFunction")]] = ExampleFunction;

    Transform() = default;
    template <class Function>
    requires(std::is_invocable_v<Function&, Image&, Random&> != std::is_invocable_v<Function&, Example&, Random&>)
        Transform(Function function) {  // NOLINT: a function is one
        if constexpr (std::is_invocable_v<Function&, Image&, Random&>) image_function_ = std::move(function);
        else example_function_ = std::move(function);
    }

    [[nodiscard]] explicit operator bool() const noexcept { return image_function_ || example_function_; }
    /// True for an image transform.
    [[nodiscard]] bool is_image_transform() const noexcept { return static_cast<bool>(image_function_); }
    [[deprecated("Transform::is_image_transform")]] [[nodiscard]] bool of_image() const noexcept {
        return is_image_transform();
    }
    /// @throws ValueError if it is an example transform, or empty
    void operator()(Image& image, Random& random) const;
    /// An image transform is applied to the only image field of the example.
    /// @throws ValueError unless there is exactly one such field; if the transform is empty
    void operator()(Example& example, Random& random) const;

  private:
    ImageFunction image_function_;
    ExampleFunction example_function_;
};

/// Converts an array (C, H, W) or (H, W) of f32, f64 or integers to an image.
/// @throws ShapeError for other axes; TypeError for f16 and bf16
DECLIVITY_API Image to_image(const io::HostArray& array);
/// Converts an image to an array of the type and number of axes of `array`, f32, f64 or integers, (C, H, W) or (H, W),
/// which takes the shape of the image; integers are rounded to the nearest representable value.
/// @throws ShapeError for an image of several channels and an array (H, W); TypeError for f16 and bf16
DECLIVITY_API void from_image(const Image& image, io::HostArray& array);

/// Applies a transform to several fields of an example with the same random numbers, so that an image and its mask are
/// cropped and flipped identically. Fields are (C, H, W) or (H, W), of any type except f16 and bf16.
///
///     data::on_fields({"image", "mask"}, data::random_horizontal_flip())
///
/// @throws ValueError for no names, or a transform that is empty or an example transform. The transform throws
/// ValueError for a name that is not a field; ShapeError and TypeError naming the field
DECLIVITY_API Transform on_fields(std::vector<std::string> names, Transform transform);

/// (x - mean[c]) / std[c] in each channel c.
/// @throws ShapeError unless mean and std have the same size; ValueError unless all are finite and every std is above
/// 0. The transform throws ShapeError for an image with another number of channels.
DECLIVITY_API Transform normalize(std::vector<float> mean, std::vector<float> std);

/// Random crop of height x width after zero padding by `padding` on every side. Apply it before `normalize`, so that
/// the zeros mean black.
/// @throws ValueError unless height and width are at least 1 and padding at least 0. The transform throws ShapeError if
/// the crop is larger than the padded image.
DECLIVITY_API Transform random_crop(std::int64_t height, std::int64_t width, std::int64_t padding = 0);

/// Flips the image horizontally with the given probability.
/// @throws ValueError unless 0 <= probability <= 1
DECLIVITY_API Transform random_horizontal_flip(float probability = 0.5F);

/// Applies transforms in sequence, with the same random stream. The result is an image transform if all of them are.
/// @throws ValueError if one of them is empty
DECLIVITY_API Transform compose(std::vector<Transform> transforms);

/// @}

}  // namespace declivity::data
