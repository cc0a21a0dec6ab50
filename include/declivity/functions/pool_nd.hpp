// Layer 5. Pooling over one to three axes. Shapes, types and errors: pool.hpp.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include <declivity/functions/pool.hpp>
#include <declivity/tensor/generator.hpp>
#include <declivity/tensor/tensor.hpp>

namespace declivity {

/// @addtogroup functions_pool
/// @{

/// Maximum of each window, and its index within the plane or volume of its channel, row-major, i64.
struct MaxPooled {
    Tensor values, indices;
};
inline std::vector<Tensor> tensors_of(const MaxPooled& both) { return {both.values, both.indices}; }

/// Maximum of each window of x (N, C, L) or (C, L), with windows along L; NaN counts as the largest, and ties go to the
/// first.
/// Examples: for x = `[[1, 5, 2, nan]]`, `max_pool1d(x)` is `[[5, nan]]`;
/// `max_pool1d(x, {.kernel_size = 2, .stride = 1})` is `[[5, 5, nan]]`.
DECLIVITY_API Tensor max_pool1d(const Tensor& x, const Pool1dParameters& options = {});
/// max_pool1d() of volumes: x (N, C, D, H, W) or (C, D, H, W), with windows along D, H and W.
/// Example: for x = `[[[[1, 2], [3, 4]], [[5, 6], [7, 8]]]]`, `max_pool3d(x)` is `[[[[8]]]]`.
DECLIVITY_API Tensor max_pool3d(const Tensor& x, const Pool3dParameters& options = {});
/// max_pool1d() of x (N, C, L) or (C, L), and the index of each maximum along L.
/// Example: for x = `[[1, 5, 2, 2]]`, `max_pool1d_with_indices(x).indices` is `[[1, 2]]`.
DECLIVITY_API MaxPooled max_pool1d_with_indices(const Tensor& x, const Pool1dParameters& options = {});
/// max_pool2d() of x (N, C, H, W) or (C, H, W), and the index h W + w of each maximum in its plane.
/// Examples: for x = `[[[1, 2], [3, 0]]]`, `max_pool2d_with_indices(x).values` is `[[[3]]]`;
/// `max_pool2d_with_indices(x).indices` is `[[[2]]]`.
DECLIVITY_API MaxPooled max_pool2d_with_indices(const Tensor& x, const Pool2dParameters& options = {});
/// max_pool3d() of x (N, C, D, H, W) or (C, D, H, W), and the index (d H + h) W + w of each maximum in its volume.
/// Example: for x = `[[[[1, 2], [3, 4]], [[5, 8], [7, 6]]]]`, `max_pool3d_with_indices(x).indices` is `[[[[5]]]]`.
DECLIVITY_API MaxPooled max_pool3d_with_indices(const Tensor& x, const Pool3dParameters& options = {});

/// Mean of each window of x (N, C, L) or (C, L), with windows along L; rounded towards 0 for integers.
/// Examples: for x = `[[1, 5, 2, 4]]`, `avg_pool1d(x)` is `[[3, 3]]`; `avg_pool1d(x, {.padding = 1})` is
/// `[[0.5, 3.5, 2]]`; `avg_pool1d(x, {.padding = 1, .count_include_pad = false})` is `[[1, 3.5, 4]]`.
/// @throws ValueError for a dilation other than 1
DECLIVITY_API Tensor avg_pool1d(const Tensor& x, const Pool1dParameters& options = {});
/// avg_pool1d() of volumes: x (N, C, D, H, W) or (C, D, H, W), with windows along D, H and W.
/// Example: for x = `[[[[1, 2], [3, 4]], [[5, 6], [7, 8]]]]`, `avg_pool3d(x)` is `[[[[4.5]]]]`.
DECLIVITY_API Tensor avg_pool3d(const Tensor& x, const Pool3dParameters& options = {});

/// (sum of x^p)^(1/p) of each window of x (N, C, L) or (C, L) for p = norm_type; a window that extends beyond the end
/// is scaled as if it were whole. Uses kernel size, stride and ceil_mode.
/// Examples: for x = `[[3, 4, 6, 8]]`, `lp_pool1d(x, 2)` is `[[5, 10]]`; `lp_pool1d(x, 1)` is `[[7, 14]]`.
/// @throws ValueError for a norm_type of 0, and for padding and dilation
DECLIVITY_API Tensor lp_pool1d(const Tensor& x, double norm_type, const Pool1dParameters& options = {});
/// lp_pool1d() of images: x (N, C, H, W) or (C, H, W), with windows along H and W.
/// Example: for x = `[[[1, 1], [1, 1]]]`, `lp_pool2d(x, 2)` is `[[[2]]]`.
DECLIVITY_API Tensor lp_pool2d(const Tensor& x, double norm_type, const Pool2dParameters& options = {});
/// lp_pool1d() of volumes: x (N, C, D, H, W) or (C, D, H, W), with windows along D, H and W.
/// Example: `lp_pool3d(ones({1, 2, 2, 2}), 1)` is `[[[[8]]]]`.
DECLIVITY_API Tensor lp_pool3d(const Tensor& x, double norm_type, const Pool3dParameters& options = {});

/// Adaptive average pooling of x (N, C, L) or (C, L): mean over windows of nearly equal size, chosen so that the result
/// has this size: window i of n over L elements is floor(i L / n) up to ceil((i + 1) L / n). -1 stands for the size of
/// x.
/// Example: for x = `[[1, 2, 3, 4, 5]]`, `adaptive_avg_pool1d(x, 2)` is `[[2, 4]]`.
/// @throws ValueError for an output size below 1 other than -1; ShapeError for an axis without elements
DECLIVITY_API Tensor adaptive_avg_pool1d(const Tensor& x, std::int64_t output_size);
/// Mean of each window of x (N, C, H, W) or (C, H, W): H and W become output_size, each as L in
/// adaptive_avg_pool1d(). Examples: for x = `[[[1, 2, 3], [4, 5, 6]]]`, `adaptive_avg_pool2d(x, 1)` is `[[[3.5]]]`;
/// `adaptive_avg_pool2d(x, {2, 1})` is `[[[2], [5]]]`.
DECLIVITY_API Tensor adaptive_avg_pool2d(const Tensor& x, Size2 output_size);
/// Mean of each window of x (N, C, D, H, W) or (C, D, H, W): D, H and W become output_size, each as L in
/// adaptive_avg_pool1d().
/// Example: for x = `[[[[1, 2], [3, 4]], [[5, 6], [7, 8]]]]`, `adaptive_avg_pool3d(x, {2, 1, 1})` is
/// `[[[[2.5]], [[6.5]]]]`.
DECLIVITY_API Tensor adaptive_avg_pool3d(const Tensor& x, Size3 output_size);
/// Maximum of each window of adaptive_avg_pool1d(), for floating x (N, C, L) or (C, L); NaN counts as the largest.
/// Example: for x = `[[1, 2, 3, 4, 5]]`, `adaptive_max_pool1d(x, 2)` is `[[3, 5]]`.
DECLIVITY_API Tensor adaptive_max_pool1d(const Tensor& x, std::int64_t output_size);
/// Maximum of each window of adaptive_avg_pool2d(), for floating x (N, C, H, W) or (C, H, W); NaN counts as the
/// largest. Example: for x = `[[[1, 2, 3], [4, 5, 6]]]`, `adaptive_max_pool2d(x, {2, 1})` is `[[[3], [6]]]`.
DECLIVITY_API Tensor adaptive_max_pool2d(const Tensor& x, Size2 output_size);
/// Maximum of each window of adaptive_avg_pool3d(), for floating x (N, C, D, H, W) or (C, D, H, W); NaN counts as
/// the largest. Example: for x = `[[[[1, 2], [3, 4]], [[5, 6], [7, 8]]]]`, `adaptive_max_pool3d(x, {2, 1, 1})` is
/// `[[[[4]], [[8]]]]`.
DECLIVITY_API Tensor adaptive_max_pool3d(const Tensor& x, Size3 output_size);
/// adaptive_max_pool1d() of x (N, C, L) or (C, L), and the index of each maximum along L.
/// Example: for x = `[[1, 2, 3, 4, 5]]`, `adaptive_max_pool1d_with_indices(x, 2).indices` is `[[2, 4]]`.
DECLIVITY_API MaxPooled adaptive_max_pool1d_with_indices(const Tensor& x, std::int64_t output_size);
/// adaptive_max_pool2d() of x (N, C, H, W) or (C, H, W), and the index h W + w of each maximum in its plane.
/// Example: for x = `[[[1, 2, 3], [4, 5, 6]]]`, `adaptive_max_pool2d_with_indices(x, {2, 1}).indices` is
/// `[[[2], [5]]]`.
DECLIVITY_API MaxPooled adaptive_max_pool2d_with_indices(const Tensor& x, Size2 output_size);
/// adaptive_max_pool3d() of x (N, C, D, H, W) or (C, D, H, W), and the index (d H + h) W + w of each maximum in its
/// volume.
/// Example: for x = `[[[[1, 2], [3, 4]], [[5, 6], [7, 8]]]]`, `adaptive_max_pool3d_with_indices(x, 1).indices` is
/// `[[[[7]]]]`.
DECLIVITY_API MaxPooled adaptive_max_pool3d_with_indices(const Tensor& x, Size3 output_size);

/// Inverse of max_pool..._with_indices(): places the maxima x (N, C, L) or (C, L) at their indices, of the same shape,
/// and 0 at all other positions. Of several maxima at one position the last one is kept. Uses kernel size, stride and
/// padding.
/// Example: for x = `[[5, 2]]` and i64 i = `[[1, 2]]`, `max_unpool1d(x, i)` is `[[0, 5, 2, 0]]`.
/// @param output_size spatial sizes of the result, if they are not (size - 1) stride - 2 padding + kernel size
/// @throws ShapeError for indices of another shape than x, and for an output size that differs from the default by the
/// stride or more; TypeError for indices that are not integers
DECLIVITY_API Tensor max_unpool1d(const Tensor& x, const Tensor& indices, const Pool1dParameters& options = {},
                                  const Dims& output_size = {});
/// max_unpool1d() of images: x and indices (N, C, H, W) or (C, H, W); an index is h W + w in a plane of the result.
/// Example: for x = `[[[5]]]` and i64 i = `[[[2]]]`, `max_unpool2d(x, i)` is `[[[0, 0], [5, 0]]]`.
DECLIVITY_API Tensor max_unpool2d(const Tensor& x, const Tensor& indices, const Pool2dParameters& options = {},
                                  const Dims& output_size = {});
/// max_unpool1d() of volumes: x and indices (N, C, D, H, W) or (C, D, H, W); an index is (d H + h) W + w in a
/// volume of the result. Example: for x = `[[[[5]]]]` and i64 i = `[[[[7]]]]`, `max_unpool3d(x, i)` is
/// `[[[[0, 0], [0, 0]], [[0, 0], [0, 5]]]]`.
DECLIVITY_API Tensor max_unpool3d(const Tensor& x, const Tensor& indices, const Pool3dParameters& options = {},
                                  const Dims& output_size = {});

/// Hyperparameters of fractional max pooling (Graham 2014): windows of one size at random positions, chosen so that the
/// result has the output size, or this ratio of the size of x.
template <int N>
struct FractionalPoolParameters {
    SpatialSize<N> kernel_size = 2;
    std::optional<SpatialSize<N>> output_size = std::nullopt;  ///< either this or the ratio
    std::optional<std::array<double, static_cast<std::size_t>(N)>> output_ratio = std::nullopt;  ///< in (0, 1)
};
using FractionalPool2dParameters = FractionalPoolParameters<2>;
using FractionalPool3dParameters = FractionalPoolParameters<3>;
/// Fractional max pooling of x (N, C, H, W) or (C, H, W): H and W become options.output_size, or options.output_ratio
/// times their sizes, rounded down. NaN counts as the largest. Floating types only.
/// Example: for x = `[[[[1, 2, 3], [4, 5, 6], [7, 8, 9]]]]`,
/// `fractional_max_pool2d(x, {.output_size = 2}, zeros({1, 1, 2}))` is `[[[[5, 6], [8, 9]]]]`.
/// @param samples (N, C, 2) in [0, 1), for width and height, with N of 1 if x is (C, H, W); undefined: random
/// @param generator of the samples, the device's default one if none
/// @throws ValueError unless there is either an output size or a ratio, in (0, 1); ShapeError for an output size below
/// 1, or above the size of x - kernel_size + 1, and for samples of another shape
DECLIVITY_API Tensor fractional_max_pool2d(const Tensor& x, const FractionalPool2dParameters& options,
                                           const Tensor& samples = {},
                                           const std::optional<Generator>& generator = std::nullopt);
/// fractional_max_pool2d() of volumes: x (N, C, D, H, W) or (C, D, H, W); samples are (N, C, 3), with N of 1 if x is
/// (C, D, H, W).
/// Example: `fractional_max_pool3d(ones({1, 1, 4, 4, 4}), {.output_size = 2}).shape()` is `[1, 1, 2, 2, 2]`.
DECLIVITY_API Tensor fractional_max_pool3d(const Tensor& x, const FractionalPool3dParameters& options,
                                           const Tensor& samples = {},
                                           const std::optional<Generator>& generator = std::nullopt);
/// fractional_max_pool2d(), and the index h W + w of each maximum in its plane.
/// Example: for x = `[[[[1, 2, 3], [4, 5, 6], [7, 8, 9]]]]`,
/// `fractional_max_pool2d_with_indices(x, {.output_size = 2}, zeros({1, 1, 2})).indices` is `[[[[4, 5], [7, 8]]]]`.
DECLIVITY_API MaxPooled fractional_max_pool2d_with_indices(const Tensor& x, const FractionalPool2dParameters& options,
                                                           const Tensor& samples = {},
                                                           const std::optional<Generator>& generator = std::nullopt);
/// fractional_max_pool3d(), and the index (d H + h) W + w of each maximum in its volume.
/// Example: `fractional_max_pool3d_with_indices(ones({1, 1, 4, 4, 4}), {.output_size = 3}).indices.shape()` is
/// `[1, 1, 3, 3, 3]`.
DECLIVITY_API MaxPooled fractional_max_pool3d_with_indices(const Tensor& x, const FractionalPool3dParameters& options,
                                                           const Tensor& samples = {},
                                                           const std::optional<Generator>& generator = std::nullopt);

/// @}

}  // namespace declivity
