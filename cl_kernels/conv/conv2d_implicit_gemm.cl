// Convolution as an implicit GEMM: tiles in local memory (local_tile.clh) over windows that are read in place (S.
// Chetlur et al., cuDNN: efficient primitives for deep learning, 2014). simt style. Forward and backward_input are sums
//
//   out[n, o, p, q] = epilogue(bias[o] + sum over c, i, j of  weight[o][c, i, j] * x[n, c, h, w])
//   h = p * stride_h + first_h + i * dilation_h, w = q * stride_w + first_w + j * dilation_w
//
// with zeros outside of x, and the epilogue of epilogue.clh without a bias. In the product, rows are the output
// channels o of a group, columns the positions (n, p, q) of all images, and the inner index k is (c, i, j). For
// backward_input x is the gradient of the output, the weights are flipped first, and a stride gives one launch per
// phase of positions. backward_weights is the product
//
//   weight_gradient[o, (c, i, j)] = sum over positions (n, p, q) of  g[n, o, p, q] * x[n, c, ...]
//
// with g the gradient of the output, split along the positions (split-K); another kernel adds the partial results. k of
// the others may be split as well.
//
//   STAGE     STAGE_PRODUCT: forward and backward_input; STAGE_BACKWARD_WEIGHTS; STAGE_FLIP: flipped weights;
//             STAGE_REDUCE: sums of partial results
//   A_FORM    how weights are read (local_tile.clh)
//   OUT_4     1: vectors of 4 results may be stored: positions are contiguous in out, and their number per image is a
//             multiple of 4 (STAGE_PRODUCT); the number of columns is a multiple of 4 (STAGE_BACKWARD_WEIGHTS); and out
//             is aligned
//   Tile sizes: local_tile.clh; ITEMS is a multiple of TILE_COLUMNS, and of 8
//   REAL            type of the arithmetic (math.clh)
//   STORED, OUTPUT  types of operands and results in memory (storage.clh); partial results are REAL
#define STAGE_PRODUCT 0
#define STAGE_BACKWARD_WEIGHTS 1
#define STAGE_FLIP 2
#define STAGE_REDUCE 3

#if STAGE == STAGE_PRODUCT || STAGE == STAGE_BACKWARD_WEIGHTS
#if STAGE == STAGE_PRODUCT
#define ROWS_FORM A_FORM
#define COLUMNS_FORM ACROSS
#else
#define ROWS_FORM ALONG
#define COLUMNS_FORM ALONG
#endif
#include "local_tile.clh"
#else
#include "math.clh"
#endif
#include "epilogue.clh"

#define OUTPUT4 D_PASTE(OUTPUT, 4)

struct Conv {
    long x_image, x_channel;                 // strides between images and channels of x
    long out_image, out_channel, out_first;  // the same of out; offset of position (0, 0)
    long a_group, a_across, a_along;         // strides between groups of weights, rows, and k
    long partial;                            // elements of a partial result
    int inner, each, parts;                  // steps of k, per part; parts
    int positions;                           // images * rows * columns
    int groups, channels, filters;           // input and output channels per group
    int height, width;                       // of x
    int rows, columns;                       // positions of an image
    int stride_h, stride_w, first_h, first_w, dilation_h, dilation_w, taps_h, taps_w;
    int out_row_step, out_column_step;  // strides between neighbouring positions of out
    int row_tiles, column_tiles;        // per group
    int jump_c, jump_h,
        jump_w;    // increments of channel and tap for the work-item's next step along k, or (backward_weights)
                   // of image, row and column
    int has_bias;  // 0: `bias` may be any buffer and is not read
    int unused;    // avoids padding of the struct
};

#if STAGE == STAGE_PRODUCT || STAGE == STAGE_BACKWARD_WEIGHTS
// The tile that a work-group computes: its first row and column in the product of `group`, and the part of the sum.
struct Tile {
    int row, column, group, part;
};

static inline struct Tile own_tile(const struct Conv d) {
    const int tiles = d.row_tiles * d.column_tiles, z = (int)get_group_id(0) / tiles;
    int row_tile, column_tile;
    tile_of((int)get_group_id(0) - z * tiles, d.row_tiles, d.column_tiles, &row_tile, &column_tile);
    struct Tile tile;
    tile.part = z / d.groups;
    tile.group = z - tile.part * d.groups;
    tile.row = row_tile * TILE_ROWS;
    tile.column = column_tile * TILE_COLUMNS;
    return tile;
}
#endif

