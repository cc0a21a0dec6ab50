// Gradient of a convolution's weights over bands of rows. simd style.
//
//   weight_gradient[o][c, t] = sum over n and positions f of  x[n, c, f + offset[t]] * g[n, o, f]
//
// with g the gradient of the result, and the positions p * pitch + q and offsets of conv2d_banded.cl. A work-group
// copies a band of rows of all channels of x and of all filters of g into local memory (bands.clh), g with zero padding
// after its rows. Both are contiguous along the positions, so that nothing is transposed: a register tile of ROWS
// streams (c, t) and COLUMNS filters o processes a vector of positions at a time, and the lanes of its sums are added
// at the end of the band. Bands are distributed over chunks, each of which writes a partial result; sum_partials
// (partial_sums.cl) adds them in order.
//
//   ROWS, COLUMNS  register tile: streams, and filters
//   TAPS_H, TAPS_W size of the filter
//   REAL, VW       element type and vector width (vectors.clh)
#define GROUP 1
#define PHASES_H 1
#define PHASES_W 1
#include "bands.clh"

#define TAPS (TAPS_H * TAPS_W)

struct BandedWeights {
    long x_image, x_channel, x_count;  // strides between images and channels of x; number of elements
    long g_image, g_channel, g_count;  // the same of g
    long partial;                      // stride between partial results
    int channels, filters;             // per group
    int images, height, width;         // of x
    int rows, columns;                 // of g
    int stride_h, stride_w, pad_top, pad_left, dilation_h, dilation_w;
    int pitch, band, bands, halo_rows;         // as in conv2d_banded.cl
    int phase_size, copy_size, gradient_size;  // elements of a copied phase of x, of a channel, and of a filter of g
    int images_at_once;                        // images copied at once; several only if they are not split into bands
    int blocks, blocks_each;                   // blocks of images, or bands: all, and per chunk
    int gradients, sums;                       // offsets of g and of the sums of a tile in local memory
    int has_bias;                              // 0: `bias` may be any buffer and is not written
};

// Sums over all positions of g, for the gradient of the bias.
NOINLINE void sum_bias_gradient(__local const REAL* gradients, const int filter, const int image, const int images,
                                const int size, const int filters, __global REAL* bias, const int add) {
    for (int o = 0; o < filters; ++o) {
        VEC sum = (VEC)(0);
        for (int n = 0; n < images; ++n)
            for (int e = 0; e < size; e += VW) sum += VLOAD(gradients + o * filter + n * image + e);
        bias[o] = (add ? bias[o] : (REAL)0) + vector_sum(sum);
    }
}

// offset[t]: position in a copied channel of x that tap t reads at position 0.
static void find_taps(const struct BandedWeights* d, int* offset) {
    for (int t = 0; t < TAPS; ++t) {
        const int k = t / TAPS_W * d->dilation_h, m = t % TAPS_W * d->dilation_w, row = k / d->stride_h,
                  column = m / d->stride_w;
        offset[t] = ((k - row * d->stride_h) * d->stride_w + m - column * d->stride_w) * d->phase_size +
                    row * d->pitch + column;
    }
}

// Images and rows of g of a block; `x_rows` rows of a phase of x are read for them.
struct Rows {
    int first_image, images, first, count, x_rows;
};

static struct Rows rows_of_block(const struct BandedWeights* d, const int b) {
    struct Rows r;
    r.first_image = b / d->bands * d->images_at_once;
    r.images = min(d->images_at_once, d->images - r.first_image);
    r.first = (b - b / d->bands * d->bands) * d->band;
    r.count = min(d->band, d->rows - r.first);
    r.x_rows = r.count + d->halo_rows;
    return r;
}

// Copies the rows of a block of all channels of x.
static void copy_channels(const struct BandedWeights* d, const struct Rows r, const int group, __global const REAL* x,
                          __local REAL* block) {
    const struct Band shape = {d->height,  d->width,    d->stride_h, d->stride_w,
                               d->pad_top, d->pad_left, d->pitch,    d->phase_size};
    const int copied = r.x_rows * d->pitch;
    for (int c = 0; c < d->channels; ++c)
        for (int n = 0; n < r.images; ++n) {
            const long from = (r.first_image + n) * d->x_image + (group * d->channels + c) * d->x_channel;
            __local REAL* to = block + (c * d->images_at_once + n) * d->copy_size;
            // Positions past the rows are multiplied by zeros.
            for (int e = 0; e < d->copy_size; e += d->phase_size) clear(to + e + copied, d->phase_size - copied);
            copy_band(&shape, x + from, d->x_count - from, r.first, r.x_rows, to);
        }
}

// Copies the rows of a block of all filters of g, with zeros after them.
static void copy_gradients(const struct BandedWeights* d, const struct Rows r, const int group, __global const REAL* g,
                           __local REAL* gradients) {
    const struct Band shape = {d->rows, d->columns, 1, 1, 0, 0, d->pitch, d->gradient_size};
    const int size = r.count * d->pitch;
    for (int o = 0; o < d->filters; ++o)
        for (int n = 0; n < r.images; ++n) {
            const long from = (r.first_image + n) * d->g_image + (group * d->filters + o) * d->g_channel;
            __local REAL* to = gradients + (o * d->images_at_once + n) * d->gradient_size;
            clear(to + size, d->gradient_size - size);
            copy_band(&shape, g + from, d->g_count - from, r.first, r.count, to);
        }
}

