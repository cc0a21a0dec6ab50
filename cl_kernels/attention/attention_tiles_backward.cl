// Gradients of flash attention in tiles of TILE rows and TILE keys (T. Dao, FlashAttention-2, 2023). simt style. With
// f_ij the dropout factors, w_ij the weights and g the gradient of y,
//
//   s_ij = w_ij (f_ij g_i v_j - sum over c of g_ic y_ic), q_gradient_i = scale sum over j of s_ij k_j,
//   k_gradient_j = scale sum over i of s_ij q_i, v_gradient_j = sum over i of f_ij w_ij g_i
//
//   attention_tiles_backward_query      gradient of q; global (tiles of rows, heads, B) groups
//   attention_tiles_backward_key_value  gradients of k and v; global (tiles of keys, heads, B) groups
//   attention_backward_dot              inner[row] = sum over c of g_c y_c, needed by both; global (rows of all heads)
//
// Sizes and local memory: attention_tiles.clh.
#include "attention_tiles.clh"

#define GRADIENT_OPERANDS                                                                                    \
    ATTENTION_OPERANDS, __global const REAL *restrict inner, const long inner_offset,                        \
        __global const REAL *restrict log_sums, const long log_sums_offset, __global const REAL *restrict g, \
        const long g_offset, const long g_batch, const long g_head, const long g_row

// From masked scores and dropout factors, and products g_i v_j: weight = f_ij w_ij and score = s_ij. `inner` and
// `log_sums` begin at the first query.
INLINE void compute_score_gradients(REAL weight[4][4], REAL score[4][4], __global const REAL* inner,
                                    __global const REAL* log_sums, __local const REAL* own, const struct Attention s,
                                    const struct Tile tile) {
#pragma unroll
    for (int a = 0; a < 4; ++a) {
        const long at = query_index(query_at(min(4 * tile.ty + a, tile.count - 1), s, tile), s, tile);
        const REAL log_sum = log_sums[at], row_dot = inner[at];
#pragma unroll
        for (int c = 0; c < 4; ++c) {
            const REAL probability = d_exp(weight[a][c] - log_sum);
            const REAL factor = dropout_factor(own + a * TILE_ROW + SIDE * c);
            score[a][c] = probability * (factor * score[a][c] - row_dot);
            weight[a][c] = factor * probability;
        }
    }
}

__kernel FIXED_GROUP_SIZE void attention_tiles_backward_query(GRADIENT_OPERANDS, __global REAL* restrict q_gradient,
                                                              const long q_gradient_offset,
                                                              __local REAL4* restrict shared) {
    __local REAL *staged = (__local REAL*)shared, *weights = staged + STAGED_ELEMENTS;
#if DROPOUT
    __local long seed[2];
    load_seed(seed, random + random_offset);
#endif
    const struct Operand queries = {q + q_offset, s.q_batch, s.q_head, s.q_row};
    const struct Operand keys = {k + k_offset, s.k_batch, s.k_head, s.k_row};
    const struct Operand values = {v + v_offset, s.v_batch, s.v_head, s.v_row};
    const struct Operand gradients = {g + g_offset, g_batch, g_head, g_row};
    const int first = (int)get_group_id(0) * TILE;
    struct Tile tile = own_tile(first, min(TILE, s.queries * s.group - first), 0);
    __local REAL* own = own_weights(weights, tile);
    REAL4 sums[MAX_VECTORS][4];
    REAL weight[4][4], score[4][4];
    clear_sums(sums);
    const int end = end_of_keys(s, tile);
    for (tile.keys_at = begin_of_keys(s, tile); tile.keys_at < end; tile.keys_at += TILE) {
        multiply(weight, queries, keys, D, staged, s, tile);
        multiply(score, gradients, values, E, staged, s, tile);
        apply_mask(weight, scale, mask + mask_offset, slopes + slopes_offset, weights, s, tile);
#if DROPOUT
        compute_dropout_factors(weights, seed, random_first, random_index, dropout, s, tile);
#endif
        compute_score_gradients(weight, score, inner + inner_offset, log_sums + log_sums_offset, own, s, tile);
        barrier(CLK_LOCAL_MEM_FENCE);  // the previous contents of the tile of weights are no longer read
        store_weights(own, score);
        barrier(CLK_LOCAL_MEM_FENCE);
        stage_keys(staged, keys, D, s, tile);
        barrier(CLK_LOCAL_MEM_FENCE);
        add_staged_keys(sums, weights, staged, D, tile);
    }
#pragma unroll
    for (int a = 0; a < 4; ++a) {
        if (4 * tile.ty + a >= tile.count) continue;
        const struct Query query = query_at(4 * tile.ty + a, s, tile);
        __global REAL* to = q_gradient + q_gradient_offset + result_row(query, s, tile) * D;
#pragma unroll
        for (int c = 0; c < VECTORS_PER_ITEM(D); ++c) store_columns(to, scale * sums[c][a], c, D, tile);
    }
}

