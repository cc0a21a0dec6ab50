// Pooling over windows of WINDOW_H x WINDOW_W that move by STRIDE_H, STRIDE_W over x (planes, H, W) padded by PADDING_H, PADDING_W;
// out (planes, P, Q). A plane is one channel of one example.
//
//   max_pool2d_forward:   out[i][p][q] = max of x over the window; winners[i][p][q] = h * W + w of its first place
//   max_pool2d_backward:  x_gradient[i][h][w] = sum of g[i][p][q] over the windows that (h, w) won
//   avg_pool2d_forward:   out[i][p][q] = sum of x over the window / count
//   avg_pool2d_backward:  x_gradient[i][h][w] = sum of g[i][p][q] / count over the windows that hold (h, w)
//
// The gradients gather: each input looks at the windows that cover it, so nothing is added by two work-items.
//
//   global size  (ceil(columns / CHUNK), rows of all planes), columns and rows those of the result
//   CHUNK        columns of a work-item: a whole row on CPU-like devices, 1 on GPU-like ones
//   COUNT_PADDING  1: count is the window's area; 0: only what lies inside x
#include "math.clh"

// Rows are split without %: a pair of / and % becomes an instruction (freeze) that Oclgrind does not know.

#define FIRST_WINDOW(at, padding, window, stride) (((at) + (padding) >= (window)) ? ((at) + (padding) - (window)) / (stride) + 1 : 0)

__kernel void max_pool2d_forward(const long rows, const int H, const int W, const int P, const int Q, __global const REAL* restrict x_base,
                          const long x_offset, __global REAL* restrict out_base, const long out_offset,
                          __global int* restrict winners_base, const long winners_offset) {
    const long row = get_global_id(1);
    if (row >= rows) return;
    const long plane = row / P;
    const int p = (int)(row - plane * P);
    __global const REAL* x = x_base + x_offset + plane * H * W;
    const int first_h = max(p * STRIDE_H - PADDING_H, 0), last_h = min(p * STRIDE_H - PADDING_H + WINDOW_H, H);
    for (int q = get_global_id(0) * CHUNK; q < min(Q, ((int)get_global_id(0) + 1) * CHUNK); ++q) {
        const int first_w = max(q * STRIDE_W - PADDING_W, 0), last_w = min(q * STRIDE_W - PADDING_W + WINDOW_W, W);
        int winner = first_h * W + first_w;
        REAL best = x[winner];
        for (int h = first_h; h < last_h; ++h)
            for (int w = first_w; w < last_w; ++w) {
                const REAL value = x[h * W + w];
                const int better = value > best || (value != value && best == best);
                best = better ? value : best;
                winner = better ? h * W + w : winner;
            }
        out_base[out_offset + row * Q + q] = best;
        winners_base[winners_offset + row * Q + q] = winner;
    }
}

__kernel void max_pool2d_backward(const long rows, const int H, const int W, const int P, const int Q, __global const REAL* restrict g_base,
                           const long g_offset, __global const int* restrict winners_base, const long winners_offset,
                           __global REAL* restrict x_base, const long x_offset) {
    const long row = get_global_id(1);
    if (row >= rows) return;
    const long plane = row / H;
    const int h = (int)(row - plane * H);
    __global const REAL* g = g_base + g_offset + plane * P * Q;
    __global const int* winners = winners_base + winners_offset + plane * P * Q;
    const int first_p = FIRST_WINDOW(h, PADDING_H, WINDOW_H, STRIDE_H), last_p = min((h + PADDING_H) / STRIDE_H, P - 1);
    for (int w = get_global_id(0) * CHUNK; w < min(W, ((int)get_global_id(0) + 1) * CHUNK); ++w) {
        const int first_q = FIRST_WINDOW(w, PADDING_W, WINDOW_W, STRIDE_W), last_q = min((w + PADDING_W) / STRIDE_W, Q - 1);
        REAL sum = 0;
        for (int p = first_p; p <= last_p; ++p)
            for (int q = first_q; q <= last_q; ++q) sum += winners[p * Q + q] == h * W + w ? g[p * Q + q] : (REAL)0;
        x_base[x_offset + row * W + w] = sum;
    }
}

// What a window's sum is divided by.
static inline REAL share(const int p, const int q, const int H, const int W) {
#if COUNT_PADDING
    return (REAL)1 / (REAL)(WINDOW_H * WINDOW_W);
#else
    const int height = min(p * STRIDE_H - PADDING_H + WINDOW_H, H) - max(p * STRIDE_H - PADDING_H, 0);
    const int width = min(q * STRIDE_W - PADDING_W + WINDOW_W, W) - max(q * STRIDE_W - PADDING_W, 0);
    return (REAL)1 / (REAL)(height * width);
#endif
}

__kernel void avg_pool2d_forward(const long rows, const int H, const int W, const int P, const int Q, __global const REAL* restrict x_base,
                          const long x_offset, __global REAL* restrict out_base, const long out_offset) {
    const long row = get_global_id(1);
    if (row >= rows) return;
    const long plane = row / P;
    const int p = (int)(row - plane * P);
    __global const REAL* x = x_base + x_offset + plane * H * W;
    const int first_h = max(p * STRIDE_H - PADDING_H, 0), last_h = min(p * STRIDE_H - PADDING_H + WINDOW_H, H);
    for (int q = get_global_id(0) * CHUNK; q < min(Q, ((int)get_global_id(0) + 1) * CHUNK); ++q) {
        const int first_w = max(q * STRIDE_W - PADDING_W, 0), last_w = min(q * STRIDE_W - PADDING_W + WINDOW_W, W);
        REAL sum = 0;
        for (int h = first_h; h < last_h; ++h)
            for (int w = first_w; w < last_w; ++w) sum += x[h * W + w];
        out_base[out_offset + row * Q + q] = sum * share(p, q, H, W);
    }
}

__kernel void avg_pool2d_backward(const long rows, const int H, const int W, const int P, const int Q, __global const REAL* restrict g_base,
                           const long g_offset, __global REAL* restrict x_base, const long x_offset) {
    const long row = get_global_id(1);
    if (row >= rows) return;
    const long plane = row / H;
    const int h = (int)(row - plane * H);
    __global const REAL* g = g_base + g_offset + plane * P * Q;
    const int first_p = FIRST_WINDOW(h, PADDING_H, WINDOW_H, STRIDE_H), last_p = min((h + PADDING_H) / STRIDE_H, P - 1);
    for (int w = get_global_id(0) * CHUNK; w < min(W, ((int)get_global_id(0) + 1) * CHUNK); ++w) {
        const int first_q = FIRST_WINDOW(w, PADDING_W, WINDOW_W, STRIDE_W), last_q = min((w + PADDING_W) / STRIDE_W, Q - 1);
        REAL sum = 0;
        for (int p = first_p; p <= last_p; ++p)
            for (int q = first_q; q <= last_q; ++q) sum += g[p * Q + q] * share(p, q, H, W);
        x_base[x_offset + row * W + w] = sum;
    }
}
