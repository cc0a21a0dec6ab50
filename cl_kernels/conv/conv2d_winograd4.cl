// Winograd convolution F(4 x 4, 3 x 3) for 3 x 3 filters (minimal filtering: A. Lavin and S. Gray, Fast algorithms for
// convolutional neural networks, 2016). simd style. For each tile of 4 x 4 positions of the output,
//
//   out = A' [ sum over c of (G w[o, c] G') * (B' x[c] B) ] A      (* element by element, ' transposed)
//
// with x[c] the 6 x 6 elements of x around it. backward_input is the same with dout for x and flipped, transposed
// weights.
//
// Vectors are along the channels of x, then along the filters, so that small planes fill them too (channels_last.clh).
// A work-item processes units of `tiles` tiles: it transposes and transforms their inputs into
// inputs[element][tile][channel], multiplies these with the transformed weights, COLUMNS filters at a time, into
// products[element][tile][COLUMNS], and transforms the products back, all within the L2 cache.
//
//   STAGE          0 weights, 1 everything else, 2 everything: each work-item transforms the weights itself, if that is
//                  cheap compared with the rest
//   ROWS, COLUMNS  register tile of the product: tiles, and filters; not for STAGE 0
//   REAL, VW       element type and vector width (vectors.clh)
#define GROUP 1
#include "winograd4.clh"
#include "epilogue_stored.clh"

#define VECTORS (COLUMNS / VW)

struct Winograd {
    long weight_channel, weight_filter,
        weight_count;  // strides between channels and filters of the product in the weights; number of elements
    int images, channels, filters;
    int height, width;                         // of x
    int rows, columns;                         // of out
    int before_h, before_w;                    // zero rows and columns before x; negative: that many are skipped
    int images_each, tile_rows, tile_columns;  // per unit
    int units_h, units_w, units;               // per image, or several; in total
    int pitch, held;                           // columns and rows of x in local memory
    int padded_channels;                       // of inputs
    int weight_element, input_element, product_element;  // strides between elements
    int slice;  // inputs and products of a work-item, with STAGE 2 also weights
    int parts;  // parts of the filters: each unit is processed once per part
    int block;  // COLUMNS
    int flat;   // a unit covers whole rows of x, which are read as one run
    int flip, has_bias;
    int unused;  // avoids padding of the struct
};

#if STAGE != 1
// Applies G to three vectors.
static void transform_weights(const VEC a, const VEC b, const VEC c, VEC* to) {
    const VEC even = a + c, wide = a * REAL_C(0.041666666666666666) + c * REAL_C(0.16666666666666666),
              odd = b * REAL_C(0.083333333333333333);
    to[0] = a * REAL_C(0.25);
    to[1] = (even + b) * REAL_C(-0.16666666666666666);
    to[2] = (even - b) * REAL_C(-0.16666666666666666);
    to[3] = wide + odd;
    to[4] = wide - odd;
    to[5] = c;
}

// Channels whose weights are read before the first is transformed: loads would stall on stores to the same offset of
// another page (4K aliasing).
#define CHANNELS 7

// Loads the weights of `count` channels from c and VW filters from f: taps[channel][9][VW].
NOINLINE void filters_in(const struct Winograd* d, __global const REAL* weight, const int c, const int count,
                         const int f, __local REAL* taps, __local const int* places) {
    const int here = min(VW, d->filters - f);
    long from = c * d->weight_channel + f * d->weight_filter;
    if (d->weight_channel == 9) {  // contiguous channels
        load_run_channels_last(weight + from, d->weight_filter, here, count * 9, taps, places);
        return;
    }
    for (int k = 0; k < count; ++k, from += d->weight_channel, taps += 9 * VW) {
        const bool more = VW > 9 && from + (here - 1) * d->weight_filter + VW <=
                                        d->weight_count;  // elements past the ninth are overwritten by the next channel
        load_run_channels_last(weight + from, d->weight_filter, here, more ? VW : 9, taps, places);
    }
}