#if STAGE == STAGE_PRODUCT
// The parts of x that a work-item reads: windows of one position of an image, whose index in the tile is
// index_across(ACROSS, ...), at steps k = (c, i, j).
struct Windows {
    __global const STORED* image;  // first channel of the group
    int h_first, w_first;          // row and column that tap (0, 0) reads
    int tile_position;
    int k;        // of the first window of a slice
    int c, i, j;  // of the next window
};

static inline struct Windows own_windows(const struct Conv d, __global const STORED* x, const struct Tile tile) {
    struct Windows windows;
    windows.tile_position = (int)get_local_id(0) & (TILE_COLUMNS - 1);
    windows.k = (int)get_local_id(0) / TILE_COLUMNS;
    const int plane = d.rows * d.columns, position = min(tile.column + windows.tile_position, d.positions - 1);
    const int n = position / plane, p = (position - n * plane) / d.columns;
    windows.h_first = p * d.stride_h + d.first_h;
    windows.w_first = (position - n * plane - p * d.columns) * d.stride_w + d.first_w;
    windows.image = x + n * d.x_image + (long)tile.group * d.channels * d.x_channel;
    const int k = tile.part * d.each + windows.k;
    windows.c = k / (d.taps_h * d.taps_w);
    windows.i = (k - windows.c * d.taps_h * d.taps_w) / d.taps_w;
    windows.j = k - (windows.c * d.taps_h + windows.i) * d.taps_w;
    return windows;
}

// Loads the windows of a slice of `steps` steps, and advances c, i and j to the next one.
INLINE void fetch_windows(STORED* registers, struct Windows* windows, const struct Conv d, const int width,
                          const int steps) {
    const int tile_position = windows->tile_position, k = windows->k;
    int c = windows->c, i = windows->i, j = windows->j;
#pragma unroll
    for (int e = 0; e < COLUMN_REGISTERS; ++e) {
        const int h = windows->h_first + i * d.dilation_h, w = windows->w_first + j * d.dilation_w;
        const bool inside = tile_position < width && k + e * (ITEMS / TILE_COLUMNS) < steps &&
                            (uint)h < (uint)d.height && (uint)w < (uint)d.width;
        registers[e] = inside ? windows->image[c * d.x_channel + h * d.width + w] : (STORED)0;
        j += d.jump_w;
        i += d.jump_h;
        c += d.jump_c;
        if (j >= d.taps_w) j -= d.taps_w, ++i;
        if (i >= d.taps_h) i -= d.taps_h, ++c;
    }
    windows->c = c;
    windows->i = i;
    windows->j = j;
}

// The result for sum number r of a work-item, which is stored at `at`. `bias` and `channel` belong to the first row of
// the tile.
static inline REAL result_of(const struct Conv d, const struct Epilogue epilogue, const REAL sum, const int r,
                             __global const STORED* bias, const int channel, const long at) {
    return with_epilogue(epilogue, d.has_bias ? sum + LOADED(bias[ROW_OF(r)]) : sum, channel + ROW_OF(r), at);
}

