// Layer 6. 2D transposed convolutions.
#pragma once

#include <declivity/functions/conv.hpp>
#include <declivity/nn/callable.hpp>

namespace declivity::nn {

/// @addtogroup nn_conv
/// @{

struct ConvTranspose2dOptions {
    Size2 stride = 1;          ///< step in the output between neighbouring elements of x
    Size2 padding = 0;         ///< rows and columns cropped on both sides of the output
    Size2 output_padding = 0;  ///< added at the end of each axis; below the stride
    std::int64_t groups = 1;
    bool bias = true;
    Size2 dilation = 1;
    DType dtype = DType::f32;                     ///< of the parameters
    std::optional<Device> device = std::nullopt;  ///< default_device() if none
};

/// x (N, in_channels, H, W) -> (N, out_channels, P, Q), see declivity::conv_transpose2d. Weight (in_channels,
/// out_channels / groups, kernel_size) and bias (out_channels) are initialised uniformly in +-1 / sqrt(out_channels /
/// groups * kernel area), as in PyTorch.
class DECLIVITY_API ConvTranspose2d : public Layer {
  public:
    ConvTranspose2d(std::int64_t in_channels, std::int64_t out_channels, Size2 kernel_size,
                    const ConvTranspose2dOptions& options = {});
    [[nodiscard]] Tensor weight() const { return weight_; }
    [[nodiscard]] Tensor bias() const { return bias_; }
    [[nodiscard]] const ConvTranspose2dParameters& options() const { return conv_; }
    [[nodiscard]] std::int64_t multiply_adds(const std::vector<Tensor>& inputs,
                                             const std::vector<Tensor>& outputs) const override;
    [[nodiscard]] std::string type_name() const override { return "ConvTranspose2d"; }
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(ConvTranspose2d); }

  protected:
    Tensor forward(Tensor x) override;

  private:
    ConvTranspose2dParameters conv_;
    Parameter weight_, bias_;
};

/// @}

}  // namespace declivity::nn
