// Winograd convolution F(2 x 2, 3 x 3) for 3 x 3 filters (minimal filtering: A. Lavin and S. Gray, Fast algorithms for
// convolutional neural networks, 2016). simd style. For each tile of 2 x 2 positions of the output,
//
//   out = A' [ sum over c of (G w[o, c] G') * (B' x[c] B) ] A      (* element by element, ' transposed)
//
// with x[c] the 4 x 4 elements of x around it. There is one matrix product for each of the 16 elements
// (matmul_packed.cl), whose columns are tiles, numbered (image, row, column), `count` of them at a time. Three kernels
// transform weights and inputs into its packed panels (panels.cl), and its results back. backward_input is the same
// with the gradient of the result for x, and flipped, transposed weights.
//
//   ROWS, COLUMNS  register tile of the product
//   STAGE          STAGE_WEIGHTS, STAGE_INPUT or STAGE_OUTPUT: which operand is transformed
//   REAL, VW       element type and vector width (vectors.clh)
#define STAGE_WEIGHTS 0
#define STAGE_INPUT 1
#define STAGE_OUTPUT 2
#define GROUP 1
#include "noinline.clh"
#include "vectors.clh"

#define TILE 2
#define N (TILE + 2)

struct Winograd {
    long x_image, x_channel, x_count;  // strides between images and channels of x; number of elements
    long out_image, out_channel;       // the same of out
    long element;                      // stride between elements of tiles in the buffer that is written or read
    long first;                        // tile of column 0
    int channels, filters;
    int height, width;      // of x
    int rows, columns;      // of out
    int pad_top, pad_left;  // zero rows and columns before x
    int tiles_h, tiles_w;   // per image
    int count, panels;      // tiles, and panels of them
    int each;               // channels, or filters, per work-item
    int flip, has_bias;
    int unused;  // avoids padding of the struct
};

#if STAGE == STAGE_WEIGHTS

// Applies G to three vectors.
static void transform_weights(const VEC* from, const int step, VEC* to, const int to_step) {
    const VEC a = from[0], b = from[step], c = from[2 * step];
    to[0] = a;
    to[to_step] = (a + b + c) * REAL_C(0.5);
    to[2 * to_step] = (a - b + c) * REAL_C(0.5);
    to[3 * to_step] = c;
}