// Stores the results of `height` channels from `channel` on and `width` positions from `column` on. `first` is the
// index of channel `channel` at position (0, 0) in `out`.
INLINE void store_results(const struct Conv d, const struct Epilogue epilogue, REAL4 (*sum)[COLUMN_STRIPS],
                          __global const STORED* bias, const int channel, const int column, const int height,
                          const int width, __global OUTPUT* out, const long first) {
    const int plane = d.rows * d.columns;
#pragma unroll
    for (int t = 0; t < COLUMN_STRIPS; ++t) {
        const int in_tile = COLUMN_OF(t);
        if (in_tile >= width) continue;
        int n = (column + in_tile) / plane, p = (column + in_tile - n * plane) / d.columns;
        int q = column + in_tile - n * plane - p * d.columns;
#if OUT_4
        const long to = first + n * d.out_image + p * d.columns + q;
#pragma unroll
        for (int r = 0; r < 4 * ROW_STRIPS; ++r) {
            const long at = to + ROW_OF(r) * d.out_channel;
            if (ROW_OF(r) < height)
                *(__global OUTPUT4*)(out + at) =
                    ROUNDED((REAL4)(result_of(d, epilogue, sum[r][t].x, r, bias, channel, at),
                                    result_of(d, epilogue, sum[r][t].y, r, bias, channel, at + 1),
                                    result_of(d, epilogue, sum[r][t].z, r, bias, channel, at + 2),
                                    result_of(d, epilogue, sum[r][t].w, r, bias, channel, at + 3)));
        }
#else
        long to[4];
#pragma unroll
        for (int v = 0; v < 4; ++v) {
            to[v] = first + n * d.out_image + p * (long)d.out_row_step + q * (long)d.out_column_step;
            if (++q == d.columns) {
                q = 0;
                if (++p == d.rows) p = 0, ++n;
            }
        }
#pragma unroll
        for (int r = 0; r < 4 * ROW_STRIPS; ++r) {
            if (ROW_OF(r) >= height) continue;
            const long row = ROW_OF(r) * d.out_channel;
            out[row + to[0]] = ROUNDED(result_of(d, epilogue, sum[r][t].x, r, bias, channel, row + to[0]));
            if (in_tile + 1 < width)
                out[row + to[1]] = ROUNDED(result_of(d, epilogue, sum[r][t].y, r, bias, channel, row + to[1]));
            if (in_tile + 2 < width)
                out[row + to[2]] = ROUNDED(result_of(d, epilogue, sum[r][t].z, r, bias, channel, row + to[2]));
            if (in_tile + 3 < width)
                out[row + to[3]] = ROUNDED(result_of(d, epilogue, sum[r][t].w, r, bias, channel, row + to[3]));
        }
#endif
    }
}

// global size ITEMS * row_tiles * column_tiles * groups * parts
__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void conv2d_implicit_gemm(
    const struct Conv d, __global const STORED* restrict x, const long x_offset, __global const STORED* restrict a,
    const long a_offset, __global OUTPUT* restrict out, const long out_offset, __global const STORED* restrict bias,
    const long bias_offset, EPILOGUE_PARAMETERS) {
    const struct Epilogue epilogue = EPILOGUE_OF_PARAMETERS;
    __local REAL4 left[2][SLICE * ROWS_PITCH], right[2][SLICE * COLUMNS_PITCH];
    const struct Tile tile = own_tile(d);
    const int height = min(TILE_ROWS, d.filters - tile.row), width = min(TILE_COLUMNS, d.positions - tile.column);
    const int k_first = tile.part * d.each;
    int steps = min(d.each, d.inner - k_first);
    a += a_offset + tile.group * d.a_group + tile.row * d.a_across + k_first * d.a_along;
    struct Windows windows = own_windows(d, x + x_offset, tile);

    REAL4 sum[4 * ROW_STRIPS][COLUMN_STRIPS];
    clear_sums(sum);
    STORED a_registers[ROW_REGISTERS], x_registers[COLUMN_REGISTERS];
    fetch_rows(a_registers, a, d.a_across, d.a_along, height, min(SLICE, steps));
    fetch_windows(x_registers, &windows, d, width, steps);
    put_rows(a_registers, left[0]);
    put_columns(x_registers, right[0]);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int current = 0; steps > 0; current ^= 1) {
        steps -= SLICE;
        a += SLICE * d.a_along;
        if (steps > 0) {
            fetch_rows(a_registers, a, d.a_across, d.a_along, height, min(SLICE, steps));
            fetch_windows(x_registers, &windows, d, width, steps);
        }
        multiply_slices(sum, left[current], right[current]);
        if (steps > 0) {
            put_rows(a_registers, left[current ^ 1]);
            put_columns(x_registers, right[current ^ 1]);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }

    const int channel = tile.group * d.filters + tile.row;
    store_results(d, epilogue, sum, bias + bias_offset + channel, channel, tile.column, height, width, out + out_offset,
                  tile.part * d.partial + d.out_first + (long)channel * d.out_channel);
}
#elif STAGE == STAGE_BACKWARD_WEIGHTS
#define STREAM_REGISTERS (8 * TILE_COLUMNS / ITEMS)
#define FILTER_REGISTERS (8 * TILE_ROWS / ITEMS)

// Here columns are the streams (c, i, j), and k the positions. A work-item reads every eighth position, contiguous
// between neighbouring work-items, of some streams and some filters, as in index_across(ALONG, ...).
struct Positions {
    int position, n, p, q;  // the next position that is read
    int end;                // positions before `end` are in the part
    int in_tile;            // index of the work-item's first stream and filter in the tile
};

