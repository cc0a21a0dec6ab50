// Gradient of a convolution's weights as a matrix product. simd style.
//
//   weight_gradient[o][c, i, j] = sum over n, p, q of  x[n, c, h, w] * g[n, o, p, q]
//   h = p * stride_h + i * dilation_h - pad_top, w = q * stride_w + j * dilation_w - pad_left
//
// with zeros outside of x, and g the gradient of the result. In the product, rows are the input channels c of one tap
// (i, j), columns the output channels o of a group, and the inner index k is (n, p, q), restricted to the positions at
// which the tap is inside x. x is read in place, one element at a time, so that its strides do not matter; a work-group
// copies g transposed, COLUMNS output channels contiguous, into local memory, one block of k after the other. Its sums
// stay in local memory until all its blocks are done. Blocks of k are distributed over chunks, each of which writes a
// partial result; sum_partials (partial_sums.cl) adds them in order. For 1 x 1 filters x and g may be swapped.
//
//   ROWS, COLUMNS  register tile, as in matmul_packed.cl
//   REAL, VW       type of x and of the arithmetic, and vector width (vectors.clh)
//   STORED         type of g in memory (storage.clh)
//   OUTPUT         type of the result, or of the partial results (storage.clh)
#define GROUP 1
#include "noinline.clh"
#include "transpose_tile.clh"
#include "vectors.clh"
#include "stored_vectors.clh"

#define VECTORS (COLUMNS / VW)

TRANSPOSITION(transpose_vectors, VEC, VW)

struct Gradient {
    long x_image, x_channel;  // strides between images and channels of x
    long g_image, g_channel;  // the same of g
    long partial;             // stride between partial results
    int channels, filters;    // input and output channels per group
    int taps_h, taps_w;
    int height, width;  // of x
    int rows, columns;  // of g
    int stride_h, stride_w, pad_top, pad_left, dilation_h, dilation_w;
    int images;
    int images_each, positions_each;  // of a block; several images only with all their positions
    int blocks, blocks_each;          // all, and per chunk
    int panels, panels_each, row_panels,
        row_panels_each;  // of COLUMNS output and ROWS input channels: all, and per work-group
    int swapped;          // x and g are swapped, and the result is to be transposed
};

// The positions at which a tap is inside x: range of rows and columns, and the offset in x (possibly outside) of
// position (0, 0).
struct Tap {
    int first_row, end_row, first_column, end_column;
    int columns;       // of a row
    int at, row_step;  // row_step: stride between rows of x
};

// Begin and end of the positions p in [0, count) with 0 <= p * step + from < size.
static int first_inside(const int from, const int step) { return from >= 0 ? 0 : (step - 1 - from) / step; }
static int end_inside(const int from, const int step, const int count, const int size) {
    return from >= size ? 0 : min(count, (size - 1 - from) / step + 1);
}

NOINLINE struct Tap tap_of(const struct Gradient* d, const int i, const int j) {
    const int h = i * d->dilation_h - d->pad_top, w = j * d->dilation_w - d->pad_left;
    struct Tap t;
    t.first_row = first_inside(h, d->stride_h);
    t.end_row = end_inside(h, d->stride_h, d->rows, d->height);
    t.first_column = first_inside(w, d->stride_w);
    t.end_column = end_inside(w, d->stride_w, d->columns, d->width);
    t.columns = d->columns;
    t.at = h * d->width + w;
    t.row_step = d->stride_h * d->width;
    if (t.first_column == 0 && t.end_column == d->columns && d->stride_w == 1 && t.row_step == d->columns) {
        // Rows without padding are contiguous: one row.
        t.first_column = t.first_row * d->columns;
        t.end_column = t.end_row * d->columns;
        t.columns = d->rows * d->columns;
        t.end_row = t.end_row > t.first_row ? 1 : 0;
        t.first_row = 0;
    }
    return t;
}

