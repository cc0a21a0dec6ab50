// Layer 6. 1D, 2D and 3D pooling layers: MaxPool2d is MaxPool<2>. See also pool_nd.hpp.
#pragma once

#include <concepts>

#include <declivity/functions/pool_nd.hpp>
#include <declivity/nn/callable.hpp>

namespace declivity::nn {

/// @addtogroup nn_pool
/// @{

template <int N>
struct MaxPoolOptions {
    SpatialSize<N> stride = 0;    ///< 0: the kernel size
    SpatialSize<N> padding = 0;   ///< at most half the kernel size
    SpatialSize<N> dilation = 1;  ///< step between neighbouring elements of a window
    bool ceil_mode = false;       ///< the last window may extend beyond the padded input
};

/// Maximum of each window, see declivity::max_pool2d.
template <int N>
class DECLIVITY_API MaxPool : public Layer {
  public:
    explicit MaxPool(SpatialSize<N> kernel_size, const MaxPoolOptions<N>& options = {});
    MaxPool(SpatialSize<N> kernel_size, std::integral auto stride)
        : MaxPool(kernel_size, MaxPoolOptions<N>{.stride = stride}) {}
    [[nodiscard]] std::string type_name() const override;
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(MaxPool); }

  protected:
    Tensor forward(Tensor x) override;

  private:
    PoolParameters<N> pool_;
};

template <int N>
struct AvgPoolOptions {
    SpatialSize<N> stride = 0;          ///< 0: the kernel size
    SpatialSize<N> padding = 0;         ///< at most half the kernel size
    bool ceil_mode = false;             ///< the last window may extend beyond the padded input
    bool count_include_pad = true;      ///< padding counts as zeros in the average
    std::int64_t divisor_override = 0;  ///< divisor of the sums; 0: the number of elements that count
};

/// Mean of each window, see declivity::avg_pool2d.
template <int N>
class DECLIVITY_API AvgPool : public Layer {
  public:
    explicit AvgPool(SpatialSize<N> kernel_size, const AvgPoolOptions<N>& options = {});
    AvgPool(SpatialSize<N> kernel_size, std::integral auto stride)
        : AvgPool(kernel_size, AvgPoolOptions<N>{.stride = stride}) {}
    [[nodiscard]] std::string type_name() const override;
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(AvgPool); }

  protected:
    Tensor forward(Tensor x) override;

  private:
    PoolParameters<N> pool_;
};

/// Global average pooling (N, C, H, W) -> (N, C, 1, 1).
class DECLIVITY_API GlobalAvgPool2d : public Layer {
  public:
    [[nodiscard]] std::string type_name() const override { return "GlobalAvgPool2d"; }
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(GlobalAvgPool2d); }

  protected:
    Tensor forward(Tensor x) override;
};

/// Adaptive average or max pooling to a given output size, see declivity::adaptive_avg_pool2d.
template <int N>
class DECLIVITY_API AdaptiveAvgPool : public Layer {
  public:
    explicit AdaptiveAvgPool(SpatialSize<N> output_size);
    [[nodiscard]] std::string type_name() const override;
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(AdaptiveAvgPool); }

  protected:
    Tensor forward(Tensor x) override;

  private:
    SpatialSize<N> output_size_;
};

using MaxPool1d = MaxPool<1>;
using MaxPool2d = MaxPool<2>;
using MaxPool3d = MaxPool<3>;
using MaxPool1dOptions = MaxPoolOptions<1>;
using MaxPool2dOptions = MaxPoolOptions<2>;
using MaxPool3dOptions = MaxPoolOptions<3>;
using AvgPool1d = AvgPool<1>;
using AvgPool2d = AvgPool<2>;
using AvgPool3d = AvgPool<3>;
using AvgPool1dOptions = AvgPoolOptions<1>;
using AvgPool2dOptions = AvgPoolOptions<2>;
using AvgPool3dOptions = AvgPoolOptions<3>;
using AdaptiveAvgPool1d = AdaptiveAvgPool<1>;
using AdaptiveAvgPool2d = AdaptiveAvgPool<2>;
using AdaptiveAvgPool3d = AdaptiveAvgPool<3>;

/// @}

}  // namespace declivity::nn