static inline struct Positions own_positions(const struct Conv d, const int part) {
    struct Positions positions;
    positions.in_tile = (int)get_local_id(0) >> 3;
    positions.end = min(d.positions, (part + 1) * d.each);
    positions.position = part * d.each + ((int)get_local_id(0) & 7);
    positions.n = positions.position / (d.rows * d.columns);
    positions.p = (positions.position - positions.n * d.rows * d.columns) / d.columns;
    positions.q = positions.position - (positions.n * d.rows + positions.p) * d.columns;
    return positions;
}

// The streams of a work-item: row and column of x that they read at position (0, 0), and the index of that element.
// Past the last stream, that one is read again.
INLINE void find_streams(const struct Conv d, const int first, int* stream_h, int* stream_w, long* stream) {
    const int streams = d.channels * d.taps_h * d.taps_w;
#pragma unroll
    for (int e = 0; e < STREAM_REGISTERS; ++e) {
        const int at = min(first + e * (ITEMS / 8), streams - 1), c = at / (d.taps_h * d.taps_w),
                  i = (at - c * d.taps_h * d.taps_w) / d.taps_w;
        stream_h[e] = d.first_h + i * d.dilation_h;
        stream_w[e] = d.first_w + (at - (c * d.taps_h + i) * d.taps_w) * d.dilation_w;
        stream[e] = c * d.x_channel + stream_h[e] * d.width + stream_w[e];
    }
}

// Loads a slice of both operands, and advances to the next positions. `height` filters and `width` streams exist.
INLINE void fetch_positions(STORED* g_registers, STORED* x_registers, struct Positions* positions, const struct Conv d,
                            __global const STORED* x, __global const STORED* g, const int* stream_h,
                            const int* stream_w, const long* stream, const int height, const int width) {
#pragma unroll
    for (int step = 0; step < SLICE / 8; ++step) {
        const bool in_range = positions->position < positions->end;
        __global const STORED* from = g + positions->n * d.out_image + positions->p * d.columns + positions->q;
#pragma unroll
        for (int e = 0; e < FILTER_REGISTERS; ++e) {
            const int r = positions->in_tile + e * (ITEMS / 8);
            g_registers[step * FILTER_REGISTERS + e] = in_range && r < height ? from[r * d.out_channel] : (STORED)0;
        }
        const int h_at = positions->p * d.stride_h, w_at = positions->q * d.stride_w;
        const long at = positions->n * d.x_image + h_at * d.width + w_at;
#pragma unroll
        for (int e = 0; e < STREAM_REGISTERS; ++e) {
            const int h = h_at + stream_h[e], w = w_at + stream_w[e];
            const bool inside = in_range && positions->in_tile + e * (ITEMS / 8) < width && h >= 0 && h < d.height &&
                                w >= 0 && w < d.width;
            x_registers[step * STREAM_REGISTERS + e] = inside ? x[at + stream[e]] : (STORED)0;
        }
        positions->position += 8;
        positions->q += d.jump_w;
        positions->p += d.jump_h;
        positions->n += d.jump_c;
        if (positions->q >= d.columns) positions->q -= d.columns, ++positions->p;
        if (positions->p >= d.rows) positions->p -= d.rows, ++positions->n;
    }
}

// Stores `height` rows of `width` sums to `partial`, whose rows are `streams` elements apart.
INLINE void store_sums(REAL4 (*sum)[COLUMN_STRIPS], const int height, const int width, __global OUTPUT* partial,
                       const int streams) {
#pragma unroll
    for (int r = 0; r < 4 * ROW_STRIPS; ++r) {
        if (ROW_OF(r) >= height) continue;
#pragma unroll
        for (int t = 0; t < COLUMN_STRIPS; ++t) {
            const int first = COLUMN_OF(t);
            __global OUTPUT* to = partial + (long)ROW_OF(r) * streams + first;
#if OUT_4
            if (first < width) *(__global OUTPUT4*)to = ROUNDED(sum[r][t]);
#else
            if (first < width) to[0] = ROUNDED(sum[r][t].x);
            if (first + 1 < width) to[1] = ROUNDED(sum[r][t].y);
            if (first + 2 < width) to[2] = ROUNDED(sum[r][t].z);
            if (first + 3 < width) to[3] = ROUNDED(sum[r][t].w);
#endif
        }
    }
}

