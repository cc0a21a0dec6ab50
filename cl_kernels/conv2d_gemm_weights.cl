// The gradient of a convolution's weights as a matrix product, for CPU-like devices:
//
//   dweight[o][c, t] = sum over n and positions f of  x[n, c, f + offset[t]] * dout[n, o, f]
//
// with the positions, offsets and padded copies of conv2d_tiled_weights.cl. In the product, rows are the streams (c, t),
// columns the output channels o of a group, and the inner index k is (n, f). The rows of x are read where they are, since f
// runs along them; a work-group copies dout transposed, COLUMNS output channels side by side, into local memory, one block
// of k after the other, with zeros where f lies behind the end of a row. Its sums stay in local memory until all its blocks
// are done. Blocks of k are dealt out to chunks, each of which leaves a partial result; conv2d_sum_partials adds them in
// their order. Where filters are single elements, x and dout may change places.
//
//   ROWS, COLUMNS  of a register tile, as in matmul_packed.cl
//   MAX_TAPS, REAL, VW (vectors.clh)
#define GROUP 1
#include "alone.clh"
#include "vectors.clh"

#define VECTORS (COLUMNS / VW)

struct Gradient {
    long x_image, x_channel;        // elements from one image and channel of x to the next
    long dout_image, dout_channel;  // the same of dout
    long partial;                   // elements from one partial result to the next
    int channels, filters;          // input and output channels of a group
    int taps;
    int width, pitch, flat;         // of dout; elements from one row to the next in the positions f; positions
    int images;
    int images_each, positions_each;  // of a block; several images only when all their positions are
    int blocks, blocks_each;        // all, and of a chunk
    int panels, panels_each, row_panels, row_panels_each;  // of COLUMNS columns and ROWS rows: all, and of a work-group
    int swapped;                    // x and dout have changed places, and the result is to be transposed
    int offset[MAX_TAPS];
};

// to[k][o] = from[o][k] for COLUMNS rows o, `stride` apart, of which `here` are there, and k in [0, count).
ALONE void copy_transposed(__global const REAL* from, const long stride, const int here, __local REAL* to, const int count) {
    for (int o = 0; o < COLUMNS; o += 4) {
        __global const REAL* r0 = from + min(o, here - 1) * stride;
        __global const REAL* r1 = from + min(o + 1, here - 1) * stride;
        __global const REAL* r2 = from + min(o + 2, here - 1) * stride;
        __global const REAL* r3 = from + min(o + 3, here - 1) * stride;
        int k = 0;
        for (; k + 4 <= count; k += 4) {
            const REAL4 a = vload4(0, r0 + k), b = vload4(0, r1 + k), c = vload4(0, r2 + k), d = vload4(0, r3 + k);
            __local REAL* corner = to + k * COLUMNS + o;
            vstore4((REAL4)(a.x, b.x, c.x, d.x), 0, corner);
            vstore4((REAL4)(a.y, b.y, c.y, d.y), 0, corner + COLUMNS);
            vstore4((REAL4)(a.z, b.z, c.z, d.z), 0, corner + 2 * COLUMNS);
            vstore4((REAL4)(a.w, b.w, c.w, d.w), 0, corner + 3 * COLUMNS);
        }
        for (; k < count; ++k) vstore4((REAL4)(r0[k], r1[k], r2[k], r3[k]), 0, to + k * COLUMNS + o);
    }
}

// to[i][o] = sum over n and k of x[n][stream[i] + k] * right[(n, k)][o], or that much more. Functions of their own, this one and
// the next, since inlined into the kernel they take twice as long to compile.
ALONE void multiply(__global const REAL* x, const long x_image, const long* stream, const int images, const int count, __local const REAL* right,
              __local REAL* to, const int pitch, const int add) {
    VEC sum[ROWS][VECTORS];
    #pragma unroll
    for (int i = 0; i < ROWS; ++i)
        #pragma unroll
        for (int v = 0; v < VECTORS; ++v) sum[i][v] = (VEC)(0);
    for (int n = 0; n < images; ++n, x += x_image) {
        __global const REAL* left[ROWS];
        #pragma unroll
        for (int i = 0; i < ROWS; ++i) left[i] = x + stream[i];
        for (int k = 0; k < count; ++k, right += COLUMNS) {
            VEC values[VECTORS];
            #pragma unroll
            for (int v = 0; v < VECTORS; ++v) values[v] = VLOAD(right + v * VW);
            #pragma unroll
            for (int i = 0; i < ROWS; ++i) {
                const VEC factor = (VEC)(left[i][k]);
                #pragma unroll
                for (int v = 0; v < VECTORS; ++v) sum[i][v] = fma(factor, values[v], sum[i][v]);
            }
        }
    }
    #pragma unroll
    for (int i = 0; i < ROWS; ++i)
        #pragma unroll
        for (int v = 0; v < VECTORS; ++v) {
            __local REAL* at = to + i * pitch + v * VW;
            VSTORE(add ? sum[i][v] + VLOAD(at) : sum[i][v], at);
        }
}

