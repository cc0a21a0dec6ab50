// Floor 3. Attention.
#pragma once

#include <cstdint>
#include <optional>

#include <declivity/tensor/generator.hpp>
#include <declivity/tensor/tensor.hpp>

namespace declivity {

struct AttentionParameters {
    /// Broadcast to (..., Lq, Lk): of bool, where true takes part; or of query's type, added to the scores.
    Tensor attn_mask = {};
    double dropout_p = 0;                               ///< probability in [0, 1] of dropping a weight, always
    bool is_causal = false;                             ///< query i sees keys up to i + query_offset
    std::optional<double> scale = std::nullopt;         ///< of the scores; 1 / sqrt(D) if none
    bool enable_gqa = false;                            ///< fewer heads of key and value than of query
    std::optional<std::int64_t> window = std::nullopt;  ///< query i sees keys less than so many away, at least 1
    std::int64_t query_offset = 0;                      ///< position among the keys at which query 0 stands
    Tensor alibi_slopes = {};                           ///< (heads): slope |distance| is taken off each score
    std::optional<Generator> generator = std::nullopt;  ///< of what is dropped; the device's own if none
};

/// softmax(scale query key^T + mask) value: query (..., Lq, D), key (..., Lk, D), value (..., Lk, E) -> (..., Lq, E),
/// axes in front broadcast; with enable_gqa axis -3 of key and value (heads) divides that of query (J. Ainslie et al.,
/// GQA, 2023). f32, f64, f16, bf16, halves computed in f32. Scores are not stored, so that memory grows with Lq + Lk
/// (T. Dao, FlashAttention-2, 2023). A query that sees no key gives 0. As PyTorch's function of this name, which has no
/// window, query_offset, alibi_slopes (O. Press et al., ALiBi, 2022) and refuses a mask beside is_causal. Where the
/// mask or the slopes require a gradient, and of f64 on GPU-like devices, scores are stored.
/// @throws ShapeError, TypeError, ValueError, DeviceError naming the argument
DECLIVITY_API Tensor scaled_dot_product_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                                  const AttentionParameters& options = {});

}  // namespace declivity
