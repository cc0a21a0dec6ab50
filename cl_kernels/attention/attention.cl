// Flash attention forward: y_i = sum over j of w_ij v_j, w_i = softmax over j of (scale q_i k_j + bias), without
// storing the scores, with a running maximum and sum over blocks of keys (T. Dao, FlashAttention-2, 2023). simd style.
//
//   q (B, heads group, Lq, D), k (B, heads, Lk, D), v (B, heads, Lk, E) -> y (B, Lq, heads group, E), and for the
//   backward pass log_sums (B, heads group, Lq), the logsumexp of each row's scores; infinity if all keys are masked,
//   and y is 0 then
//
// A work-item processes LENGTH rows of one head of keys; global (blocks of rows, heads, B). Macros:
// attention_blocks.clh, attention.clh, and
//   COLUMNS  elements of a value in a register tile
//   LOG_SUMS 1: log_sums is written
#include "attention_blocks.clh"

// sums[c][lane] = alpha sums[c][lane] + sum over j of values[j][c] weights[j][lane], for WIDTH neighbours c from `at`
#define WEIGHTED(WIDTH, at)                                                                                            \
    {                                                                                                                  \
        VEC sum[WIDTH][ROWS];                                                                                          \
        _Pragma("unroll") for (int c = 0; c < WIDTH; ++c) _Pragma("unroll") for (int r = 0; r < ROWS; ++r) sum[c][r] = \
            alpha[r] * VLOAD(sums + ((at) + c) * LENGTH + r * VW);                                                     \
        __global const REAL* value = values + (at);                                                                    \
        for (int j = 0; j < n; ++j, value += s.v_row) {                                                                \
            VEC x[ROWS];                                                                                               \
            _Pragma("unroll") for (int r = 0; r < ROWS; ++r) x[r] = VLOAD(weights + j * LENGTH + r * VW);              \
            _Pragma("unroll") for (int c = 0; c < WIDTH; ++c) _Pragma("unroll") for (int r = 0; r < ROWS; ++r)         \
                sum[c][r] = fma((VEC)(value[c]), x[r], sum[c][r]);                                                     \
        }                                                                                                              \
        _Pragma("unroll") for (int c = 0; c < WIDTH; ++c) _Pragma("unroll") for (int r = 0; r < ROWS; ++r)             \
            VSTORE(sum[c][r], sums + ((at) + c) * LENGTH + r * VW);                                                    \
    }

NOINLINE void attention_part(const long block, const long h, const long b, ATTENTION_OPERANDS,
                             __global const REAL* restrict panels, __global REAL* restrict y,
                             __global REAL* restrict log_sums) {
    const long first = block * LENGTH;
    const int count = (int)min((long)LENGTH, s.queries * s.group - first);
    REAL columns[D * LENGTH], sums[E * LENGTH], weights[BLOCK * LENGTH];
    TRANSPOSED(columns, q, s.q_batch, s.q_head, s.q_row, D, scale)
    for (int c = 0; c < E * LENGTH; ++c) sums[c] = 0;
    VEC max_score[ROWS], total[ROWS], alpha[ROWS], base[ROWS];
#pragma unroll
    for (int r = 0; r < ROWS; ++r) max_score[r] = (VEC)(MINUS_INFINITY), total[r] = (VEC)(0), base[r] = (VEC)(0);
    panels += (b * s.heads + h) * ((s.keys + KEYS - 1) / KEYS) * KEYS * D;
    const long begin = max(0l, first / s.group + s.low) / KEYS * KEYS,
               end = min((long)s.keys, (first + count - 1) / s.group + s.high + 1);
    for (long at = begin; at < end; at += BLOCK) {
        const int n = (int)min((long)BLOCK, end - at);
        attention_products(panels + at * D, columns, weights, n, D);
        attention_masked(s, mask, slopes, b, h, first, count, at, n, weights);
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            const VEC previous_max = max_score[r];
            for (int j = 0; j < n; ++j) {
                const VEC x = VLOAD(weights + j * LENGTH + r * VW);
                max_score[r] = x > max_score[r] ? x : max_score[r];
            }
            base[r] = INFINITE(max_score[r]) ? (VEC)(0) : max_score[r];
            alpha[r] = d_exp(previous_max - base[r]);
            total[r] *= alpha[r];
        }
        for (int j = 0; j < n; ++j)
#pragma unroll
            for (int r = 0; r < ROWS; ++r) {
                const VEC x = d_exp(VLOAD(weights + j * LENGTH + r * VW) - base[r]);
                total[r] += x;
                VSTORE(x, weights + j * LENGTH + r * VW);
            }
#if DROPOUT
        REAL dropout_factors[BLOCK * LENGTH];
        attention_dropout(s, random, random_first, random_index, dropout, b, h, first, count, at, n, dropout_factors);
        for (int j = 0; j < n * LENGTH; ++j) weights[j] *= dropout_factors[j];
#endif
        __global const REAL* values = v + b * s.v_batch + h * s.v_head + at * s.v_row;
        for (int column = 0; column + COLUMNS <= E; column += COLUMNS) WEIGHTED(COLUMNS, column)
#if E % COLUMNS
        WEIGHTED(E % COLUMNS, E / COLUMNS * COLUMNS)
#endif
    }
    REAL part[LENGTH];
#pragma unroll
    for (int r = 0; r < ROWS; ++r) VSTORE(total[r], part + r * VW);
    for (int r = 0; r < count; ++r) {
        ROW_AT(r)
        __global REAL* to = y + ((b * s.queries + i) * s.heads * s.group + head) * E;
        const REAL factor = part[r] == 0 ? (REAL)0 : 1 / part[r];
        for (int c = 0; c < E; ++c) to[c] = factor * sums[c * LENGTH + r];
    }
#if LOG_SUMS
#pragma unroll
    for (int r = 0; r < ROWS; ++r)
        VSTORE(INFINITE(max_score[r]) ? (VEC)((REAL)INFINITY) : base[r] + d_log(total[r]), part + r * VW);
    for (int r = 0; r < count; ++r) {
        ROW_AT(r)
        log_sums[(b * s.heads * s.group + head) * s.queries + i] = part[r];
    }
#endif
}

__kernel void attention(ATTENTION_OPERANDS, __global const REAL* restrict panels, const long panels_offset,
                        __global REAL* restrict y, const long y_offset, __global REAL* restrict log_sums,
                        const long log_sums_offset) {
    q += q_offset;
    k += k_offset;
    v += v_offset;
    mask += mask_offset;
    slopes += slopes_offset;
    random += random_offset;
    attention_part(get_global_id(0), get_global_id(1), get_global_id(2), ATTENTION_ARGUMENTS, panels + panels_offset,
                   y + y_offset, log_sums + log_sums_offset);
}
