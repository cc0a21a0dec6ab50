// Depthwise convolution (a filter of its own for each channel), for CPU-like devices.
//
//   forward:           out[n, c, p, q]  = bias[c] + sum over i, j of  weight[c, i, j] * z[p * step_h + i * hop_h][q * step_w + j * hop_w]
//   backward_weights:  dweight[c, i, j] = sum over n, p, q of  dout[n, c, p, q] * z[...]
//
// where z is the plane (n, c) of x behind first_h rows and first_w columns of zeros (fewer than none: so many are left out).
// backward_input is forward of dout with flipped filters, where up_h - 1 rows and up_w - 1 columns of zeros lie between those
// of dout. A work-item copies the rows of z that a band of rows of out needs into local memory, each cut into step_w
// parts by the remainder of the column, so that neighbours in out meet neighbours.
//
//   TAPS_H, TAPS_W   elements of the filter
//   BLOCK, MOST_ROWS elements of local memory for the rows of z, and most rows
//   DENSE            1: up_h is 1, and rows of zeros are few; 0: they are left out
//   WEIGHTS          1: the kernel for backward_weights
//   REAL, VW         (vectors.clh)
#define GROUP 1
#include "vectors.clh"

struct Depthwise {
    long planes;             // of x and of out: images * channels
    int channels, images;
    int height, width;       // of a plane of x
    int rows, columns;       // of a plane of out
    int step_h, step_w, up_h, up_w, first_h, first_w, hop_h, hop_w;
    int part;                // elements of a part of a row of z, a multiple of VW
    int band;                // rows of out whose rows of z are copied at once
    int each;                // planes, or for WEIGHTS images, of a work-item
    int begin, end;          // columns of x whose place lies within a row of z, with a vector to spare behind them
    int flip, has_bias;
};

// `count` elements, at most VW, and zeros behind them; `there` elements may be read.
static VEC load_some(__global const REAL* from, const int count, const long there) {
    if (there >= VW) return select((VEC)(0), VLOAD(from), LANE_NUMBERS < (LANES)(count));
    REAL one[VW];
    for (int e = 0; e < VW; ++e) one[e] = e < count && e < there ? from[e] : (REAL)0;
    return VLOAD(one);
}

// `there` elements may be read at `from`.
static void copy_row(const struct Depthwise* d, __global const REAL* from, const long there, __local REAL* row) {
    const int size = d->part * d->step_w;
    for (int e = 0; e < size; e += VW) VSTORE((VEC)(0), row + e);
    int w = d->begin;
    const int end = d->end;
    if (d->up_w == 1 && d->step_w == 1) {
        for (; w + VW <= end; w += VW) VSTORE(VLOAD(from + w), row + d->first_w + w);
        if (w < end) VSTORE(load_some(from + w, end - w, there - w), row + d->first_w + w);
    } else if (d->up_w == 1 && d->step_w == 2) {
        for (; w < end; w += 2 * VW) {
            const bool whole = w + 2 * VW <= end;
            const VEC a = whole ? VLOAD(from + w) : load_some(from + w, end - w, there - w);
            const VEC b = whole ? VLOAD(from + w + VW) : load_some(from + w + VW, end - w - VW, there - w - VW);
            const int k = w + d->first_w;
            VSTORE(EVEN(a, b), row + (k & 1) * d->part + (k >> 1));
            VSTORE(ODD(a, b), row + ((k + 1) & 1) * d->part + ((k + 1) >> 1));
        }
    } else if (d->up_w == 2 && d->step_w == 1) {
        for (; w < end; w += VW) {
            const VEC a = load_some(from + w, end - w, there - w);
            const VEC none = (VEC)(0), low = ZIP_LOW(a, none), high = ZIP_HIGH(a, none);
            __local REAL* to = row + w * 2 + d->first_w;
            VSTORE(low, to);
            if (end - w > VW / 2) VSTORE(high, to + VW);
        }
    } else
        for (; w < end; ++w) {
            const int k = w * d->up_w + d->first_w, at = k / d->step_w;
            row[(k - at * d->step_w) * d->part + at] = from[w];
        }
}

// Copies the rows of z that rows [first, first + count) of out need; live[row] says which hold more than zeros.
static void copy_band(const struct Depthwise* d, __global const REAL* plane, const long there, const int first, const int count, __local REAL* block, bool* live) {
    const int size = d->part * d->step_w, all = (count - 1) * d->step_h + (TAPS_H - 1) * d->hop_h + 1;
    for (int row = 0; row < all; ++row) {
        const int k = first * d->step_h + row - d->first_h, h = DENSE ? k : k / d->up_h;
        live[row] = k >= 0 && (DENSE || h * d->up_h == k) && h < d->height;
        if (DENSE && !live[row])
            for (int e = 0; e < size; e += VW) VSTORE((VEC)(0), block + row * size + e);
        if (live[row]) copy_row(d, plane + (long)h * d->width, there - (long)h * d->width, block + row * size);
    }
}

// Where tap j of column 0 lies in a row of z.
static int place_of(const struct Depthwise* d, const int j) {
    const int k = j * d->hop_w, at = k / d->step_w;
    return (k - at * d->step_w) * d->part + at;
}

