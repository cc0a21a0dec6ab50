// Flash attention backward. simd style. The weights are recomputed from log_sums (T. Dao, FlashAttention-2, 2023). With
// w_ij the weights, and g the gradient of y,
//
//   v_gradient_j = sum of w_ij g_i, s_ij = w_ij (g_i v_j - sum over c of g_ic y_ic),
//   q_gradient_i = scale sum of s_ij k_j, k_gradient_j = scale sum of s_ij q_i
//
//   g (B, heads group, Lq, E) with strides, y and log_sums from attention.cl
//   -> q_gradient (B, Lq, heads group, D), k_gradient (parts, B, Lk, heads, D), v_gradient (parts, B, Lk, heads, E)
//
// A work-item processes one part of the rows of one head of keys; global (parts, heads, B). Macros:
// attention_blocks.clh, attention.clh, and
//   WIDTH  vectors of a register tile of HEIGHT rows
#include "attention_blocks.clh"

#define HEIGHT 4
#define PADDED(width) (((width) + VW - 1) / VW * VW)

// to[m][c] += sum over l of LEFT(m, l) right[l][c], for HEIGHT neighbouring m and VECTORS neighbouring vectors of c.
#define ADD_TILE(LEFT, ADD, VECTORS, at)                                                                           \
    {                                                                                                              \
        VEC sum[HEIGHT][VECTORS];                                                                                  \
        _Pragma("unroll") for (int a = 0; a < HEIGHT; ++a) _Pragma("unroll") for (int c = 0; c < VECTORS; ++c)     \
            sum[a][c] = (VEC)(0);                                                                                  \
        for (int l = 0; l < depth; ++l) {                                                                          \
            VEC x[VECTORS];                                                                                        \
            _Pragma("unroll") for (int c = 0; c < VECTORS; ++c) x[c] = VLOAD(right + l * padded + (at) + c * VW);  \
            _Pragma("unroll") for (int a = 0; a < HEIGHT; ++a) _Pragma("unroll") for (int c = 0; c < VECTORS; ++c) \
                sum[a][c] = fma((VEC)(LEFT(m + a, l)), x[c], sum[a][c]);                                           \
        }                                                                                                          \
        _Pragma("unroll") for (int a = 0; a < HEIGHT; ++a) if (m + a < rows)                                       \
            _Pragma("unroll") for (int c = 0; c < VECTORS; ++c)                                                    \
                ADD(sum[a][c], to + (m + a) * to_row + (at) + c * VW, width - (at)-c * VW);                        \
    }
#define ADD_PRODUCT(NAME, SPACE, LEFT, ADD)                                                                        \
    static inline void NAME(const REAL* left, const REAL* right, const int rows, const int depth, const int width, \
                            SPACE REAL* to, const long to_row) {                                                   \
        const int padded = PADDED(width), vectors = padded / VW;                                                   \
        for (int m = 0; m < rows; m += HEIGHT) {                                                                   \
            int at = 0;                                                                                            \
            for (; at + WIDTH <= vectors; at += WIDTH) ADD_TILE(LEFT, ADD, WIDTH, at* VW)                          \
            for (; at < vectors; ++at) ADD_TILE(LEFT, ADD, 1, at* VW)                                              \
        }                                                                                                          \
    }
#define OF_KEYS(m, l) left[(m)*LENGTH + (l)]
#define OF_ROWS(m, l) left[(l)*LENGTH + (m)]
static inline void add_within(const VEC sum, __global REAL* to, const int room) {
    if (room >= VW) {
        VSTORE(sum + VLOAD(to), to);
    } else {
        REAL part[VW];
        VSTORE(sum, part);
        store_run(part, to, room, true);
    }
}
#define ADD_PADDED(sum, to, room) VSTORE((sum) + VLOAD(to), to)
ADD_PRODUCT(attention_add_keys, __global, OF_KEYS, add_within)
ADD_PRODUCT(attention_add_rows, __private, OF_ROWS, ADD_PADDED)

// Copies the rows of a block with zeros after their ends and after the last row.
#define GATHERED(to, from, from_batch, from_head, from_row, width, factor)                  \
    for (int r = 0; r < LENGTH; ++r) {                                                      \
        ROW_AT(min(r, count - 1))                                                           \
        __global const REAL* row = from + b * from_batch + head * from_head + i * from_row; \
        for (int c = 0; c < PADDED(width); ++c)                                             \
            to[r * PADDED(width) + c] = r < count && c < width ? factor * row[c] : (REAL)0; \
    }

