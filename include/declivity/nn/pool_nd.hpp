// Layer 6. Further pooling layers, in addition to pool2d.hpp.
#pragma once

#include <declivity/nn/pool2d.hpp>

namespace declivity::nn {

/// @addtogroup nn_pool
/// @{

template <int N>
class DECLIVITY_API AdaptiveMaxPool : public Layer {
  public:
    explicit AdaptiveMaxPool(SpatialSize<N> output_size);
    [[nodiscard]] std::string type_name() const override;
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(AdaptiveMaxPool); }

  protected:
    Tensor forward(Tensor x) override;

  private:
    SpatialSize<N> output_size_;
};

/// MaxPool that also returns the indices of the maxima, for MaxUnpool: PyTorch's return_indices.
template <int N>
class DECLIVITY_API MaxPoolWithIndices : public Callable<MaxPooled(Tensor)> {
  public:
    explicit MaxPoolWithIndices(SpatialSize<N> kernel_size, const MaxPoolOptions<N>& options = {});
    [[nodiscard]] std::string type_name() const override;
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(MaxPoolWithIndices); }

  protected:
    MaxPooled forward(Tensor x) override;

  private:
    PoolParameters<N> pool_;
};

template <int N>
struct MaxUnpoolOptions {
    SpatialSize<N> stride = 0;   ///< 0: the kernel size
    SpatialSize<N> padding = 0;  ///< at most half the kernel size
    Dims output_size = {};       ///< spatial sizes of the result, unless they are the smallest possible
};

/// Inverse of MaxPoolWithIndices: unpool(pooled.values, pooled.indices), see declivity::max_unpool2d.
template <int N>
class DECLIVITY_API MaxUnpool : public Callable<Tensor(Tensor, Tensor)> {
  public:
    explicit MaxUnpool(SpatialSize<N> kernel_size, const MaxUnpoolOptions<N>& options = {});
    [[nodiscard]] std::string type_name() const override;
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(MaxUnpool); }

  protected:
    Tensor forward(Tensor x, Tensor indices) override;

  private:
    PoolParameters<N> pool_;
    Dims output_size_;
};

template <int N>
struct LPPoolOptions {
    SpatialSize<N> stride = 0;  ///< 0: the kernel size
    bool ceil_mode = false;     ///< the last window may extend beyond the input
};

/// The p-norm of each window, see declivity::lp_pool2d.
template <int N>
class DECLIVITY_API LPPool : public Layer {
  public:
    LPPool(double norm_type, SpatialSize<N> kernel_size, const LPPoolOptions<N>& options = {});
    [[nodiscard]] std::string type_name() const override;
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(LPPool); }

  protected:
    Tensor forward(Tensor x) override;

  private:
    double norm_type_;
    PoolParameters<N> pool_;
};

/// Max pooling of random windows, resampled in each call, see declivity::fractional_max_pool2d.
template <int N>
class DECLIVITY_API FractionalMaxPool : public Layer {
  public:
    explicit FractionalMaxPool(const FractionalPoolParameters<N>& options, std::optional<Generator> generator = {});
    [[nodiscard]] std::string type_name() const override;
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(FractionalMaxPool); }

  protected:
    Tensor forward(Tensor x) override;

  private:
    FractionalPoolParameters<N> options_;
    std::optional<Generator> generator_;
};

using AdaptiveMaxPool1d = AdaptiveMaxPool<1>;
using AdaptiveMaxPool2d = AdaptiveMaxPool<2>;
using AdaptiveMaxPool3d = AdaptiveMaxPool<3>;
using MaxPool1dWithIndices = MaxPoolWithIndices<1>;
using MaxPool2dWithIndices = MaxPoolWithIndices<2>;
using MaxPool3dWithIndices = MaxPoolWithIndices<3>;
using MaxUnpool1d = MaxUnpool<1>;
using MaxUnpool2d = MaxUnpool<2>;
using MaxUnpool3d = MaxUnpool<3>;
using MaxUnpool1dOptions = MaxUnpoolOptions<1>;
using MaxUnpool2dOptions = MaxUnpoolOptions<2>;
using MaxUnpool3dOptions = MaxUnpoolOptions<3>;
using LPPool1d = LPPool<1>;
using LPPool2d = LPPool<2>;
using LPPool3d = LPPool<3>;
using FractionalMaxPool2d = FractionalMaxPool<2>;
using FractionalMaxPool3d = FractionalMaxPool<3>;

/// @}

}  // namespace declivity::nn
