// The second half of a convolution's gradient for x by way of a matrix product, for CPU-like devices: what each position of dout gives to the
// elements of x under each tap, products[n][p, q][c][i, j], is added up where taps of several positions meet
//
//   dx[n, c, p * step_h + i * hop_h - above, q * step_w + j * hop_w - left] += products[n][p, q][c][i, j]
//
// (K. Chellapilla et al., High performance convolutional neural networks, 2006, the other way round).
//
//   TAPS_H, TAPS_W  elements of the filter
//   VW              elements of a vector
//   REAL            (math.clh), TAIL (finish.clh)
#include "alone.clh"
#include "vectors.clh"
#include "finish.clh"

#define TAPS (TAPS_H * TAPS_W)

struct Fold {
    int channels, each;   // channels of a work-item
    int height, width;    // of x
    int rows, columns;    // of dout
    int step_h, step_w, above, left, hop_h, hop_w;
};

// global size (ceil(channels / each), images)
ALONE void conv2d_fold_part(const size_t id0, const size_t id1, const struct Fold d, __global const REAL* restrict products, __global REAL* restrict dx_base,
                            const long dx_offset FINISH_PARAMETERS) {
    const int first = id0 * d.each, here = min(d.each, d.channels - first), plane = d.height * d.width;
    const long begin = ((long)id1 * d.channels + first) * plane;
    __global REAL* dx = dx_base + dx_offset + begin;
    products += (long)id1 * d.rows * d.columns * d.channels * TAPS + first * TAPS;
    for (long e = 0; e < (long)here * plane; ++e) dx[e] = 0;
    for (int p = 0; p < d.rows; ++p)
        for (int q = 0; q < d.columns; ++q, products += (long)d.channels * TAPS) {
            const int h = p * d.step_h - d.above, w = q * d.step_w - d.left;
            const bool inside = h >= 0 && h + (TAPS_H - 1) * d.hop_h < d.height && w >= 0 && w + (TAPS_W - 1) * d.hop_w < d.width;
            for (int c = 0; c < here; ++c) {
                __global const REAL* from = products + c * TAPS;
                __global REAL* to = dx + c * plane + h * d.width + w;
                if (inside)
                    for (int i = 0; i < TAPS_H; ++i)
                        #pragma unroll
                        for (int j = 0; j < TAPS_W; ++j) to[i * d.hop_h * d.width + j * d.hop_w] += from[i * TAPS_W + j];
                else
                    for (int i = 0; i < TAPS_H; ++i)
                        for (int j = 0; j < TAPS_W; ++j) {
                            const int row = h + i * d.hop_h, column = w + j * d.hop_w;
                            if (row >= 0 && row < d.height && column >= 0 && column < d.width) to[i * d.hop_h * d.width + j * d.hop_w] += from[i * TAPS_W + j];
                        }
            }
        }
#ifdef TAIL
    for (int c = 0; c < here; ++c) FINISH(dx_base + dx_offset, first + c, begin + (long)c * plane, plane)
#endif
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void conv2d_fold(const struct Fold d, __global const REAL* restrict products, const long products_offset, __global REAL* restrict dx, const long dx_offset FINISH_PARAMETERS) {
    conv2d_fold_part(get_global_id(0), get_global_id(1), d, products + products_offset, dx, dx_offset FINISH_ARGUMENTS);
}
