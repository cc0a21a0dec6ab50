// Convolution as a matrix product with im2col by blocks, forward and backward_input. simd style. Both are sums
//
//   out[n, o, p, q] = bias[o] + sum over c, i, j of  weight[o][c, i, j] * x[n, c, h, w]
//   h = p * stride_h + first_h + i * dilation_h, w = q * stride_w + first_w + j * dilation_w
//
// with zeros outside of x. In the product, rows are the output channels o of a group, columns the positions (n, p, q)
// of all images, and the inner index k is (c, i, j). For backward_input x is the gradient of the output, the weights
// are flipped and transposed first, and a stride gives one launch per phase of positions.
//
// The im2col matrix is never materialised: a work-group copies COLUMNS columns at a time and `k_block` of their k into
// local memory, in the order in which the inner loop reads them, and multiplies them with all its rows (K. Chellapilla
// et al., High performance convolutional neural networks, 2006; K. Goto and R. van de Geijn, Anatomy of
// high-performance matrix multiplication, 2008).
//
//   ROWS, COLUMNS  register tile, as in matmul_packed.cl
//   PANELS         maximum number of panels per work-group
//   A_FORM         A_ROWS: weights are read in place, a row is contiguous in the order of k; A_PANELS: from packed
//                  panels, [group][panel][k][ROWS]; A_STRIDED: in place, k = (c, i, j) at c * a_channel + i * a_h +
//                  j * a_w
//   TAPS_H, TAPS_W, FLIP_CHANNELS, FLIP_PANELS  only for conv2d_gemm_flip, which packs such panels: the filter elements
//                                               that it packs, and the channels and panels per work-item
//   PARTIAL_SUMS   16-bit types, 1: k has several blocks, whose sums are accumulated in `out` as REAL and rounded
//                  to `rounded` after the last one; 0 (default): a tile is rounded when it is stored
//   REAL, VW       type of the arithmetic and vector width (vectors.clh)
//   STORED, OUTPUT types of x, the bias and `out` in memory (storage.clh). 16-bit weights are packed, in REAL
#define A_ROWS 0
#define A_PANELS 1
#define A_STRIDED 2
#define GROUP 1
#include "noinline.clh"
#include "vectors.clh"
#include "stored_vectors.clh"
#include "epilogue_stored.clh"

#define VECTORS (COLUMNS / VW)

#ifndef PARTIAL_SUMS
#define PARTIAL_SUMS 0
#endif
#define ROUND_ON_STORE (OUTPUT_AS != AS_REAL && !PARTIAL_SUMS)
#if PARTIAL_SUMS
#define SUM_TYPE REAL
#else
#define SUM_TYPE OUTPUT
#endif

struct Conv {
    long x_image, x_channel, x_count;        // strides between images and channels of x; number of elements
    long out_image, out_channel, out_first;  // the same of out; offset of position (0, 0)
    long a_group, a_row, a_channel,
        a_first;                // strides between groups of weights, rows or panels, and c; offset of the first
    long positions;             // of the result: images * out_height * out_width
    int channels, filters;      // input and output channels per group
    int height, width;          // of x
    int out_height, out_width;  // positions of an image
    int stride_h, stride_w, first_h, first_w, dilation_h, dilation_w, taps_h, taps_w;
    int a_h, a_w;
    int out_row_step, out_column_step;                     // strides between neighbouring positions of out
    int panels, panels_each, row_panels, row_panels_each;  // of COLUMNS columns and ROWS rows: all, and per work-group
    int k_block;                                           // A_STRIDED: a multiple of the taps
    int has_bias;                                          // 0: `bias` may be any buffer and is not read
};

// A run of at most VW positions of one row of one image, and its position in the block of copies.
struct Piece {
    long first;  // element of x that tap (0, 0) of channel 0 reads
    int to, h, w;
};

