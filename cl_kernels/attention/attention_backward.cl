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

// Adds the elements of a vector to a row of results, of which `room` more follow; to a padded row without a limit.
static inline void add_elements(const VEC sum, __global REAL* to, const int room) {
    if (room >= VW) {
        VSTORE(sum + VLOAD(to), to);
    } else {
        REAL part[VW];
        VSTORE(sum, part);
        store_run(part, to, room, true);
    }
}
#define ADD_PADDED(sum, to, room) VSTORE((sum) + VLOAD(to), to)

// Defines NAME: to[a][c] += sum over l < depth of LEFT(left, a, l) right[l][c], for HEIGHT rows, of which `rows` exist,
// and VECTORS vectors of columns, of which `room` exist.
#define DEFINE_ADD_TILE(NAME, SPACE, LEFT, ADD, VECTORS)                                                               \
    static inline void NAME(const REAL* left, const REAL* right, const int right_row, const int depth, const int rows, \
                            const int room, SPACE REAL* to, const long to_row) {                                       \
        VEC sum[HEIGHT][VECTORS];                                                                                      \
        _Pragma("unroll") for (int a = 0; a < HEIGHT; ++a) {                                                           \
            _Pragma("unroll") for (int c = 0; c < VECTORS; ++c) sum[a][c] = (VEC)(0);                                  \
        }                                                                                                              \
        for (int l = 0; l < depth; ++l) {                                                                              \
            VEC x[VECTORS];                                                                                            \
            _Pragma("unroll") for (int c = 0; c < VECTORS; ++c) x[c] = VLOAD(right + l * right_row + c * VW);          \
            _Pragma("unroll") for (int a = 0; a < HEIGHT; ++a) {                                                       \
                _Pragma("unroll") for (int c = 0; c < VECTORS; ++c) sum[a][c] =                                        \
                    fma((VEC)(LEFT(left, a, l)), x[c], sum[a][c]);                                                     \
            }                                                                                                          \
        }                                                                                                              \
        _Pragma("unroll") for (int a = 0; a < HEIGHT; ++a) {                                                           \
            if (a < rows) {                                                                                            \
                _Pragma("unroll") for (int c = 0; c < VECTORS; ++c)                                                    \
                    ADD(sum[a][c], to + a * to_row + c * VW, room - c * VW);                                           \
            }                                                                                                          \
        }                                                                                                              \
    }

