// Layer 6. Multi-head attention.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <declivity/nn/callable.hpp>
#include <declivity/nn/linear.hpp>

namespace declivity::nn {

/// @addtogroup nn_attention
/// @{

/// Attention masks. As in PyTorch's modules, true in a bool mask *excludes* a position: the inverse of
/// scaled_dot_product_attention().
struct AttentionMasks {
    Tensor attn_mask = {};         ///< (L, S) or (N heads, L, S), bool, or numbers that are added to the scores
    Tensor key_padding_mask = {};  ///< (N, S), bool, or numbers that are added to the scores
    bool is_causal = false;        ///< causal mask: query i attends to keys up to i; attn_mask is not needed for it
};
inline std::vector<Tensor> tensors_of(const AttentionMasks& masks) { return {masks.attn_mask, masks.key_padding_mask}; }

struct MultiheadAttentionOptions {
    double dropout = 0;  ///< dropout probability of attention weights in training mode
    bool bias = true;
    std::optional<std::int64_t> kdim = std::nullopt,
                                vdim = std::nullopt;  ///< widths of key and value; embed_dim if none
    bool batch_first = false;                         ///< (N, L, E) instead of (L, N, E)
    DType dtype = DType::f32;                         ///< of the parameters
    std::optional<Device> device = std::nullopt;      ///< default_device() if none
};

/// Multi-head attention (A. Vaswani et al., Attention is all you need, 2017), as in PyTorch: query (L, N, embed_dim),
/// key (S, N, kdim), value (S, N, vdim) -> (L, N, embed_dim); the axis N is optional. The key defaults to the query,
/// the value to the key. in_proj_weight (3 embed_dim, embed_dim), or q_proj_weight, k_proj_weight and v_proj_weight if
/// kdim or vdim is given, are initialised by xavier_uniform_, biases to 0, out_proj.weight as in Linear. add_bias_kv
/// and add_zero_attn are not supported; weights() replaces need_weights.
class DECLIVITY_API MultiheadAttention : public Callable<Tensor(Tensor, Tensor, Tensor, AttentionMasks)> {
  public:
    /// @throws ValueError unless num_heads divides embed_dim
    MultiheadAttention(std::int64_t embed_dim, std::int64_t num_heads, const MultiheadAttentionOptions& options = {});
    /// Attention weights (N, heads, L, S), without dropout; (heads, L, S) without the axis N.
    [[nodiscard]] Tensor weights(const Tensor& query, const Tensor& key = {}, const AttentionMasks& masks = {}) const;
    [[nodiscard]] std::int64_t multiply_adds(const std::vector<Tensor>& inputs,
                                             const std::vector<Tensor>& outputs) const override;
    [[nodiscard]] std::string type_name() const override { return "MultiheadAttention"; }
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(MultiheadAttention); }

  protected:
    Tensor forward(Tensor query, Tensor key, Tensor value, AttentionMasks masks) override;

  private:
    struct Heads {
        Tensor query, key, value;  // (N, heads, L, E / heads)
    };
    [[nodiscard]] Heads heads_of(const Tensor& query, const Tensor& key, const Tensor& value, bool with_values) const;
    [[nodiscard]] Tensor mask_of(const AttentionMasks& masks, const Tensor& query, std::int64_t keys) const;

    std::int64_t embed_dim_, num_heads_;
    double dropout_;
    bool batch_first_;
    Parameter in_proj_weight_, q_proj_weight_, k_proj_weight_, v_proj_weight_, in_proj_bias_;
    Linear& out_proj_;
};

/// @}

}  // namespace declivity::nn
