// Layer 5. Resizing of images, and sampling of images at a grid of positions.
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

/// @defgroup functions_resize Resizing and sampling of images
/// @ingroup functions
/// Axes are (N, C, L), (N, C, H, W) or (N, C, D, H, W). Without aligned corners, pixel i covers [i, i + 1), with its
/// centre at i + 0.5; with aligned corners, the centres of the first and the last pixel of both sizes coincide.
///
/// Errors: ShapeError for another number of axes than a mode has, and for empty images; TypeError for types that a mode
/// does not support; ValueError for options that contradict each other, are out of range, or have unknown names.
/// @{

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

/// Options as for torch.nn.functional.interpolate.
struct InterpolateOptions {
    Dims size = {};                  ///< of the axes after N and C, or one number for all of them
    ScaleFactors scale_factor = {};  ///< instead of sizes: floor(scale size)
    /// "nearest", "nearest-exact", "area", "linear" (3 axes), "bilinear" and "bicubic" (4), "trilinear" (5)
    std::string mode = "nearest";
    bool align_corners = false;           ///< linear and cubic modes
    bool recompute_scale_factor = false;  ///< positions by the quotient of the sizes, not by the scale factors
    bool antialias = false;  ///< bilinear and bicubic: when downsampling, the filter is as wide as an output pixel
};
/// Resizes (N, C, ...). Integers: any type for "nearest" and "nearest-exact", only u8 (rounded) for other modes. A
/// pixel of weight 0 is ignored, even if it is NaN.
/// Examples: for x = `[[[1, 2]]]`, `interpolate(x, {.scale_factor = 2})` is `[[[1, 1, 2, 2]]]`;
/// `interpolate(x, {.size = 4, .mode = "linear"})` is `[[[1, 1.25, 1.75, 2]]]`;
/// `interpolate(x, {.size = 3, .mode = "linear", .align_corners = true})` is `[[[1, 1.5, 2]]]`.
DECLIVITY_API Tensor interpolate(const Tensor& x, const InterpolateOptions& options);

enum class ResizeMode : std::uint8_t { nearest, linear, cubic };
/// Position in x of the output position i of an axis: names and formulas of ONNX's Resize.
enum class ResizeCoordinates : std::uint8_t {
    half_pixel,            ///< (i + 0.5) / scale - 0.5
    half_pixel_symmetric,  ///< half_pixel, shifted to preserve the centre of x if scale * size is not an integer
    pytorch_half_pixel,    ///< half_pixel; 0 if the output has one position
    align_corners,         ///< i (size - 1) / (scale size - 1)
    asymmetric,            ///< i / scale
    tf_half_pixel_for_nn,  ///< (i + 0.5) / scale
    tf_crop_and_resize,    ///< from roi's start to its end, with corners aligned
};
/// Rounding of a position to the nearest pixel.
enum class ResizeNearest : std::uint8_t { round_prefer_floor, round_prefer_ceil, floor, ceil };

[[nodiscard]] DECLIVITY_API std::string_view name_of(ResizeMode mode);
[[nodiscard]] DECLIVITY_API std::string_view name_of(ResizeCoordinates coordinates);
[[nodiscard]] DECLIVITY_API std::string_view name_of(ResizeNearest nearest);

/// Options as for ONNX's operator Resize.
struct ResizeOptions {
    Dims sizes = {};                  ///< of each of the axes
    std::vector<double> scales = {};  ///< instead of sizes: floor(scale size)
    Dims axes = {};                   ///< axes of sizes, scales and roi; all if empty
    ResizeMode mode = ResizeMode::nearest;
    ResizeCoordinates coordinates = ResizeCoordinates::half_pixel;
    ResizeNearest nearest_mode = ResizeNearest::round_prefer_floor;
    double cubic_coeff_a = -0.75;  ///< of Keys' cubic filter (1981)
    /// True: pixels outside of x have weight 0, and the others are renormalised; false: they equal the nearest pixel
    /// inside.
    bool exclude_outside = false;
    bool antialias = false;          ///< linear, cubic: when downsampling, the filter is as wide as an output pixel
    std::vector<double> roi = {};    ///< tf_crop_and_resize: starts of all axes, then their ends; 1: the last pixel
    double extrapolation_value = 0;  ///< tf_crop_and_resize: value at positions outside of x
};
/// Resizes x of any number of axes, separably along each axis. Types as for interpolate().
/// Examples: for x = `[1, 2]`, `resize(x, {.sizes = 4, .mode = ResizeMode::linear})` is `[1, 1.25, 1.75, 2]`;
/// `resize(x, {.scales = {1.5}, .coordinates = ResizeCoordinates::asymmetric})` is `[1, 2, 2]`.
DECLIVITY_API Tensor resize(const Tensor& x, const ResizeOptions& options);

/// Options as for torch.nn.functional.grid_sample.
struct GridSampleOptions {
    std::string mode = "bilinear";       ///< "bilinear", "nearest", "bicubic"; along all three axes for volumes
    std::string padding_mode = "zeros";  ///< "zeros", "border", "reflection": pixels outside of x
    bool align_corners = false;
};
/// Samples x (N, C, H, W) at the positions of grid (N, P, Q, 2), x and y in [-1, 1]: (N, C, P, Q); or x (N, C, D, H,
/// W), grid (N, O, P, Q, 3) of x, y, z. Gradients flow to both. A NaN position gives 0.
/// Examples: for x = `[[[[1, 2], [3, 4]]]]` and grid = `[[[[0, 0], [-0.5, -0.5], [1, 1]]]]`, `grid_sample(x, grid)` is
/// `[[[[2.5, 1, 1]]]]`; `grid_sample(x, grid, {.align_corners = true})` is `[[[[2.5, 1.75, 4]]]]`.
DECLIVITY_API Tensor grid_sample(const Tensor& x, const Tensor& grid, const GridSampleOptions& options = {});
/// Grid (N, H, W, 2) of the positions of an image of `size` (N, C, H, W), transformed by theta (N, 2, 3); or (N, D, H,
/// W, 3) by theta (N, 3, 4) for (N, C, D, H, W).
/// Example: for theta = `[[[1, 0, 0], [0, 1, 0]]]`, `affine_grid(theta, {1, 1, 1, 2})` is `[[[[-0.5, 0], [0.5, 0]]]]`.
DECLIVITY_API Tensor affine_grid(const Tensor& theta, const Shape& size, bool align_corners = false);

/// @}

}  // namespace declivity