NOINLINE void transform_filters(__local const REAL* taps, const int flip, __global REAL* to, const long element) {
    VEC half_way[3][6], result[6];
#pragma unroll
    for (int i = 0; i < 3; ++i) {
        const int row = flip ? 2 - i : i, left = flip ? 2 : 0;
        transform_weights(VLOAD(taps + (row * 3 + left) * VW), VLOAD(taps + (row * 3 + 1) * VW),
                          VLOAD(taps + (row * 3 + 2 - left) * VW), half_way[i]);
    }
#pragma unroll
    for (int j = 0; j < 6; ++j) {
        transform_weights(half_way[0][j], half_way[1][j], half_way[2][j], result);
#pragma unroll
        for (int i = 0; i < 6; ++i) VSTORE(result[i], to + (i * 6 + j) * element);
    }
}

// packed[element][block of filters][channel][block]. global size (blocks, ceil(channels / each))
NOINLINE void conv2d_winograd4_weights_part(const size_t id0, const size_t id1, const struct Winograd args,
                                            const int each, __local REAL* restrict taps, __local int* restrict places,
                                            __global const REAL* restrict weight, __global REAL* restrict packed) {
    const struct Winograd d = args;
    for (int t = 0; t < CHANNELS * 9 + VW; ++t) places[t] = t * VW;
    const int end = min(d.channels, (int)(id1 + 1) * each);
    packed += id0 * (long)d.channels * d.block;
    for (int v = 0; v < d.block; v += VW) {
        const int f = id0 * d.block + v;
        for (int c = id1 * each; c < end; c += CHANNELS) {
            const int count = min(CHANNELS, end - c);
            if (f < d.filters) filters_in(&d, weight, c, count, f, taps, places);
            else clear(taps, count * 9);  // read, and not stored
            for (int k = 0; k < count; ++k)
                transform_filters(taps + k * 9 * VW, d.flip, packed + (long)(c + k) * d.block + v, d.weight_element);
        }
    }
}

#if STAGE == 0
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void conv2d_winograd4_weights(
    const struct Winograd args, const int each, __local REAL* restrict taps, __local int* restrict places,
    __global const REAL* restrict weight, const long weight_offset, __global REAL* restrict packed,
    const long packed_offset) {
    conv2d_winograd4_weights_part(get_global_id(0), get_global_id(1), args, each, taps, places, weight + weight_offset,
                                  packed + packed_offset);
}
#endif
#endif

#if STAGE != 0

// Applies A' to six vectors.
static void transform_output(const VEC* from, const int step, VEC* to, const int to_step) {
    const VEC a = from[0], b = from[step], c = from[2 * step], e = from[3 * step], f = from[4 * step],
              g = from[5 * step];
    const VEC p = b + c, q = b - c, r = e + f, s = e - f;
    to[0] = a + p + r;
    to[to_step] = q + (REAL)2 * s;
    to[2 * to_step] = p + (REAL)4 * r;
    to[3 * to_step] = q + (REAL)8 * s + g;
}

// Computes products[tile][COLUMNS] of `height` tiles.
NOINLINE void multiply(__global const REAL* inputs, const int row, const int height, __global const REAL* weights,
                       const int channels, __global REAL* products) {
    __global const REAL* left[ROWS];
#pragma unroll
    for (int i = 0; i < ROWS; ++i) left[i] = inputs + min(i, height - 1) * row;
    VEC sum[ROWS][VECTORS];
#pragma unroll
    for (int i = 0; i < ROWS; ++i)
#pragma unroll
        for (int v = 0; v < VECTORS; ++v) sum[i][v] = (VEC)(0);
    for (int k = 0; k < channels; ++k, weights += COLUMNS) {
        VEC values[VECTORS];
#pragma unroll
        for (int v = 0; v < VECTORS; ++v) values[v] = VLOAD(weights + v * VW);
#pragma unroll
        for (int i = 0; i < ROWS; ++i) {
            const VEC factor = (VEC)(left[i][k]);
#pragma unroll
            for (int v = 0; v < VECTORS; ++v) sum[i][v] = fma(factor, values[v], sum[i][v]);
        }
    }
#pragma unroll
    for (int i = 0; i < ROWS; ++i)
        if (i < height)
#pragma unroll
            for (int v = 0; v < VECTORS; ++v) VSTORE(sum[i][v], products + i * COLUMNS + v * VW);
}

