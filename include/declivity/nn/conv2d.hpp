// Floor 4. Convolution layers.
#pragma once

#include <declivity/nn/module.hpp>
#include <declivity/tensor/creation.hpp>
#include <declivity/tensor/functions.hpp>

namespace declivity::nn {

struct Conv2dOptions {
    Size2 stride = 1;
    Size2 padding = 0;  ///< zeros on both sides
    Size2 dilation = 1;
    std::int64_t groups = 1;
    bool bias = true;
    TensorOptions tensor = {};  ///< type and device of the parameters
};

/// x (N, in, H, W) -> (N, out, P, Q), see declivity::conv2d. Weight (out, in / groups, window) and bias (out) start
/// uniform in +-1 / sqrt(in / groups * window area).
class DECLIVITY_API Conv2d : public Module {
  public:
    Conv2d(std::int64_t in, std::int64_t out, Size2 window, const Conv2dOptions& options = {});
    [[nodiscard]] const Tensor& weight() const { return weight_; }
    [[nodiscard]] const Tensor& bias() const { return bias_; }
    [[nodiscard]] std::int64_t multiply_adds(const Shape& input, const Shape& output) const override;
    [[nodiscard]] std::string type_name() const override { return "Conv2d"; }
    [[nodiscard]] const std::type_info& replayable() const override { return typeid(Conv2d); }

  protected:
    Tensor forward(const Tensor& x) override;

  private:
    declivity::Conv2dOptions options_;
    Tensor weight_, bias_;
};

}  // namespace declivity::nn
