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

// Defines NAME, for WIDTH neighbours c from `first`: sums[c][lane] = alpha sums[c][lane] + sum over j < n of
// values[j][c] weights[j][lane].
#define DEFINE_ADD_VALUES(NAME, WIDTH)                                                                                \
    static inline void NAME(REAL* sums, const VEC* alpha, const REAL* weights, __global const REAL* values,           \
                            const int n, const int v_row, const int first) {                                          \
        VEC sum[WIDTH][ROWS];                                                                                         \
        _Pragma("unroll") for (int c = 0; c < WIDTH; ++c) {                                                           \
            _Pragma("unroll") for (int r = 0; r < ROWS; ++r) sum[c][r] =                                              \
                alpha[r] * VLOAD(sums + (first + c) * LENGTH + r * VW);                                               \
        }                                                                                                             \
        __global const REAL* value = values + first;                                                                  \
        for (int j = 0; j < n; ++j, value += v_row) {                                                                 \
            VEC x[ROWS];                                                                                              \
            _Pragma("unroll") for (int r = 0; r < ROWS; ++r) x[r] = VLOAD(weights + j * LENGTH + r * VW);             \
            _Pragma("unroll") for (int c = 0; c < WIDTH; ++c) {                                                       \
                _Pragma("unroll") for (int r = 0; r < ROWS; ++r) sum[c][r] = fma((VEC)(value[c]), x[r], sum[c][r]);   \
            }                                                                                                         \
        }                                                                                                             \
        _Pragma("unroll") for (int c = 0; c < WIDTH; ++c) {                                                           \
            _Pragma("unroll") for (int r = 0; r < ROWS; ++r) VSTORE(sum[c][r], sums + (first + c) * LENGTH + r * VW); \
        }                                                                                                             \
    }
DEFINE_ADD_VALUES(add_values, COLUMNS)
#if E % COLUMNS
DEFINE_ADD_VALUES(add_last_values, E % COLUMNS)
#endif

// Updates the running maximum, and the sum of exponentials, of each row with the scores of n keys, which become
// weights relative to `base`: the maximum, or 0 if all keys so far are masked. alpha is the factor of earlier sums.
static inline void update_softmax(REAL* weights, const int n, VEC* max_score, VEC* base, VEC* alpha, VEC* total) {
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
}

// y = sums / total; 0 if all keys are masked.
static inline void store_results(__global REAL* y, const REAL* sums, const VEC* total, const struct Attention s,
                                 const struct Block block) {
    REAL totals[LENGTH];
#pragma unroll
    for (int r = 0; r < ROWS; ++r) VSTORE(total[r], totals + r * VW);
    for (int r = 0; r < block.count; ++r) {
        __global REAL* to = y + result_row(query_at(r, s, block), s, block) * E;
        const REAL factor = totals[r] == 0 ? (REAL)0 : 1 / totals[r];
        for (int c = 0; c < E; ++c) to[c] = factor * sums[c * LENGTH + r];
    }
}

#if LOG_SUMS
static inline void store_log_sums(__global REAL* log_sums, const VEC* max_score, const VEC* base, const VEC* total,
                                  const struct Attention s, const struct Block block) {
    REAL log_sum[LENGTH];
#pragma unroll
    for (int r = 0; r < ROWS; ++r)
        VSTORE(INFINITE(max_score[r]) ? (VEC)((REAL)INFINITY) : base[r] + d_log(total[r]), log_sum + r * VW);
    for (int r = 0; r < block.count; ++r) log_sums[query_index(query_at(r, s, block), s, block)] = log_sum[r];
}
#endif

NOINLINE void attention_part(const long number, const long h, const long b, ATTENTION_OPERANDS,
                             __global const REAL* restrict panels, __global REAL* restrict y,
                             __global REAL* restrict log_sums) {
    const struct Block block = block_at(number, h, b, s);
    REAL columns[D * LENGTH], sums[E * LENGTH], weights[BLOCK * LENGTH];
    transpose_rows(columns, q, s.q_batch, s.q_head, s.q_row, D, scale, s, block);
    for (int c = 0; c < E * LENGTH; ++c) sums[c] = 0;
    VEC max_score[ROWS], total[ROWS], alpha[ROWS], base[ROWS];
#pragma unroll
    for (int r = 0; r < ROWS; ++r) max_score[r] = (VEC)(MINUS_INFINITY), total[r] = (VEC)(0), base[r] = (VEC)(0);
    panels += (b * s.heads + h) * ((s.keys + KEYS - 1) / KEYS) * KEYS * D;
    const long end = end_of_keys(s, block);
    for (long at = begin_of_keys(s, block); at < end; at += BLOCK) {
        const int n = (int)min((long)BLOCK, end - at);
        attention_products(panels + at * D, columns, weights, n, D);
        attention_masked(s, mask, slopes, block, at, n, weights);
        update_softmax(weights, n, max_score, base, alpha, total);
#if DROPOUT
        REAL dropout_factors[BLOCK * LENGTH];
        attention_dropout(s, random, random_first, random_index, dropout, block, at, n, dropout_factors);
        for (int j = 0; j < n * LENGTH; ++j) weights[j] *= dropout_factors[j];
#endif
        __global const REAL* values = v + b * s.v_batch + h * s.v_head + at * s.v_row;
#pragma unroll 1
        for (int c = 0; c + COLUMNS <= E; c += COLUMNS) add_values(sums, alpha, weights, values, n, s.v_row, c);
#if E % COLUMNS
        add_last_values(sums, alpha, weights, values, n, s.v_row, E / COLUMNS * COLUMNS);
#endif
    }
    store_results(y, sums, total, s, block);
#if LOG_SUMS
    store_log_sums(log_sums, max_score, base, total, s, block);
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
