// Layer 3. Pooling over one to three axes: sequences (N, C, L), images (N, C, H, W), volumes (N, C, D, H, W). One
// example without the axis N in front is taken as well.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include <declivity/tensor/functions/pool.hpp>
#include <declivity/tensor/generator.hpp>
#include <declivity/tensor/tensor.hpp>

namespace declivity {

/// The largest of each window, and where it stands within its channel's plane or volume, counted row by row, i64.
struct MaxPooled {
    Tensor values, indices;
};
inline std::vector<Tensor> tensors_of(const MaxPooled& both) { return {both.values, both.indices}; }

/// Largest of each window; NaN wins, and ties go to the first.
DECLIVITY_API Tensor max_pool1d(const Tensor& x, const Pool1dParameters& options = {});
DECLIVITY_API Tensor max_pool3d(const Tensor& x, const Pool3dParameters& options = {});
DECLIVITY_API MaxPooled max_pool1d_with_indices(const Tensor& x, const Pool1dParameters& options = {});
DECLIVITY_API MaxPooled max_pool2d_with_indices(const Tensor& x, const Pool2dParameters& options = {});
DECLIVITY_API MaxPooled max_pool3d_with_indices(const Tensor& x, const Pool3dParameters& options = {});

/// Mean of each window; rounded towards 0 of integers.
DECLIVITY_API Tensor avg_pool1d(const Tensor& x, const Pool1dParameters& options = {});
DECLIVITY_API Tensor avg_pool3d(const Tensor& x, const Pool3dParameters& options = {});

/// (sum of x^p)^(1/p) of each window, for a window that reaches over the end scaled as if it were whole. Takes kernel
/// size, stride and ceil_mode.
DECLIVITY_API Tensor lp_pool1d(const Tensor& x, double norm_type, const Pool1dParameters& options = {});
DECLIVITY_API Tensor lp_pool2d(const Tensor& x, double norm_type, const Pool2dParameters& options = {});
DECLIVITY_API Tensor lp_pool3d(const Tensor& x, double norm_type, const Pool3dParameters& options = {});

/// Windows of as equal sizes as there can be, so many that the result has this size: window i of n over L elements
/// holds those from floor(i L / n) to ceil((i + 1) L / n). -1 stands for the size of x.
DECLIVITY_API Tensor adaptive_avg_pool1d(const Tensor& x, std::int64_t output_size);
DECLIVITY_API Tensor adaptive_avg_pool2d(const Tensor& x, Size2 output_size);
DECLIVITY_API Tensor adaptive_avg_pool3d(const Tensor& x, Size3 output_size);
DECLIVITY_API Tensor adaptive_max_pool1d(const Tensor& x, std::int64_t output_size);
DECLIVITY_API Tensor adaptive_max_pool2d(const Tensor& x, Size2 output_size);
DECLIVITY_API Tensor adaptive_max_pool3d(const Tensor& x, Size3 output_size);
DECLIVITY_API MaxPooled adaptive_max_pool1d_with_indices(const Tensor& x, std::int64_t output_size);
DECLIVITY_API MaxPooled adaptive_max_pool2d_with_indices(const Tensor& x, Size2 output_size);
DECLIVITY_API MaxPooled adaptive_max_pool3d_with_indices(const Tensor& x, Size3 output_size);

/// The maxima back at their places, and 0 elsewhere: the reverse of max_pool..._with_indices. Of several at one place
/// the last one stays. Takes kernel size, stride and padding.
/// @param output_size the spatial sizes of the result, where they are not (size - 1) stride - 2 padding + kernel size
DECLIVITY_API Tensor max_unpool1d(const Tensor& x, const Tensor& indices, const Pool1dParameters& options = {},
                                  const Dims& output_size = {});
DECLIVITY_API Tensor max_unpool2d(const Tensor& x, const Tensor& indices, const Pool2dParameters& options = {},
                                  const Dims& output_size = {});
DECLIVITY_API Tensor max_unpool3d(const Tensor& x, const Tensor& indices, const Pool3dParameters& options = {},
                                  const Dims& output_size = {});

/// Windows of one size at places drawn at random (Graham 2014), so many that the result has the output size, or this
/// share of the size of x.
template <int N>
struct FractionalPoolParameters {
    SpatialSize<N> kernel_size = 2;
    std::optional<SpatialSize<N>> output_size = std::nullopt;                                    ///< this, or the ratio
    std::optional<std::array<double, static_cast<std::size_t>(N)>> output_ratio = std::nullopt;  ///< in (0, 1)
};
using FractionalPool2dParameters = FractionalPoolParameters<2>;
using FractionalPool3dParameters = FractionalPoolParameters<3>;
/// @param samples (N, C, 2) in [0, 1), for width and height; (N, C, 3) for depth, height and width; undefined: drawn
/// @param generator where they are drawn from, the device's own without one
DECLIVITY_API Tensor fractional_max_pool2d(const Tensor& x, const FractionalPool2dParameters& options,
                                           const Tensor& samples = {},
                                           const std::optional<Generator>& generator = std::nullopt);
DECLIVITY_API Tensor fractional_max_pool3d(const Tensor& x, const FractionalPool3dParameters& options,
                                           const Tensor& samples = {},
                                           const std::optional<Generator>& generator = std::nullopt);
DECLIVITY_API MaxPooled fractional_max_pool2d_with_indices(const Tensor& x, const FractionalPool2dParameters& options,
                                                           const Tensor& samples = {},
                                                           const std::optional<Generator>& generator = std::nullopt);
DECLIVITY_API MaxPooled fractional_max_pool3d_with_indices(const Tensor& x, const FractionalPool3dParameters& options,
                                                           const Tensor& samples = {},
                                                           const std::optional<Generator>& generator = std::nullopt);

}  // namespace declivity