// Transforms and stores a tile of VW filters, `here` of which exist, with `high` x `wide` positions, to `out`.
NOINLINE void tile_out(__global const REAL* products, const long element, const VEC begin, __global REAL* out,
                       const long plane, const int pitch, const int here, const int high, const int wide) {
    VEC half_way[24], result[16];
#pragma unroll
    for (int j = 0; j < 6; ++j) {
        VEC column[6];
#pragma unroll
        for (int i = 0; i < 6; ++i) column[i] = VLOAD(products + (i * 6 + j) * element);
        transform_output(column, 1, half_way + j, 6);
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) transform_output(half_way + i * 6, 1, result + i * 4, 1);
    const bool whole = high == 4 && wide == 4;
#pragma unroll
    for (int s = 0; s < 16 / VW; ++s) {  // tiles of VW / 4 rows
        VEC square[VW];
#pragma unroll
        for (int e = 0; e < VW; ++e) square[e] = result[s * VW + e] + begin;
        TRANSPOSE_TILE(VEC, VW, square)
#pragma unroll
        for (int c = 0; c < VW; ++c) {
            if (c >= here) break;
            REAL one[VW];
            VSTORE(square[c], one);
            __global REAL* to = out + c * plane + s * (VW / 4) * pitch;
#pragma unroll
            for (int i = 0; i < VW / 4; ++i, to += pitch) {
                if (whole) vstore4(vload4(i, one), 0, to);
                else if (s * (VW / 4) + i < high)
                    for (int e = 0; e < wide; ++e) to[e] = one[i * 4 + e];
            }
        }
    }
}

