// Winograd convolution F(4 x 4, 3 x 3) for 3 x 3 filters (minimal filtering: A. Lavin and S. Gray, Fast algorithms for
// convolutional neural networks, 2016). simd style. For each tile of 4 x 4 positions of the output,
//
//   out = A' [ sum over c of (G w[o, c] G') * (B' x[c] B) ] A      (* element by element, ' transposed)
//
// with x[c] the 6 x 6 elements of x around it. backward_input is the same with the gradient of the
// result for x, and flipped, transposed weights.
//
// Vectors are along the channels of x, then along the filters, so that small planes fill them too (channels_last.clh).
// A work-item processes units of `tiles` tiles: it transposes and transforms their inputs into
// inputs[element][tile][channel], multiplies these with the transformed weights, COLUMNS filters at a time, into
// products[element][tile][COLUMNS], and transforms the products back, all within the L2 cache.
//
//   STAGE          STAGE_WEIGHTS: transforms weights; STAGE_PACKED: everything else; STAGE_OWN_WEIGHTS: everything,
//                  each work-item transforms the weights itself, if that is cheap compared with the rest
//   ROWS, COLUMNS  register tile of the product: tiles, and filters; not for STAGE_WEIGHTS
//   REAL, VW       element type and vector width (vectors.clh)
#define STAGE_WEIGHTS 0
#define STAGE_PACKED 1
#define STAGE_OWN_WEIGHTS 2
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
    int pad_top, pad_left;                     // zero rows and columns before x; negative: that many are skipped
    int images_each, tile_rows, tile_columns;  // per unit
    int units_h, units_w, units;               // per image, or several; in total
    int pitch, grid_rows;                      // columns and rows of x in local memory
    int padded_channels;                       // of inputs
    int weight_element, input_element, product_element;  // strides between elements
    int slice;  // inputs and products of a work-item, with STAGE_OWN_WEIGHTS also weights
    int parts;  // parts of the filters: each unit is processed once per part
    int block;  // COLUMNS
    int flat;   // a unit covers whole rows of x, which are read as one run
    int flip, has_bias;
    int unused;  // avoids padding of the struct
};
#include "winograd4_units.clh"

#if STAGE != STAGE_PACKED
// Applies G to three vectors.
static void transform_weights(const VEC a, const VEC b, const VEC c, VEC* to) {
    const VEC even = a + c, scaled = a * REAL_C(0.041666666666666666) + c * REAL_C(0.16666666666666666),
              odd = b * REAL_C(0.083333333333333333);
    to[0] = a * REAL_C(0.25);
    to[1] = (even + b) * REAL_C(-0.16666666666666666);
    to[2] = (even - b) * REAL_C(-0.16666666666666666);
    to[3] = scaled + odd;
    to[4] = scaled - odd;
    to[5] = c;
}

// Channels whose weights are read before the first is transformed: loads would stall on stores to the same offset of
// another page (4K aliasing).
#define CHANNELS_PER_LOAD 7

// Loads the weights of `count` channels from c and VW filters from f: taps[channel][9][VW].
NOINLINE void load_filters(const struct Winograd* d, __global const REAL* weight, const int c, const int count,
                           const int f, __local REAL* taps, __local const int* offsets) {
    const int valid = min(VW, d->filters - f);
    long from = c * d->weight_channel + f * d->weight_filter;
    if (d->weight_channel == 9) {  // contiguous channels
        load_run_channels_last(weight + from, d->weight_filter, valid, count * 9, taps, offsets);
        return;
    }
    for (int k = 0; k < count; ++k, from += d->weight_channel, taps += 9 * VW) {
        const bool whole_vectors =
            VW > 9 && from + (valid - 1) * d->weight_filter + VW <=
                          d->weight_count;  // elements past the ninth are overwritten by the next channel
        load_run_channels_last(weight + from, d->weight_filter, valid, whole_vectors ? VW : 9, taps, offsets);
    }
}

NOINLINE void transform_filters(__local const REAL* taps, const int flip, __global REAL* to, const long element) {
    VEC intermediate[3][6], result[6];
#pragma unroll
    for (int i = 0; i < 3; ++i) {
        const int row = flip ? 2 - i : i, left = flip ? 2 : 0;
        transform_weights(VLOAD(taps + (row * 3 + left) * VW), VLOAD(taps + (row * 3 + 1) * VW),
                          VLOAD(taps + (row * 3 + 2 - left) * VW), intermediate[i]);
    }
#pragma unroll
    for (int j = 0; j < 6; ++j) {
        transform_weights(intermediate[0][j], intermediate[1][j], intermediate[2][j], result);
#pragma unroll
        for (int i = 0; i < 6; ++i) VSTORE(result[i], to + (i * 6 + j) * element);
    }
}