// Computes the pieces of `panels` panels from position `first`, each `panel_size` elements long; returns their number.
// Columns past the last position are set to zero, once for all blocks.
NOINLINE int find_pieces(const struct Conv d, struct Piece* pieces, const long first, const int panels,
                         const int panel_size, __local REAL* block) {
    const int plane = d.out_height * d.out_width, valid = (int)min((long)panels * COLUMNS, d.positions - first);
    const int in_plane = (int)(first - first / plane * plane);
    int n = (int)(first / plane), p = in_plane / d.out_width, q = in_plane - p * d.out_width, count = 0;
    for (int at = 0; at < valid;) {
        const int panel = at / COLUMNS, column = at - panel * COLUMNS;
        const int run = min(min(d.out_width - q, valid - at), min(COLUMNS - column, VW));
        const int h = p * d.stride_h + d.first_h, w = q * d.stride_w + d.first_w;
        pieces[count].first = n * d.x_image + (long)h * d.width + w;
        pieces[count].to = panel * panel_size + column;
        pieces[count].h = h;
        pieces[count].w = w;
        ++count;
        at += run;
        q += run;
        if (q == d.out_width) {
            q = 0;
            if (++p == d.out_height) p = 0, ++n;
        }
    }
    if (valid < panels * COLUMNS) {
        __local REAL* last = block + (panels - 1) * panel_size;
        for (int e = 0; e < panel_size; e += VW) VSTORE((VEC)(0), last + e);
    }
    return count;
}

// copy_windows for windows of single elements: step k is channel k_first + k of x.
static inline void copy_channels(const struct Conv d, __global const STORED* x, const long x_end, __local REAL* to,
                                 const struct Piece* pieces, const int count, const int k_first, const int steps) {
    for (int k = 0; k < steps; ++k) {
        const long from = (k_first + k) * d.x_channel;
        __local REAL* windows = to + k * COLUMNS;
        if (pieces[count - 1].first + from + VW <= x_end)  // the last piece has the largest offset
            for (int piece = 0; piece < count; ++piece) {
                VSTORE(STORED_VLOAD(x + pieces[piece].first + from), windows + pieces[piece].to);
                PREFETCH(x + pieces[piece].first + from + 3 * d.x_channel);  // the following rows are in other pages
            }
        else
            for (int piece = 0; piece < count; ++piece) {
                REAL values[VW];
                for (int e = 0; e < VW; ++e)
                    values[e] =
                        pieces[piece].first + from + e < x_end ? LOADED(x[pieces[piece].first + from + e]) : (REAL)0;
                VSTORE(VLOAD(values), windows + pieces[piece].to);
            }
    }
}

// Loads the elements at[e * stride_w] of a row of x for the lanes e, zeros outside of the row; at[0] is in column
// `column`, and is element `from` of x, of which `x_end` elements may be read.
static inline VEC load_row(const struct Conv d, __global const STORED* at, const long from, const long x_end,
                           const int column) {
    if (from < 0 || from + VW * d.stride_w > x_end || d.stride_w > 2) {
        REAL values[VW];
        for (int e = 0; e < VW; ++e) {
            const int w = column + e * d.stride_w;
            values[e] = w >= 0 && w < d.width ? LOADED(at[e * d.stride_w]) : (REAL)0;
        }
        return VLOAD(values);
    }
    VEC value;
    if (d.stride_w == 1) value = STORED_VLOAD(at);
    else {
        const VEC low = STORED_VLOAD(at), high = STORED_VLOAD(at + VW);
        value = EVEN(low, high);
    }
    const LANES columns = LANE_NUMBERS * d.stride_w + column;
    return select((VEC)(0), value, columns >= (LANES)(0) && columns < (LANES)(d.width));
}

// Copies the columns of all pieces: to[panel][k][column] for k in [k_first, k_first + steps). `x_end` elements of x may
// be read. A whole vector is stored per piece; elements past the piece are overwritten by the next piece or the next k.
NOINLINE void copy_windows(const struct Conv d, __global const STORED* x, const long x_end, __local REAL* to,
                           const struct Piece* pieces, const int count, const bool pointwise, const int k_first,
                           const int steps) {
    const int taps = d.taps_h * d.taps_w;
    if (count == 0) return;
    if (pointwise) {
        copy_channels(d, x, x_end, to, pieces, count, k_first, steps);
        return;
    }
    int c = k_first / taps, i = (k_first - c * taps) / d.taps_w, j = k_first - c * taps - i * d.taps_w;
    for (int k = 0; k < steps; ++k, to += COLUMNS) {
        const int h = i * d.dilation_h, w = j * d.dilation_w;
        const long from = c * d.x_channel + (long)h * d.width + w;
        for (int piece = 0; piece < count; ++piece) {
            VEC value = (VEC)(0);
            const int x_row = pieces[piece].h + h;
            if (x_row >= 0 && x_row < d.height) {
                const long at = pieces[piece].first + from;
                value = load_row(d, x + at, at, x_end, pieces[piece].w + w);
            }
            VSTORE(value, to + pieces[piece].to);
        }
        if (++j == d.taps_w) {
            j = 0;
            if (++i == d.taps_h) i = 0, ++c;
        }
    }
}