// to[k][o] = from[o][k] for COLUMNS rows o with `stride`, `valid` of which exist, and k in [0, count).
NOINLINE void copy_transposed(__global const STORED* from, const long stride, const int valid, __local REAL* to,
                              const int count) {
    for (int o = 0; o < COLUMNS; o += VW) {
        // The last tile overlaps the one before.
        for (int e = 0; count >= VW && e < count; e += VW) {
            const int k = min(e, count - VW);
            VEC tile[VW];
#pragma unroll
            for (int i = 0; i < VW; ++i) tile[i] = STORED_VLOAD(from + min(o + i, valid - 1) * stride + k);
            transpose_vectors(tile);
#pragma unroll
            for (int i = 0; i < VW; ++i) VSTORE(tile[i], to + (k + i) * COLUMNS + o);
        }
        for (int i = 0; count < VW && i < VW; i += 4) {
            __global const STORED* r0 = from + min(o + i, valid - 1) * stride;
            __global const STORED* r1 = from + min(o + i + 1, valid - 1) * stride;
            __global const STORED* r2 = from + min(o + i + 2, valid - 1) * stride;
            __global const STORED* r3 = from + min(o + i + 3, valid - 1) * stride;
            for (int e = 0; e < count; ++e)
                vstore4((REAL4)(LOADED(r0[e]), LOADED(r1[e]), LOADED(r2[e]), LOADED(r3[e])), 0,
                        to + e * COLUMNS + o + i);
        }
    }
}

// to[i][o] = (or += with `add`) sum over n and the positions of a tap in [first, first + count) of
// x[n][channel i] * right[(n, p, q)][o], for `images` images.
NOINLINE void multiply(const struct Gradient* d, const struct Tap* tap, __global const REAL* x, const int height,
                       const int images, const int first, const int count, __local const REAL* right, __local REAL* to,
                       const int to_row, const int add) {
    const struct Tap t = *tap;
    const long step = d->stride_w;
    VEC sum[ROWS][VECTORS];
#pragma unroll
    for (int i = 0; i < ROWS; ++i)
#pragma unroll
        for (int v = 0; v < VECTORS; ++v) sum[i][v] = (VEC)(0);
    const int p_first = first / t.columns, q_first = first - p_first * t.columns;
    for (int n = 0; n < images; ++n, x += d->x_image, right += count * COLUMNS) {
        // Past the last channel, that channel is multiplied again and not stored.
        __global const REAL* left[ROWS];
#pragma unroll
        for (int i = 0; i < ROWS; ++i) left[i] = x + min(i, height - 1) * d->x_channel;
        int p = p_first, q = q_first;
        for (int f = 0; f < count; q = 0, ++p) {
            const int run = min(t.columns - q, count - f), begin = max(q, t.first_column),
                      end = min(q + run, t.end_column);
            if (p >= t.first_row && p < t.end_row && begin < end) {
                long at = t.at + (long)p * t.row_step + begin * step;
                __local const REAL* values_at = right + (f + begin - q) * COLUMNS;
                __local const REAL* stop = values_at + (end - begin) * COLUMNS;
                for (; values_at != stop; values_at += COLUMNS, at += step) {
                    VEC values[VECTORS];
#pragma unroll
                    for (int v = 0; v < VECTORS; ++v) values[v] = VLOAD(values_at + v * VW);
#pragma unroll
                    for (int i = 0; i < ROWS; ++i) {
                        const VEC factor = (VEC)(left[i][at]);
#pragma unroll
                        for (int v = 0; v < VECTORS; ++v) sum[i][v] = fma(factor, values[v], sum[i][v]);
                    }
                }
            }
            f += run;
        }
    }
#pragma unroll
    for (int i = 0; i < ROWS; ++i)
#pragma unroll
        for (int v = 0; v < VECTORS; ++v) {
            __local REAL* at = to + i * to_row + v * VW;
            VSTORE(add ? sum[i][v] + VLOAD(at) : sum[i][v], at);
        }
}

// result[o][s] = sums[s][o] for `height` rows and `width` output channels.
NOINLINE void store_transposed(__local const REAL* sums, const int pitch, const int height, const int width,
                               __global OUTPUT* result, const int streams) {
    for (int o = 0; o < width; o += VW) {
        __local const REAL* from = sums + o;
        __global OUTPUT* to = result + (long)o * streams;
        const int valid = min(VW, width - o);
        if (height < VW || valid < VW) {
            for (int s = 0; s < height; ++s)
                for (int i = 0; i < valid; ++i) to[(long)i * streams + s] = ROUNDED(from[s * pitch + i]);
            continue;
        }
        for (int e = 0; e < height; e += VW) {
            const int s = min(e, height - VW);
            VEC tile[VW];
#pragma unroll
            for (int i = 0; i < VW; ++i) tile[i] = VLOAD(from + (s + i) * pitch);
            transpose_vectors(tile);
#pragma unroll
            for (int i = 0; i < VW; ++i) OUTPUT_VSTORE(tile[i], to + (long)i * streams + s);
        }
    }
}

