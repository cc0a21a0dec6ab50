// col2im: the second step of a convolution's gradient for x by a matrix product. simd style. The contributions of each
// position of g, the gradient of the result, to the elements of x under each tap, products[n][p, q][c][i, j], are
// accumulated:
//
//   x_gradient[n, c, h, w] += products[n][p, q][c][i, j]
//   h = p * stride_h + i * dilation_h - pad_top, w = q * stride_w + j * dilation_w - pad_left
//
// (the transpose of im2col; K. Chellapilla et al., High performance convolutional neural networks, 2006).
//
//   TAPS_H, TAPS_W  size of the filter
//   REAL, VW        element type and vector width (vectors.clh)
//   EPILOGUE        (epilogue_stored.clh)
#include "noinline.clh"
#include "vectors.clh"
#include "epilogue_stored.clh"

#define TAPS (TAPS_H * TAPS_W)

struct Fold {
    int channels, each;  // all; per work-item
    int height, width;   // of x
    int rows, columns;   // of g
    int stride_h, stride_w, pad_top, pad_left, dilation_h, dilation_w;
};

// global size (ceil(channels / each), images)
NOINLINE void conv2d_col2im_part(const size_t id0, const size_t id1, const struct Fold d,
                                 __global const REAL* restrict products, __global REAL* restrict x_gradient_base,
                                 const long x_gradient_offset EPILOGUE_STORED_PARAMETERS) {
    const int first = id0 * d.each, valid = min(d.each, d.channels - first), plane = d.height * d.width;
    const long begin = ((long)id1 * d.channels + first) * plane;
    __global REAL* x_gradient = x_gradient_base + x_gradient_offset + begin;
    products += (long)id1 * d.rows * d.columns * d.channels * TAPS + first * TAPS;
    for (long e = 0; e < (long)valid * plane; ++e) x_gradient[e] = 0;
    for (int p = 0; p < d.rows; ++p)
        for (int q = 0; q < d.columns; ++q, products += (long)d.channels * TAPS) {
            const int h = p * d.stride_h - d.pad_top, w = q * d.stride_w - d.pad_left;
            const bool inside = h >= 0 && h + (TAPS_H - 1) * d.dilation_h < d.height && w >= 0 &&
                                w + (TAPS_W - 1) * d.dilation_w < d.width;
            for (int c = 0; c < valid; ++c) {
                __global const REAL* from = products + c * TAPS;
                __global REAL* to = x_gradient + c * plane + h * d.width + w;
                if (inside)
                    for (int i = 0; i < TAPS_H; ++i)
#pragma unroll
                        for (int j = 0; j < TAPS_W; ++j)
                            to[i * d.dilation_h * d.width + j * d.dilation_w] += from[i * TAPS_W + j];
                else
                    for (int i = 0; i < TAPS_H; ++i)
                        for (int j = 0; j < TAPS_W; ++j) {
                            const int row = h + i * d.dilation_h, column = w + j * d.dilation_w;
                            if (row >= 0 && row < d.height && column >= 0 && column < d.width)
                                to[i * d.dilation_h * d.width + j * d.dilation_w] += from[i * TAPS_W + j];
                        }
            }
        }
#ifdef EPILOGUE
    const struct Epilogue epilogue = EPILOGUE_OF_PARAMETERS;
    for (int c = 0; c < valid; ++c)
        epilogue_stored(epilogue, x_gradient_base + x_gradient_offset, first + c, begin + (long)c * plane, plane);
#endif
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void conv2d_col2im(
    const struct Fold d, __global const REAL* restrict products, const long products_offset,
    __global REAL* restrict x_gradient, const long x_gradient_offset EPILOGUE_STORED_PARAMETERS) {
    conv2d_col2im_part(get_global_id(0), get_global_id(1), d, products + products_offset, x_gradient,
                       x_gradient_offset EPILOGUE_STORED_ARGUMENTS);
}
