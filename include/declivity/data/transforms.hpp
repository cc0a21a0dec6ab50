// Layer 5. What is done to an example between the data set and the batch: normalising, cropping, flipping.
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

/// An image on the host: channels x height x width floats, row-major.
struct Image {
    std::int64_t channels = 0;
    std::int64_t height = 0;
    std::int64_t width = 0;
    std::vector<float> pixels;

    [[nodiscard]] Shape shape() const { return {channels, height, width}; }
};

/// A function that changes in place an image, which is the one field of type f32 with axes (channels, height, width),
/// or a whole example, whose fields it takes by name or position:
///
///     data::Transform brighter = [](data::Image& image, data::Random& random) { ... };
///     data::Transform shorter = [](data::Example& example, data::Random& random) { cut(example["tokens"], random); };
///
/// It keeps no state and takes every random number from the stream it is given, whose numbers depend on (seed, epoch,
/// index) alone; so it may run on several threads, in any order.
class DECLIVITY_API Transform {
  public:
    using OfImage = std::function<void(Image& image, Random& random)>;
    using OfExample = std::function<void(Example& example, Random& random)>;

    Transform() = default;
    template <class Function>
    requires(std::is_invocable_v<Function&, Image&, Random&> != std::is_invocable_v<Function&, Example&, Random&>)
        Transform(Function function) {  // NOLINT: a function is one
        if constexpr (std::is_invocable_v<Function&, Image&, Random&>) of_image_ = std::move(function);
        else of_example_ = std::move(function);
    }

    [[nodiscard]] explicit operator bool() const noexcept { return of_image_ || of_example_; }
    /// Whether it is a function of an image.
    [[nodiscard]] bool of_image() const noexcept { return static_cast<bool>(of_image_); }
    /// @throws ValueError when it is one of whole examples, or empty
    void operator()(Image& image, Random& random) const;
    /// One of an image changes the example's one field of that kind.
    /// @throws ValueError when there is no such field, or several; when it is empty
    void operator()(Example& example, Random& random) const;

  private:
    OfImage of_image_;
    OfExample of_example_;
};

/// An array (C, H, W) or (H, W) of f32, f64 or integers as an image, and an image as an array of such a type and number
/// of axes: integers are rounded to the nearest that the type has.
/// @throws ShapeError for other axes; TypeError for f16 and bf16
DECLIVITY_API Image to_image(const io::HostArray& array);
DECLIVITY_API void from_image(const Image& image, io::HostArray& array);

/// Does the same to several fields of an example, each by the same random numbers: an image and its mask are cropped
/// and mirrored alike. Fields are (C, H, W) or (H, W), of any type but f16 and bf16.
///
///     data::on_fields({"image", "mask"}, data::random_horizontal_flip())
///
/// @throws ValueError for no names, or a transform that is empty or of whole examples. The transform throws ValueError
/// for a name that is no field; ShapeError and TypeError naming the field
DECLIVITY_API Transform on_fields(std::vector<std::string> names, Transform transform);

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

/// One transform after the other, all from the same stream of random numbers. It is one of an image where all of them
/// are.
/// @throws ValueError when one of them is empty
DECLIVITY_API Transform compose(std::vector<Transform> transforms);

}  // namespace declivity::data
