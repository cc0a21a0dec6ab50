// Layer 6. Bilinear layers.
#pragma once

#include <declivity/nn/callable.hpp>

namespace declivity::nn {

/// @addtogroup nn_linear
/// @{

struct BilinearOptions {
    bool bias = true;
    DType dtype = DType::f32;                     ///< of the parameters
    std::optional<Device> device = std::nullopt;  ///< default_device() if none
};

/// x1 (..., in1_features) and x2 (..., in2_features) -> (..., out_features), see declivity::bilinear. Weight
/// (out_features, in1_features, in2_features) and bias (out_features) are initialised uniformly in +-1 /
/// sqrt(in1_features).
class DECLIVITY_API Bilinear : public Callable<Tensor(Tensor, Tensor)> {
  public:
    Bilinear(std::int64_t in1_features, std::int64_t in2_features, std::int64_t out_features,
             const BilinearOptions& options = {});
    [[nodiscard]] Tensor weight() const { return weight_; }
    [[nodiscard]] Tensor bias() const { return bias_; }
    [[nodiscard]] std::int64_t multiply_adds(const std::vector<Tensor>& inputs,
                                             const std::vector<Tensor>& outputs) const override;
    [[nodiscard]] std::string type_name() const override { return "Bilinear"; }
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(Bilinear); }

  protected:
    Tensor forward(Tensor x1, Tensor x2) override;

  private:
    Parameter weight_, bias_;
};

/// @}

}  // namespace declivity::nn