#if !WEIGHTS
// global size (ceil(planes / each))
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void conv2d_depthwise(const struct Depthwise args, __global const REAL* restrict x, const long x_offset,
                      __global const REAL* restrict weight, const long weight_offset, __global REAL* restrict out, const long out_offset,
                      __global const REAL* restrict bias, const long bias_offset) {
    const struct Depthwise d = args;
    __local REAL block[BLOCK];
    bool live[MOST_ROWS];
    const int size = d.part * d.step_w;
    int place[TAPS_W];
    for (int j = 0; j < TAPS_W; ++j) place[j] = place_of(&d, j);
    const long end_plane = min(d.planes, (long)(get_global_id(0) + 1) * d.each);
    for (long plane = get_global_id(0) * (long)d.each; plane < end_plane; ++plane) {
        const int c = (int)(plane - plane / d.channels * d.channels);
        __global const REAL* filter = weight + weight_offset + c * (TAPS_H * TAPS_W);
        REAL w[TAPS_H * TAPS_W];
        for (int t = 0; t < TAPS_H * TAPS_W; ++t) w[t] = filter[d.flip ? TAPS_H * TAPS_W - 1 - t : t];
        const VEC begin = (VEC)(d.has_bias ? bias[bias_offset + c] : (REAL)0);
        __global REAL* result = out + out_offset + plane * d.rows * d.columns;
        for (int first = 0; first < d.rows; first += d.band) {
            const int count = min(d.band, d.rows - first);
            copy_band(&d, x + x_offset + plane * d.height * d.width, (d.planes - plane) * d.height * d.width, first, count, block, live);
            __global REAL* end = result + (long)(first + count) * d.columns;
            for (int p = 0; p < count; ++p) {
                __local const REAL* z = block + p * d.step_h * size;
                __global REAL* to = result + (long)(first + p) * d.columns;
                for (int q = 0; q < d.columns; q += VW) {
                    VEC sum = begin;
                    #pragma unroll
                    for (int i = 0; i < TAPS_H; ++i)
                        if (DENSE || live[p * d.step_h + i * d.hop_h])
                            #pragma unroll
                            for (int j = 0; j < TAPS_W; ++j)
                                sum = fma((VEC)(w[i * TAPS_W + j]), VLOAD(z + i * d.hop_h * size + place[j] + q), sum);
                    // What a vector holds behind the end of the row, the next row overwrites.
                    if (to + q + VW <= end) VSTORE(sum, to + q);
                    else {
                        REAL one[VW];
                        VSTORE(sum, one);
                        for (int e = 0; e < min(VW, d.columns - q); ++e) to[q + e] = one[e];
                    }
                }
            }
        }
    }
}
#else
// global size (channels, ceil(images / each)); partials[chunk][c][i][j]
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void conv2d_depthwise_backward_weights(const struct Depthwise args, __global const REAL* restrict x, const long x_offset,
                                       __global const REAL* restrict dout, const long dout_offset,
                                       __global REAL* restrict partials, const long partials_offset) {
    const struct Depthwise d = args;
    __local REAL block[BLOCK];
    bool live[MOST_ROWS];
    const int size = d.part * d.step_w, c = get_global_id(0);
    const long dout_end = d.planes * d.rows * d.columns;
    int place[TAPS_W];
    for (int j = 0; j < TAPS_W; ++j) place[j] = place_of(&d, j);
    VEC sum[TAPS_H][TAPS_W];
    #pragma unroll
    for (int i = 0; i < TAPS_H; ++i)
        #pragma unroll
        for (int j = 0; j < TAPS_W; ++j) sum[i][j] = (VEC)(0);
    const int end_image = min(d.images, (int)(get_global_id(1) + 1) * d.each);
    for (int n = get_global_id(1) * d.each; n < end_image; ++n) {
        const long plane = (long)n * d.channels + c;
        for (int first = 0; first < d.rows; first += d.band) {
            const int count = min(d.band, d.rows - first);
            copy_band(&d, x + x_offset + plane * d.height * d.width, (d.planes - plane) * d.height * d.width, first, count, block, live);
            for (int p = 0; p < count; ++p) {
                __local const REAL* z = block + p * d.step_h * size;
                const long row = plane * d.rows * d.columns + (long)(first + p) * d.columns;
                for (int q = 0; q < d.columns; q += VW) {
                    VEC gradient;
                    if (row + q + VW <= dout_end) gradient = VLOAD(dout + dout_offset + row + q);
                    else {
                        REAL one[VW];
                        for (int e = 0; e < VW; ++e) one[e] = row + q + e < dout_end ? dout[dout_offset + row + q + e] : (REAL)0;
                        gradient = VLOAD(one);
                    }
                    gradient = select((VEC)(0), gradient, LANE_NUMBERS < (LANES)(d.columns - q));
                    #pragma unroll
                    for (int i = 0; i < TAPS_H; ++i)
                        if (DENSE || live[p * d.step_h + i * d.hop_h])
                            #pragma unroll
                            for (int j = 0; j < TAPS_W; ++j)
                                sum[i][j] = fma(gradient, VLOAD(z + i * d.hop_h * size + place[j] + q), sum[i][j]);
                }
            }
        }
    }
    __global REAL* to = partials + partials_offset + (get_global_id(1) * d.channels + c) * (TAPS_H * TAPS_W);
    #pragma unroll
    for (int i = 0; i < TAPS_H; ++i)
        #pragma unroll
        for (int j = 0; j < TAPS_W; ++j) to[i * TAPS_W + j] = vector_sum(sum[i][j]);
}
#endif
