// Depthwise convolution (one filter per channel). simt style.
//
//   forward            out[n, c, p, q] = epilogue(bias[c] + sum over i, j of weight[c, i, j] * x[n, c, h, w])
//   backward_input     x_gradient[n, c, h, w] = sum over i, j of weight[c, i, j] * g[n, c, p, q]
//   backward_weights   weight_gradient[c, i, j] = sum over n, p, q of g[n, c, p, q] * x[n, c, h, w]
//   h = p * STRIDE_H + first_h + i * DILATION_H, w = q * STRIDE_W + first_w + j * DILATION_W
//
// with zeros outside of x, g the gradient of out, and the epilogue of epilogue.clh without a bias. Neighbouring
// work-items compute neighbouring elements. In forward, a work-item computes ROWS_PER_ITEM vertically adjacent
// elements, and uses each element of x that it reads for all of them.
//
//   STAGE                    STAGE_FORWARD: also backward_input with strides of 1, as forward of g with flipped
//                            filters; STAGE_BACKWARD_INPUT; STAGE_BACKWARD_WEIGHTS
//   TAPS_H, TAPS_W           size of the filter
//   STRIDE_H, STRIDE_W, DILATION_H, DILATION_W  stride and dilation
//   ROWS_PER_ITEM            1, or more if DILATION_H is 1
//   GROUP                    backward_weights: work-items per group, a power of 2
//   REAL                     element type (math.clh)
#define STAGE_FORWARD 0
#define STAGE_BACKWARD_INPUT 1
#define STAGE_BACKWARD_WEIGHTS 2
#include "math.clh"
#include "epilogue.clh"

struct Depthwise {
    int channels, images;
    int height, width;           // of a plane of x
    int rows, columns;           // of a plane of out
    int first_h, first_w;        // row and column of x that tap (0, 0) reads at position (0, 0)
    int blocks;                  // of ROWS_PER_ITEM rows
    int each;                    // backward_weights: images per group
    int jump_n, jump_p, jump_q;  // backward_weights: increments of image, row and column for GROUP positions
    int flip, has_bias;          // has_bias 0: `bias` may be any buffer and is not read
};