// global size (ceil(panels / panels_each) * ceil(row_panels / row_panels_each), chunks, groups)
NOINLINE void conv2d_gemm_backward_weights_part(const size_t id0, const size_t id1, const size_t id2,
                                                const struct Gradient d, __local REAL* restrict block,
                                                __local REAL* restrict sums, __global const REAL* restrict x,
                                                const long x_offset, __global const STORED* restrict g,
                                                const long g_offset, __global OUTPUT* restrict partials,
                                                const long partials_offset) {
    const int group = id2, column_groups = (d.panels + d.panels_each - 1) / d.panels_each;
    const int row_group = (int)id0 / column_groups, column_group = (int)id0 - row_group * column_groups;
    const int first_panel = column_group * d.panels_each, panels = min(d.panels_each, d.panels - first_panel);
    const int first_row = row_group * d.row_panels_each, row_panels = min(d.row_panels_each, d.row_panels - first_row);
    const int taps = d.taps_h * d.taps_w, streams = d.channels * taps, flat = d.rows * d.columns;
    const int blocks_of_image = (flat + d.positions_each - 1) / d.positions_each;
    const int first_block = id1 * d.blocks_each, end_block = min(d.blocks, first_block + d.blocks_each);
    x += x_offset + (long)group * d.channels * d.x_channel;
    g += g_offset + ((long)group * d.filters + first_panel * COLUMNS) * d.g_channel;
    for (int b = first_block; b < end_block; ++b) {
        const int n_first = d.images_each > 1 ? b * d.images_each : b / blocks_of_image;
        const int n_end = min(d.images, n_first + d.images_each);
        const int f_first = d.images_each > 1 ? 0 : (b - n_first * blocks_of_image) * d.positions_each;
        const int f_count = min(d.positions_each, flat - f_first), panel_size = (n_end - n_first) * f_count * COLUMNS;
        for (int panel = 0; panel < panels; ++panel) {
            __local REAL* to = block + panel * panel_size;
            const int valid = d.filters - (first_panel + panel) * COLUMNS;
            for (int n = n_first; n < n_end; ++n, to += f_count * COLUMNS)
                copy_transposed(g + n * d.g_image + panel * COLUMNS * d.g_channel + f_first, d.g_channel, valid, to,
                                f_count);
        }
        for (int t = 0; t < taps; ++t) {
            const struct Tap tap = tap_of(&d, t / d.taps_w, t - t / d.taps_w * d.taps_w);
            for (int r = 0; r < row_panels; ++r) {
                const int c = (first_row + r) * ROWS;
                for (int panel = 0; panel < panels; ++panel)
                    multiply(&d, &tap, x + n_first * d.x_image + c * d.x_channel, d.channels - c, n_end - n_first,
                             f_first, f_count, block + panel * panel_size,
                             sums + ((r * ROWS * taps + t) * panels + panel) * COLUMNS, taps * panels * COLUMNS,
                             b > first_block);
            }
        }
    }
    // Stores sums[stream][o] to result[o][stream].
    __global OUTPUT* result = partials + partials_offset + id1 * d.partial + (long)group * d.filters * streams;
    const int height = min(row_panels * ROWS, d.channels - first_row * ROWS) * taps,
              width = min(panels * COLUMNS, d.filters - first_panel * COLUMNS), pitch = panels * COLUMNS;
    if (d.swapped) {
        result += (long)first_row * ROWS * d.filters + first_panel * COLUMNS;
        for (int s = 0; s < height; ++s)
            for (int o = 0; o < width; ++o) result[(long)s * d.filters + o] = ROUNDED(sums[s * pitch + o]);
        return;
    }
    result += (long)first_panel * COLUMNS * streams + first_row * ROWS * taps;
    store_transposed(sums, pitch, height, width, result, streams);
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void conv2d_gemm_backward_weights(
    const struct Gradient d, __local REAL* restrict block, __local REAL* restrict sums, __global const REAL* restrict x,
    const long x_offset, __global const STORED* restrict g, const long g_offset, __global OUTPUT* restrict partials,
    const long partials_offset) {
    conv2d_gemm_backward_weights_part(get_global_id(0), get_global_id(1), get_global_id(2), d, block, sums, x, x_offset,
                                      g, g_offset, partials, partials_offset);
}