NOINLINE void attention_backward_block(const long block, const long h, const long b, ATTENTION_OPERANDS,
                                       __global const REAL* restrict k_panels, __global const REAL* restrict v_panels,
                                       __global const REAL* restrict y, __global const REAL* restrict log_sums,
                                       __global const REAL* restrict g, const long g_batch, const long g_head,
                                       const long g_row, __global REAL* restrict q_gradient,
                                       __global REAL* restrict k_gradient, __global REAL* restrict v_gradient) {
    const long first = block * LENGTH, heads = s.heads * s.group;
    const int count = (int)min((long)LENGTH, s.queries * s.group - first);
    REAL columns[D * LENGTH], g_columns[E * LENGTH], weights[BLOCK * LENGTH], scores[BLOCK * LENGTH];
    REAL q_rows[LENGTH * PADDED(D)], g_rows[LENGTH * PADDED(E)], k_rows[BLOCK * PADDED(D)];
    REAL sums[LENGTH * PADDED(D)], log_sum[LENGTH], inner[LENGTH];
    for (int c = 0; c < LENGTH * PADDED(D); ++c) sums[c] = 0;
    TRANSPOSED(columns, q, s.q_batch, s.q_head, s.q_row, D, scale)
    TRANSPOSED(g_columns, g, g_batch, g_head, g_row, E, (REAL)1)
    GATHERED(q_rows, q, s.q_batch, s.q_head, s.q_row, D, scale)
    GATHERED(g_rows, g, g_batch, g_head, g_row, E, (REAL)1)
    for (int r = 0; r < LENGTH; ++r) {
        ROW_AT(min(r, count - 1))
        log_sum[r] = r < count ? log_sums[(b * heads + head) * s.queries + i] : (REAL)INFINITY;
        __global const REAL* row = y + ((b * s.queries + i) * heads + head) * E;
        REAL sum = 0;
        for (int c = 0; c < E; ++c) sum += row[c] * g_columns[c * LENGTH + r];
        inner[r] = sum;
    }
    const long panels = (b * s.heads + h) * ((s.keys + KEYS - 1) / KEYS) * KEYS;
    const long begin = max(0l, first / s.group + s.low) / KEYS * KEYS,
               end = min((long)s.keys, (first + count - 1) / s.group + s.high + 1);
    for (long at = begin; at < end; at += BLOCK) {
        const int n = (int)min((long)BLOCK, end - at);
        attention_products(k_panels + (panels + at) * D, columns, weights, n, D);
        attention_masked(s, mask, slopes, b, h, first, count, at, n, weights);
        attention_products(v_panels + (panels + at) * E, g_columns, scores, n, E);
#if DROPOUT
        REAL dropout_factors[BLOCK * LENGTH];
        attention_dropout(s, random, random_first, random_index, dropout, b, h, first, count, at, n, dropout_factors);
#endif
        for (int j = 0; j < n; ++j)
#pragma unroll
            for (int r = 0; r < ROWS; ++r) {
                const int to = j * LENGTH + r * VW;
                const VEC weight = d_exp(VLOAD(weights + to) - VLOAD(log_sum + r * VW));
                VEC gradient = VLOAD(scores + to);
#if DROPOUT
                const VEC factor = VLOAD(dropout_factors + to);
                gradient *= factor;
                VSTORE(weight * factor, weights + to);
#else
                VSTORE(weight, weights + to);
#endif
                VSTORE(weight * (gradient - VLOAD(inner + r * VW)), scores + to);
            }
        const long key_row = s.heads * D, value_row = s.heads * E;
        __global const REAL* keys = k + b * s.k_batch + h * s.k_head + at * s.k_row;
        for (int j = 0; j < n; ++j)
            for (int c = 0; c < PADDED(D); ++c) k_rows[j * PADDED(D) + c] = c < D ? keys[j * s.k_row + c] : (REAL)0;
        attention_add_keys(weights, g_rows, n, LENGTH, E, v_gradient + ((b * s.keys + at) * s.heads + h) * E,
                           value_row);
        attention_add_keys(scores, q_rows, n, LENGTH, D, k_gradient + ((b * s.keys + at) * s.heads + h) * D, key_row);
        attention_add_rows(scores, k_rows, count, n, D, sums, PADDED(D));
    }
    for (int r = 0; r < count; ++r) {
        ROW_AT(r)
        __global REAL* to = q_gradient + ((b * s.queries + i) * heads + head) * D;
        for (int c = 0; c < D; ++c) to[c] = scale * sums[r * PADDED(D) + c];
    }
}

__kernel void attention_backward(ATTENTION_OPERANDS, __global const REAL* restrict k_panels, const long k_panels_offset,
                                 __global const REAL* restrict v_panels, const long v_panels_offset,
                                 __global const REAL* restrict y, const long y_offset,
                                 __global const REAL* restrict log_sums, const long log_sums_offset,
                                 __global const REAL* restrict g, const long g_offset, const long g_batch,
                                 const long g_head, const long g_row, __global REAL* restrict q_gradient,
                                 const long q_gradient_offset, __global REAL* restrict k_gradient,
                                 const long k_gradient_offset, __global REAL* restrict v_gradient,
                                 const long v_gradient_offset) {
    const long part = get_global_id(0), h = get_global_id(1), b = get_global_id(2);
    const long parts = get_global_size(0), batch = get_global_size(2);
    const long blocks = (s.queries * s.group + LENGTH - 1) / LENGTH, each = (blocks + parts - 1) / parts;
    q += q_offset;
    k += k_offset;
    v += v_offset;
    mask += mask_offset;
    slopes += slopes_offset;
    random += random_offset;
    k_gradient += k_gradient_offset + part * batch * s.keys * s.heads * D;
    v_gradient += v_gradient_offset + part * batch * s.keys * s.heads * E;
    for (long j = 0; j < s.keys; ++j) {
        for (int c = 0; c < D; ++c) k_gradient[((b * s.keys + j) * s.heads + h) * D + c] = 0;
        for (int c = 0; c < E; ++c) v_gradient[((b * s.keys + j) * s.heads + h) * E + c] = 0;
    }
    for (long block = part * each; block < min(blocks, (part + 1) * each); ++block)
        attention_backward_block(block, h, b, ATTENTION_ARGUMENTS, k_panels + k_panels_offset,
                                 v_panels + v_panels_offset, y + y_offset, log_sums + log_sums_offset, g + g_offset,
                                 g_batch, g_head, g_row, q_gradient + q_gradient_offset, k_gradient, v_gradient);
}
