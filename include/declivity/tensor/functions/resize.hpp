// Layer 3. Images of another size, and images seen through a grid of places.
//
// Axes are (N, C, L), (N, C, H, W) or (N, C, D, H, W). Pixel i covers [i, i + 1) where corners are not aligned, so that
// its middle is at i + 0.5; aligned, the middles of the first and the last pixel of both sizes meet.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <declivity/tensor/tensor.hpp>

namespace declivity {

/// One factor for all axes, or one for each.
class ScaleFactors {
  public:
    ScaleFactors() = default;  ///< none
    template <class T>
    requires std::is_arithmetic_v<T> ScaleFactors(T all) : each_{static_cast<double>(all)} {}  // NOLINT: its purpose
    ScaleFactors(std::initializer_list<double> each) : each_(each) {}                          // NOLINT
    ScaleFactors(std::vector<double> each) : each_(std::move(each)) {}                         // NOLINT
    [[nodiscard]] bool empty() const noexcept { return each_.empty(); }
    [[nodiscard]] std::size_t size() const noexcept { return each_.size(); }
    [[nodiscard]] double operator[](std::size_t axis) const { return each_[axis]; }
    [[nodiscard]] const std::vector<double>& each() const noexcept { return each_; }

  private:
    std::vector<double> each_;
};

/// As torch.nn.functional.interpolate.
struct InterpolateOptions {
    Dims size = {};                  ///< of the axes behind N and C, or one for all of them
    ScaleFactors scale_factor = {};  ///< instead of sizes: floor(scale size)
    /// "nearest", "nearest-exact", "area", "linear" (3 axes), "bilinear" and "bicubic" (4), "trilinear" (5)
    std::string mode = "nearest";
    bool align_corners = false;           ///< linear and cubic modes
    bool recompute_scale_factor = false;  ///< places by the quotient of the sizes, not by the scale factors
    bool antialias = false;  ///< bilinear and bicubic: where it shrinks, the filter is as wide as an output pixel
};
/// (N, C, ...) of another size. Integers: by "nearest" and "nearest-exact" all, by others u8 alone, rounded. A pixel of
/// weight 0 counts for nothing, even where it is no number.
DECLIVITY_API Tensor interpolate(const Tensor& x, const InterpolateOptions& options);

enum class ResizeMode : std::uint8_t { nearest, linear, cubic };
/// Where the output place i of an axis lies in x: names and formulas are those of ONNX's Resize.
enum class ResizeCoordinates : std::uint8_t {
    half_pixel,            ///< (i + 0.5) / scale - 0.5
    half_pixel_symmetric,  ///< the same, moved so that the middle of x stays the middle where scale * size is not whole
    pytorch_half_pixel,    ///< the same as half_pixel; 0 where the output has one place
    align_corners,         ///< i (size - 1) / (scale size - 1)
    asymmetric,            ///< i / scale
    tf_half_pixel_for_nn,  ///< (i + 0.5) / scale
    tf_crop_and_resize,    ///< from roi's start to its end, with corners aligned
};
/// Which pixel is nearest.
enum class ResizeNearest : std::uint8_t { round_prefer_floor, round_prefer_ceil, floor, ceil };

[[nodiscard]] DECLIVITY_API std::string_view name_of(ResizeMode mode);
[[nodiscard]] DECLIVITY_API std::string_view name_of(ResizeCoordinates coordinates);
[[nodiscard]] DECLIVITY_API std::string_view name_of(ResizeNearest nearest);

/// As ONNX's operator Resize.
struct ResizeOptions {
    Dims sizes = {};                  ///< of each of the axes
    std::vector<double> scales = {};  ///< instead of sizes: floor(scale size)
    Dims axes = {};                   ///< that sizes, scales and roi are for; all if empty
    ResizeMode mode = ResizeMode::nearest;
    ResizeCoordinates coordinates = ResizeCoordinates::half_pixel;
    ResizeNearest nearest_mode = ResizeNearest::round_prefer_floor;
    double cubic_coeff_a = -0.75;  ///< of Keys' cubic filter (1981)
    /// Pixels outside of x have weight 0, and the others share it; otherwise they are as the next one within.
    bool exclude_outside = false;
    bool antialias = false;          ///< linear, cubic: where it shrinks, the filter is as wide as an output pixel
    std::vector<double> roi = {};    ///< tf_crop_and_resize: starts of all axes, then their ends; 1: the last pixel
    double extrapolation_value = 0;  ///< tf_crop_and_resize: of places outside of x
};
/// x of any axes in another size, along each axis by itself. Types as interpolate().
DECLIVITY_API Tensor resize(const Tensor& x, const ResizeOptions& options);

/// As torch.nn.functional.grid_sample.
struct GridSampleOptions {
    std::string mode = "bilinear";       ///< "bilinear", "nearest", "bicubic"; of 5 axes along all three
    std::string padding_mode = "zeros";  ///< "zeros", "border", "reflection": what is outside
    bool align_corners = false;
};
/// x (N, C, H, W) at the places of grid (N, P, Q, 2), x and y in [-1, 1]: (N, C, P, Q); or x (N, C, D, H, W), grid
/// (N, O, P, Q, 3) of x, y, z. Gradients flow to both. A place that is NaN gives 0.
DECLIVITY_API Tensor grid_sample(const Tensor& x, const Tensor& grid, const GridSampleOptions& options = {});
/// The grid (N, H, W, 2) that theta (N, 2, 3) makes of the places of an image of `size` (N, C, H, W); or (N, D, H, W,
/// 3) from theta (N, 3, 4) for (N, C, D, H, W).
DECLIVITY_API Tensor affine_grid(const Tensor& theta, const Shape& size, bool align_corners = false);

}  // namespace declivity
