// Gradient of 3 x 3 filters by Winograd's minimal filtering F(3 x 3, 4 x 4) (A. Lavin and S. Gray, Fast algorithms for
// convolutional neural networks, 2016, section 6). simd style. With tiles t of 4 x 4 positions of g, the gradient of
// the result, and the 6 x 6 elements of x around them,
//
//   weight_gradient[o, c] = A' [sum over t of (G g[t, o] G') * (B' x[t, c] B)] A  (* element by element, ' transposed)
//
// The points 0, 1, -1, 2, -2 and infinity are those of F(4 x 4, 3 x 3), so B is the same (winograd4.clh); the fractions
// of its G are applied in A here, once per filter.
//
// A work-item processes a part of the filters and a part of the channels, whose sums[element][filter][channel] stay in
// the L2 cache while it processes some units of tiles: it transposes and transforms their inputs, and adds their
// product. Units may be distributed over work-items; each writes its own sums to partial[chunk].
//
//   ROWS, COLUMNS  register tile of the product: filters, and channels
//   REAL, VW       element type and vector width (vectors.clh)
#define GROUP 1
#include "winograd4.clh"

#define VECTORS (COLUMNS / VW)

struct Winograd {
    long partial;  // elements of a gradient
    int images, channels, filters;
    int height, width;                                      // of x
    int rows, columns;                                      // of g
    int pad_top, pad_left;                                  // zero rows and columns before x
    int images_each, tile_rows, tile_columns;               // per unit
    int units_h, units_w, units;                            // per image, or several; in total
    int units_each, chunks;                                 // units per work-item; chunks of all units
    int filters_each, channels_each, channel_parts, parts;  // multiples of ROWS and COLUMNS except for the last
    int flat;                                               // a unit covers whole rows, which are read as one run
    int x_row, g_row, sum_row;                              // strides between tiles, and between filters
    int x_element, g_element, sum_element;                  // strides between elements of the transforms
    int slice;                                              // workspace per work-item
    int has_bias;                                           // 0: `bias` may be any buffer and is not written
};
#include "winograd4_units.clh"

// Applies G without its fractions to four vectors.
static void transform_gradient(const VEC a, const VEC b, const VEC c, const VEC e, VEC* to) {
    const VEC p = a + c, q = b + e, r = a + (REAL)4 * c, s = (REAL)2 * b + (REAL)8 * e;
    to[0] = a;
    to[1] = p + q;
    to[2] = p - q;
    to[3] = r + s;
    to[4] = r - s;
    to[5] = e;
}

// Transforms the 4 x 4 positions at `grid`, of VW filters.
NOINLINE void transform_gradient_tile(__local const REAL* grid, const int pitch, __global REAL* to,
                                      const long element) {
    VEC intermediate[4][6], result[6];
#pragma unroll
    for (int i = 0; i < 4; ++i, grid += pitch * VW)
        transform_gradient(VLOAD(grid), VLOAD(grid + VW), VLOAD(grid + 2 * VW), VLOAD(grid + 3 * VW), intermediate[i]);
#pragma unroll
    for (int j = 0; j < 6; ++j) {
        transform_gradient(intermediate[0][j], intermediate[1][j], intermediate[2][j], intermediate[3][j], result);
#pragma unroll
        for (int i = 0; i < 6; ++i) VSTORE(result[i], to + (i * 6 + j) * element);
    }
}

// Applies A', including the fractions of G, to six vectors.
static void transform_sums(const VEC* from, VEC* to, const int step) {
    const VEC p = from[1] + from[2], q = from[1] - from[2], r = from[3] + from[4], s = from[3] - from[4];
    to[0] = from[0] * REAL_C(0.25) - p * REAL_C(0.16666666666666666) + r * REAL_C(0.041666666666666666);
    to[step] = s * REAL_C(0.083333333333333333) - q * REAL_C(0.16666666666666666);
    to[2 * step] = (r - p) * REAL_C(0.16666666666666666) + from[5];
}

