// Floor 4. Linear layers.
#pragma once

#include <declivity/nn/callable.hpp>

namespace declivity::nn {

struct LinearOptions {
    bool bias = true;
    DType dtype = DType::f32;                     ///< of the parameters
    std::optional<Device> device = std::nullopt;  ///< default_device() if none
};

/// x (..., in_features) -> x W^T + b (..., out_features). Weight (out_features, in_features) and bias (out_features)
/// start uniform in +-1 / sqrt(in_features).
class DECLIVITY_API Linear : public Layer {
  public:
    Linear(std::int64_t in_features, std::int64_t out_features, const LinearOptions& options = {});
    [[nodiscard]] Tensor weight() const { return weight_; }
    [[nodiscard]] Tensor bias() const { return bias_; }
    [[nodiscard]] std::int64_t multiply_adds(const std::vector<Tensor>& inputs,
                                             const std::vector<Tensor>& outputs) const override;
    [[nodiscard]] std::string type_name() const override { return "Linear"; }
    [[nodiscard]] const std::type_info& replayable() const override { return typeid(Linear); }

  protected:
    Tensor forward(Tensor x) override;

  private:
    Parameter weight_, bias_;
};

}  // namespace declivity::nn