// Defines NAME: the same for any number of rows, and columns, for which `right` has whole vectors.
#define DEFINE_ADD_PRODUCT(NAME, SPACE, LEFT, ADD)                                                                 \
    DEFINE_ADD_TILE(NAME##_tile, SPACE, LEFT, ADD, WIDTH)                                                          \
    DEFINE_ADD_TILE(NAME##_vector, SPACE, LEFT, ADD, 1)                                                            \
    static inline void NAME(const REAL* left, const REAL* right, const int rows, const int depth, const int width, \
                            SPACE REAL* to, const long to_row) {                                                   \
        const int padded = PADDED(width);                                                                          \
        for (int m = 0; m < rows; m += HEIGHT) {                                                                   \
            const REAL* tile = &LEFT(left, m, 0);                                                                  \
            SPACE REAL* row = to + m * to_row;                                                                     \
            int c = 0;                                                                                             \
            for (; c + WIDTH * VW <= padded; c += WIDTH * VW)                                                      \
                NAME##_tile(tile, right + c, padded, depth, rows - m, width - c, row + c, to_row);                 \
            for (; c < padded; c += VW)                                                                            \
                NAME##_vector(tile, right + c, padded, depth, rows - m, width - c, row + c, to_row);               \
        }                                                                                                          \
    }
#define ROW_BY_ROW(left, m, l) left[(m)*LENGTH + (l)]
#define TRANSPOSED(left, m, l) left[(l)*LENGTH + (m)]
DEFINE_ADD_PRODUCT(attention_add_keys, __global, ROW_BY_ROW, add_elements)
DEFINE_ADD_PRODUCT(attention_add_rows, __private, TRANSPOSED, ADD_PADDED)

// Copies the rows of a block with zeros after their ends and after the last row.
static inline __attribute__((always_inline)) void gather_rows(REAL* to, __global const REAL* from,
                                                              const long from_batch, const long from_head,
                                                              const long from_row, const int width, const REAL factor,
                                                              const struct Attention s, const struct Block block) {
    for (int r = 0; r < LENGTH; ++r) {
        const struct Query query = query_at(min(r, block.count - 1), s, block);
        __global const REAL* row = from + block.b * from_batch + query.head * from_head + query.position * from_row;
        for (int c = 0; c < PADDED(width); ++c)
            to[r * PADDED(width) + c] = r < block.count && c < width ? factor * row[c] : (REAL)0;
    }
}

// log_sum[lane], infinity for rows past the last one, and inner[lane] = sum over c of g_c y_c.
static inline void load_row_sums(REAL* log_sum, REAL* inner, __global const REAL* log_sums, __global const REAL* y,
                                 const REAL* g_columns, const struct Attention s, const struct Block block) {
    for (int r = 0; r < LENGTH; ++r) {
        const struct Query query = query_at(min(r, block.count - 1), s, block);
        log_sum[r] = r < block.count ? log_sums[query_index(query, s, block)] : (REAL)INFINITY;
        __global const REAL* row = y + result_row(query, s, block) * E;
        REAL sum = 0;
        for (int c = 0; c < E; ++c) sum += row[c] * g_columns[c * LENGTH + r];
        inner[r] = sum;
    }
}

// From masked scores, `weights`, and products g_i v_j, `scores`: the weights w_ij, times their dropout factors, and the
// gradients of the scores s_ij.
static inline void compute_score_gradients(REAL* weights, REAL* scores, const int n, const REAL* log_sum,
                                           const REAL* inner, const REAL* dropout_factors) {
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
}

NOINLINE void attention_backward_block(const long number, const long h, const long b, ATTENTION_OPERANDS,
                                       __global const REAL* restrict k_panels, __global const REAL* restrict v_panels,
                                       __global const REAL* restrict y, __global const REAL* restrict log_sums,
                                       __global const REAL* restrict g, const long g_batch, const long g_head,
                                       const long g_row, __global REAL* restrict q_gradient,
                                       __global REAL* restrict k_gradient, __global REAL* restrict v_gradient) {
    const struct Block block = block_at(number, h, b, s);
    REAL columns[D * LENGTH], g_columns[E * LENGTH], weights[BLOCK * LENGTH], scores[BLOCK * LENGTH];
    REAL q_rows[LENGTH * PADDED(D)], g_rows[LENGTH * PADDED(E)], k_rows[BLOCK * PADDED(D)];
    REAL sums[LENGTH * PADDED(D)], log_sum[LENGTH], inner[LENGTH];
#if DROPOUT
    REAL dropout_factors[BLOCK * LENGTH];
#else
    const REAL* dropout_factors = 0;
#endif
    for (int c = 0; c < LENGTH * PADDED(D); ++c) sums[c] = 0;
    transpose_rows(columns, q, s.q_batch, s.q_head, s.q_row, D, scale, s, block);
    transpose_rows(g_columns, g, g_batch, g_head, g_row, E, (REAL)1, s, block);
    gather_rows(q_rows, q, s.q_batch, s.q_head, s.q_row, D, scale, s, block);
    gather_rows(g_rows, g, g_batch, g_head, g_row, E, (REAL)1, s, block);
    load_row_sums(log_sum, inner, log_sums, y, g_columns, s, block);
    const long panels = (b * s.heads + h) * ((s.keys + KEYS - 1) / KEYS) * KEYS;
    const long end = end_of_keys(s, block), key_row = s.heads * D, value_row = s.heads * E;
    for (long at = begin_of_keys(s, block); at < end; at += BLOCK) {
        const int n = (int)min((long)BLOCK, end - at);
        attention_products(k_panels + (panels + at) * D, columns, weights, n, D);
        attention_masked(s, mask, slopes, block, at, n, weights);
        attention_products(v_panels + (panels + at) * E, g_columns, scores, n, E);
#if DROPOUT
        attention_dropout(s, random, random_first, random_index, dropout, block, at, n, dropout_factors);
#endif
        compute_score_gradients(weights, scores, n, log_sum, inner, dropout_factors);
        __global const REAL* keys = k + b * s.k_batch + h * s.k_head + at * s.k_row;
        for (int j = 0; j < n; ++j)
            for (int c = 0; c < PADDED(D); ++c) k_rows[j * PADDED(D) + c] = c < D ? keys[j * s.k_row + c] : (REAL)0;
        const long key = (b * s.keys + at) * s.heads + h;
        attention_add_keys(weights, g_rows, n, LENGTH, E, v_gradient + key * E, value_row);
        attention_add_keys(scores, q_rows, n, LENGTH, D, k_gradient + key * D, key_row);
        attention_add_rows(scores, k_rows, block.count, n, D, sums, PADDED(D));
    }
    for (int r = 0; r < block.count; ++r) {
        __global REAL* to = q_gradient + result_row(query_at(r, s, block), s, block) * D;
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
