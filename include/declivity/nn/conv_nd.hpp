// Layer 6. 3D convolutions, 1D and 3D transposed convolutions, unfold and fold.
#pragma once

#include <declivity/functions/conv_nd.hpp>
#include <declivity/functions/padding.hpp>
#include <declivity/nn/callable.hpp>

namespace declivity::nn {

/// @addtogroup nn_conv
/// @{

struct Conv3dOptions {
    Size3 stride = 1;
    ConvPadding padding = 0;  ///< on all sides of x
    Size3 dilation = 1;
    std::int64_t groups = 1;
    bool bias = true;
    DType dtype = DType::f32;                     ///< of the parameters
    std::optional<Device> device = std::nullopt;  ///< default_device() if none
    PadMode padding_mode = PadMode::zeros;        ///< padding mode
};

/// x (N, in_channels, D, H, W) -> (N, out_channels, E, F, G), see declivity::conv3d. Weight (out_channels, in_channels
/// / groups, kernel_size) and bias (out_channels) are initialised as in Conv2d.
class DECLIVITY_API Conv3d : public Layer {
  public:
    Conv3d(std::int64_t in_channels, std::int64_t out_channels, Size3 kernel_size, const Conv3dOptions& options = {});
    [[nodiscard]] Tensor weight() const { return weight_; }
    [[nodiscard]] Tensor bias() const { return bias_; }
    [[nodiscard]] const Conv3dParameters& options() const { return conv_; }
    [[nodiscard]] PadMode padding_mode() const { return padding_mode_; }
    [[nodiscard]] std::int64_t multiply_adds(const std::vector<Tensor>& inputs,
                                             const std::vector<Tensor>& outputs) const override;
    [[nodiscard]] std::string type_name() const override { return "Conv3d"; }
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(Conv3d); }

  protected:
    Tensor forward(Tensor x) override;

  private:
    Conv3dParameters conv_;
    PadMode padding_mode_;
    Parameter weight_, bias_;
};

/// Options of ConvTranspose1d and ConvTranspose3d; ConvTranspose2dOptions has the same fields.
template <int N>
struct ConvTransposeOptions {
    SpatialSize<N> stride = 1;          ///< step in the output between neighbouring elements of x
    SpatialSize<N> padding = 0;         ///< elements cropped on both sides of the output
    SpatialSize<N> output_padding = 0;  ///< added at the end of each axis; below the stride or the dilation
    std::int64_t groups = 1;
    bool bias = true;
    SpatialSize<N> dilation = 1;
    DType dtype = DType::f32;                     ///< of the parameters
    std::optional<Device> device = std::nullopt;  ///< default_device() if none
};

/// See declivity::conv_transpose1d, conv_transpose3d. Weight (in_channels, out_channels / groups, kernel_size) and bias
/// (out_channels) are initialised as in ConvTranspose2d.
template <int N>
class DECLIVITY_API ConvTranspose : public Layer {
  public:
    ConvTranspose(std::int64_t in_channels, std::int64_t out_channels, SpatialSize<N> kernel_size,
                  const ConvTransposeOptions<N>& options = {});
    [[nodiscard]] Tensor weight() const { return weight_; }
    [[nodiscard]] Tensor bias() const { return bias_; }
    [[nodiscard]] const ConvTransposeOptions<N>& options() const { return options_; }
    [[nodiscard]] std::int64_t multiply_adds(const std::vector<Tensor>& inputs,
                                             const std::vector<Tensor>& outputs) const override;
    [[nodiscard]] std::string type_name() const override { return N == 1 ? "ConvTranspose1d" : "ConvTranspose3d"; }
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(ConvTranspose); }

  protected:
    Tensor forward(Tensor x) override;

  private:
    ConvTransposeOptions<N> options_;
    Parameter weight_, bias_;
};
using ConvTranspose1d = ConvTranspose<1>;
using ConvTranspose3d = ConvTranspose<3>;
using ConvTranspose1dOptions = ConvTransposeOptions<1>;
using ConvTranspose3dOptions = ConvTransposeOptions<3>;
extern template class DECLIVITY_API ConvTranspose<1>;
extern template class DECLIVITY_API ConvTranspose<3>;

/// See declivity::unfold.
class DECLIVITY_API Unfold : public Layer {
  public:
    explicit Unfold(const UnfoldParameters& windows) : windows_(windows) {}
    [[nodiscard]] std::string type_name() const override { return "Unfold"; }
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(Unfold); }

  protected:
    Tensor forward(Tensor x) override;

  private:
    UnfoldParameters windows_;
};

/// See declivity::fold.
class DECLIVITY_API Fold : public Layer {
  public:
    Fold(Size2 output_size, const UnfoldParameters& windows) : output_size_(output_size), windows_(windows) {}
    [[nodiscard]] std::string type_name() const override { return "Fold"; }
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(Fold); }

  protected:
    Tensor forward(Tensor x) override;

  private:
    Size2 output_size_;
    UnfoldParameters windows_;
};

/// @}

}  // namespace declivity::nn
