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

__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void attention_decode_groups(DECODE_OPERANDS,
                                                                                         __local REAL* shared) {
    DECODE_ADD_OFFSETS
    __local REAL *query = shared, *weights = query + ROWS * D, *parts = weights + ROWS * TILE;
    const int item = (int)get_local_id(0), split = (int)get_group_id(0), piece = (int)get_group_id(1);
    const long b = get_group_id(2), h = piece % s.heads;
    const int length = decode_length(s, lengths, b), rows = s.queries * s.group;
    const int first = piece / s.heads * ROWS, count = min(ROWS, rows - first);
    DECODE_SPAN(first, first + count, TILE)
    for (int t = item; t < ROWS * D; t += ITEMS) {
        const int r = t / D, row = first + min(r, count - 1);
        query[t] =
            scale * q[b * s.q_batch + (h * s.group + row % s.group) * s.q_head + row / s.group * s.q_row + t - r * D];
    }
    REAL max_score[ROWS], total[ROWS], sums[ROWS][COLUMNS];
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        max_score[r] = DECODE_MINUS_INFINITY;
        total[r] = 0;
#pragma unroll
        for (int c = 0; c < COLUMNS; ++c) sums[r][c] = 0;
    }
    const int lane = item % LANES, slot = item / LANES, slice = item / E, column = item - slice * E;
    for (int at = begin; at < stop; at += TILE) {
        const int n = min(TILE, stop - at);
        barrier(CLK_LOCAL_MEM_FENCE);  // the previous tile is finished, the queries are loaded
        for (int j = slot; j < n; j += ITEMS / LANES) {
            __global const STORED* key = k + DECODE_OFFSET(k, at + j);
            REAL part[ROWS];
#pragma unroll
            for (int r = 0; r < ROWS; ++r) part[r] = 0;
            for (int d = lane; d < D; d += LANES) {
                const REAL x = LOADED(key[d]);
#pragma unroll
                for (int r = 0; r < ROWS; ++r) part[r] = fma(query[r * D + d], x, part[r]);
            }
#pragma unroll
            for (int r = 0; r < ROWS; ++r) parts[(r * TILE + j) * PART + lane] = part[r];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int t = item; t < ROWS * TILE; t += ITEMS) {
            const int r = t / TILE, j = t - r * TILE, row = first + min(r, count - 1);
            REAL score = DECODE_MINUS_INFINITY;
            if (j < n && at + j >= decode_low(s, length, row) && at + j < decode_high(s, length, row)) {
                score = 0;
                for (int l = 0; l < LANES; ++l) score += parts[t * PART + l];
            }
            weights[t] = score;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int t = item; t < ROWS * ROW_PARTS; t += ITEMS) {
            REAL largest = DECODE_MINUS_INFINITY;
            for (int j = 0; j < TILE / ROW_PARTS; ++j) largest = max(largest, weights[t * (TILE / ROW_PARTS) + j]);
            parts[t] = largest;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        REAL base[ROWS];
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            const REAL previous_max = max_score[r];
            for (int j = 0; j < ROW_PARTS; ++j) max_score[r] = max(max_score[r], parts[r * ROW_PARTS + j]);
            base[r] = max_score[r] == DECODE_MINUS_INFINITY ? (REAL)0 : max_score[r];
            const REAL alpha = d_exp(previous_max - base[r]);
            total[r] *= alpha;
#pragma unroll
            for (int c = 0; c < COLUMNS; ++c) sums[r][c] *= alpha;
        }
        for (int t = item; t < ROWS * TILE; t += ITEMS) {
            REAL of_row = base[0];
#pragma unroll
            for (int r = 1; r < ROWS; ++r) of_row = t >= r * TILE ? base[r] : of_row;
            weights[t] = d_exp(weights[t] - of_row);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        if (slice < SLICES) {
            for (int j = slice; j < n; j += SLICES) {
                __global const STORED* value = v + DECODE_OFFSET(v, at + j);
#pragma unroll
                for (int r = 0; r < ROWS; ++r) total[r] += weights[r * TILE + j];
#pragma unroll
                for (int c = 0; c < COLUMNS; ++c) {
                    const int e = column + c * ITEMS;
                    if (COLUMNS > 1 && e >= E) continue;
                    const REAL x = LOADED(value[e]);
#pragma unroll
                    for (int r = 0; r < ROWS; ++r) sums[r][c] = fma(weights[r * TILE + j], x, sums[r][c]);
                }
            }
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    // Stores sums[slice][row][E], and the sum of exponentials of each slice and row.
    __local REAL* totals = shared + SLICES * ROWS * E;
    if (slice < SLICES) {
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
#pragma unroll
            for (int c = 0; c < COLUMNS; ++c)
                if (column + c * ITEMS < E) shared[(slice * ROWS + r) * E + column + c * ITEMS] = sums[r][c];
        }
        if (column == 0)
#pragma unroll
            for (int r = 0; r < ROWS; ++r) totals[slice * ROWS + r] = total[r];
    }
#if SPLIT_KEYS
    __local REAL* largest = totals + SLICES * ROWS;
    if (item == 0)
#pragma unroll
        for (int r = 0; r < ROWS; ++r) largest[r] = max_score[r];
#endif
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int t = item; t < count * E; t += ITEMS) {
        const int r = t / E, e = t - r * E, row = first + r;
        REAL total_weight = 0, sum = 0;
        for (int l = 0; l < SLICES; ++l) {
            total_weight += totals[l * ROWS + r];
            sum += shared[(l * ROWS + r) * E + e];
        }
#if SPLIT_KEYS
        __global REAL* to = y + ((split * (long)get_num_groups(2) + b) * s.heads + h) * rows * (E + 2) + row * (E + 2);
        to[e] = sum;
        if (e == 0) {
            to[E] = largest[r];
            to[E + 1] = total_weight;
        }
#else
        y[((b * s.queries + row / s.group) * s.heads * s.group + h * s.group + row % s.group) * E + e] =
            total_weight == 0 ? (REAL)0 : sum / total_weight;
#endif
    }
}