// global size (groups): a work-item processes every groups-th pair of unit and part of the filters. With STAGE 2
// `packed` is the original weights.
NOINLINE void conv2d_winograd4_part(const size_t id0, const size_t groups, const struct Winograd args,
                                    __local REAL* restrict grid, __local int* restrict places,
                                    __global const REAL* restrict x, const long x_offset,
                                    __global const REAL* restrict packed, const long packed_offset,
                                    __global REAL* restrict scratch, const long scratch_offset,
                                    __global REAL* restrict out, const long out_offset,
                                    __global const REAL* restrict bias,
                                    const long bias_offset EPILOGUE_STORED_PARAMETERS) {
    const struct Winograd d = args;
    const struct Grid seen = {d.height, d.width, d.held, d.pitch, d.flat};
    const int blocks = (d.filters + COLUMNS - 1) / COLUMNS;
    const long in_plane = (long)d.height * d.width, out_plane = (long)d.rows * d.columns;
    __global REAL* inputs = scratch + scratch_offset + id0 * (long)d.slice;
    __global REAL* products = inputs + (long)ELEMENTS * d.input_element;
#if STAGE == 2
    __global REAL* own = products + (long)ELEMENTS * d.product_element;
    for (int block = 0; block < blocks; ++block)
        conv2d_winograd4_weights_part(block, 0, d, d.channels, grid, places, packed + packed_offset, own);
    __global const REAL* weights = own;
#else
    __global const REAL* weights = packed + packed_offset;
#endif
    make_places(seen, d.before_w, places);
    for (int id = id0; id < d.units * d.parts; id += groups) {
        const int unit = id / d.parts, part = id - unit * d.parts;
        const int image = unit / (d.units_h * d.units_w) * d.images_each, in_image = unit % (d.units_h * d.units_w);
        const int first_row = in_image / d.units_w * d.tile_rows, first_column = in_image % d.units_w * d.tile_columns;
        // Tiles of this unit; the last unit of an image may have fewer.
        const int high = min(d.tile_rows, (d.rows + 3) / 4 - first_row),
                  wide = min(d.tile_columns, (d.columns + 3) / 4 - first_column);
        const int images = min(d.images_each, d.images - image), tiles = images * high * wide;
        for (int n = 0; n < images; ++n)
            for (int c = 0; c < d.channels; c += VW) {
                grid_in(seen, x + x_offset + ((long)(image + n) * d.channels + c) * in_plane,
                        first_row * 4 - d.before_h, first_column * 4 - d.before_w, min(VW, d.channels - c), grid,
                        places);
                for (int p = 0; p < high; ++p)
                    for (int q = 0; q < wide; ++q)
                        transform_tile(grid + (p * d.pitch + q) * 4 * VW, d.pitch,
                                       inputs + ((n * high + p) * wide + q) * d.padded_channels + c, d.input_element);
            }
        for (int block = part; block < blocks; block += d.parts) {
            for (int e = 0; e < ELEMENTS; ++e)
                for (int t = 0; t < tiles; t += ROWS)
                    multiply(inputs + (long)e * d.input_element + t * d.padded_channels, d.padded_channels,
                             min(ROWS, tiles - t),
                             weights + (long)e * d.weight_element + (long)block * d.channels * COLUMNS, d.channels,
                             products + (long)e * d.product_element + t * COLUMNS);
            for (int f = block * COLUMNS; f < min(d.filters, (block + 1) * COLUMNS); f += VW) {
                const int here = min(VW, d.filters - f);
                REAL biases[VW];
                for (int e = 0; e < VW; ++e)
                    biases[e] = d.has_bias ? bias[bias_offset + f + min(e, here - 1)] : (REAL)0;
                const VEC begin = VLOAD(biases);
                for (int t = 0; t < tiles; ++t) {
                    const int n = t / (high * wide), in_unit = t - n * high * wide,
                              p = (first_row + in_unit / wide) * 4, q = (first_column + in_unit % wide) * 4;
                    tile_out(products + t * COLUMNS + f - block * COLUMNS, d.product_element, begin,
                             out + out_offset + ((long)(image + n) * d.filters + f) * out_plane + p * d.columns + q,
                             out_plane, d.columns, here, min(4, d.rows - p), min(4, d.columns - q));
                }
            }
#ifdef EPILOGUE
            const int row = first_row * 4, column = first_column * 4, rows = min(high * 4, d.rows - row),
                      columns = min(wide * 4, d.columns - column);
            for (int n = 0; n < images; ++n)
                for (int f = block * COLUMNS; f < min(d.filters, (block + 1) * COLUMNS); ++f) {
                    const long at = ((long)(image + n) * d.filters + f) * out_plane + (long)row * d.columns + column;
                    if (columns == d.columns) EPILOGUE_STORED(out + out_offset, f, at, rows * columns)
                    else
                        for (int h = 0; h < rows; ++h)
                            EPILOGUE_STORED(out + out_offset, f, at + (long)h * d.columns, columns)
                }
#endif
        }
    }
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void conv2d_winograd4(
    const struct Winograd args, __local REAL* restrict grid, __local int* restrict places,
    __global const REAL* restrict x, const long x_offset, __global const REAL* restrict packed,
    const long packed_offset, __global REAL* restrict scratch, const long scratch_offset, __global REAL* restrict out,
    const long out_offset, __global const REAL* restrict bias, const long bias_offset EPILOGUE_STORED_PARAMETERS) {
    conv2d_winograd4_part(get_global_id(0), get_global_size(0), args, grid, places, x, x_offset, packed, packed_offset,
                          scratch, scratch_offset, out, out_offset, bias, bias_offset EPILOGUE_STORED_ARGUMENTS);
}
#endif
