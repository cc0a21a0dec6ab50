// Average pooling, forward and backward. simd style. The formulas and the macros are described in pool2d.clh. A
// work-item takes `each` rows of the result. global (ceil(rows / each))
#include "pool2d_window_rows.clh"

// The factors 1 / count of windows [q, q + LANES); `column` is the first column of each, `height` the number of their
// rows inside x.
static inline ROW_VEC inverse_counts(const int height, const IVEC column, const int W) {
#if COUNT_PADDING
    return (ROW_VEC)((REAL)1 / (REAL)(WINDOW_H * WINDOW_W));
#else
    return (ROW_VEC)(1) / TO_REALS((min(column + WINDOW_W, (IVEC)(W)) - max(column, (IVEC)(0))) * height);
#endif
}

// Sums of the windows [q, q + LANES) of a plane x, over its rows [first_h, end_h); `column` is the first column of
// each.
static inline ROW_VEC sum_of_windows(__global const STORED* x, const int W, const int first_h, const int end_h,
                                     const int q, const IVEC column) {
    ROW_VEC sum = (ROW_VEC)(0);
    for (int h = first_h; h < end_h; ++h)
#pragma unroll
        for (int s = 0; s < WINDOW_W; ++s) {
            const ROW_VEC value = LOAD_STRIDED(x + h * W + q * STRIDE_W - PADDING_W + s);
#if PADDING_W > 0
            sum += INSIDE(column + s, W) ? value : (ROW_VEC)(0);
#else
            sum += value;
#endif
        }
    return sum;
}

NOINLINE void avg_pool2d_forward_part(const size_t id0, const struct Pool pool, __global const STORED* restrict x_base,
                                      const long x_offset, __global OUTPUT* restrict out_base, const long out_offset) {
    const long begin = id0 * pool.each, end = min(pool.rows, begin + pool.each);
    long plane = begin / pool.P;
    int p = (int)(begin - plane * pool.P);
    for (long row = begin; row < end; ++row) {
        const long start = plane * pool.H * pool.W;
        const int first_h = max(p * STRIDE_H - PADDING_H, 0), end_h = min(p * STRIDE_H - PADDING_H + WINDOW_H, pool.H);
        __global const STORED* x = x_base + x_offset + start;
        __global OUTPUT* out = out_base + out_offset + row * pool.Q;
        for (int q = 0; q < pool.Q; q += LANES) {
            if (!is_readable(&pool, start, first_h, end_h, q)) {
                for (int k = q; k < min(q + LANES, pool.Q); ++k)
                    out[k] = ROUNDED(sum_of_window(x, pool.W, first_h, end_h, k) * inverse_count(p, k, pool.H, pool.W));
                continue;
            }
            const IVEC column = LANE_INDICES * STRIDE_W + (q * STRIDE_W - PADDING_W);
            const ROW_VEC sum = sum_of_windows(x, pool.W, first_h, end_h, q, column);
            store_reals(sum * inverse_counts(end_h - first_h, column, pool.W), out + q, pool.Q - q);
        }
        if (++p == pool.P) p = 0, ++plane;
    }
}

__kernel void avg_pool2d_forward(const struct Pool pool, __global const STORED* restrict x_base, const long x_offset,
                                 __global OUTPUT* restrict out_base, const long out_offset) {
    avg_pool2d_forward_part(get_global_id(0), pool, x_base, x_offset, out_base, out_offset);
}

// Sums for the columns w + b + STRIDE_W k in lanes k, phase b. Such a column is at offset `rest` of window `first` + k,
// and further right in the windows before it.
#if STRIDE_W <= 2
static inline ROW_VEC backward_phase(__global const STORED* g, const struct Pool* pool, const int first_p,
                                     const int last_p, const int w, const int b) {
    const int first = w / STRIDE_W + (b + PADDING_W) / STRIDE_W, rest = (b + PADDING_W) % STRIDE_W;
    ROW_VEC sum = (ROW_VEC)(0);
    for (int p = first_p; p <= last_p; ++p)
#pragma unroll
        for (int before = (WINDOW_W - 1) / STRIDE_W; before >= 0; --before) {
            if (rest + before * STRIDE_W >= WINDOW_W) continue;
            const IVEC q = LANE_INDICES + (first - before);
            const int height = min(p * STRIDE_H - PADDING_H + WINDOW_H, pool->H) - max(p * STRIDE_H - PADDING_H, 0);
            const ROW_VEC part = inverse_counts(height, q * STRIDE_W - PADDING_W, pool->W);
            const ROW_VEC term = LOAD_ROW(g + p * pool->Q + first - before) * part;
            sum += INSIDE(q, pool->Q) ? term : (ROW_VEC)(0);
        }
    return sum;
}
#endif

NOINLINE void avg_pool2d_backward_part(const size_t id0, const struct Pool pool, __global const STORED* restrict g_base,
                                       const long g_offset, __global OUTPUT* restrict x_gradient_base,
                                       const long x_gradient_offset) {
    const long begin = id0 * pool.each, end = min(pool.rows, begin + pool.each);
    long plane = begin / pool.H;
    int h = (int)(begin - plane * pool.H);
    for (long row = begin; row < end; ++row) {
        const long start = plane * pool.P * pool.Q;
        const int first_p = first_window_h(h), last_p = last_window_h(h, pool.P);
        __global const STORED* g = g_base + g_offset + start;
        __global OUTPUT* x_gradient = x_gradient_base + x_gradient_offset + row * pool.W;
        for (int w = 0; w < pool.W; w += STRIDE_W * LANES) {
            const int remaining = pool.W - w;
#if STRIDE_W <= 2
            const long lowest = start + first_p * pool.Q + w / STRIDE_W + (PADDING_W - WINDOW_W + 1) / STRIDE_W;
            const long highest = start + last_p * pool.Q + w / STRIDE_W + (STRIDE_W - 1 + PADDING_W) / STRIDE_W + LANES;
            if (lowest > 0 && highest <= pool.elements) {
                const ROW_VEC a = backward_phase(g, &pool, first_p, last_p, w, 0);
#if STRIDE_W == 1
                store_reals(a, x_gradient + w, remaining);
#else
                const ROW_VEC b = backward_phase(g, &pool, first_p, last_p, w, 1);
                store_reals(ZIP_LOW(a, b), x_gradient + w, remaining);
                if (remaining > LANES) store_reals(ZIP_HIGH(a, b), x_gradient + w + LANES, remaining - LANES);
#endif
                continue;
            }
#endif
            for (int k = w; k < min(w + STRIDE_W * LANES, pool.W); ++k)
                x_gradient[k] = ROUNDED(backward_sum(g, &pool, first_p, last_p, k));
        }
        if (++h == pool.H) h = 0, ++plane;
    }
}

__kernel void avg_pool2d_backward(const struct Pool pool, __global const STORED* restrict g_base, const long g_offset,
                                  __global OUTPUT* restrict x_gradient_base, const long x_gradient_offset) {
    avg_pool2d_backward_part(get_global_id(0), pool, g_base, g_offset, x_gradient_base, x_gradient_offset);
}
