// Layer 6. Low-rank adapters (LoRA) of linear layers (E. Hu et al., LoRA, 2021): parameter-efficient fine-tuning of a
// frozen model.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <declivity/nn/linear.hpp>

namespace declivity::nn {

/// @addtogroup nn_linear
/// @{

struct LoraOptions {
    std::int64_t r = 8;       ///< rank
    double lora_alpha = 8;    ///< scales the adapter's result by lora_alpha / r
    double lora_dropout = 0;  ///< dropout of the adapter's input in training mode
    bool use_rslora = false;  ///< scales by lora_alpha / sqrt(r) instead
    /// Suffixes of the names of linear layers, such as "q_proj", or whole names; empty: all linear layers.
    std::vector<std::string> target_modules = {};
    DType dtype = DType::f32;  ///< of the adapters; f32 is allowed with f16 and bf16 weights
    /// Type to which add_lora() converts the frozen weights of all linear layers: f16 and bf16 halve their memory, and
    /// are multiplied in f32 with f32 inputs. Unchanged if none.
    std::optional<DType> base_dtype = std::nullopt;
};

/// scale B A x; f32 x is allowed with an f16 or bf16 weight. A (r, in_features) is initialised as the weight of a
/// Linear, B (out_features, r) to 0, so that the layer's result is initially unchanged.
class DECLIVITY_API Lora : public Layer {
  public:
    Lora(std::int64_t in_features, std::int64_t out_features, const LoraOptions& options, const Device& device);
    [[nodiscard]] const LoraOptions& options() const noexcept { return options_; }
    [[nodiscard]] bool merged() const noexcept { return merged_; }
    /// Takes over lora_alpha, use_rslora, lora_dropout and target_modules; A and B are unchanged.
    /// @throws ValueError for another r, options out of range, and a merged adapter
    void set_options(const LoraOptions& options);
    [[nodiscard]] Tensor a() const { return a_; }
    [[nodiscard]] Tensor b() const { return b_; }
    /// scale B A, (out_features, in_features)
    [[nodiscard]] Tensor delta() const;
    [[nodiscard]] std::int64_t multiply_adds(const std::vector<Tensor>& inputs,
                                             const std::vector<Tensor>& outputs) const override;
    [[nodiscard]] std::string type_name() const override { return "Lora"; }
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(Lora); }

  protected:
    Tensor forward(Tensor x) override;

  private:
    friend class Linear;
    LoraOptions options_;
    double scale_;
    Parameter a_, b_;
    bool merged_ = false;
};

/// Freezes all parameters of a model and adds adapters to its linear layers.
///
///     nn::add_lora(model, {.r = 8, .lora_alpha = 16, .target_modules = {"q_proj", "v_proj"}});
///     optim::AdamW optimizer(nn::lora_parameters(model), {.lr = 1e-3});
///
/// @return names of the layers with new adapters
/// @throws ValueError if one of target_modules matches no layer, or a layer has an adapter already; OutOfMemory. A call
/// that throws leaves the model unchanged
DECLIVITY_API std::vector<std::string> add_lora(Module& model, const LoraOptions& options = {});
struct AdaptedLinear;
/// The layers to which add_lora() would add adapters, with their names, in order. Changes nothing.
/// @throws ValueError as add_lora()
DECLIVITY_API std::vector<AdaptedLinear> lora_targets(const Module& model, const LoraOptions& options = {});
/// The trainable parameters of the adapters, in order.
DECLIVITY_API std::vector<Tensor> lora_parameters(const Module& model);
/// Linear::merge_lora() of all layers with adapters, one at a time, without a second copy of the model.
/// @throws OutOfMemory; the model is then partly merged and computes the same, and another call finishes the rest
DECLIVITY_API void merge_lora(Module& model);
/// Linear::unmerge_lora() of all layers with adapters; see merge_lora().
DECLIVITY_API void unmerge_lora(Module& model);

/// A linear layer with an adapter, and its name.
struct AdaptedLinear {
    std::string name;
    Linear* layer;
};
/// All layers with adapters, in registration order. See io/lora.hpp for adapter files.
DECLIVITY_API std::vector<AdaptedLinear> adapted_layers(const Module& model);

/// @}

}  // namespace declivity::nn