// Transforms the sums of one filter and VW channels, `valid` of which exist, to 3 x 3 weights each, and stores them.
NOINLINE void store_weights(__global const REAL* sums, const long element, __global REAL* to, const int valid) {
    VEC intermediate[18], result[9];
#pragma unroll
    for (int j = 0; j < 6; ++j) {
        VEC column[6];
#pragma unroll
        for (int i = 0; i < 6; ++i) column[i] = VLOAD(sums + (i * 6 + j) * element);
        transform_sums(column, intermediate + j, 6);
    }
#pragma unroll
    for (int i = 0; i < 3; ++i) transform_sums(intermediate + i * 6, result + i * 3, 1);
#if VW > 9
    VEC tile[VW];
#pragma unroll
    for (int t = 0; t < VW; ++t) tile[t] = result[min(t, 8)];
    transpose_vectors(tile);
    // Elements past the ninth are overwritten by the next channel.
    if (valid == VW)
#pragma unroll
        for (int c = 0; c < VW - 1; ++c) VSTORE(tile[c], to + c * 9);
    REAL rows[VW * VW];
#pragma unroll
    for (int c = 0; c < VW; ++c) VSTORE(tile[c], rows + c * VW);
    for (int c = valid == VW ? VW - 1 : 0; c < valid; ++c)
#pragma unroll
        for (int t = 0; t < 9; ++t) to[c * 9 + t] = rows[c * VW + t];
#else
    REAL taps[9 * VW];
#pragma unroll
    for (int t = 0; t < 9; ++t) VSTORE(result[t], taps + t * VW);
    for (int c = 0; c < valid; ++c)
#pragma unroll
        for (int t = 0; t < 9; ++t) to[c * 9 + t] = taps[t * VW + c];
#endif
}

// Zero-pads the `count` channels or filters to whole register tiles, which read them. Vectors are complete already.
static void pad_rows(__global REAL* rows, const long element, const int tiles, const int row, const int count) {
    for (int e = 0; e < ELEMENTS; ++e)
        for (int t = 0; t < tiles; ++t)
            for (int c = (count + VW - 1) / VW * VW; c < row; c += VW)
                VSTORE((VEC)(0), rows + e * element + t * row + c);
}

// Sums over the positions of g, for the gradient of the bias: the sum of a tile is the element of its transform at
// point 1 in both directions.
static void sum_bias_gradient(__global const REAL* g_transforms, const int tiles, const int row, const int filters,
                              __global REAL* bias, const bool add) {
    for (int o = 0; o < filters; o += VW) {
        VEC sum = (VEC)(0);
        for (int t = 0; t < tiles; ++t) sum += VLOAD(g_transforms + t * row + o);
        REAL values[VW];
        VSTORE(sum, values);
        store_run(values, bias + o, min(VW, filters - o), add);
    }
}

// Computes a register tile of sums, from zero or added to `sums`, over `tiles` tiles.
NOINLINE void multiply(__global const REAL* g, const int g_row, __global const REAL* x, const int x_row,
                       const int tiles, __global REAL* sums, const int sum_row, const bool add) {
    VEC sum[ROWS][VECTORS];
#pragma unroll
    for (int i = 0; i < ROWS; ++i)
#pragma unroll
        for (int v = 0; v < VECTORS; ++v) {
            sum[i][v] = (VEC)(0);
            if (add) sum[i][v] = VLOAD(sums + i * sum_row + v * VW);
        }
    for (int k = 0; k < tiles; ++k, g += g_row, x += x_row) {
        VEC values[VECTORS];
#pragma unroll
        for (int v = 0; v < VECTORS; ++v) values[v] = VLOAD(x + v * VW);
#pragma unroll
        for (int i = 0; i < ROWS; ++i) {
            const VEC factor = (VEC)(g[i]);
#pragma unroll
            for (int v = 0; v < VECTORS; ++v) sum[i][v] = fma(factor, values[v], sum[i][v]);
        }
    }
#pragma unroll
    for (int i = 0; i < ROWS; ++i)
#pragma unroll
        for (int v = 0; v < VECTORS; ++v) VSTORE(sum[i][v], sums + i * sum_row + v * VW);
}

// The part of the filters and channels that a work-item processes.
struct Part {
    int first_o, filters, first_c, channels;
};

static struct Part part_at(const struct Winograd* d, const int number) {
    struct Part p;
    p.first_o = number / d->channel_parts * d->filters_each;
    p.first_c = number % d->channel_parts * d->channels_each;
    p.filters = min(d->filters_each, d->filters - p.first_o);
    p.channels = min(d->channels_each, d->channels - p.first_c);
    return p;
}

// Transforms x of a unit for the channels of a part: xs[element][tile][channel].
static void transform_x(const struct Winograd* d, const struct Unit u, const struct Part part, const struct Grid shape,
                        __global const REAL* x, __local REAL* grid, __local const int* offsets, __global REAL* xs) {
    const long plane = (long)d->height * d->width;
    for (int n = 0; n < u.images; ++n)
        for (int c = 0; c < part.channels; c += VW) {
            load_grid(shape, x + ((long)(u.image + n) * d->channels + part.first_c + c) * plane,
                      u.first_row * 4 - d->pad_top, u.first_column * 4 - d->pad_left, min(VW, part.channels - c), grid,
                      offsets);
            for (int p = 0; p < u.height; ++p)
                for (int q = 0; q < u.width; ++q)
                    transform_tile(grid + (p * shape.pitch + q) * 4 * VW, shape.pitch,
                                   xs + ((n * u.height + p) * u.width + q) * d->x_row + c, d->x_element);
        }
}