// result[o][s] = sums[s][o] for `height` streams and `width` output channels.
ALONE void store_transposed(__local const REAL* sums, const int pitch, const int height, const int width, __global REAL* result, const int streams) {
    int o = 0;
    for (; o + 4 <= width; o += 4) {
        __global REAL* to = result + (long)o * streams;
        __local const REAL* from = sums + o;
        int s = 0;
        for (; s + 4 <= height; s += 4, to += 4, from += 4 * pitch) {
            const REAL4 e = vload4(0, from), f = vload4(0, from + pitch), g = vload4(0, from + 2 * pitch), h = vload4(0, from + 3 * pitch);
            vstore4((REAL4)(e.x, f.x, g.x, h.x), 0, to);
            vstore4((REAL4)(e.y, f.y, g.y, h.y), 0, to + streams);
            vstore4((REAL4)(e.z, f.z, g.z, h.z), 0, to + 2 * streams);
            vstore4((REAL4)(e.w, f.w, g.w, h.w), 0, to + 3 * streams);
        }
        for (; s < height; ++s, ++to, from += pitch)
            for (int i = 0; i < 4; ++i) to[i * streams] = from[i];
    }
    for (; o < width; ++o)
        for (int s = 0; s < height; ++s) result[(long)o * streams + s] = sums[s * pitch + o];
}

// global size (ceil(panels / panels_each) * ceil(row_panels / row_panels_each), chunks, groups)
ALONE void conv2d_gemm_backward_weights_part(const size_t id0, const size_t id1, const size_t id2, const struct Gradient d,
                                             __local REAL* restrict block, __local REAL* restrict sums, __global const REAL* restrict x,
                                             const long x_offset, __global const REAL* restrict dout, const long dout_offset,
                                             __global REAL* restrict partials, const long partials_offset) {
    const int group = id2, column_groups = (d.panels + d.panels_each - 1) / d.panels_each;
    const int row_group = (int)id0 / column_groups, column_group = (int)id0 - row_group * column_groups;
    const int first_panel = column_group * d.panels_each, panels = min(d.panels_each, d.panels - first_panel);
    const int first_row = row_group * d.row_panels_each, row_panels = min(d.row_panels_each, d.row_panels - first_row);
    const int streams = d.channels * d.taps, blocks_of_image = (d.flat + d.positions_each - 1) / d.positions_each;
    const int first_block = id1 * d.blocks_each, end_block = min(d.blocks, first_block + d.blocks_each);
    x += x_offset + (long)group * d.channels * d.x_channel;
    dout += dout_offset + ((long)group * d.filters + first_panel * COLUMNS) * d.dout_channel;
    for (int b = first_block; b < end_block; ++b) {
        const int n_first = d.images_each > 1 ? b * d.images_each : b / blocks_of_image;
        const int n_end = min(d.images, n_first + d.images_each);
        const int f_first = d.images_each > 1 ? 0 : (b - n_first * blocks_of_image) * d.positions_each;
        const int f_count = min(d.positions_each, d.flat - f_first), panel_size = (n_end - n_first) * f_count * COLUMNS;
        for (int panel = 0; panel < panels; ++panel) {
            __local REAL* to = block + panel * panel_size;
            const int here = d.filters - (first_panel + panel) * COLUMNS;
            for (int n = n_first; n < n_end; ++n) {
                __global const REAL* image = dout + n * d.dout_image + panel * COLUMNS * d.dout_channel;
                int p = f_first / d.pitch, q = f_first - p * d.pitch;
                for (int f = 0; f < f_count;) {
                    const int run = min(d.pitch - q, f_count - f), inside = clamp(d.width - q, 0, run);
                    copy_transposed(image + p * d.width + q, d.dout_channel, here, to, inside);
                    for (int k = inside; k < run; ++k)
                        #pragma unroll
                        for (int v = 0; v < VECTORS; ++v) VSTORE((VEC)(0), to + k * COLUMNS + v * VW);
                    to += run * COLUMNS;
                    f += run;
                    q = 0;
                    ++p;
                }
            }
        }
        for (int r = 0; r < row_panels; ++r) {
            // Behind the last stream that one is multiplied again, and not stored.
            long stream[ROWS];
            #pragma unroll
            for (int i = 0; i < ROWS; ++i) {
                const int at = min((first_row + r) * ROWS + i, streams - 1), c = at / d.taps;
                stream[i] = c * d.x_channel + d.offset[at - c * d.taps] + f_first;
            }
            for (int panel = 0; panel < panels; ++panel)
                multiply(x + n_first * d.x_image, d.x_image, stream, n_end - n_first, f_count, block + panel * panel_size,
                         sums + (r * ROWS * panels + panel) * COLUMNS, panels * COLUMNS, b > first_block);
        }
    }
    // sums[stream][o] to result[o][stream].
    __global REAL* result = partials + partials_offset + id1 * d.partial + (long)group * d.filters * streams;
    const int height = min(row_panels * ROWS, streams - first_row * ROWS), width = min(panels * COLUMNS, d.filters - first_panel * COLUMNS), pitch = panels * COLUMNS;
    if (d.swapped) {
        result += (long)first_row * ROWS * d.filters + first_panel * COLUMNS;
        for (int s = 0; s < height; ++s)
            for (int o = 0; o < width; ++o) result[(long)s * d.filters + o] = sums[s * pitch + o];
        return;
    }
    result += (long)first_panel * COLUMNS * streams + first_row * ROWS;
    store_transposed(sums, pitch, height, width, result, streams);
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void conv2d_gemm_backward_weights(const struct Gradient d, __local REAL* restrict block, __local REAL* restrict sums, __global const REAL* restrict x,
                                  const long x_offset, __global const REAL* restrict dout, const long dout_offset, __global REAL* restrict partials,
                                  const long partials_offset) {
    conv2d_gemm_backward_weights_part(get_global_id(0), get_global_id(1), get_global_id(2), d, block, sums, x, x_offset, dout, dout_offset, partials,
                                      partials_offset);
}