// global size ITEMS * row_tiles * column_tiles * groups * parts
__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void conv2d_implicit_gemm_backward_weights(
    const struct Conv d, __global const STORED* restrict x, const long x_offset, __global const STORED* restrict g,
    const long g_offset, __global OUTPUT* restrict partials, const long partials_offset) {
    __local REAL4 left[2][SLICE * ROWS_PITCH], right[2][SLICE * COLUMNS_PITCH];
    const int streams = d.channels * d.taps_h * d.taps_w;
    const struct Tile tile = own_tile(d);
    const int height = min(TILE_ROWS, d.filters - tile.row), width = min(TILE_COLUMNS, streams - tile.column);
    x += x_offset + (long)tile.group * d.channels * d.x_channel;
    g += g_offset + (long)(tile.group * d.filters + tile.row) * d.out_channel;

    struct Positions positions = own_positions(d, tile.part);
    int stream_h[STREAM_REGISTERS], stream_w[STREAM_REGISTERS];
    long stream[STREAM_REGISTERS];
    find_streams(d, tile.column + positions.in_tile, stream_h, stream_w, stream);

    REAL4 sum[4 * ROW_STRIPS][COLUMN_STRIPS];
    clear_sums(sum);
    STORED g_registers[ROW_REGISTERS], x_registers[COLUMN_REGISTERS];
    int steps = positions.end - tile.part * d.each;
    fetch_positions(g_registers, x_registers, &positions, d, x, g, stream_h, stream_w, stream, height, width);
    put_rows(g_registers, left[0]);
    put_columns(x_registers, right[0]);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int current = 0; steps > 0; current ^= 1) {
        steps -= SLICE;
        if (steps > 0)
            fetch_positions(g_registers, x_registers, &positions, d, x, g, stream_h, stream_w, stream, height, width);
        multiply_slices(sum, left[current], right[current]);
        if (steps > 0) {
            put_rows(g_registers, left[current ^ 1]);
            put_columns(x_registers, right[current ^ 1]);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }

    store_sums(sum, height, width,
               partials + partials_offset + tile.part * d.partial +
                   (long)(tile.group * d.filters + tile.row) * streams + tile.column,
               streams);
}
#elif STAGE == STAGE_FLIP
struct Flip {
    int channels, filters;     // rows and channels of the sum: input and output channels per group of the convolution
    int taps, taps_h, taps_w;  // of the filter; of this phase
    int first, stride_h, stride_w;  // offset of the first element of this phase in the filter, and strides
};

// packed[group][(o, i, j)][c] = weight[group][o][c][first + i * stride_h + j * stride_w], `count` elements; one per
// work-item.
__kernel void conv2d_implicit_gemm_flip(const struct Flip d, const long count, __global const STORED* restrict weight,
                                        const long weight_offset, __global STORED* restrict packed,
                                        const long packed_offset) {
    const long at = get_global_id(0);
    if (at >= count) return;
    const long k = at / d.channels, o = k / (d.taps_h * d.taps_w);
    const int c = (int)(at - k * d.channels), tap = (int)(k - o * (d.taps_h * d.taps_w)), i = tap / d.taps_w,
              j = tap - i * d.taps_w;
    packed[packed_offset + at] =
        weight[weight_offset + (o * d.channels + c) * d.taps + d.first + i * d.stride_h + j * d.stride_w];
}
#else
// out[n, o, p, q] = epilogue(bias[o] + sum over parts of partial), in order; `plane` elements per o, one per work-item.
__kernel void conv2d_implicit_gemm_reduce(const long count, const long parts, const long plane, const int filters,
                                          const int has_bias, __global const REAL* restrict partial,
                                          const long partial_offset, __global OUTPUT* restrict out,
                                          const long out_offset, __global const STORED* restrict bias,
                                          const long bias_offset, EPILOGUE_PARAMETERS) {
    const long at = get_global_id(0);
    if (at >= count) return;
    const struct Epilogue epilogue = EPILOGUE_OF_PARAMETERS;
    REAL sum = 0;
    for (long k = 0; k < parts; ++k) sum += partial[partial_offset + k * count + at];
    const long channel = at / plane - at / plane / filters * filters;
    if (has_bias) sum += LOADED(bias[bias_offset + channel]);
    out[out_offset + at] = ROUNDED(with_epilogue(epilogue, sum, channel, at));
}
#endif