// packed[element][panel of ROWS filters][c][ROWS]; `flip`: weights of backward_input, where the filters of the product
// are the channels of the weights. Vectors are along (c, filter of the panel), as they are stored. global size
// (ceil(channels / each), panels of filters)
NOINLINE void conv2d_winograd2_weights_part(const size_t id0, const size_t id1, const struct Winograd d,
                                            __global const REAL* restrict weight, const long weight_offset,
                                            __global REAL* restrict packed, const long packed_offset) {
    const int panel = id1, end = min(d.channels, (int)(id0 + 1) * d.each) * ROWS;
    const long element = d.element;
    __global REAL* to = packed + packed_offset + (long)panel * d.channels * ROWS;
    REAL rows[9][VW];
    for (int f = id0 * d.each * ROWS; f < end; f += VW) {
        // Gather instructions are slower than scalar loads.
#ifdef __clang__
#pragma clang loop vectorize(disable)
#endif
        for (int e = 0; e < VW; ++e) {
            const int at = min(f + e, end - 1), c = at / ROWS;
            const int o = min(panel * ROWS + at - c * ROWS, d.filters - 1);  // the last filter again past the end
            __global const REAL* from =
                weight + weight_offset + (d.flip ? (long)c * d.filters + o : (long)o * d.channels + c) * 9;
#pragma unroll
            for (int i = 0; i < 9; ++i) rows[i][e] = from[i];
        }
        VEC w[9], intermediate[3 * N], result[N];
#pragma unroll
        for (int i = 0; i < 9; ++i) w[i] = VLOAD(rows[d.flip ? 8 - i : i]);
#pragma unroll
        for (int i = 0; i < 3; ++i) transform_weights(w + i, 3, intermediate + i, 3);
#pragma unroll
        for (int i = 0; i < N; ++i) {
            transform_weights(intermediate + i * 3, 1, result, 1);
#pragma unroll
            for (int j = 0; j < N; ++j) {
                __global REAL* target = to + (i * N + j) * element + f;
                if (f + VW <= end) VSTORE(result[j], target);
                else {
                    REAL values[VW];
                    VSTORE(result[j], values);
                    for (int e = 0; e < end - f; ++e) target[e] = values[e];
                }
            }
        }
    }
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void conv2d_winograd2_weights(
    const struct Winograd d, __global const REAL* restrict weight, const long weight_offset,
    __global REAL* restrict packed, const long packed_offset) {
    conv2d_winograd2_weights_part(get_global_id(0), get_global_id(1), d, weight, weight_offset, packed, packed_offset);
}

#else

#define VECTORS (COLUMNS / VW)

// Consecutive tiles of one row of tiles of one image, at most VW.
struct Run {
    int column, length;  // column in the panel of the first tile
    int n, row, tile;    // image, row, and index in the row of the first tile
};

static int find_runs(const struct Winograd* d, const int panel, struct Run* runs) {
    const int plane = d->tiles_h * d->tiles_w, valid = min(COLUMNS, d->count - panel * COLUMNS);
    const long first = d->first + (long)panel * COLUMNS;
    int n = (int)(first / plane), rest = (int)(first - (long)n * plane), row = rest / d->tiles_w,
        tile = rest - row * d->tiles_w, count = 0;
    for (int column = 0; column < valid;) {
        const int length = min(min(d->tiles_w - tile, valid - column), VW);
        runs[count].column = column;
        runs[count].length = length;
        runs[count].n = n;
        runs[count].row = row;
        runs[count].tile = tile;
        ++count;
        column += length;
        tile += length;
        if (tile == d->tiles_w) {
            tile = 0;
            if (++row == d->tiles_h) row = 0, ++n;
        }
    }
    return count;
}

#if STAGE == STAGE_INPUT

// Loads VW elements of a row of x from column w, zeros outside; `at` is the index of column w in x.
static VEC load_row(const struct Winograd* d, __global const REAL* x, const long at, const long x_end, const int w) {
    if (w >= d->width || w + VW <= 0) return (VEC)(0);
    if (at < 0 || at + VW > x_end) {
        REAL values[VW];
        for (int e = 0; e < VW; ++e) values[e] = w + e >= 0 && w + e < d->width ? x[at + e] : (REAL)0;
        return VLOAD(values);
    }
    const VEC value = VLOAD(x + at);
    if (w >= 0 && w + VW <= d->width) return value;
    const LANES columns = LANE_NUMBERS + w;
    return select((VEC)(0), value, columns >= (LANES)(0) && columns < (LANES)(d->width));
}

// Applies B' to N vectors.
static void transform_input(const VEC* from, const int step, VEC* to, const int to_step) {
    const VEC a = from[0], b = from[step], c = from[2 * step], e = from[3 * step];
    to[0] = a - c;
    to[to_step] = b + c;
    to[2 * to_step] = c - b;
    to[3 * to_step] = b - e;
}

// Loads row i, column j of the elements of channel c around the tiles of a run: neighbourhood[i * N + j][tile]. A
// vector has neighbouring tiles; elements past a run are overwritten by the next run.
static void load_tiles(const struct Winograd* d, __global const REAL* x, const int c, const struct Run run,
                       __local REAL* neighbourhood) {
    const int w = run.tile * TILE - d->pad_left;
#pragma unroll 1
    for (int i = 0; i < N; ++i) {
        const int h = run.row * TILE - d->pad_top + i;
        VEC columns[N];
        if (h < 0 || h >= d->height) {
#pragma unroll
            for (int j = 0; j < N; ++j) columns[j] = (VEC)(0);
        } else {
            const long at = run.n * d->x_image + c * d->x_channel + (long)h * d->width + w;
            const VEC a = load_row(d, x, at, d->x_count, w), b = load_row(d, x, at + VW, d->x_count, w + VW);
            columns[0] = EVEN(a, b);
            columns[1] = ODD(a, b);
            const VEC e = load_row(d, x, at + 2, d->x_count, w + 2),
                      f = load_row(d, x, at + VW + 2, d->x_count, w + VW + 2);
            columns[2] = EVEN(e, f);
            columns[3] = ODD(e, f);
        }
#pragma unroll
        for (int j = 0; j < N; ++j) VSTORE(columns[j], neighbourhood + (i * N + j) * (COLUMNS + VW) + run.column);
    }
}

// Transforms VW tiles to B' x B, one element per `element` elements of `to`.
static void transform_tiles(__local const REAL* neighbourhood, __global REAL* to, const long element) {
    VEC intermediate[N * N], result[N];
#pragma unroll
    for (int i = 0; i < N; ++i) {
        VEC row[N];
#pragma unroll
        for (int j = 0; j < N; ++j) row[j] = VLOAD(neighbourhood + (i * N + j) * (COLUMNS + VW));
        transform_input(row, 1, intermediate + i * N, 1);
    }
#pragma unroll
    for (int j = 0; j < N; ++j) {
        transform_input(intermediate + j, N, result, 1);
#pragma unroll
        for (int i = 0; i < N; ++i) VSTORE(result[i], to + (i * N + j) * element);
    }
}

// packed[element][panel of COLUMNS tiles][c][COLUMNS]. global size (ceil(channels / each), panels)
NOINLINE void conv2d_winograd2_input_part(const size_t id0, const size_t id1, const struct Winograd args,
                                          __local REAL* restrict neighbourhood, __global const REAL* restrict x,
                                          const long x_offset, __global REAL* restrict packed,
                                          const long packed_offset) {
    const struct Winograd d = args;
    struct Run runs[COLUMNS];
    const int panel = id1, count = find_runs(&d, panel, runs), end = min(d.channels, (int)(id0 + 1) * d.each);
    for (int i = 0; i < N * N * (COLUMNS + VW); i += VW) VSTORE((VEC)(0), neighbourhood + i);
    for (int c = id0 * d.each; c < end; ++c) {
        for (int k = 0; k < count; ++k) load_tiles(&d, x + x_offset, c, runs[k], neighbourhood);
        __global REAL* to = packed + packed_offset + ((long)panel * d.channels + c) * COLUMNS;
        for (int v = 0; v < COLUMNS; v += VW) transform_tiles(neighbourhood + v, to + v, d.element);
    }
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void conv2d_winograd2_input(
    const struct Winograd args, __local REAL* restrict neighbourhood, __global const REAL* restrict x,
    const long x_offset, __global REAL* restrict packed, const long packed_offset) {
    conv2d_winograd2_input_part(get_global_id(0), get_global_id(1), args, neighbourhood, x, x_offset, packed,
                                packed_offset);
}

#else

// Applies A' to N vectors.
static void transform_output(const VEC* from, const int step, VEC* to, const int to_step) {
    const VEC a = from[0], b = from[step], c = from[2 * step], e = from[3 * step];
    to[0] = a + b + c;
    to[to_step] = b - c - e;
}

// Transforms VW tiles, each of whose elements is `element` elements after the previous one, to A' m A + begin:
// results[i * TILE + j][tile].
static void transform_products(__global const REAL* from, const long element, const VEC begin, __local REAL* results) {
    VEC intermediate[TILE * N], result[TILE];
#pragma unroll
    for (int j = 0; j < N; ++j) {
        VEC column[N];
#pragma unroll
        for (int i = 0; i < N; ++i) column[i] = VLOAD(from + (i * N + j) * element);
        transform_output(column, 1, intermediate + j, N);
    }
#pragma unroll
    for (int i = 0; i < TILE; ++i) {
        transform_output(intermediate + i * N, 1, result, 1);
#pragma unroll
        for (int j = 0; j < TILE; ++j) VSTORE(result[j] + begin, results + (i * TILE + j) * (COLUMNS + VW));
    }
}

// Stores the first `count` elements of a vector, or all of them.
static inline void store_first(const VEC value, __global REAL* to, const int count) {
    if (count >= VW) {
        VSTORE(value, to);
        return;
    }
    if (count <= 0) return;
    REAL values[VW];
    VSTORE(value, values);
    int e = 0;
#if VW > 8
    if (count & 8) vstore8(vload8(0, values), 0, to), e = 8;
#endif
#if VW > 4
    if (count & 4) vstore4(vload4(0, values + e), 0, to + e), e += 4;
#endif
    for (; e < count; ++e) to[e] = values[e];
}

// Stores the results of a run of tiles to a plane of out.
static void store_tiles(const struct Winograd* d, __local const REAL* results, const struct Run run,
                        __global REAL* plane) {
    const int q = run.tile * TILE, inside = min(run.length * TILE, d->columns - q);
    for (int i = 0; i < TILE; ++i) {
        const int p = run.row * TILE + i;
        if (p >= d->rows) break;
        __local const REAL* row = results + i * TILE * (COLUMNS + VW) + run.column;
        const VEC a = VLOAD(row), b = VLOAD(row + COLUMNS + VW);
        __global REAL* to = plane + (long)p * d->columns + q;
        store_first(ZIP_LOW(a, b), to, inside);
        store_first(ZIP_HIGH(a, b), to + VW, inside - VW);
    }
}

// product[element][o][tile]. global size (ceil(filters / each), panels)
NOINLINE void conv2d_winograd2_output_part(const size_t id0, const size_t id1, const struct Winograd args,
                                           __local REAL* restrict results, __global const REAL* restrict product,
                                           const long product_offset, __global REAL* restrict out,
                                           const long out_offset, __global const REAL* restrict bias,
                                           const long bias_offset) {
    const struct Winograd d = args;
    struct Run runs[COLUMNS];
    const int panel = id1, count = find_runs(&d, panel, runs), end = min(d.filters, (int)(id0 + 1) * d.each);
    const long pitch = (long)d.panels * COLUMNS;
    for (int o = id0 * d.each; o < end; ++o) {
        __global const REAL* from = product + product_offset + o * pitch + panel * COLUMNS;
        const VEC begin = (VEC)(d.has_bias ? bias[bias_offset + o] : (REAL)0);
        for (int v = 0; v < COLUMNS; v += VW) transform_products(from + v, d.element, begin, results + v);
        for (int k = 0; k < count; ++k)
            store_tiles(&d, results, runs[k], out + out_offset + runs[k].n * d.out_image + o * d.out_channel);
    }
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void conv2d_winograd2_output(
    const struct Winograd args, __local REAL* restrict results, __global const REAL* restrict product,
    const long product_offset, __global REAL* restrict out, const long out_offset, __global const REAL* restrict bias,
    const long bias_offset) {
    conv2d_winograd2_output_part(get_global_id(0), get_global_id(1), args, results, product, product_offset, out,
                                 out_offset, bias, bias_offset);
}
#endif
#endif
