// Pooling over whole planes, forward and, for averages, backward. simd style: a work-item takes `each` planes. global
// (ceil(planes / each)). The formulas and the macros are described in pool2d.clh.
#include "pool2d_rows.clh"

#undef T
#define T D_INT
ROW_HORIZONTAL(first_of, SMALLER)
#undef T
#define T REAL

// Elements are compared in LANES columns, then the columns with each other.
__kernel void max_pool2d_forward_whole(const struct Pool pool, __global const STORED* restrict x_base,
                                       const long x_offset, __global OUTPUT* restrict out, const long out_offset,
                                       __global int* restrict indices, const long indices_offset) {
    const size_t id0 = get_global_id(0);
    const int n = pool.H * pool.W;
    const long end = min(pool.rows, ((long)id0 + 1) * pool.each);
    for (long row = id0 * pool.each; row < end; ++row) {
        __global const STORED* x = x_base + x_offset + row * n;
        REAL value = LOADED(x[0]);
        int index = 0, i = 1;
        if (n >= LANES) {
            ROW_VEC best = LOAD_ROW(x);
            IVEC at = LANE_INDICES;
            for (i = LANES; i + LANES <= n; i += LANES) {
                const ROW_VEC next = LOAD_ROW(x + i);
                const IVEC better = ~(next <= best) & (best == best);
                best = better ? next : best;
                at = better ? LANE_INDICES + i : at;
            }
            value = row_largest_of(best);
            at = ((best == value) | (best != best)) ? at : (IVEC)(n);
            index = (int)first_of(at);
        }
        for (; i < n; ++i) {
            const REAL next = LOADED(x[i]);
            const int better = !(next <= value) & (value == value);
            value = better ? next : value;
            index = better ? i : index;
        }
        out[out_offset + row] = ROUNDED(value);
        if (STORE_INDICES) indices[indices_offset + row] = index;
    }
}

#if STORED_AS == AS_REAL
#define VALUE_TERM(p, q, m) (p)
ROW_SUM(row_sum, VALUE_TERM)

// For 16-bit types the operand is first copied to REAL.
__kernel void avg_pool2d_forward_whole(const struct Pool pool, __global const STORED* restrict x, const long x_offset,
                                       __global OUTPUT* restrict out, const long out_offset) {
    const size_t id0 = get_global_id(0);
    const int n = pool.H * pool.W;
    const long end = min(pool.rows, ((long)id0 + 1) * pool.each);
    for (long row = id0 * pool.each; row < end; ++row) {
        __global const STORED* from = x + x_offset + row * n;
        out[out_offset + row] = ROUNDED(row_sum(from, from, n, 0, pool.elements - row * n) * ((REAL)1 / (REAL)n));
    }
}
#endif

__kernel void avg_pool2d_backward_whole(const struct Pool pool, __global const STORED* restrict g, const long g_offset,
                                        __global OUTPUT* restrict x_gradient_base, const long x_gradient_offset) {
    const size_t id0 = get_global_id(0);
    const int n = pool.H * pool.W;
    const long end = min(pool.rows, ((long)id0 + 1) * pool.each);
    for (long row = id0 * pool.each; row < end; ++row) {
        __global OUTPUT* x_gradient = x_gradient_base + x_gradient_offset + row * n;
        const ROW_VEC part = (ROW_VEC)(LOADED(g[g_offset + row]) * ((REAL)1 / (REAL)n));
        for (int i = 0; i < n; i += LANES) store_reals(part, x_gradient + i, n - i);
    }
}
