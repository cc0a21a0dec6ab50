// Layer 5. Attention.
#pragma once

#include <cstdint>
#include <optional>

#include <declivity/tensor/generator.hpp>
#include <declivity/tensor/tensor.hpp>

namespace declivity {

/// @defgroup functions_attention Attention
/// @ingroup functions
/// Scaled dot-product attention, also to a KV cache, and position embeddings.
/// @{

/// Hyperparameters of scaled_dot_product_attention.
struct AttentionParameters {
    /// Broadcasts to (..., Lq, Lk): bool (true: attend), or query's type, added to the scores.
    Tensor attn_mask = {};
    double dropout_p = 0;                        ///< dropout probability in [0, 1] of the weights, always applied
    bool is_causal = false;                      ///< query i attends to keys up to i + query_offset
    std::optional<double> scale = std::nullopt;  ///< of the scores; 1 / sqrt(D) if none
    bool enable_gqa = false;                     ///< grouped-query attention: key and value have fewer heads
    std::optional<std::int64_t> window = std::nullopt;  ///< sliding window: keys at a distance below it; at least 1
    std::int64_t query_offset = 0;                      ///< position of query 0 among the keys
    Tensor alibi_slopes = {};                           ///< (heads): slope |distance| is subtracted from each score
    std::optional<Generator> generator = std::nullopt;  ///< for dropout; the device's default one if none
};

/// softmax(scale query key^T + mask) value: query (..., Lq, D), key (..., Lk, D), value (..., Lk, E) -> (..., Lq, E);
/// leading axes broadcast; with enable_gqa axis -3 of key and value (heads) divides that of query (J. Ainslie et al.,
/// GQA, 2023). f32, f64, f16, bf16; f16 and bf16 are computed in f32. Scores are not stored, so that memory grows with
/// Lq + Lk (T. Dao, FlashAttention-2, 2023), unless the mask or the slopes require a gradient, D or E is above 256 (128
/// for style simt), or for f64 and style simt. A query that attends to no key gives 0. As PyTorch's function of this
/// name, which has no window, query_offset and alibi_slopes (O. Press et al., ALiBi, 2022), and refuses a mask together
/// with is_causal.
/// Examples: for q = `[[0, 0], [0, 0]]`, k = `[[1, 2], [3, 4]]` and v = `[[10], [20]]`,
/// `scaled_dot_product_attention(q, k, v)` is `[[15], [15]]` (equal scores);
/// `scaled_dot_product_attention(q, k, v, {.is_causal = true})` is `[[10], [15]]`.
/// @throws ShapeError, TypeError, ValueError, DeviceError naming the argument
DECLIVITY_API Tensor scaled_dot_product_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                                  const AttentionParameters& options = {});

/// Hyperparameters of cached_attention.
struct CachedAttentionParameters {
    bool is_causal = true;                              ///< query i of L attends to keys up to lengths - L + i
    std::optional<double> scale = std::nullopt;         ///< of the scores; 1 / sqrt(D) if none
    std::optional<std::int64_t> window = std::nullopt;  ///< sliding window: keys at a distance below it; at least 1
    /// Paged KV cache (W. Kwon et al., PagedAttention, 2023): block table (B, n), of the type of lengths. key and value
    /// are pages (P, H, page, ..); key j of sample b is in page block_table[b][j / page], at j % page.
    Tensor block_table = {};
};

/// Attention to a KV cache, of which the first lengths[b] keys of each sample are valid: query (B, G H, L, D), key (B,
/// H, S, D), value (B, H, S, E), lengths (B), i32 or i64 -> (B, G H, L, E). The lengths stay on the device, so that a
/// captured step can be replayed. The last query is at the position of the last valid key; later keys are not read. key
/// and value may be f16 or bf16 if query is f32. As flash_attn_with_kvcache of T. Dao's flash-attn, whose cache_seqlens
/// do not include the keys that the call itself adds. Optimised for few queries; gradients are those of
/// scaled_dot_product_attention with a mask, which is then used. Page indices outside of 0 .. P - 1 are clamped.
/// Example: for q = `[[[[0]]]]`, k = `[[[[1], [2], [3]]]]`, v = `[[[[10], [20], [90]]]]` and i64 lengths = `[2]`,
/// `cached_attention(q, k, v, lengths)` is `[[[[15]]]]` (the mean of two keys).
/// @throws ShapeError, TypeError, ValueError, DeviceError naming the argument
DECLIVITY_API Tensor cached_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                      const Tensor& lengths, const CachedAttentionParameters& options = {});

/// Hyperparameters of rotary_embedding.
struct RotaryParameters {
    std::optional<std::int64_t> dims = std::nullopt;  ///< number of leading elements to rotate, even; all if none
    double base = 10000;
    Tensor frequencies = {};   ///< (dims / 2), instead of base^(-2 i / dims)
    double scale = 1;          ///< of the positions
    bool interleaved = false;  ///< true: pairs are adjacent; false: element i is paired with i + dims / 2
    std::int64_t offset = 0;   ///< position of the first row
    Tensor positions = {};     ///< integers that broadcast to (..., L), instead of offset, offset + 1, ...
};

/// Rotary position embedding, RoPE (J. Su et al., RoFormer, 2021): x (..., L, D) with each pair i of elements of row l
/// rotated by scale * position * base^(-2 i / dims). As mlx.fast.rope (interleaved: traditional there) and ONNX's
/// RotaryEmbedding.
/// Example: for x = `[[1, 0], [1, 0]]`, `rotary_embedding(x)` is `[[1, 0], [0.5403, 0.8415]]` (row 1 by 1 radian).
/// @throws ValueError, ShapeError, TypeError naming the argument
DECLIVITY_API Tensor rotary_embedding(const Tensor& x, const RotaryParameters& options = {});

/// Sinusoidal position embedding: sin(position / base^(2 i / dims)) at index 2 i and cos at 2 i + 1 (A. Vaswani et al.,
/// Attention is all you need, 2017): positions (...) of any type -> (..., dims), f32, or f64 if positions are f64. No
/// gradient flows to positions.
/// Example: for positions = `[0, 1]`, `sinusoidal_embedding(positions, 4, 100)` is
/// `[[0, 1, 0, 1], [0.8415, 0.5403, 0.09983, 0.995]]`.
/// @throws ValueError unless dims is even and above 0
DECLIVITY_API Tensor sinusoidal_embedding(const Tensor& positions, std::int64_t dims, double base = 10000);

/// @}

}  // namespace declivity