#if OUTPUT_AS != AS_REAL
// Epilogue of a channel, applied when the sums are rounded.
#ifdef EPILOGUE
#define EPILOGUE_PARAMETER , const struct Epilogue epilogue
#define EPILOGUE_ARGUMENT , epilogue
static inline REAL apply_epilogue(const REAL value, const long channel, const long at EPILOGUE_PARAMETER) {
    return with_epilogue(epilogue, value, channel, at);
}
static inline VEC apply_epilogue_vector(const VEC value, const long channel, const long at EPILOGUE_PARAMETER) {
    return with_epilogue_vector(epilogue, value, channel, at);
}
#else
#define EPILOGUE_PARAMETER
#define EPILOGUE_ARGUMENT
static inline REAL apply_epilogue(const REAL value, const long channel, const long at) { return value; }
static inline VEC apply_epilogue_vector(const VEC value, const long channel, const long at) { return value; }
#endif
#else
#define EPILOGUE_PARAMETER
#define EPILOGUE_ARGUMENT
#endif

#if OUTPUT_AS != AS_REAL
// out[at + e] = from[e] after epilogue and rounding, for `count` contiguous elements of a channel.
#if PARTIAL_SUMS
static inline void round_run(__global const REAL* from, __global OUTPUT* out, const int channel, const long at,
                             const int count EPILOGUE_PARAMETER) {
#else
static inline void round_run(const REAL* from, __global OUTPUT* out, const int channel, const long at,
                             const int count EPILOGUE_PARAMETER) {
#endif
    int e = 0;
    for (; e + VW <= count; e += VW)
        OUTPUT_VSTORE(apply_epilogue_vector(VLOAD(from + e), channel, at + e EPILOGUE_ARGUMENT), out + at + e);
    for (; e < count; ++e) out[at + e] = ROUNDED(apply_epilogue(from[e], channel, at + e EPILOGUE_ARGUMENT));
}
#endif

#if ROUND_ON_STORE
// Stores a tile of the channels from `channel`, whose first element is at `first_element` in the result.
NOINLINE void store_tile(const struct Conv* d, const REAL* tile, __global OUTPUT* result, const long first_element,
                         const int channel, const int panel, const int height EPILOGUE_PARAMETER) {
#else
// Stores a tile, or adds it to the sums of previous blocks of k.
NOINLINE void store_tile(const struct Conv* d, const REAL* tile, __global SUM_TYPE* out, const int panel,
                         const int height, const int add) {
#endif
    const int plane = d->out_height * d->out_width;
    const long first = (long)panel * COLUMNS;
    const int valid = (int)min((long)COLUMNS, d->positions - first);
    const bool flat = d->out_row_step == d->out_width * d->out_column_step;
    int n = (int)(first / plane), f = (int)(first - (long)n * plane);
    for (int at = 0; at < valid;) {
        const int p = f / d->out_width, q = f - p * d->out_width;
        const int run = min((flat ? plane - f : d->out_width - q), valid - at);
        long to = n * d->out_image + (long)p * d->out_row_step + (long)q * d->out_column_step;
#if ROUND_ON_STORE
        to += first_element;
#endif
        for (int i = 0; i < height; ++i, to += d->out_channel) {
            const REAL* from = tile + i * COLUMNS + at;
#if ROUND_ON_STORE
            if (d->out_column_step == 1) round_run(from, result, channel + i, to, run EPILOGUE_ARGUMENT);
            else
                for (int e = 0; e < run; ++e) result[to + (long)e * d->out_column_step] = ROUNDED(from[e]);
#else
            if (d->out_column_step == 1) store_run(from, out + to, run, add);
            else
                for (int e = 0; e < run; ++e) {
                    __global SUM_TYPE* sum = out + to + (long)e * d->out_column_step;
                    *sum = add ? *sum + from[e] : from[e];
                }
#endif
        }
        at += run;
        f += run;
        if (f == plane) f = 0, ++n;
    }
}

#ifdef TAPS_H
// packed[group][panel][(o, i, j)][r] = weight[o][panel * ROWS + r][at_h + i * by_h][at_w + j * by_w], 0 past the last
// row, for backward_input. A work-item packs FLIP_PANELS panels of FLIP_CHANNELS o: contiguous on both sides.
struct Flip {
    int rows, panels;               // of the product, per group
    int channels;                   // o, per group
    int taps;                       // elements of the filter
    int first, stride_h, stride_w;  // the packed elements: offset and strides in the filter
};

// global size (ceil(channels / FLIP_CHANNELS), ceil(panels / FLIP_PANELS), groups)
__kernel void conv2d_gemm_flip(const struct Flip d, __global const STORED* restrict weight, const long weight_offset,
                               __global REAL* restrict packed, const long packed_offset) {
    const long group = get_global_id(2);
    const int first_o = get_global_id(0) * FLIP_CHANNELS, first_panel = get_global_id(1) * FLIP_PANELS;
    for (int o = first_o; o < min(d.channels, first_o + FLIP_CHANNELS); ++o)
        for (int panel = first_panel; panel < min(d.panels, first_panel + FLIP_PANELS); ++panel) {
            __global const STORED* from =
                weight + weight_offset + ((group * d.channels + o) * d.rows + panel * ROWS) * d.taps + d.first;
            __global REAL* to =
                packed + packed_offset + ((group * d.panels + panel) * d.channels + o) * (TAPS_H * TAPS_W * ROWS);
            const int valid = min(ROWS, d.rows - panel * ROWS);
            // The outer loops are not unrolled: the compile time would exceed the gain.
            for (int i = 0; i < TAPS_H; ++i)
                for (int j = 0; j < TAPS_W; ++j, to += ROWS) {
                    __global const STORED* tap = from + i * d.stride_h + j * d.stride_w;
                    if (valid == ROWS)
#pragma unroll
                        for (int r = 0; r < ROWS; ++r) to[r] = LOADED(tap[r * d.taps]);
                    else
                        for (int r = 0; r < ROWS; ++r) to[r] = r < valid ? LOADED(tap[r * d.taps]) : (REAL)0;
                }
        }
}
#else
// A panel of weights, and its element of row i and step k.
#if A_FORM == A_PANELS
typedef __global const REAL* Left;
static inline REAL weight_at(const Left* left, const int i, const long k) { return (*left)[k * ROWS + i]; }
#else
struct Rows {
    __global const REAL* row[ROWS];
};
typedef struct Rows Left;
static inline REAL weight_at(const Left* left, const int i, const long k) { return left->row[i][k]; }
#endif

// Destination of a tile.
struct Tile {
    int panel, height;
    int first;          // first block of k: begins with the bias; others add to the sums of previous blocks
    int image, column;  // of the first position
    int full;           // complete, with contiguous columns
    int narrow;         // the remaining columns of the last image fill only one vector
};

// Adds the product of step k of the weights with the first `vectors` vectors, a constant in each call, of a row of the
// copied windows.
static inline __attribute__((always_inline)) void add_step(const int vectors, const Left* left, const long k,
                                                           __local const REAL* right, VEC (*sum)[VECTORS]) {
    VEC values[VECTORS];
#pragma unroll
    for (int v = 0; v < VECTORS; ++v)
        if (v < vectors) values[v] = VLOAD(right + v * VW);
#pragma unroll
    for (int i = 0; i < ROWS; ++i) {
        const VEC factor = (VEC)(weight_at(left, i, k));
#pragma unroll
        for (int v = 0; v < VECTORS; ++v)
            if (v < vectors) sum[i][v] = fma(factor, values[v], sum[i][v]);
    }
}

static inline __attribute__((always_inline)) void add_steps(const int vectors, const Left* left,
                                                            __local const REAL* right, const int steps,
                                                            VEC (*sum)[VECTORS]) {
    for (int k = 0; k < steps; ++k, right += COLUMNS) add_step(vectors, left, k, right, sum);
}

// Computes a tile: rows of weights times `steps` rows of copied windows. It begins at element `first` of the result.
NOINLINE void multiply(const struct Conv* d, const Left a, __local const REAL* right, const int steps,
                       const struct Tile t, __global SUM_TYPE* result, const long first, const int channel,
                       __global const STORED* bias EPILOGUE_PARAMETER) {
    const Left left = a;
    __global SUM_TYPE* out = result + first;
    if (t.full) {
        out += t.image * d->out_image + t.column;
        for (int i = 0; i < ROWS; ++i)
            for (int v = 0; v < VECTORS; ++v) PREFETCH_TO_WRITE(out + i * d->out_channel + v * VW);
    }
    VEC sum[ROWS][VECTORS];
#pragma unroll
    for (int i = 0; i < ROWS; ++i) {
        const VEC begin = (VEC)(d->has_bias && t.first ? LOADED(bias[min(i, t.height - 1)]) : (REAL)0);
#pragma unroll
        for (int v = 0; v < VECTORS; ++v) sum[i][v] = begin;
    }
#if A_FORM == A_STRIDED
    const int channels = steps / (d->taps_h * d->taps_w);
    for (int c = 0; c < channels; ++c)
        for (int y = 0; y < d->taps_h; ++y)
            for (int z = 0; z < d->taps_w; ++z, right += COLUMNS)
                add_step(VECTORS, &left, c * d->a_channel + y * d->a_h + z * d->a_w, right, sum);
#else
    if (!t.narrow) add_steps(VECTORS, &left, right, steps, sum);
    else add_steps(1, &left, right, steps, sum);
#endif
#if !ROUND_ON_STORE
    if (t.full) {
#pragma unroll
        for (int i = 0; i < ROWS; ++i)
#pragma unroll
            for (int v = 0; v < VECTORS; ++v) {
                __global REAL* at = out + i * d->out_channel + v * VW;
                VSTORE(t.first ? sum[i][v] : sum[i][v] + VLOAD(at), at);
            }
        return;
    }
#endif
    REAL tile[ROWS * COLUMNS];
#pragma unroll
    for (int i = 0; i < ROWS; ++i)
#pragma unroll
        for (int v = 0; v < VECTORS; ++v) VSTORE(sum[i][v], tile + i * COLUMNS + v * VW);
#if ROUND_ON_STORE
    store_tile(d, tile, result, first, channel, t.panel, t.height EPILOGUE_ARGUMENT);
#else
    store_tile(d, tile, result + first, t.panel, t.height, !t.first);
#endif
}

#if PARTIAL_SUMS
#define ROUNDED_PARAMETERS , __global OUTPUT *restrict rounded, const long rounded_offset
#define ROUNDED_ARGUMENTS , rounded, rounded_offset
#else
#define ROUNDED_PARAMETERS
#define ROUNDED_ARGUMENTS
#endif

// The weights of the rows of a panel, from step k_first on. Past the last row, that row is multiplied again and not
// stored.
static inline Left left_operand(const struct Conv* d, __global const REAL* a, const int row_panel, const int height,
                                const int k_first) {
#if A_FORM == A_PANELS
    return a + row_panel * d->a_row + (long)k_first * ROWS;
#else
    Left left;
#pragma unroll
    for (int i = 0; i < ROWS; ++i)
        left.row[i] = a + (row_panel * ROWS + min(i, height - 1)) * d->a_row +
                      (A_FORM == A_STRIDED ? k_first / (d->taps_h * d->taps_w) * d->a_channel : k_first);
    return left;
#endif
}

#if PARTIAL_SUMS || (defined(EPILOGUE) && !ROUND_ON_STORE)
#if PARTIAL_SUMS
#define FINISH_PARAMETERS , __global OUTPUT* rounded EPILOGUE_PARAMETER
#define FINISH_ARGUMENTS , rounded + rounded_offset EPILOGUE_ARGUMENT
#else
#define FINISH_PARAMETERS , const struct Epilogue epilogue
#define FINISH_ARGUMENTS , epilogue
#endif

// Rounds the sums of rows [first_row, end_row) and columns [first, end) after the last block of k, or applies the
// epilogue to them. `first_channel` is the channel of row 0, whose results begin at element out_group.
static inline void finish_sums(const struct Conv* d, __global SUM_TYPE* out, const long out_group,
                               const int first_channel, const int first_row, const int end_row, const long first,
                               const long end FINISH_PARAMETERS) {
    const int plane = d->out_height * d->out_width;
    for (long at = first, run; at < end; at += run) {
        const long image = at / plane, column = at - image * plane;
        run = min(plane - column, end - at);
        for (int row = first_row; row < end_row; ++row) {
            const long to = out_group + image * d->out_image + row * d->out_channel + column;
#if PARTIAL_SUMS
            round_run(out + to, rounded, first_channel + row, to, (int)run EPILOGUE_ARGUMENT);
#else
            epilogue_stored(epilogue, out, first_channel + row, to, run);
#endif
        }
    }
}
#endif

// global size (ceil(panels / panels_each), ceil(row_panels / row_panels_each), groups)
NOINLINE void conv2d_gemm_part(const size_t id0, const size_t id1, const size_t id2, const struct Conv d,
                               __local REAL* restrict block, __global const STORED* restrict x, const long x_offset,
                               __global const REAL* restrict a, const long a_offset, __global SUM_TYPE* restrict out,
                               const long out_offset, __global const STORED* restrict bias,
                               const long bias_offset ROUNDED_PARAMETERS EPILOGUE_STORED_PARAMETERS) {
    struct Piece pieces[PANELS * COLUMNS];
    const int group = id2;
    const int first_panel = id0 * d.panels_each, end_panel = min(first_panel + d.panels_each, d.panels);
    const int first_row_panel = id1 * d.row_panels_each,
              end_row_panel = min(first_row_panel + d.row_panels_each, d.row_panels);
    const int taps = d.taps_h * d.taps_w, inner = d.channels * taps;
    x += x_offset + (long)group * d.channels * d.x_channel;
    const long x_end = d.x_count - (long)group * d.channels * d.x_channel;
    a += a_offset + group * d.a_group + d.a_first;
    const long out_group = d.out_first + (long)group * d.filters * d.out_channel;
    out += out_offset;
#ifdef EPILOGUE
    const struct Epilogue epilogue = EPILOGUE_OF_PARAMETERS;
#endif
    const int plane = d.out_height * d.out_width;
    const bool flat = d.out_column_step == 1 && d.out_row_step == d.out_width;
    const int panel_size = d.k_block * COLUMNS + VW;
    // True if windows are single elements (1 x 1, no stride or padding).
    const bool pointwise =
        d.height == 1 && d.out_height == 1 && d.out_width == d.width && d.stride_w == 1 && d.first_w == 0 && taps == 1;
    const int count = find_pieces(d, pieces, (long)first_panel * COLUMNS, end_panel - first_panel, panel_size, block);
    // At least once: an empty sum is the bias, or 0.
    for (int k_first = 0; k_first == 0 || k_first < inner; k_first += d.k_block) {
        const int steps = min(d.k_block, inner - k_first);
        copy_windows(d, x, x_end, block, pieces, count, pointwise, k_first, steps);
        for (int row_panel = first_row_panel; row_panel < end_row_panel; ++row_panel) {
            const int height = min(ROWS, d.filters - row_panel * ROWS);
            const Left left = left_operand(&d, a, row_panel, height, k_first);
            for (int panel = first_panel; panel < end_panel; ++panel) {
                const long column = (long)panel * COLUMNS, image = column / plane;
                const struct Tile tile = {panel,
                                          height,
                                          k_first == 0,
                                          (int)image,
                                          (int)(column - image * plane),
                                          flat && height == ROWS && column - image * plane + COLUMNS <= plane,
                                          d.positions - column <= VW};
                multiply(&d, left, block + (panel - first_panel) * panel_size, steps, tile, out,
                         out_group + (long)row_panel * ROWS * d.out_channel, group * d.filters + row_panel * ROWS,
                         bias + bias_offset + group * d.filters + row_panel * ROWS EPILOGUE_ARGUMENT);
            }
        }
    }
#if PARTIAL_SUMS || (defined(EPILOGUE) && !ROUND_ON_STORE)
    finish_sums(&d, out, out_group, group * d.filters, first_row_panel * ROWS, min(d.filters, end_row_panel * ROWS),
                (long)first_panel * COLUMNS, min(d.positions, (long)end_panel * COLUMNS) FINISH_ARGUMENTS);
#endif
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void conv2d_gemm(
    const struct Conv d, __local REAL* restrict block, __global const STORED* restrict x, const long x_offset,
    __global const REAL* restrict a, const long a_offset, __global SUM_TYPE* restrict out, const long out_offset,
    __global const STORED* restrict bias, const long bias_offset ROUNDED_PARAMETERS EPILOGUE_STORED_PARAMETERS) {
    conv2d_gemm_part(get_group_id(0), get_group_id(1), get_group_id(2), d, block, x, x_offset, a, a_offset, out,
                     out_offset, bias, bias_offset ROUNDED_ARGUMENTS EPILOGUE_STORED_ARGUMENTS);
}
#endif
