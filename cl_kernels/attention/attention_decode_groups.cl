// Attention of few queries with a KV cache whose length is in device memory (attention_decode.cl). simt style.
//
// A work-group processes one split of the keys for ROWS rows of a head, in tiles of TILE keys. LANES work-items share
// the product of a query and a key; their partial sums are reduced in local memory. Then each work-item accumulates
// some elements of the values, neighbouring work-items neighbouring elements; surplus work-items share the keys. global
// (splits * ITEMS, pieces of ROWS rows x heads, B). Macros: attention_decode.clh and
//
//   REAL       type of the arithmetic (math.clh)
//   STORED_AS  type of keys and values (storage.clh)
//   ITEMS      work-items per group, a multiple of LANES
//   TILE       keys per tile, a multiple of ITEMS / LANES and of ROW_PARTS
//   LANES      work-items per product
//   ROW_PARTS  parts of a row of a tile whose maxima are computed in parallel
//   shared     local memory of ROWS * (D + TILE + TILE * (LANES + 1)) and SLICES * ROWS * (E + 1) + ROWS elements
#include "math.clh"
#include "storage.clh"
#include "attention_decode.clh"

#define SLICES (ITEMS / E > 0 ? ITEMS / E : 1)  // parts of a tile's keys, one per work-item with the same elements
#define COLUMNS ((E + ITEMS - 1) / ITEMS)       // elements per work-item
#define PART (LANES + 1)
#define INLINE static inline __attribute__((always_inline))

// A work-item's parts of the work of its group: products of keys slot, slot + ITEMS / LANES, .., of which it computes
// every LANES-th term; and elements column, column + ITEMS, .. of the values of keys slice, slice + SLICES, ..
struct Item {
    int number, lane, slot, slice, column;
};

static inline struct Item own_item(void) {
    struct Item item;
    item.number = (int)get_local_id(0);
    item.lane = item.number % LANES;
    item.slot = item.number / LANES;
    item.slice = item.number / E;
    item.column = item.number - item.slice * E;
    return item;
}

static inline void load_queries(__local REAL* query, const REAL scale, __global const REAL* q, const struct Item item,
                                const struct Decode s, const struct Piece piece) {
    for (int t = item.number; t < ROWS * D; t += ITEMS) {
        const int r = t / D, row = piece.first + min(r, piece.count - 1);
        query[t] = scale * q[query_offset(s, piece, row) + t - r * D];
    }
}

// parts[row TILE + j][lane] = sum over every LANES-th d of query[row][d] key[j][d], for n keys from key `at`.
INLINE void multiply_keys(__local REAL* parts, __local const REAL* query, __global const STORED* k,
                          __global const INDEX_TYPE* table, const int at, const int n, const struct Item item,
                          const struct Decode s, const struct Piece piece) {
    for (int j = item.slot; j < n; j += ITEMS / LANES) {
        __global const STORED* key = k + key_offset(s, piece, at + j, table);
        REAL part[ROWS];
#pragma unroll
        for (int r = 0; r < ROWS; ++r) part[r] = 0;
        for (int d = item.lane; d < D; d += LANES) {
            const REAL x = LOADED(key[d]);
#pragma unroll
            for (int r = 0; r < ROWS; ++r) part[r] = fma(query[r * D + d], x, part[r]);
        }
#pragma unroll
        for (int r = 0; r < ROWS; ++r) parts[(r * TILE + j) * PART + item.lane] = part[r];
    }
}

// scores[row][j] = sum over lanes of parts; minus infinity for masked keys, and keys from the n-th.
static inline void add_parts(__local REAL* scores, __local const REAL* parts, const int at, const int n,
                             const struct Item item, const struct Decode s, const struct Piece piece) {
    for (int t = item.number; t < ROWS * TILE; t += ITEMS) {
        const int r = t / TILE, j = t - r * TILE, row = piece.first + min(r, piece.count - 1);
        REAL score = DECODE_MINUS_INFINITY;
        if (j < n && at + j >= decode_low(s, piece.length, row) && at + j < decode_high(s, piece.length, row)) {
            score = 0;
            for (int l = 0; l < LANES; ++l) score += parts[t * PART + l];
        }
        scores[t] = score;
    }
}

// maxima[row][part] = maximum over a part of the row's scores.
static inline void find_maxima(__local REAL* maxima, __local const REAL* scores, const struct Item item) {
    for (int t = item.number; t < ROWS * ROW_PARTS; t += ITEMS) {
        REAL largest = DECODE_MINUS_INFINITY;
        for (int j = 0; j < TILE / ROW_PARTS; ++j) largest = max(largest, scores[t * (TILE / ROW_PARTS) + j]);
        maxima[t] = largest;
    }
}

