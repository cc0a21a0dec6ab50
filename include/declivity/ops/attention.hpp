// Layer 2. Scaled dot-product attention without a matrix of scores in memory.
#pragma once

#include <cstdint>

#include <declivity/ops/random.hpp>
#include <declivity/ops/lazy_array.hpp>
#include <declivity/ops/view.hpp>

namespace declivity::ops {

/// What attention is computed from. q (B, G H, Lq, D), k (B, H, Lk, D), v (B, H, Lk, E): G heads of queries for each
/// of keys; f32, f64, f16 or bf16, elements of the last axis side by side, whatever the other strides.
struct AttentionOperands {
    View q, k, v;
    View mask = {};    ///< (B, G H, Lq, Lk), strides of 0 where it repeats; bool (true takes part), or q's type, added
    View slopes = {};  ///< (G H), of q's type: slope |i + shift - j| is taken off the score of query i and key j
};

struct AttentionNumbers {
    double scale = 1;
    /// Key j counts for query i where i + low <= j <= i + high.
    std::int64_t low = -kEverywhere, high = kEverywhere;
    std::int64_t shift = 0;  ///< query i stands at position i + shift of the keys
    double dropped = 0;      ///< probability with which a weight is dropped
    RandomCall random = {};  ///< of dropped weights: numbers of (B, G H, Lq, Lk)
    static constexpr std::int64_t kEverywhere = std::int64_t{1} << 40;
};

/// y (B, Lq, G H, E), and (B, G H, Lq), f32 or f64: the logarithm of the sum of each row's exponentials.
struct AttentionResults {
    LazyArray y, log_sums;
};
/// T. Dao, FlashAttention-2, 2023. A row for which no key counts is 0. Operations that wait.
/// @throws TypeError, ShapeError, DeviceError for operands that do not belong together
DECLIVITY_API AttentionResults attention(const AttentionOperands& operands, const AttentionNumbers& numbers);

/// q's (B, Lq, G H, D), k's (B, Lk, H, D), v's (B, Lk, H, E).
struct AttentionGradients {
    LazyArray q, k, v;
};
/// @param y,log_sums of attention()
/// @param g the gradient of y as (B, G H, Lq, E), elements of the last axis side by side
DECLIVITY_API AttentionGradients attention_backward(const AttentionOperands& operands, const AttentionNumbers& numbers,
                                                    const View& y, const View& log_sums, const View& g);

/// Attention to keys whose number lies on the device. q (B, G H, Lq, D), f32 or f64; k (B, H, S, D) and v (B, H, S, E)
/// of q's type, f16 or bf16, of which lengths[b] keys count, the others not read; elements of the last axis side by
/// side, whatever the other strides.
struct CachedAttentionOperands {
    View q, k, v;
    View lengths;     ///< (B), i32 or i64, dense; below 0 it is 0, above S it is S
    View table = {};  ///< (B, n) of the type of lengths: k and v are pages (P, H, page, ..) then, S is n page
};

struct CachedAttentionNumbers {
    double scale = 1;
    /// Keys less than so many away count; query Lq - 1 stands at key lengths[b] - 1.
    std::int64_t window = AttentionNumbers::kEverywhere;
    bool is_causal = true;  ///< keys behind a query do not count
};

/// y (B, Lq, G H, E) of q's type; 0 where no key counts. Keys are cut into splits, which work side by side (T. Dao et
/// al., Flash-Decoding for long-context inference, 2023). An operation that waits.
/// @throws TypeError, ShapeError, DeviceError for operands that do not belong together
DECLIVITY_API LazyArray cached_attention(const CachedAttentionOperands& operands,
                                         const CachedAttentionNumbers& numbers);

/// Writes k (B, H, T, D) and v (B, H, T, E) as keys lengths[b] - T to lengths[b] - 1 of each sample into the keys and
/// values of `cache`, whose q is not used; what has no place there is left out. An operation that waits.
/// @throws TypeError, ShapeError, DeviceError for operands that do not belong together
DECLIVITY_API void attention_append(const View& k, const View& v, const CachedAttentionOperands& cache);

}  // namespace declivity::ops
