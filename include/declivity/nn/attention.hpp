// Layer 4. Multi-head attention.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <declivity/nn/callable.hpp>
#include <declivity/nn/linear.hpp>

namespace declivity::nn {

/// Who may look at what. As in PyTorch's modules true, in a mask of bool, means *not* to look: the other way round than
/// in scaled_dot_product_attention().
struct AttentionMasks {
    Tensor attn_mask = {};         ///< (L, S) or (N heads, L, S), bool, or numbers that are added to the scores
    Tensor key_padding_mask = {};  ///< (N, S), bool, or numbers that are added
    bool is_causal = false;        ///< query i looks at keys up to i; attn_mask need not say so
};
inline std::vector<Tensor> tensors_of(const AttentionMasks& masks) { return {masks.attn_mask, masks.key_padding_mask}; }

struct MultiheadAttentionOptions {
    double dropout = 0;  ///< probability of dropping a weight while training
    bool bias = true;
    std::optional<std::int64_t> kdim = std::nullopt,
                                vdim = std::nullopt;  ///< width of key and value; embed_dim if none
    bool batch_first = false;                         ///< (N, L, E) instead of (L, N, E)
    DType dtype = DType::f32;                         ///< of the parameters
    std::optional<Device> device = std::nullopt;      ///< default_device() if none
};

/// Attention of several heads (A. Vaswani et al., Attention is all you need, 2017), as PyTorch's: query (L, N,
/// embed_dim), key (S, N, kdim), value (S, N, vdim) -> (L, N, embed_dim); the axis N may be missing. A key that is left
/// out is the query, a value the key. in_proj_weight (3 embed_dim, embed_dim), or q_proj_weight, k_proj_weight and
/// v_proj_weight where kdim or vdim is given, start uniform as by xavier_uniform_, biases at 0, out_proj.weight as in
/// Linear. There is no add_bias_kv and no add_zero_attn; weights() is what need_weights gives.
class DECLIVITY_API MultiheadAttention : public Callable<Tensor(Tensor, Tensor, Tensor, AttentionMasks)> {
  public:
    /// @throws ValueError unless num_heads divides embed_dim
    MultiheadAttention(std::int64_t embed_dim, std::int64_t num_heads, const MultiheadAttentionOptions& options = {});
    /// How much each query takes of each value, (N, heads, L, S), without dropout; (heads, L, S) without the axis N.
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

}  // namespace declivity::nn
