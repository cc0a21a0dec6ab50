// Layer 6. Linear layers.
#pragma once

#include <declivity/nn/callable.hpp>

namespace declivity::nn {

/// @addtogroup nn_linear
/// @{

class Lora;
struct LoraOptions;

struct LinearOptions {
    bool bias = true;
    DType dtype = DType::f32;                     ///< of the parameters
    std::optional<Device> device = std::nullopt;  ///< default_device() if none
};

/// x (..., in_features) -> x W^T + b (..., out_features). Weight (out_features, in_features) and bias (out_features)
/// are initialised uniformly in +-1 / sqrt(in_features).
class DECLIVITY_API Linear : public Layer {
  public:
    Linear(std::int64_t in_features, std::int64_t out_features, const LinearOptions& options = {});
    [[nodiscard]] Tensor weight() const { return weight_; }
    [[nodiscard]] Tensor bias() const { return bias_; }
    /// Adds a low-rank adapter, whose result is added to that of the layer (lora.hpp), and freezes weight and bias.
    /// @throws ValueError if there is one already, or for invalid options
    Lora& add_lora(const LoraOptions& options);
    /// Adds an existing adapter, with A (r, in_features) and B (out_features, r).
    /// @throws ShapeError for another shape
    Lora& add_lora(Lora adapter);
    /// The adapter; null if there is none.
    [[nodiscard]] Lora* lora() const noexcept { return lora_; }
    /// Adds the adapter to the weight, so that it costs nothing in forward; or subtracts it again.
    /// @throws ValueError if there is no adapter. No effect if it is in the requested state already
    void merge_lora();
    void unmerge_lora();
    [[nodiscard]] std::int64_t multiply_adds(const std::vector<Tensor>& inputs,
                                             const std::vector<Tensor>& outputs) const override;
    [[nodiscard]] std::string type_name() const override { return "Linear"; }
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(Linear); }

  protected:
    Tensor forward(Tensor x) override;

  private:
    void add_to_weight(double factor);

    Parameter weight_, bias_;
    Lora* lora_ = nullptr;  // a child
};

/// @}

}  // namespace declivity::nn