// Computes a register tile of sums over the `size` positions of each image of a block: sums[filter][stream].
static void multiply(const struct BandedWeights* d, __local REAL* block, const int* offset, const int first_stream,
                     const int first_filter, const int images, const int size) {
    // Past the last stream or filter, that one is multiplied again and not stored.
    __local const REAL *left[ROWS], *right[COLUMNS];
#pragma unroll
    for (int i = 0; i < ROWS; ++i) {
        const int at = min(first_stream + i, d->channels * TAPS - 1), c = at / TAPS;
        left[i] = block + c * d->images_at_once * d->copy_size + offset[at - c * TAPS];
    }
#pragma unroll
    for (int j = 0; j < COLUMNS; ++j)
        right[j] = block + d->gradients + min(first_filter + j, d->filters - 1) * d->images_at_once * d->gradient_size;
    VEC sum[COLUMNS][ROWS];
#pragma unroll
    for (int j = 0; j < COLUMNS; ++j)
#pragma unroll
        for (int i = 0; i < ROWS; ++i) sum[j][i] = (VEC)(0);
    for (int n = 0; n < images; ++n) {
        for (int f = 0; f < size; f += VW) {
            VEC gradient[COLUMNS];
#pragma unroll
            for (int j = 0; j < COLUMNS; ++j) gradient[j] = VLOAD(right[j] + f);
#pragma unroll
            for (int i = 0; i < ROWS; ++i) {
                const VEC value = VLOAD(left[i] + f);
#pragma unroll
                for (int j = 0; j < COLUMNS; ++j) sum[j][i] = fma(value, gradient[j], sum[j][i]);
            }
        }
#pragma unroll
        for (int i = 0; i < ROWS; ++i) left[i] += d->copy_size;
#pragma unroll
        for (int j = 0; j < COLUMNS; ++j) right[j] += d->gradient_size;
    }
    __local REAL* sums = block + d->sums;
#pragma unroll
    for (int j = 0; j < COLUMNS; ++j)
#pragma unroll
        for (int i = 0; i < ROWS; ++i) VSTORE(sum[j][i], sums + (j * ROWS + i) * VW);
    add_lanes(sums, COLUMNS * ROWS);
}

// global size (chunks, 1, groups)
NOINLINE void conv2d_banded_backward_weights_part(const size_t id0, const size_t id2, const struct BandedWeights args,
                                                  __local REAL* restrict block, __global const REAL* restrict x,
                                                  const long x_offset, __global const REAL* restrict g,
                                                  const long g_offset, __global REAL* restrict partials,
                                                  const long partials_offset, __global REAL* restrict bias,
                                                  const long bias_offset) {
    const struct BandedWeights d = args;
    clear(block + d.sums + ROWS * COLUMNS * VW, VW);  // read by add_lanes
    int offset[TAPS];
    find_taps(&d, offset);
    const int group = id2, streams = d.channels * TAPS;
    const int first_block = id0 * d.blocks_each, end_block = min(d.blocks, first_block + d.blocks_each);
    __local const REAL* sums = block + d.sums;
    __global REAL* result = partials + partials_offset + id0 * d.partial + (long)group * d.filters * streams;
    for (int b = first_block; b < end_block; ++b) {
        const struct Rows r = rows_of_block(&d, b);
        const int size = r.count * d.pitch;
        copy_channels(&d, r, group, x + x_offset, block);
        copy_gradients(&d, r, group, g + g_offset, block + d.gradients);
        if (d.has_bias)
            sum_bias_gradient(block + d.gradients, d.images_at_once * d.gradient_size, d.gradient_size, r.images, size,
                              d.filters, bias + bias_offset + ((long)id0 * get_global_size(2) + group) * d.filters,
                              b > first_block);
        for (int first_filter = 0; first_filter < d.filters; first_filter += COLUMNS)
            for (int first_stream = 0; first_stream < streams; first_stream += ROWS) {
                multiply(&d, block, offset, first_stream, first_filter, r.images, size);
                for (int j = 0; j < min(COLUMNS, d.filters - first_filter); ++j)
                    for (int i = 0; i < min(ROWS, streams - first_stream); ++i) {
                        __global REAL* to = result + (long)(first_filter + j) * streams + first_stream + i;
                        *to = b > first_block ? *to + sums[j * ROWS + i] : sums[j * ROWS + i];
                    }
            }
    }
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void conv2d_banded_backward_weights(
    const struct BandedWeights args, __local REAL* restrict block, __global const REAL* restrict x, const long x_offset,
    __global const REAL* restrict g, const long g_offset, __global REAL* restrict partials, const long partials_offset,
    __global REAL* restrict bias, const long bias_offset) {
    conv2d_banded_backward_weights_part(get_global_id(0), get_global_id(2), args, block, x, x_offset, g, g_offset,
                                        partials, partials_offset, bias, bias_offset);
}