// packed[element][block of filters][channel][block]. global size (blocks, ceil(channels / each))
NOINLINE void conv2d_winograd4_weights_part(const size_t id0, const size_t id1, const struct Winograd args,
                                            const int each, __local REAL* restrict taps, __local int* restrict offsets,
                                            __global const REAL* restrict weight, __global REAL* restrict packed) {
    const struct Winograd d = args;
    for (int t = 0; t < CHANNELS_PER_LOAD * 9 + VW; ++t) offsets[t] = t * VW;
    const int end = min(d.channels, (int)(id1 + 1) * each);
    packed += id0 * (long)d.channels * d.block;
    for (int v = 0; v < d.block; v += VW) {
        const int f = id0 * d.block + v;
        for (int c = id1 * each; c < end; c += CHANNELS_PER_LOAD) {
            const int count = min(CHANNELS_PER_LOAD, end - c);
            if (f < d.filters) load_filters(&d, weight, c, count, f, taps, offsets);
            else clear(taps, count * 9);  // read, and not stored
            for (int k = 0; k < count; ++k)
                transform_filters(taps + k * 9 * VW, d.flip, packed + (long)(c + k) * d.block + v, d.weight_element);
        }
    }
}

#if STAGE == STAGE_WEIGHTS
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void conv2d_winograd4_weights(
    const struct Winograd args, const int each, __local REAL* restrict taps, __local int* restrict offsets,
    __global const REAL* restrict weight, const long weight_offset, __global REAL* restrict packed,
    const long packed_offset) {
    conv2d_winograd4_weights_part(get_global_id(0), get_global_id(1), args, each, taps, offsets, weight + weight_offset,
                                  packed + packed_offset);
}
#endif
#endif

#if STAGE != STAGE_WEIGHTS

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

// Transforms and stores a tile of VW filters, `valid` of which exist, with `height` x `width` positions, to `out`.
NOINLINE void store_tile(__global const REAL* products, const long element, const VEC begin, __global REAL* out,
                         const long plane, const int pitch, const int valid, const int height, const int width) {
    VEC intermediate[24], result[16];
#pragma unroll
    for (int j = 0; j < 6; ++j) {
        VEC column[6];
#pragma unroll
        for (int i = 0; i < 6; ++i) column[i] = VLOAD(products + (i * 6 + j) * element);
        transform_output(column, 1, intermediate + j, 6);
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) transform_output(intermediate + i * 6, 1, result + i * 4, 1);
    const bool full = height == 4 && width == 4;
#pragma unroll
    for (int s = 0; s < 16 / VW; ++s) {  // tiles of VW / 4 rows
        VEC tile[VW];
#pragma unroll
        for (int e = 0; e < VW; ++e) tile[e] = result[s * VW + e] + begin;
        transpose_vectors(tile);
#pragma unroll
        for (int c = 0; c < VW; ++c) {
            if (c >= valid) break;
            REAL values[VW];
            VSTORE(tile[c], values);
            __global REAL* to = out + c * plane + s * (VW / 4) * pitch;
#pragma unroll
            for (int i = 0; i < VW / 4; ++i, to += pitch) {
                if (full) vstore4(vload4(i, values), 0, to);
                else if (s * (VW / 4) + i < height)
                    for (int e = 0; e < width; ++e) to[e] = values[i * 4 + e];
            }
        }
    }
}

// Transforms the inputs of a unit: inputs[element][tile][channel].
static void transform_unit(const struct Winograd* d, const struct Unit u, const struct Grid shape,
                           __global const REAL* x, __local REAL* grid, __local const int* offsets,
                           __global REAL* inputs) {
    const long plane = (long)d->height * d->width;
    for (int n = 0; n < u.images; ++n)
        for (int c = 0; c < d->channels; c += VW) {
            load_grid(shape, x + ((long)(u.image + n) * d->channels + c) * plane, u.first_row * 4 - d->pad_top,
                      u.first_column * 4 - d->pad_left, min(VW, d->channels - c), grid, offsets);
            for (int p = 0; p < u.height; ++p)
                for (int q = 0; q < u.width; ++q)
                    transform_tile(grid + (p * d->pitch + q) * 4 * VW, d->pitch,
                                   inputs + ((n * u.height + p) * u.width + q) * d->padded_channels + c,
                                   d->input_element);
        }
}

// Transforms the products of a unit and a block of filters, and stores them to `out`.
static void store_unit(const struct Winograd* d, const struct Unit u, const int block, __global const REAL* products,
                       __global const REAL* bias, __global REAL* out) {
    const long plane = (long)d->rows * d->columns;
    for (int f = block * COLUMNS; f < min(d->filters, (block + 1) * COLUMNS); f += VW) {
        const int valid = min(VW, d->filters - f);
        REAL biases[VW];
        for (int e = 0; e < VW; ++e) biases[e] = d->has_bias ? bias[f + min(e, valid - 1)] : (REAL)0;
        const VEC begin = VLOAD(biases);
        for (int t = 0; t < u.images * u.height * u.width; ++t) {
            const int n = t / (u.height * u.width), in_unit = t - n * u.height * u.width,
                      p = (u.first_row + in_unit / u.width) * 4, q = (u.first_column + in_unit % u.width) * 4;
            store_tile(products + t * COLUMNS + f - block * COLUMNS, d->product_element, begin,
                       out + ((long)(u.image + n) * d->filters + f) * plane + p * d->columns + q, plane, d->columns,
                       valid, min(4, d->rows - p), min(4, d->columns - q));
        }
    }
}

