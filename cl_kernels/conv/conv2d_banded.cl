// Direct convolution by register tiles over bands of rows, forward and backward_input. simd style. Both are sums
//
//   out[n, o, p, q] = bias[o] + sum over c, i, j of  weight[o][c, i, j] * x[n, c, h, w]
//   h = p * stride_h + i * dilation_h - pad_top, w = q * stride_w + j * dilation_w - pad_left
//
// with zeros outside of x. A work-group copies the input rows of a band of output rows, for all channels, into local
// memory (bands.clh) and multiplies them in place: position (p, q) of a band has index p * pitch + q, a tap is an
// offset, and vectors of positions extend past the ends of rows; results there are not stored. An element is thus
// copied once instead of once per tap as in conv2d_gemm.cl, which is faster if few filters share the copies.
//
// For backward_input x is the gradient of the output, and the filters are read flipped and transposed. A forward stride
// becomes one sum per phase of the result; the phases are interleaved when they are stored.
//
//   ROWS, COLUMNS  register tile: filters, and positions
//   TAPS_H, TAPS_W size of the filter
//   PHASES_H, PHASES_W  phases of the result
//   REAL, VW       element type and vector width (vectors.clh)
#define GROUP 1
#include "bands.clh"
#include "epilogue_stored.clh"

#define VECTORS (COLUMNS / VW)
#define PHASES (PHASES_H * PHASES_W)
#define TAPS (TAPS_H * TAPS_W)

struct Banded {
    long x_image, x_channel, x_count;  // strides between images and channels of x; number of elements
    long out_image, out_channel;       // the same of out
    long a_group, a_row, a_channel;    // strides between groups of weights, filters o and channels c
    int channels, filters;             // c and o per group
    int height, width;                 // of x
    int rows, columns;                 // of out
    int stride_h, stride_w, pad_top, pad_left, dilation_h, dilation_w, padding_h, padding_w;
    int pitch, band,
        bands;                  // elements per copied row; rows of a phase of out per work-group; work-groups per image
    int halo_rows;              // rows of a phase of x from the first to the last that an output row reads
    int phase_size, copy_size;  // elements of a copied phase of x, and of a channel
    int staged, staged_size;    // offset of the sums of a panel of filters, and elements per row of them
    int row_panels, row_panels_each;  // panels of ROWS filters: all, and per work-group
    int has_bias;                     // 0: `bias` may be any buffer and is not read
    int backward;                     // 1: backward_input
};

// The taps of a phase of out: `count`, and for each x, its index in the filter, and y, its offset in the copies.
struct Taps {
    int count;
    int2 offsets[TAPS + 1];  // one more, which is read and not used
};

NOINLINE void find_taps(const struct Banded* d, const int b, const int a, struct Taps* taps) {
    taps->count = 0;
    for (int i = 0; i < TAPS_H; ++i) {
        // Forward: position p reads row p * step + i * dilation - padding. Backward: p = (h + padding - i * dilation) /
        // step, if divisible.
        const int k = d->backward ? b + d->padding_h - i * d->dilation_h : i * d->dilation_h,
                  stride_h = d->backward ? PHASES_H : d->stride_h;
        const int row = d->backward ? (k + stride_h * d->pad_top) / stride_h : k / stride_h;
        if (d->backward && (row - d->pad_top) * stride_h != k) continue;
        for (int j = 0; j < TAPS_W; ++j) {
            const int m = d->backward ? a + d->padding_w - j * d->dilation_w : j * d->dilation_w,
                      stride_w = d->backward ? PHASES_W : d->stride_w;
            const int column = d->backward ? (m + stride_w * d->pad_left) / stride_w : m / stride_w;
            if (d->backward && (column - d->pad_left) * stride_w != m) continue;
            const int phase = d->backward ? 0 : (k - row * stride_h) * stride_w + (m - column * stride_w);
            taps->offsets[taps->count++] = (int2)(i * TAPS_W + j, phase * d->phase_size + row * d->pitch + column);
        }
    }
    taps->offsets[taps->count] = (int2)(0);
}

// Operands of a tile.
struct Tile {
    __global const REAL* left[ROWS];  // the filters
    __global const REAL* bias;
    int height;  // valid filters: for the others the last one is multiplied again, and not stored
};

#define MULTIPLY multiply
#define TILE_VECTORS VECTORS
#include "conv2d_banded_tile.clh"
#undef MULTIPLY
#undef TILE_VECTORS

// For the last positions of a band, which often fill only one vector.
#define MULTIPLY multiply_one_vector
#define TILE_VECTORS 1
#include "conv2d_banded_tile.clh"
#undef MULTIPLY
#undef TILE_VECTORS

