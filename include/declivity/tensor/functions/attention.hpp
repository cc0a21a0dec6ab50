// Layer 3. Attention.
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

struct CachedAttentionParameters {
    bool is_causal = true;                              ///< query i of L sees keys up to lengths - L + i
    std::optional<double> scale = std::nullopt;         ///< of the scores; 1 / sqrt(D) if none
    std::optional<std::int64_t> window = std::nullopt;  ///< query i sees keys less than so many away, at least 1
    /// (B, n), of the type of lengths: key and value are pages (P, H, page, ..), and key j of sample b lies in page
    /// block_table[b][j / page], at j % page (W. Kwon et al., PagedAttention, 2023).
    Tensor block_table = {};
};

/// Attention to a cache of which the first lengths[b] keys of each sample count, whose number stays on the device, so
/// that a recorded step need not be told: query (B, G H, L, D), key (B, H, S, D), value (B, H, S, E), lengths (B), i32
/// or i64 -> (B, G H, L, E). The last query stands at the last key. The others are not read. key and value may be f16
/// or bf16 beside f32. As flash_attn_with_kvcache of T. Dao's flash-attn, whose cache_seqlens do not count the keys
/// that the call itself adds. Made for few queries; gradients are those of scaled_dot_product_attention with a mask,
/// which then serves. Pages outside of 0 .. P - 1 count as the nearest.
/// @throws ShapeError, TypeError, ValueError, DeviceError naming the argument
DECLIVITY_API Tensor cached_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                      const Tensor& lengths, const CachedAttentionParameters& options = {});

struct RotaryParameters {
    std::optional<std::int64_t> dims = std::nullopt;  ///< elements that are turned, even, the first ones; all if none
    double base = 10000;
    Tensor frequencies = {};   ///< (dims / 2), in place of base^(-2 i / dims)
    double scale = 1;          ///< of the positions
    bool interleaved = false;  ///< pairs are neighbours; otherwise element i of the first half and i of the second
    std::int64_t offset = 0;   ///< position of the first row
    Tensor positions = {};     ///< whole numbers that broadcast to (..., L), instead of offset, offset + 1, ...
};

/// Rotary position embedding (J. Su et al., RoFormer, 2021): x (..., L, D) with each pair i of elements of row l turned
/// by scale * position * base^(-2 i / dims). As mlx.fast.rope (interleaved: traditional there) and ONNX's
/// RotaryEmbedding.
/// @throws ValueError, ShapeError, TypeError naming the argument
DECLIVITY_API Tensor rotary_embedding(const Tensor& x, const RotaryParameters& options = {});

/// A row for each position, sin(position / base^(2 i / dims)) at 2 i and cos at 2 i + 1 (A. Vaswani et al., Attention
/// is all you need, 2017): positions (...) of any type -> (..., dims), f32, or f64 where positions are f64. No gradient
/// flows to positions.
/// @throws ValueError unless dims is even and above 0
DECLIVITY_API Tensor sinusoidal_embedding(const Tensor& positions, std::int64_t dims, double base = 10000);

}  // namespace declivity