#ifdef EPILOGUE
// Applies the epilogue to the stored results of a unit and a block of filters.
static void finish_unit(const struct Winograd* d, const struct Epilogue epilogue, const struct Unit u, const int block,
                        __global REAL* out) {
    const int row = u.first_row * 4, column = u.first_column * 4, rows = min(u.height * 4, d->rows - row),
              columns = min(u.width * 4, d->columns - column);
    for (int n = 0; n < u.images; ++n)
        for (int f = block * COLUMNS; f < min(d->filters, (block + 1) * COLUMNS); ++f) {
            const long at =
                ((long)(u.image + n) * d->filters + f) * d->rows * d->columns + (long)row * d->columns + column;
            if (columns == d->columns) epilogue_stored(epilogue, out, f, at, rows * columns);
            else
                for (int h = 0; h < rows; ++h) epilogue_stored(epilogue, out, f, at + (long)h * d->columns, columns);
        }
}
#endif

// global size (groups): a work-item processes every groups-th pair of unit and part of the filters. With
// STAGE_OWN_WEIGHTS `packed` is the original weights.
NOINLINE void conv2d_winograd4_part(const size_t id0, const size_t groups, const struct Winograd args,
                                    __local REAL* restrict grid, __local int* restrict offsets,
                                    __global const REAL* restrict x, const long x_offset,
                                    __global const REAL* restrict packed, const long packed_offset,
                                    __global REAL* restrict scratch, const long scratch_offset,
                                    __global REAL* restrict out, const long out_offset,
                                    __global const REAL* restrict bias,
                                    const long bias_offset EPILOGUE_STORED_PARAMETERS) {
    const struct Winograd d = args;
    const struct Grid shape = {d.height, d.width, d.grid_rows, d.pitch, d.flat};
#ifdef EPILOGUE
    const struct Epilogue epilogue = EPILOGUE_OF_PARAMETERS;
#endif
    const int blocks = (d.filters + COLUMNS - 1) / COLUMNS;
    __global REAL* inputs = scratch + scratch_offset + id0 * (long)d.slice;
    __global REAL* products = inputs + (long)ELEMENTS * d.input_element;
#if STAGE == STAGE_OWN_WEIGHTS
    __global REAL* own_weights = products + (long)ELEMENTS * d.product_element;
    for (int block = 0; block < blocks; ++block)
        conv2d_winograd4_weights_part(block, 0, d, d.channels, grid, offsets, packed + packed_offset, own_weights);
    __global const REAL* weights = own_weights;
#else
    __global const REAL* weights = packed + packed_offset;
#endif
    make_offsets(shape, d.pad_left, offsets);
    for (int id = id0; id < d.units * d.parts; id += groups) {
        const int number = id / d.parts, part = id - number * d.parts;
        const struct Unit unit = unit_at(&d, number);
        const int tiles = unit.images * unit.height * unit.width;
        transform_unit(&d, unit, shape, x + x_offset, grid, offsets, inputs);
        for (int block = part; block < blocks; block += d.parts) {
            for (int e = 0; e < ELEMENTS; ++e)
                for (int t = 0; t < tiles; t += ROWS)
                    multiply(inputs + (long)e * d.input_element + t * d.padded_channels, d.padded_channels,
                             min(ROWS, tiles - t),
                             weights + (long)e * d.weight_element + (long)block * d.channels * COLUMNS, d.channels,
                             products + (long)e * d.product_element + t * COLUMNS);
            store_unit(&d, unit, block, products, bias + bias_offset, out + out_offset);
#ifdef EPILOGUE
            finish_unit(&d, epilogue, unit, block, out + out_offset);
#endif
        }
    }
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void conv2d_winograd4(
    const struct Winograd args, __local REAL* restrict grid, __local int* restrict offsets,
    __global const REAL* restrict x, const long x_offset, __global const REAL* restrict packed,
    const long packed_offset, __global REAL* restrict scratch, const long scratch_offset, __global REAL* restrict out,
    const long out_offset, __global const REAL* restrict bias, const long bias_offset EPILOGUE_STORED_PARAMETERS) {
    conv2d_winograd4_part(get_global_id(0), get_global_size(0), args, grid, offsets, x, x_offset, packed, packed_offset,
                          scratch, scratch_offset, out, out_offset, bias, bias_offset EPILOGUE_STORED_ARGUMENTS);
}
#endif
