// Floor 4. Linear layers.
#pragma once

#include <declivity/nn/module.hpp>
#include <declivity/tensor/creation.hpp>

namespace declivity::nn {

struct LinearOptions {
    bool bias = true;
    TensorOptions tensor = {};  ///< type and device of the parameters
};

/// x (..., in) -> x W^T + b (..., out). Weight (out, in) and bias (out) start uniform in +-1 / sqrt(in).
class DECLIVITY_API Linear : public Module {
  public:
    Linear(std::int64_t in, std::int64_t out, const LinearOptions& options = {});
    [[nodiscard]] const Tensor& weight() const { return weight_; }
    [[nodiscard]] const Tensor& bias() const { return bias_; }
    [[nodiscard]] std::int64_t multiply_adds(const Shape& input, const Shape& output) const override;
    [[nodiscard]] std::string type_name() const override { return "Linear"; }
    [[nodiscard]] const std::type_info& replayable() const override { return typeid(Linear); }

  protected:
    Tensor forward(const Tensor& x) override;

  private:
    Tensor weight_, bias_;
};

}  // namespace declivity::nn
