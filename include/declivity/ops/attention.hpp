// Layer 2. Scaled dot-product attention that does not store the score matrix (FlashAttention).
#pragma once

#include <cstdint>

#include <declivity/ops/random.hpp>
#include <declivity/ops/lazy_array.hpp>
#include <declivity/ops/view.hpp>

namespace declivity::ops {

/// @addtogroup ops
/// @{

/// Inputs of attention(): q (B, G H, Lq, D), k (B, H, Lk, D), v (B, H, Lk, E), with G query heads for each key head
/// (grouped-query attention). f32, f64, f16 or bf16; the last axis is contiguous, the other strides are arbitrary.
struct AttentionOperands {
    View q, k, v;
    View mask = {};    ///< (B, G H, Lq, Lk), stride 0 where it broadcasts; bool (true: attend), or of q's type (added)
    View slopes = {};  ///< (G H), of q's type: slope |i + shift - j| is subtracted from the score of query i, key j
};

struct AttentionAttributes {
    double scale = 1;
    /// Query i attends to key j if i + low <= j <= i + high.
    std::int64_t low = -kUnlimited, high = kUnlimited;
    std::int64_t shift = 0;  ///< query i has position i + shift among the keys
    double dropped = 0;      ///< dropout probability of the attention weights
    RandomCall random = {};  ///< random numbers of the dropout mask, of shape (B, G H, Lq, Lk)
    static constexpr std::int64_t kUnlimited = std::int64_t{1} << 40;
};

/// y (B, Lq, G H, E); log_sums (B, G H, Lq), f32 or f64: logsumexp of each row of scores.
struct AttentionResults {
    LazyArray y, log_sums;
};
/// Attention (T. Dao, FlashAttention-2, 2023). The result is 0 for a query that attends to no key. Deferred operation.
/// @throws TypeError, ShapeError, DeviceError for operands that do not match
DECLIVITY_API AttentionResults attention(const AttentionOperands& operands, const AttentionAttributes& options);

/// Gradients: q (B, Lq, G H, D), k (B, Lk, H, D), v (B, Lk, H, E).
struct AttentionGradients {
    LazyArray q, k, v;
};
/// Gradients of attention().
/// @param y,log_sums results of attention()
/// @param g gradient of y as (B, G H, Lq, E), contiguous in the last axis
DECLIVITY_API AttentionGradients attention_backward(const AttentionOperands& operands,
                                                    const AttentionAttributes& options, const View& y,
                                                    const View& log_sums, const View& g);

/// Inputs of attention to a KV cache whose length is device data: q (B, G H, Lq, D), f32 or f64; k (B, H, S, D) and v
/// (B, H, S, E) of q's type, f16 or bf16. Only the first lengths[b] keys of sample b are read. The last axis is
/// contiguous, the other strides are arbitrary.
struct CachedAttentionOperands {
    View q, k, v;
    View lengths;     ///< (B), i32 or i64, dense; clamped to [0, S]
    View table = {};  ///< block table (B, n) of the type of lengths: k and v are pages (P, H, page, ..), S = n page
};

struct CachedAttentionAttributes {
    double scale = 1;
    /// Sliding window: only keys at a distance below this count; query Lq - 1 has position lengths[b] - 1.
    std::int64_t window = AttentionAttributes::kUnlimited;
    bool is_causal = true;  ///< causal mask: later keys are ignored
};

/// Attention to a KV cache: y (B, Lq, G H, E) of q's type; 0 if there are no keys. The keys are split over work-groups
/// (T. Dao et al., Flash-Decoding for long-context inference, 2023). Deferred operation.
/// @throws TypeError, ShapeError, DeviceError for operands that do not match
DECLIVITY_API LazyArray cached_attention(const CachedAttentionOperands& operands,
                                         const CachedAttentionAttributes& options);

/// Appends to a KV cache: writes k (B, H, T, D) and v (B, H, T, E) at positions lengths[b] - T to lengths[b] - 1 of
/// each sample of `cache`, whose q is ignored. Positions outside of the cache are skipped. Deferred operation.
/// @throws TypeError, ShapeError, DeviceError for operands that do not match
DECLIVITY_API void attention_append(const View& k, const View& v, const CachedAttentionOperands& cache);

// ---- deprecated names of version 0.1

using AttentionNumbers [[deprecated("ops::AttentionAttributes")]] = AttentionAttributes;
using CachedAttentionNumbers [[deprecated("ops::CachedAttentionAttributes")]] = CachedAttentionAttributes;

/// @}

}  // namespace declivity::ops