// Updates the running maxima, scales the sums to them, and turns the tile's scores into weights.
INLINE void update_softmax(REAL max_score[ROWS], REAL total[ROWS], REAL sums[ROWS][COLUMNS], __local REAL* weights,
                           __local const REAL* maxima, const struct Item item) {
    REAL base[ROWS];
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        const REAL previous_max = max_score[r];
        for (int j = 0; j < ROW_PARTS; ++j) max_score[r] = max(max_score[r], maxima[r * ROW_PARTS + j]);
        base[r] = max_score[r] == DECODE_MINUS_INFINITY ? (REAL)0 : max_score[r];
        const REAL alpha = d_exp(previous_max - base[r]);
        total[r] *= alpha;
#pragma unroll
        for (int c = 0; c < COLUMNS; ++c) sums[r][c] *= alpha;
    }
    for (int t = item.number; t < ROWS * TILE; t += ITEMS) {
        REAL row_base = base[0];
#pragma unroll
        for (int r = 1; r < ROWS; ++r) row_base = t >= r * TILE ? base[r] : row_base;
        weights[t] = d_exp(weights[t] - row_base);
    }
}

// Adds the weighted values, and the weights, of the work-item's slice of n keys from key `at`.
INLINE void add_values(REAL sums[ROWS][COLUMNS], REAL total[ROWS], __local const REAL* weights,
                       __global const STORED* v, __global const INDEX_TYPE* table, const int at, const int n,
                       const struct Item item, const struct Decode s, const struct Piece piece) {
    for (int j = item.slice; j < n; j += SLICES) {
        __global const STORED* value = v + value_offset(s, piece, at + j, table);
#pragma unroll
        for (int r = 0; r < ROWS; ++r) total[r] += weights[r * TILE + j];
#pragma unroll
        for (int c = 0; c < COLUMNS; ++c) {
            const int e = item.column + c * ITEMS;
            if (COLUMNS > 1 && e >= E) continue;
            const REAL x = LOADED(value[e]);
#pragma unroll
            for (int r = 0; r < ROWS; ++r) sums[r][c] = fma(weights[r * TILE + j], x, sums[r][c]);
        }
    }
}

// Stores slices[slice][row][E] and totals[slice][row], the sums of a slice and of its exponentials.
INLINE void store_slice(__local REAL* slices, __local REAL* totals, const REAL sums[ROWS][COLUMNS],
                        const REAL total[ROWS], const struct Item item) {
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
#pragma unroll
        for (int c = 0; c < COLUMNS; ++c) {
            const int e = item.column + c * ITEMS;
            if (e < E) slices[(item.slice * ROWS + r) * E + e] = sums[r][c];
        }
    }
    if (item.column == 0)
#pragma unroll
        for (int r = 0; r < ROWS; ++r) totals[item.slice * ROWS + r] = total[r];
}

__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void attention_decode_groups(DECODE_OPERANDS,
                                                                                         __local REAL* shared) {
    __local REAL *query = shared, *weights = query + ROWS * D, *parts = weights + ROWS * TILE;
    const struct Item item = own_item();
    const int split = (int)get_group_id(0);
    const struct Piece piece =
        decode_piece(s, lengths + lengths_offset, get_group_id(2), (int)get_group_id(1), split, TILE);
    load_queries(query, scale, q + q_offset, item, s, piece);
    REAL max_score[ROWS], total[ROWS], sums[ROWS][COLUMNS];
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        max_score[r] = DECODE_MINUS_INFINITY;
        total[r] = 0;
#pragma unroll
        for (int c = 0; c < COLUMNS; ++c) sums[r][c] = 0;
    }
    for (int at = piece.begin; at < piece.end; at += TILE) {
        const int n = min(TILE, piece.end - at);
        barrier(CLK_LOCAL_MEM_FENCE);  // the previous tile is finished, the queries are loaded
        multiply_keys(parts, query, k + k_offset, table + table_offset, at, n, item, s, piece);
        barrier(CLK_LOCAL_MEM_FENCE);
        add_parts(weights, parts, at, n, item, s, piece);
        barrier(CLK_LOCAL_MEM_FENCE);
        find_maxima(parts, weights, item);
        barrier(CLK_LOCAL_MEM_FENCE);
        update_softmax(max_score, total, sums, weights, parts, item);
        barrier(CLK_LOCAL_MEM_FENCE);
        if (item.slice < SLICES)
            add_values(sums, total, weights, v + v_offset, table + table_offset, at, n, item, s, piece);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    __local REAL *slices = shared, *totals = slices + SLICES * ROWS * E;
    if (item.slice < SLICES) store_slice(slices, totals, sums, total, item);
#if SPLIT_KEYS
    __local REAL* largest = totals + SLICES * ROWS;
    if (item.number == 0)
#pragma unroll
        for (int r = 0; r < ROWS; ++r) largest[r] = max_score[r];
#endif
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int t = item.number; t < piece.count * E; t += ITEMS) {
        const int r = t / E, e = t - r * E, row = piece.first + r;
        REAL total_weight = 0, sum = 0;
        for (int l = 0; l < SLICES; ++l) {
            total_weight += totals[l * ROWS + r];
            sum += slices[(l * ROWS + r) * E + e];
        }
#if SPLIT_KEYS
        __global REAL* to = y + y_offset + partial_offset(s, piece, split, (long)get_num_groups(2), row);
        to[e] = sum;
        if (e == 0) {
            to[E] = largest[r];
            to[E + 1] = total_weight;
        }
#else
        y[y_offset + result_offset(s, piece, row) + e] = total_weight == 0 ? (REAL)0 : sum / total_weight;
#endif
    }
}
