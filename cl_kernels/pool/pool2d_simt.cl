// Max and average pooling, forward and backward. simt style: a work-item computes one element of the result. global
// (columns, rows of all planes), rounded up to the local size. The formulas and the macros are described in pool2d.clh.
#define SCALAR_FN static inline
#include "pool2d_windows.clh"

__kernel void max_pool2d_forward(const struct Pool pool, __global const STORED* restrict x_base, const long x_offset,
                                 __global OUTPUT* restrict out, const long out_offset, __global int* restrict indices,
                                 const long indices_offset) {
    const int column = get_global_id(0);
    const long row = get_global_id(1);
    if (row >= pool.rows || column >= pool.Q) return;
    const long plane = row / pool.P;
    const int h = (int)(row - plane * pool.P) * STRIDE_H - PADDING_H;
    const struct Best best = max_of_window(x_base + x_offset + plane * pool.H * pool.W, pool.W, max(h, 0),
                                           min(h + WINDOW_H, pool.H), column);
    out[out_offset + row * pool.Q + column] = ROUNDED(best.value);
    if (STORE_INDICES) indices[indices_offset + row * pool.Q + column] = best.index;
}

__kernel void max_pool2d_backward(const struct Pool pool, __global const STORED* restrict g_base, const long g_offset,
                                  __global const int* restrict indices_base, const long indices_offset,
                                  __global OUTPUT* restrict x_gradient, const long x_gradient_offset) {
    const int column = get_global_id(0);
    const long row = get_global_id(1);
    if (row >= pool.rows || column >= pool.W) return;
    const long plane = row / pool.H;
    const int h = (int)(row - plane * pool.H);
    __global const STORED* g = g_base + g_offset + plane * pool.P * pool.Q;
    __global const int* indices = indices_base + indices_offset + plane * pool.P * pool.Q;
    const int first_p = first_window_h(h), last_p = last_window_h(h, pool.P);
    const int first_q = first_window_w(column), last_q = last_window_w(column, pool.Q);
    REAL sum = 0;
    for (int p = first_p; p <= last_p; ++p)
        for (int q = first_q; q <= last_q; ++q)
            sum += indices[p * pool.Q + q] == h * pool.W + column ? LOADED(g[p * pool.Q + q]) : (REAL)0;
    x_gradient[x_gradient_offset + row * pool.W + column] = ROUNDED(sum);
}

__kernel void avg_pool2d_forward(const struct Pool pool, __global const STORED* restrict x_base, const long x_offset,
                                 __global OUTPUT* restrict out, const long out_offset) {
    const int column = get_global_id(0);
    const long row = get_global_id(1);
    if (row >= pool.rows || column >= pool.Q) return;
    const long plane = row / pool.P;
    const int p = (int)(row - plane * pool.P), h = p * STRIDE_H - PADDING_H;
    const REAL sum = sum_of_window(x_base + x_offset + plane * pool.H * pool.W, pool.W, max(h, 0),
                                   min(h + WINDOW_H, pool.H), column);
    out[out_offset + row * pool.Q + column] = ROUNDED(sum * inverse_count(p, column, pool.H, pool.W));
}

__kernel void avg_pool2d_backward(const struct Pool pool, __global const STORED* restrict g_base, const long g_offset,
                                  __global OUTPUT* restrict x_gradient, const long x_gradient_offset) {
    const int column = get_global_id(0);
    const long row = get_global_id(1);
    if (row >= pool.rows || column >= pool.W) return;
    const long plane = row / pool.H;
    const int h = (int)(row - plane * pool.H);
    const int first_p = first_window_h(h), last_p = last_window_h(h, pool.P);
    x_gradient[x_gradient_offset + row * pool.W + column] =
        ROUNDED(backward_sum(g_base + g_offset + plane * pool.P * pool.Q, &pool, first_p, last_p, column));
}