#if STAGE == STAGE_FORWARD
// global size images * channels * blocks * columns, rounded up to the local size
__kernel void conv2d_depthwise_direct(const struct Depthwise d, __global const REAL* restrict x, const long x_offset,
                                      __global const REAL* restrict weight, const long weight_offset,
                                      __global REAL* restrict out, const long out_offset,
                                      __global const REAL* restrict bias, const long bias_offset, EPILOGUE_PARAMETERS) {
    const struct Epilogue epilogue = EPILOGUE_OF_PARAMETERS;
    const int id = get_global_id(0), strip = id / d.columns, plane = strip / d.blocks;
    if (plane >= d.images * d.channels) return;
    const int c = plane - plane / d.channels * d.channels, q = id - strip * d.columns,
              p = (strip - plane * d.blocks) * ROWS_PER_ITEM;
    const int h_first = p * STRIDE_H + d.first_h, w_first = q * STRIDE_W + d.first_w;
    __global const REAL* from = x + x_offset + (long)plane * d.height * d.width;
    __global const REAL* filter = weight + weight_offset + c * (TAPS_H * TAPS_W);
    REAL sum[ROWS_PER_ITEM];
#pragma unroll
    for (int r = 0; r < ROWS_PER_ITEM; ++r) sum[r] = d.has_bias ? bias[bias_offset + c] : (REAL)0;
#pragma unroll
    for (int t = 0; t < (ROWS_PER_ITEM - 1) * STRIDE_H + TAPS_H; ++t) {
        const int h = h_first + t * DILATION_H;
        if (h < 0 || h >= d.height) continue;
#pragma unroll
        for (int j = 0; j < TAPS_W; ++j) {
            const int w = w_first + j * DILATION_W;
            const REAL value = w >= 0 && w < d.width ? from[h * d.width + w] : (REAL)0;
#pragma unroll
            for (int r = 0; r < ROWS_PER_ITEM; ++r) {
                const int i = t - r * STRIDE_H;
                if (i >= 0 && i < TAPS_H)
                    sum[r] = fma(value, filter[d.flip ? TAPS_H * TAPS_W - 1 - i * TAPS_W - j : i * TAPS_W + j], sum[r]);
            }
        }
    }
    const long to = ((long)plane * d.rows + p) * d.columns + q;
#pragma unroll
    for (int r = 0; r < ROWS_PER_ITEM; ++r)
        if (p + r < d.rows)
            out[out_offset + to + r * d.columns] = with_epilogue(epilogue, sum[r], c, to + r * d.columns);
}
#elif STAGE == STAGE_BACKWARD_INPUT
// global size images * channels * height * width, rounded up to the local size
__kernel void conv2d_depthwise_direct_backward_input(const struct Depthwise d, __global const REAL* restrict g,
                                                     const long g_offset, __global const REAL* restrict weight,
                                                     const long weight_offset, __global REAL* restrict x_gradient,
                                                     const long x_gradient_offset) {
    const int id = get_global_id(0), strip = id / d.width, plane = strip / d.height;
    if (plane >= d.images * d.channels) return;
    const int c = plane - plane / d.channels * d.channels, w = id - strip * d.width, h = strip - plane * d.height;
    __global const REAL* from = g + g_offset + (long)plane * d.rows * d.columns;
    __global const REAL* filter = weight + weight_offset + c * (TAPS_H * TAPS_W);
    REAL sum = 0;
#pragma unroll
    for (int i = 0; i < TAPS_H; ++i) {
        const int y = h - d.first_h - i * DILATION_H, p = y / STRIDE_H;
        if (y < 0 || p * STRIDE_H != y || p >= d.rows) continue;
#pragma unroll
        for (int j = 0; j < TAPS_W; ++j) {
            const int z = w - d.first_w - j * DILATION_W, q = z / STRIDE_W;
            if (z >= 0 && q * STRIDE_W == z && q < d.columns)
                sum = fma(from[p * d.columns + q], filter[i * TAPS_W + j], sum);
        }
    }
    x_gradient[x_gradient_offset + id] = sum;
}
#else
// partials[chunk][c][i][j] of `each` images. global size (GROUP * channels, ceil(images / each))
__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void conv2d_depthwise_direct_backward_weights(
    const struct Depthwise d, __global const REAL* restrict x, const long x_offset, __global const REAL* restrict g,
    const long g_offset, __global REAL* restrict partials, const long partials_offset) {
    __local REAL shared[GROUP];
    const int item = get_local_id(0), c = get_group_id(0), plane = d.rows * d.columns;
    const int n_first = get_group_id(1) * d.each, n_end = min(d.images, n_first + d.each);
    int n = item / plane, p = (item - n * plane) / d.columns, q = item - n * plane - p * d.columns;
    n += n_first;
    REAL sum[TAPS_H * TAPS_W];
#pragma unroll
    for (int t = 0; t < TAPS_H * TAPS_W; ++t) sum[t] = 0;
    while (n < n_end) {
        const long at = (long)n * d.channels + c;
        const REAL gradient = g[g_offset + at * plane + p * d.columns + q];
        __global const REAL* from = x + x_offset + at * d.height * d.width;
        const int h_first = p * STRIDE_H + d.first_h, w_first = q * STRIDE_W + d.first_w;
#pragma unroll
        for (int i = 0; i < TAPS_H; ++i)
#pragma unroll
            for (int j = 0; j < TAPS_W; ++j) {
                const int h = h_first + i * DILATION_H, w = w_first + j * DILATION_W;
                const REAL value = h >= 0 && h < d.height && w >= 0 && w < d.width ? from[h * d.width + w] : (REAL)0;
                sum[i * TAPS_W + j] = fma(gradient, value, sum[i * TAPS_W + j]);
            }
        q += d.jump_q;
        p += d.jump_p;
        n += d.jump_n;
        if (q >= d.columns) q -= d.columns, ++p;
        if (p >= d.rows) p -= d.rows, ++n;
    }
    __global REAL* to = partials + partials_offset + ((long)get_group_id(1) * d.channels + c) * (TAPS_H * TAPS_W);
#pragma unroll
    for (int t = 0; t < TAPS_H * TAPS_W; ++t) {
        shared[item] = sum[t];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int distance = GROUP / 2; distance > 0; distance /= 2) {
            if (item < distance) shared[item] += shared[item + distance];
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        if (item == 0) to[t] = shared[0];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}
#endif
