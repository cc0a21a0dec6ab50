// Layer 4. Low-rank adapters of linear layers (E. Hu et al., LoRA, 2021): fine-tuning of few numbers on a frozen base.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <declivity/nn/linear.hpp>

namespace declivity::nn {

struct LoraOptions {
    std::int64_t r = 8;       ///< rank
    double lora_alpha = 8;    ///< the adapter's result is multiplied by lora_alpha / r
    double lora_dropout = 0;  ///< of what the adapter gets, while training
    bool use_rslora = false;  ///< by lora_alpha / sqrt(r) instead
    /// Last parts of the names of linear layers, such as "q_proj", or whole names; empty: all linear layers.
    std::vector<std::string> target_modules = {};
    DType dtype = DType::f32;  ///< of the adapters; f32 also beside weights of f16 and bf16
    /// The type that add_lora() gives the frozen weights of all linear layers: f16 or bf16 take half of the memory, and
    /// are multiplied in f32 by what comes in f32. As they are if none.
    std::optional<DType> base_dtype = std::nullopt;
};

/// scale B A x, for x of f32 also beside a weight of f16 or bf16. A (r, in_features) starts as the weight of a Linear,
/// B (out_features, r) at 0, so that a layer begins as it was.
class DECLIVITY_API Lora : public Layer {
  public:
    Lora(std::int64_t in_features, std::int64_t out_features, const LoraOptions& options, const Device& device);
    [[nodiscard]] const LoraOptions& options() const noexcept { return options_; }
    [[nodiscard]] bool merged() const noexcept { return merged_; }
    /// Takes lora_alpha, use_rslora, lora_dropout and target_modules of other options; A and B stay as they are.
    /// @throws ValueError for another r, options out of range, and an adapter that is merged
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

/// Freezes all parameters of a model and gives its linear layers adapters.
///
///     nn::add_lora(model, {.r = 8, .lora_alpha = 16, .target_modules = {"q_proj", "v_proj"}});
///     optim::AdamW optimizer(nn::lora_parameters(model), {.lr = 1e-3});
///
/// @return names of the layers that got one
/// @throws ValueError where one of target_modules fits no layer, or a layer has an adapter already; OutOfMemory. A call
///         that throws leaves the model as it was
DECLIVITY_API std::vector<std::string> add_lora(Module& model, const LoraOptions& options = {});
/// The layers that add_lora() gives adapters, with their names, in order. Changes nothing.
/// @throws ValueError as add_lora()
struct AdaptedLinear;
DECLIVITY_API std::vector<AdaptedLinear> lora_targets(const Module& model, const LoraOptions& options = {});
/// What is trained then, in order.
DECLIVITY_API std::vector<Tensor> lora_parameters(const Module& model);
/// Linear::merge_lora() and unmerge_lora() of all layers that have adapters, one after the other: no second copy of the
/// model is made.
/// @throws OutOfMemory; the model computes the same then, some of its layers merged, and another call does the rest
DECLIVITY_API void merge_lora(Module& model);
DECLIVITY_API void unmerge_lora(Module& model);

/// A linear layer that has an adapter, and its name.
struct AdaptedLinear {
    std::string name;
    Linear* layer;
};
/// In order of registration. See io/lora.hpp for files of adapters alone.
DECLIVITY_API std::vector<AdaptedLinear> adapted_layers(const Module& model);

}  // namespace declivity::nn
