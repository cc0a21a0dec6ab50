// Flash attention in tiles of TILE rows and TILE keys (T. Dao, FlashAttention-2, 2023). simt style. With f_ij the
// dropout factors,
//
//   w_ij = softmax over j of (scale q_i k_j + bias_ij), y_i = sum over j of f_ij w_ij v_j
//
//   attention_tiles  y and log_sums; global (tiles of rows, heads, B) groups
//
// Sizes and local memory: attention_tiles.clh.
//
//   LOG_SUMS 1: log_sums is written
#include "attention_tiles.clh"

// Updates the running maximum and the running sum of exponentials of each row, whose partial maxima are in `parts`,
// scales the sums of values to the new maximum, and stores the tile's weights times their dropout factors.
INLINE void update_softmax(const REAL score[4][4], REAL max_score[4], REAL total[4], REAL4 sums[MAX_VECTORS][4],
                           __local REAL* own, __local const REAL* parts, const struct Tile tile) {
#pragma unroll
    for (int a = 0; a < 4; ++a) {
        const REAL previous_max = max_score[a];
        for (int c = 0; c < SIDE; c += 4) {
            const REAL4 part = VECTOR_AT(parts, (4 * tile.ty + a) * SIDE + c);
            max_score[a] = max(max_score[a], max(max(part.x, part.y), max(part.z, part.w)));
        }
        const REAL base = max_score[a] == MINUS_INFINITY ? (REAL)0 : max_score[a];
        const REAL alpha = d_exp(previous_max - base);
        total[a] *= alpha;
#pragma unroll
        for (int c = 0; c < 4; ++c) {
            const REAL weight = d_exp(score[a][c] - base);
            total[a] += weight;
            __local REAL* to = own + a * TILE_ROW + SIDE * c;
            *to = dropout_factor(to) * weight;
        }
#pragma unroll
        for (int c = 0; c < VECTORS_PER_ITEM(E); ++c) sums[c][a] *= alpha;
    }
}

// Sum of the partial sums of a row.
static inline REAL sum_of_parts(__local const REAL* parts) {
    REAL sum = 0;
    for (int c = 0; c < SIDE; c += 4) {
        const REAL4 part = VECTOR_AT(parts, c);
        sum += part.x + part.y + (part.z + part.w);
    }
    return sum;
}

__kernel FIXED_GROUP_SIZE void attention_tiles(ATTENTION_OPERANDS, __global REAL* restrict y, const long y_offset,
                                               __global REAL* restrict log_sums, const long log_sums_offset,
                                               __local REAL4* restrict shared) {
    __local REAL *staged = (__local REAL*)shared, *weights = staged + STAGED_ELEMENTS;
    __local REAL* parts = weights + TILE * TILE_ROW;  // of reductions of rows, SIDE for each
#if DROPOUT
    __local long seed[2];
    load_seed(seed, random + random_offset);
#endif
    const struct Operand queries = {q + q_offset, s.q_batch, s.q_head, s.q_row};
    const struct Operand keys = {k + k_offset, s.k_batch, s.k_head, s.k_row};
    const struct Operand values = {v + v_offset, s.v_batch, s.v_head, s.v_row};
    const int first = (int)get_group_id(0) * TILE;
    struct Tile tile = own_tile(first, min(TILE, s.queries * s.group - first), 0);
    __local REAL* own = own_weights(weights, tile);
    REAL4 sums[MAX_VECTORS][4];
    REAL max_score[4], total[4], score[4][4];
    clear_sums(sums);
#pragma unroll
    for (int a = 0; a < 4; ++a) max_score[a] = MINUS_INFINITY, total[a] = 0;
    const int end = end_of_keys(s, tile);
    for (tile.keys_at = begin_of_keys(s, tile); tile.keys_at < end; tile.keys_at += TILE) {
        multiply(score, queries, keys, D, staged, s, tile);
        apply_mask(score, scale, mask + mask_offset, slopes + slopes_offset, weights, s, tile);
#pragma unroll
        for (int a = 0; a < 4; ++a)
            parts[(4 * tile.ty + a) * SIDE + tile.tx] =
                max(max(score[a][0], score[a][1]), max(score[a][2], score[a][3]));
        barrier(CLK_LOCAL_MEM_FENCE);
#if DROPOUT
        compute_dropout_factors(weights, seed, random_first, random_index, dropout, s, tile);
#endif
        update_softmax(score, max_score, total, sums, own, parts, tile);
        barrier(CLK_LOCAL_MEM_FENCE);  // the staged keys are no longer read
        stage_keys(staged, values, E, s, tile);
        barrier(CLK_LOCAL_MEM_FENCE);
        add_staged_keys(sums, weights, staged, E, tile);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
    for (int a = 0; a < 4; ++a) parts[(4 * tile.ty + a) * SIDE + tile.tx] = total[a];
    barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
    for (int a = 0; a < 4; ++a) {
        if (4 * tile.ty + a >= tile.count) continue;
        const REAL sum_of_weights = sum_of_parts(parts + (4 * tile.ty + a) * SIDE);
        const struct Query query = query_at(4 * tile.ty + a, s, tile);
        __global REAL* to = y + y_offset + result_row(query, s, tile) * E;
        const REAL factor = sum_of_weights == 0 ? (REAL)0 : 1 / sum_of_weights;
#pragma unroll
        for (int c = 0; c < VECTORS_PER_ITEM(E); ++c) store_columns(to, factor * sums[c][a], c, E, tile);
#if LOG_SUMS
        if (tile.tx == 0)
            log_sums[log_sums_offset + query_index(query, s, tile)] =
                max_score[a] == MINUS_INFINITY ? (REAL)INFINITY : max_score[a] + d_log(sum_of_weights);
#endif
    }
}