// Copies rows [first, first + rows) of all channels of an image, which begins at element `from` of x, and clears what
// is read around them.
static void copy_channels(const struct Banded* d, __global const REAL* x, const long from, const int first,
                          const int rows, __local REAL* block) {
    const struct Band shape = {d->height,  d->width,    d->stride_h, d->stride_w,
                               d->pad_top, d->pad_left, d->pitch,    d->phase_size};
    const int copied = rows * d->pitch;
    for (int c = 0; c < d->channels; ++c) {
        // Positions past the rows are read, but their results are not stored.
        for (int e = c * d->copy_size; e < (c + 1) * d->copy_size; e += d->phase_size)
            clear(block + e + copied, d->phase_size - copied);
        copy_band(&shape, x + from + c * d->x_channel, d->x_count - from - c * d->x_channel, first, rows,
                  block + c * d->copy_size);
    }
    clear(block + d->channels * d->copy_size, d->staged - d->channels * d->copy_size);
}

// global size (images * bands, ceil(row_panels / row_panels_each), groups)
NOINLINE void conv2d_banded_part(const size_t id0, const size_t id1, const size_t id2, const struct Banded args,
                                 __local REAL* restrict block, __global const REAL* restrict x, const long x_offset,
                                 __global const REAL* restrict a, const long a_offset, __global REAL* restrict out,
                                 const long out_offset, __global const REAL* restrict bias,
                                 const long bias_offset EPILOGUE_STORED_PARAMETERS) {
    const struct Banded d = args;
    struct Taps taps[PHASES];
    for (int phase = 0; phase < PHASES; ++phase) find_taps(&d, phase / PHASES_W, phase % PHASES_W, taps + phase);
    const int group = id2, n = id0 / d.bands, first = (id0 - n * d.bands) * d.band;
    const int phase_rows = (d.rows + PHASES_H - 1) / PHASES_H, count = min(d.band, phase_rows - first);
    const int out_rows = min(count * PHASES_H, d.rows - first * PHASES_H), size = count * d.pitch;
    const long from = n * d.x_image + (long)group * d.channels * d.x_channel;
    copy_channels(&d, x + x_offset, from, first, count + d.halo_rows, block);
#ifdef EPILOGUE
    const struct Epilogue epilogue = EPILOGUE_OF_PARAMETERS;
#endif
    const int first_panel = id1 * d.row_panels_each, end_panel = min(first_panel + d.row_panels_each, d.row_panels);
    for (int panel = first_panel; panel < end_panel; ++panel) {
        const int height = min(ROWS, d.filters - panel * ROWS);
        struct Tile tile = {.bias = bias + bias_offset + group * d.filters + panel * ROWS, .height = height};
        // Past the last filter, that filter is multiplied again and not stored.
        for (int i = 0; i < ROWS; ++i)
            tile.left[i] = a + a_offset + group * d.a_group + (panel * ROWS + min(i, height - 1)) * d.a_row;
        for (int phase = 0; phase < PHASES; ++phase)
            for (int f = 0; f < size; f += COLUMNS) {
                __local const REAL* plane = block + f;
                __local REAL* staged = block + d.staged + phase * d.staged_size + f;
                if (size - f <= VW) multiply_one_vector(&d, taps + phase, &tile, plane, staged, PHASES * d.staged_size);
                else multiply(&d, taps + phase, &tile, plane, staged, PHASES * d.staged_size);
            }
        long at = n * d.out_image + (long)(group * d.filters + panel * ROWS) * d.out_channel +
                  (long)first * PHASES_H * d.columns;
        for (int i = 0; i < height; ++i, at += d.out_channel) {
            __global REAL* to = out + out_offset + at;
            store_rows(block + d.staged + i * PHASES * d.staged_size, d.staged_size, d.pitch, d.columns, out_rows, to,
                       to + (long)out_rows * d.columns);
#ifdef EPILOGUE
            epilogue_stored(epilogue, out + out_offset, group * d.filters + panel * ROWS + i, at,
                            (long)out_rows * d.columns);
#endif
        }
    }
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void conv2d_banded(
    const struct Banded args, __local REAL* restrict block, __global const REAL* restrict x, const long x_offset,
    __global const REAL* restrict a, const long a_offset, __global REAL* restrict out, const long out_offset,
    __global const REAL* restrict bias, const long bias_offset EPILOGUE_STORED_PARAMETERS) {
    conv2d_banded_part(get_global_id(0), get_global_id(1), get_global_id(2), args, block, x, x_offset, a, a_offset, out,
                       out_offset, bias, bias_offset EPILOGUE_STORED_ARGUMENTS);
}
