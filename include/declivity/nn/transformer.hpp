// Layer 6. Transformer layers (A. Vaswani et al., Attention is all you need, 2017), with PyTorch's names and defaults.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include <declivity/functions/functions.hpp>
#include <declivity/nn/attention.hpp>
#include <declivity/nn/callable.hpp>
#include <declivity/nn/dropout.hpp>
#include <declivity/nn/layer_norm.hpp>
#include <declivity/nn/linear.hpp>
#include <declivity/nn/module_list.hpp>

namespace declivity::nn {

/// @addtogroup nn_attention
/// @{

struct TransformerLayerOptions {
    std::int64_t dim_feedforward = 2048;
    double dropout = 0.1;
    /// Activation of the feed-forward block; must be stateless.
    std::function<Tensor(Tensor)> activation = [](Tensor x) { return relu(std::move(x)); };
    double layer_norm_eps = 1e-5;
    bool batch_first = false;  ///< (N, L, E) instead of (L, N, E)
    bool norm_first = false;   ///< pre-norm: normalises before each block instead of after it
    bool bias = true;
    DType dtype = DType::f32;                     ///< of the parameters
    std::optional<Device> device = std::nullopt;  ///< default_device() if none
};

/// Self-attention and feed-forward block, each with residual and normalisation: src (L, N, d_model) and masks.
class DECLIVITY_API TransformerEncoderLayer : public Callable<Tensor(Tensor, AttentionMasks)> {
  public:
    TransformerEncoderLayer(std::int64_t d_model, std::int64_t nhead, const TransformerLayerOptions& options = {});
    [[nodiscard]] std::string type_name() const override { return "TransformerEncoderLayer"; }
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(TransformerEncoderLayer); }

  protected:
    Tensor forward(Tensor src, AttentionMasks masks) override;

  private:
    MultiheadAttention& self_attn_;
    Linear& linear1_;
    Linear& linear2_;
    LayerNorm& norm1_;
    LayerNorm& norm2_;
    Dropout& dropout_;
    Dropout& dropout1_;
    Dropout& dropout2_;
    std::function<Tensor(Tensor)> activation_;
    bool norm_first_;
};

/// Encoder layer with cross-attention to `memory` (S, N, d_model): tgt (L, N, d_model).
class DECLIVITY_API TransformerDecoderLayer : public Callable<Tensor(Tensor, Tensor, AttentionMasks, AttentionMasks)> {
  public:
    TransformerDecoderLayer(std::int64_t d_model, std::int64_t nhead, const TransformerLayerOptions& options = {});
    /// Cross-attention weights (N, heads, L, S) of a call with the same arguments.
    [[nodiscard]] Tensor attention_to_memory(const Tensor& tgt, const Tensor& memory, const AttentionMasks& masks = {},
                                             const AttentionMasks& memory_masks = {});
    [[nodiscard]] std::string type_name() const override { return "TransformerDecoderLayer"; }
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(TransformerDecoderLayer); }

  protected:
    /// @param masks of self-attention among the positions of tgt
    /// @param memory_masks of cross-attention from tgt to memory
    Tensor forward(Tensor tgt, Tensor memory, AttentionMasks masks, AttentionMasks memory_masks) override;

  private:
    [[nodiscard]] Tensor self_attend(const Tensor& tgt, const AttentionMasks& masks);

    MultiheadAttention& self_attn_;
    MultiheadAttention& multihead_attn_;
    Linear& linear1_;
    Linear& linear2_;
    LayerNorm& norm1_;
    LayerNorm& norm2_;
    LayerNorm& norm3_;
    Dropout& dropout_;
    Dropout& dropout1_;
    Dropout& dropout2_;
    Dropout& dropout3_;
    std::function<Tensor(Tensor)> activation_;
    bool norm_first_;
};

/// num_layers encoder layers, "layers.0" ..., with independent initial values, and a final normalisation ("norm") if
/// final_norm is true.
class DECLIVITY_API TransformerEncoder : public Callable<Tensor(Tensor, AttentionMasks)> {
  public:
    TransformerEncoder(std::int64_t d_model, std::int64_t nhead, std::int64_t num_layers,
                       const TransformerLayerOptions& options = {}, bool final_norm = false);
    [[nodiscard]] std::string type_name() const override { return "TransformerEncoder"; }
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(TransformerEncoder); }

  protected:
    Tensor forward(Tensor src, AttentionMasks masks) override;

  private:
    ModuleList<TransformerEncoderLayer>& layers_;
    LayerNorm* norm_ = nullptr;
};

/// Stack of decoder layers, as TransformerEncoder.
class DECLIVITY_API TransformerDecoder : public Callable<Tensor(Tensor, Tensor, AttentionMasks, AttentionMasks)> {
  public:
    TransformerDecoder(std::int64_t d_model, std::int64_t nhead, std::int64_t num_layers,
                       const TransformerLayerOptions& options = {}, bool final_norm = false);
    /// TransformerDecoderLayer::attention_to_memory() of each layer.
    [[nodiscard]] std::vector<Tensor> attention_to_memory(Tensor tgt, const Tensor& memory,
                                                          const AttentionMasks& masks = {},
                                                          const AttentionMasks& memory_masks = {});
    [[nodiscard]] std::string type_name() const override { return "TransformerDecoder"; }
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(TransformerDecoder); }

  protected:
    Tensor forward(Tensor tgt, Tensor memory, AttentionMasks masks, AttentionMasks memory_masks) override;

  private:
    ModuleList<TransformerDecoderLayer>& layers_;
    LayerNorm* norm_ = nullptr;
};

/// @}

}  // namespace declivity::nn
