// Max pooling, forward and backward. simd style. The formulas and the macros are described in pool2d.clh.
//
//   max_pool2d_forward   a work-item takes `each` rows of the result. global (ceil(rows / each))
//   max_pool2d_backward  a work-item takes `each` planes and `band` rows of them. global (ceil(planes / each),
//                        ceil(H / band))
#include "pool2d_window_rows.clh"

struct BestVector {
    ROW_VEC value;
    IVEC index;
};

// Maxima of the windows [q, q + LANES) of a plane x, over its rows [first_h, end_h).
static inline struct BestVector max_of_windows(__global const STORED* x, const int W, const int first_h,
                                               const int end_h, const int q) {
    const IVEC column = LANE_INDICES * STRIDE_W + (q * STRIDE_W - PADDING_W);
    struct BestVector best = {(ROW_VEC)(-(REAL)INFINITY), max(column, (IVEC)(0)) + first_h * W};
    for (int h = first_h; h < end_h; ++h)
#pragma unroll
        for (int s = 0; s < WINDOW_W; ++s) {
            const ROW_VEC value = LOAD_STRIDED(x + h * W + q * STRIDE_W - PADDING_W + s);
            IVEC better = ~(value <= best.value) & (best.value == best.value);
#if PADDING_W > 0
            better &= INSIDE(column + s, W);
#endif
            best.value = better ? value : best.value;
            best.index = better ? column + (h * W + s) : best.index;
        }
    return best;
}

NOINLINE void max_pool2d_forward_part(const size_t id0, const struct Pool pool, __global const STORED* restrict x_base,
                                      const long x_offset, __global OUTPUT* restrict out_base, const long out_offset,
                                      __global int* restrict indices_base, const long indices_offset) {
    const long begin = id0 * pool.each, end = min(pool.rows, begin + pool.each);
    long plane = begin / pool.P;
    int p = (int)(begin - plane * pool.P);
    for (long row = begin; row < end; ++row) {
        const long start = plane * pool.H * pool.W;
        const int first_h = max(p * STRIDE_H - PADDING_H, 0), end_h = min(p * STRIDE_H - PADDING_H + WINDOW_H, pool.H);
        __global const STORED* x = x_base + x_offset + start;
        __global OUTPUT* out = out_base + out_offset + row * pool.Q;
        __global int* indices = indices_base + indices_offset + row * pool.Q;
        for (int q = 0; q < pool.Q; q += LANES) {
            if (!is_readable(&pool, start, first_h, end_h, q)) {
                for (int k = q; k < min(q + LANES, pool.Q); ++k) {
                    const struct Best best = max_of_window(x, pool.W, first_h, end_h, k);
                    out[k] = ROUNDED(best.value);
                    if (STORE_INDICES) indices[k] = best.index;
                }
                continue;
            }
            const struct BestVector best = max_of_windows(x, pool.W, first_h, end_h, q);
            store_reals(best.value, out + q, pool.Q - q);
            if (STORE_INDICES) store_ints(ROW_PASTE(convert_int, LANES)(best.index), indices + q, pool.Q - q);
        }
        if (++p == pool.P) p = 0, ++plane;
    }
}

__kernel void max_pool2d_forward(const struct Pool pool, __global const STORED* restrict x_base, const long x_offset,
                                 __global OUTPUT* restrict out_base, const long out_offset,
                                 __global int* restrict indices_base, const long indices_offset) {
    max_pool2d_forward_part(get_global_id(0), pool, x_base, x_offset, out_base, out_offset, indices_base,
                            indices_offset);
}

// A work-item clears the rows of its band and adds the gradient of each window at its index. A window at the border of
// a band is visited by two work-items, but its index is in one band.
NOINLINE void max_pool2d_backward_part(const size_t id0, const size_t id1, const struct Pool pool,
                                       __global const STORED* restrict g_base, const long g_offset,
                                       __global const int* restrict indices_base, const long indices_offset,
                                       __global OUTPUT* restrict x_gradient_base, const long x_gradient_offset) {
    const int first_h = id1 * pool.band, end_h = min(pool.H, first_h + pool.band);
    const int first_p = first_window_h(first_h), last_p = last_window_h(end_h - 1, pool.P);
    const int count = (end_h - first_h) * pool.W;
    const long end = min(pool.rows, ((long)id0 + 1) * pool.each);
    for (long row = id0 * pool.each; row < end; ++row) {
        __global OUTPUT* x_gradient = x_gradient_base + x_gradient_offset + (row * pool.H + first_h) * pool.W;
        __global const STORED* g = g_base + g_offset + row * pool.P * pool.Q;
        __global const int* indices = indices_base + indices_offset + row * pool.P * pool.Q;
        for (int i = 0; i < count; i += LANES) store_reals((ROW_VEC)(0), x_gradient + i, count - i);
        for (int i = first_p * pool.Q; i < (last_p + 1) * pool.Q; ++i) {
            const int at = indices[i] - first_h * pool.W;
            if (at < 0 || at >= count) continue;
#if STRIDE_H >= WINDOW_H && STRIDE_W >= WINDOW_W
            x_gradient[at] = ROUNDED(LOADED(g[i]));
#else
            x_gradient[at] += LOADED(g[i]);  // OUTPUT is REAL
#endif
        }
    }
}

__kernel void max_pool2d_backward(const struct Pool pool, __global const STORED* restrict g_base, const long g_offset,
                                  __global const int* restrict indices_base, const long indices_offset,
                                  __global OUTPUT* restrict x_gradient_base, const long x_gradient_offset) {
    max_pool2d_backward_part(get_global_id(0), get_global_id(1), pool, g_base, g_offset, indices_base, indices_offset,
                             x_gradient_base, x_gradient_offset);
}