// Transforms g of a unit for the filters of a part: g_transforms[element][tile][filter].
static void transform_g(const struct Winograd* d, const struct Unit u, const struct Part part, const struct Grid shape,
                        __global const REAL* g, __local REAL* grid, __local const int* offsets,
                        __global REAL* g_transforms) {
    const long plane = (long)d->rows * d->columns;
    for (int n = 0; n < u.images; ++n)
        for (int o = 0; o < part.filters; o += VW) {
            load_grid(shape, g + ((long)(u.image + n) * d->filters + part.first_o + o) * plane, u.first_row * 4,
                      u.first_column * 4, min(VW, part.filters - o), grid, offsets);
            for (int p = 0; p < u.height; ++p)
                for (int q = 0; q < u.width; ++q)
                    transform_gradient_tile(grid + (p * shape.pitch + q) * 4 * VW, shape.pitch,
                                            g_transforms + ((n * u.height + p) * u.width + q) * d->g_row + o,
                                            d->g_element);
        }
}

// global size (groups): a work-item processes every groups-th pair of part and chunk.
NOINLINE void conv2d_winograd4_backward_weights_part(const size_t id0, const size_t groups, const struct Winograd args,
                                                     __local REAL* restrict grid, __local int* restrict x_offsets,
                                                     __local int* restrict g_offsets, __global const REAL* restrict x,
                                                     __global const REAL* restrict g, __global REAL* restrict scratch,
                                                     __global REAL* restrict partial, __global REAL* restrict bias) {
    const struct Winograd d = args;
    const struct Grid x_grid = {d.height, d.width, d.tile_rows * 4 + 2, d.tile_columns * 4 + 2, d.flat},
                      g_grid = {d.rows, d.columns, d.tile_rows * 4, d.tile_columns * 4, d.flat};
    make_offsets(x_grid, d.pad_left, x_offsets);
    make_offsets(g_grid, 0, g_offsets);
    __global REAL* sums = scratch + id0 * (long)d.slice;
    __global REAL* xs = sums + (long)ELEMENTS * d.sum_element;
    __global REAL* g_transforms = xs + (long)ELEMENTS * d.x_element;
    for (int id = id0; id < d.parts * d.chunks; id += groups) {
        const int chunk = id / d.parts;
        const struct Part part = part_at(&d, id - chunk * d.parts);
        pad_rows(xs, d.x_element, d.images_each * d.tile_rows * d.tile_columns, d.x_row, part.channels);
        pad_rows(g_transforms, d.g_element, d.images_each * d.tile_rows * d.tile_columns, d.g_row, part.filters);
        const int first_unit = chunk * d.units_each, end_unit = min(d.units, first_unit + d.units_each);
        for (int number = first_unit; number < end_unit; ++number) {
            const struct Unit unit = unit_at(&d, number);
            const int tiles = unit.images * unit.height * unit.width;
            transform_x(&d, unit, part, x_grid, x, grid, x_offsets, xs);
            transform_g(&d, unit, part, g_grid, g, grid, g_offsets, g_transforms);
            if (d.has_bias && part.first_c == 0)
                sum_bias_gradient(g_transforms + (long)7 * d.g_element, tiles, d.g_row, part.filters,
                                  bias + (long)chunk * d.filters + part.first_o, number > first_unit);
            for (int e = 0; e < ELEMENTS; ++e)
                for (int c = 0; c < part.channels; c += COLUMNS)
                    for (int o = 0; o < part.filters; o += ROWS)
                        multiply(g_transforms + (long)e * d.g_element + o, d.g_row, xs + (long)e * d.x_element + c,
                                 d.x_row, tiles, sums + (long)e * d.sum_element + o * d.sum_row + c, d.sum_row,
                                 number > first_unit);
        }
        for (int o = 0; o < part.filters; ++o)
            for (int c = 0; c < part.channels; c += VW)
                store_weights(
                    sums + o * d.sum_row + c, d.sum_element,
                    partial + chunk * d.partial + ((part.first_o + o) * (long)d.channels + part.first_c + c) * 9,
                    min(VW, part.channels - c));
    }
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void conv2d_winograd4_backward_weights(
    const struct Winograd args, __local REAL* restrict grid, __local int* restrict x_offsets,
    __local int* restrict g_offsets, __global const REAL* restrict x, const long x_offset,
    __global const REAL* restrict g, const long g_offset, __global REAL* restrict scratch, const long scratch_offset,
    __global REAL* restrict partial, const long partial_offset, __global REAL* restrict bias, const long bias_offset) {
    conv2d_winograd4_backward_weights_part(get_global_id(0), get_global_size(0), args, grid, x_offsets, g_offsets,
                                           x + x_offset, g + g_offset, scratch + scratch_offset,
                                           partial + partial_offset, bias + bias_offset);
}
