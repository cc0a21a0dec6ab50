// Layer 6. 1D convolutions.
#pragma once

#include <declivity/functions/conv.hpp>
#include <declivity/functions/padding.hpp>
#include <declivity/nn/callable.hpp>

namespace declivity::nn {

/// @addtogroup nn_conv
/// @{

struct Conv1dOptions {
    std::int64_t stride = 1;
    ConvPadding padding = 0;  ///< on both sides of x
    std::int64_t dilation = 1;
    std::int64_t groups = 1;
    bool bias = true;
    DType dtype = DType::f32;                     ///< of the parameters
    std::optional<Device> device = std::nullopt;  ///< default_device() if none
    PadMode padding_mode = PadMode::zeros;        ///< padding mode
};

/// x (N, in_channels, L) -> (N, out_channels, P), see declivity::conv1d. Weight (out_channels, in_channels / groups,
/// kernel_size) and bias (out_channels) are initialised as in Conv2d.
class DECLIVITY_API Conv1d : public Layer {
  public:
    Conv1d(std::int64_t in_channels, std::int64_t out_channels, std::int64_t kernel_size,
           const Conv1dOptions& options = {});
    [[nodiscard]] Tensor weight() const { return weight_; }
    [[nodiscard]] Tensor bias() const { return bias_; }
    [[nodiscard]] const Conv1dParameters& options() const { return conv_; }
    [[nodiscard]] PadMode padding_mode() const { return padding_mode_; }
    [[nodiscard]] std::int64_t multiply_adds(const std::vector<Tensor>& inputs,
                                             const std::vector<Tensor>& outputs) const override;
    [[nodiscard]] std::string type_name() const override { return "Conv1d"; }
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(Conv1d); }

  protected:
    Tensor forward(Tensor x) override;

  private:
    Conv1dParameters conv_;
    PadMode padding_mode_;
    Parameter weight_, bias_;
};

/// @}

}  // namespace declivity::nn
