// Floor 2. Scaled dot-product attention without a matrix of scores in memory.
#pragma once

#include <cstdint>

#include <declivity/ops/random.hpp>
#include <declivity/ops/value.hpp>
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
    Value y, log_sums;
};
/// T. Dao, FlashAttention-2, 2023. A row for which no key counts is 0. Operations that wait.
/// @throws TypeError, ShapeError, DeviceError for operands that do not belong together
DECLIVITY_API AttentionResults attention(const AttentionOperands& operands, const AttentionNumbers& numbers);

/// q's (B, Lq, G H, D), k's (B, Lk, H, D), v's (B, Lk, H, E).
struct AttentionGradients {
    Value q, k, v;
};
/// @param y,log_sums of attention()
/// @param g the gradient of y as (B, G H, Lq, E), elements of the last axis side by side
DECLIVITY_API AttentionGradients attention_backward(const AttentionOperands& operands, const AttentionNumbers& numbers,
                                                    const View& y, const View& log_sums, const View& g);

}  // namespace declivity::ops