__kernel FIXED_GROUP_SIZE void attention_tiles_backward_key_value(GRADIENT_OPERANDS, __global REAL* restrict k_gradient,
                                                                  const long k_gradient_offset,
                                                                  __global REAL* restrict v_gradient,
                                                                  const long v_gradient_offset,
                                                                  __local REAL4* restrict shared) {
    __local REAL *staged = (__local REAL*)shared, *weights = staged + STAGED_ELEMENTS;
#if DROPOUT
    __local long seed[2];
    load_seed(seed, random + random_offset);
#endif
    const struct Operand queries = {q + q_offset, s.q_batch, s.q_head, s.q_row};
    const struct Operand keys = {k + k_offset, s.k_batch, s.k_head, s.k_row};
    const struct Operand values = {v + v_offset, s.v_batch, s.v_head, s.v_row};
    const struct Operand gradients = {g + g_offset, g_batch, g_head, g_row};
    const int rows = s.queries * s.group;
    struct Tile tile = own_tile(0, 0, (int)get_group_id(0) * TILE);
    __local REAL* own = own_weights(weights, tile);
    REAL4 k_sums[MAX_VECTORS][4], v_sums[MAX_VECTORS][4];
    REAL weight[4][4], score[4][4];
    clear_sums(k_sums);
    clear_sums(v_sums);
    // Rows that attend to a key of this tile.
    const int begin = (int)min((long)rows, max(0l, tile.keys_at - (long)s.high) * s.group / TILE * TILE),
              end = (int)clamp((tile.keys_at + TILE - (long)s.low) * s.group, 0l, (long)rows);
    for (tile.first = begin; tile.first < end; tile.first += TILE) {
        tile.count = min(TILE, rows - tile.first);
        multiply(weight, queries, keys, D, staged, s, tile);
        multiply(score, gradients, values, E, staged, s, tile);
        apply_mask(weight, scale, mask + mask_offset, slopes + slopes_offset, weights, s, tile);
#if DROPOUT
        compute_dropout_factors(weights, seed, random_first, random_index, dropout, s, tile);
#endif
        compute_score_gradients(weight, score, inner + inner_offset, log_sums + log_sums_offset, own, s, tile);
        barrier(CLK_LOCAL_MEM_FENCE);  // the previous contents of the tile of weights are no longer read
        store_weights(own, weight);
        barrier(CLK_LOCAL_MEM_FENCE);
        stage_queries(staged, gradients, E, s, tile);
        barrier(CLK_LOCAL_MEM_FENCE);
        add_staged_queries(v_sums, weights, staged, E, tile);
        barrier(CLK_LOCAL_MEM_FENCE);  // the weights are no longer read
        store_weights(own, score);
        barrier(CLK_LOCAL_MEM_FENCE);
        stage_queries(staged, queries, D, s, tile);
        barrier(CLK_LOCAL_MEM_FENCE);
        add_staged_queries(k_sums, weights, staged, D, tile);
    }
#pragma unroll
    for (int a = 0; a < 4; ++a) {
        const int j = tile.keys_at + 4 * tile.ty + a;
        if (j >= s.keys) continue;
        const long row = (tile.b * s.keys + j) * s.heads + tile.h;
        __global REAL *to_k = k_gradient + k_gradient_offset + row * D,
                      *to_v = v_gradient + v_gradient_offset + row * E;
#pragma unroll
        for (int c = 0; c < VECTORS_PER_ITEM(D); ++c) store_columns(to_k, scale * k_sums[c][a], c, D, tile);
#pragma unroll
        for (int c = 0; c < VECTORS_PER_ITEM(E); ++c) store_columns(to_v, v_sums[c][a], c, E, tile);
    }
}

__kernel void attention_backward_dot(const struct Attention s, const long rows, __global const REAL* restrict g,
                                     const long g_offset, const long g_batch, const long g_head, const long g_row,
                                     __global const REAL* restrict y, const long y_offset,
                                     __global REAL* restrict inner, const long inner_offset) {
    const long row = get_global_id(0), heads = s.heads * s.group;
    if (row >= rows) return;
    const long i = row % s.queries, head = row / s.queries % heads, b = row / s.queries / heads;
    __global const REAL* left = g + g_offset + b * g_batch + head * g_head + i * g_row;
    __global const REAL* right = y + y_offset + ((b * s.queries + i) * heads + head) * E;
    REAL sum = 0;
    for (int c = 0; c < E; ++c) sum += left[c] * right[c];
    inner[inner_offset + row] = sum;
}
