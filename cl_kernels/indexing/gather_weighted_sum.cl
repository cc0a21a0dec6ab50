// Weighted sums of K rows of a table (V, D) for each of N positions, with `indices` (N, K) and weights (N, K),
// and the gradient of the weights:
//
//   gather_weighted_sum:    out[i][d] = sum over k of weights[i][k] rows[indices[i][k]][d]
//   gather_weighted_sum_backward_weights:  out[i][k] = sum over d of g[i][d] rows[indices[i][k]][d]
//
// Indices outside [0, V) contribute 0. `other` is the weights in the first kernel, g in the second.
//
//   SIMD     simd style: a work-item takes `each` positions. global (ceil(N / each))
//   SIMT     simt style: one element of the result each. global (elements, rounded up to the local size)
//   ROWS     K if known at compile time, otherwise 0
//   REAL, T  float or double
//   LANES    SIMD: elements per vector
#include "noinline.clh"
#include "math.clh"

struct GatherWeightedSum {
    long positions, each;
    long rows, length, k;
};

#define PARAMETERS                                                                                             \
    const struct GatherWeightedSum s, __global const REAL *restrict rows, const long rows_offset,              \
        __global const long *restrict indices, const long indices_offset, __global const REAL *restrict other, \
        const long other_offset, __global REAL *restrict out, const long out_offset
#define ARGUMENTS s, rows, rows_offset, indices, indices_offset, other, other_offset, out, out_offset

static inline bool is_in_range(const long index, const long rows) { return index >= 0 && index < rows; }

#ifdef SIMD

#include "row.clh"

NOINLINE void gather_weighted_sum_part(const size_t id0, PARAMETERS) {
    const int K = ROWS ? ROWS : (int)s.k;
    const long last = min(s.positions, ((long)id0 + 1) * s.each);
    for (long i = id0 * s.each; i < last; ++i) {
        __global const long* index = indices + indices_offset + i * K;
        __global const REAL* weight = other + other_offset + i * K;
        __global REAL* to = out + out_offset + i * s.length;
        long d = 0;
        for (; d + LANES <= s.length; d += LANES) {
            ROW_VEC sum = (ROW_VEC)(0);
            for (int k = 0; k < K; ++k)
                if (is_in_range(index[k], s.rows))
                    sum += weight[k] * ROW_LOAD(rows + rows_offset + index[k] * s.length + d);
            row_store(sum, to + d);
        }
        for (; d < s.length; ++d) {
            REAL sum = 0;
            for (int k = 0; k < K; ++k)
                if (is_in_range(index[k], s.rows)) sum += weight[k] * rows[rows_offset + index[k] * s.length + d];
            to[d] = sum;
        }
    }
}

__kernel void gather_weighted_sum(PARAMETERS) { gather_weighted_sum_part(get_global_id(0), ARGUMENTS); }

NOINLINE void gather_weighted_sum_backward_weights_part(const size_t id0, PARAMETERS) {
    const int K = ROWS ? ROWS : (int)s.k;
    const long last = min(s.positions, ((long)id0 + 1) * s.each);
    for (long i = id0 * s.each; i < last; ++i) {
        __global const REAL* g = other + other_offset + i * s.length;
        for (int k = 0; k < K; ++k) {
            const long at = i * K + k, index = indices[indices_offset + at];
            REAL sum = 0;
            if (is_in_range(index, s.rows)) {
                __global const REAL* row = rows + rows_offset + index * s.length;
                ROW_VEC sums = (ROW_VEC)(0);
                long d = 0;
                for (; d + LANES <= s.length; d += LANES) sums += ROW_LOAD(g + d) * ROW_LOAD(row + d);
                sum = row_sum_of(sums);
                for (; d < s.length; ++d) sum += g[d] * row[d];
            }
            out[out_offset + at] = sum;
        }
    }
}

__kernel void gather_weighted_sum_backward_weights(PARAMETERS) {
    gather_weighted_sum_backward_weights_part(get_global_id(0), ARGUMENTS);
}

#else

__kernel void gather_weighted_sum(PARAMETERS) {
    const int K = ROWS ? ROWS : (int)s.k;
    const long id = get_global_id(0), i = id / s.length, d = id - i * s.length;
    if (i >= s.positions) return;
    REAL sum = 0;
    for (int k = 0; k < K; ++k) {
        const long index = indices[indices_offset + i * K + k];
        if (is_in_range(index, s.rows))
            sum += other[other_offset + i * K + k] * rows[rows_offset + index * s.length + d];
    }
    out[out_offset + id] = sum;
}

__kernel void gather_weighted_sum_backward_weights(PARAMETERS) {
    const int K = ROWS ? ROWS : (int)s.k;
    const long id = get_global_id(0), i = id / K;
    if (i >= s.positions) return;
    const long index = indices[indices_offset + id];
    REAL sum = 0;
    if (is_in_range(index, s.rows))
        for (long d = 0; d < s.length; ++d)
            sum += other[other_offset + i * s.length + d] * rows[rows_offset + index * s.length + d];
    out[out_offset + id] = sum;
}

#endif
