// Depthwise convolution (one filter per channel) with channels in the lanes of vectors (channels-last). simd style.
//
//   GATHER:   point[n, c, p, q] = bias[c] + sum over i, j of  weight[c, i, j] * grid[n, c, h, w]
//   SCATTER:  grid[n, c, h, w] = sum of  weight[c, i, j] * point[n, c, p, q]
//   WEIGHTS:  weight_gradient[c, i, j] = sum over n, p, q of  point[n, c, p, q] * grid[n, c, h, w]
//   h = p * stride_h + i * dilation_h - first_h, w = q * stride_w + j * dilation_w - first_w
//
// with zeros outside of the grid. forward gathers; backward_input without strides gathers from g, the gradient of the
// result, with flipped filters, and with strides it scatters: the grid is the result.
//
// Rows of small planes do not fill vectors, and strides leave gaps. Therefore the planes of VW channels are transposed
// (channels_last.clh), and a band of the grid is in local memory as [row][column][VW], with margins that are zero
// padding, or receive results outside of the band.
//
//   KERNEL_KIND     GATHER, SCATTER or WEIGHTS
//   TAPS_H, TAPS_W  size of the filter
//   REAL, VW        element type and vector width (vectors.clh)
#define GATHER 1
#define SCATTER 2
#define WEIGHTS 3
#define GROUP 1
#include "channels_last.clh"
#include "epilogue_stored.clh"

#define TAPS (TAPS_H * TAPS_W)
#define FILTER_IN_REGISTERS (TAPS <= 25)

struct ChannelsLast {
    int images, channels;
    int height, width;  // of the grid
    int rows, columns;  // of points
    int stride_h, stride_w, first_h, first_w, dilation_h, dilation_w;
    int pitch, grid_rows;  // columns and rows of the grid in local memory
    int band;              // rows that are computed, or with WEIGHTS summed, at once
    int each;              // units per work-item: images of a vector of channels; with WEIGHTS images
    int flip, has_bias;
    int point_table,
        filter_table;  // tables after that of the grid: offsets in the block of a band's points, and of the taps
    int filter_offset, tile_offset;  // offsets in the block of the filters and of a transposed tile
};

// Inverse of load_channels_last; lanes past the last channel are not stored.
NOINLINE void store_channels_last(__local const REAL* from, __local const int* offsets, __global REAL* to,
                                  const long stride, const int valid, const int count) {
    if (count == VW) {
        VEC tile[VW];
#pragma unroll
        for (int e = 0; e < VW; ++e) tile[e] = VLOAD(from + offsets[e]);
        transpose_vectors(tile);
        if (valid == VW)
#pragma unroll
            for (int c = 0; c < VW; ++c) VSTORE(tile[c], to + c * stride);
        else
#pragma unroll
            for (int c = 0; c < VW; ++c)
                if (c < valid) VSTORE(tile[c], to + c * stride);
    } else
        for (int e = 0; e < count; ++e)
            for (int c = 0; c < valid; ++c) to[c * stride + e] = from[offsets[e] + c];
}

// Tables that do not depend on the unit: tables[h * width + w] for rows h of a band from its first row of the grid,
// point_table[p * columns + q] for rows p of a band, and filter_table[t]. Columns that no tap reads map to the vector
// after the grid.
NOINLINE void make_tables(const struct ChannelsLast* d, const int grid_rows, const int point_rows,
                          __local int* tables) {
    const int unused = d->grid_rows * d->pitch * VW;
    __local int* table = tables;
    for (int h = 0; h < grid_rows; ++h)
        for (int w = 0; w < d->width; ++w) {
            const int column = w + d->first_w;
            *table++ = column >= 0 && column < d->pitch ? (h * d->pitch + column) * VW : unused;
        }
    table = tables + d->point_table;
    for (int p = 0; p < point_rows; ++p)
        for (int q = 0; q < d->columns; ++q) *table++ = (p * d->stride_h * d->pitch + q * d->stride_w) * VW;
    table = tables + d->filter_table;
    for (int t = 0; t < TAPS; ++t) table[t] = (d->flip ? TAPS - 1 - t : t) * VW;
    for (int t = TAPS; t < VW; ++t) table[t] = TAPS * VW;
    for (int t = 0; t < VW; ++t) table[max(TAPS, VW) + t] = t * VW;  // for a single tile
}

#if KERNEL_KIND != WEIGHTS
// Loads filters[t][VW] of the channels from c.
NOINLINE void load_filters(const struct ChannelsLast* d, __global const REAL* weight, const int c, const int valid,
                           __local REAL* to, __local const int* table) {
    weight += c * TAPS;
    // If there are fewer taps than lanes, the elements after the last tap go to an unused place.
    const bool whole_vectors = TAPS < VW && (c + valid - 1) * TAPS + VW <= d->channels * TAPS;
    load_run_channels_last(weight, TAPS, valid, whole_vectors ? VW : TAPS, to, table);
}
#endif

#if KERNEL_KIND == GATHER
// Computes `count` points.
NOINLINE void gather(const struct ChannelsLast* d, __local const REAL* grid, __local const int* table, const int count,
                     __local const REAL* filter, const VEC begin, __local REAL* to) {
    const int row = d->dilation_h * d->pitch * VW, column = d->dilation_w * VW;
    VEC w[TAPS];
    if (FILTER_IN_REGISTERS) {
#pragma unroll
        for (int t = 0; t < TAPS; ++t) w[t] = VLOAD(filter + t * VW);
    }
    for (int e = 0; e < count; ++e) {
        __local const REAL* z = grid + table[e];
        // Each row has its own sum: in a single sum every multiply-add would depend on the previous one.
        VEC sum = begin;
#pragma unroll
        for (int i = 0; i < TAPS_H; ++i, z += row) {
            VEC part = (VEC)(0);
#pragma unroll
            for (int j = 0; j < TAPS_W; ++j) {
                const int tap = i * TAPS_W + j;
                const VEC factor = FILTER_IN_REGISTERS ? w[tap] : VLOAD(filter + tap * VW);
                part = j == 0 ? factor * VLOAD(z) : fma(factor, VLOAD(z + j * column), part);
            }
            sum += part;
        }
        VSTORE(sum, to + e * VW);
    }
}
#elif KERNEL_KIND == SCATTER
// Adds the contributions of points [from, count) to the grid.
NOINLINE void scatter(const struct ChannelsLast* d, __local REAL* grid, __local const int* table, const int from,
                      const int count, __local const REAL* filter, __local const REAL* points) {
    const int row = d->dilation_h * d->pitch * VW, column = d->dilation_w * VW;
    for (int e = from; e < count; ++e) {
        __local REAL* z = grid + table[e];
        const VEC point = VLOAD(points + e * VW);
#pragma unroll
        for (int i = 0; i < TAPS_H; ++i, z += row)
#pragma unroll
            for (int j = 0; j < TAPS_W; ++j)
                VSTORE(fma(VLOAD(filter + (i * TAPS_W + j) * VW), point, VLOAD(z + j * column)), z + j * column);
    }
}
#else
// Adds the products of points [from, count) to the sums of each tap.
NOINLINE void correlate(const struct ChannelsLast* d, __local const REAL* grid, __local const int* table,
                        const int from, const int count, __local REAL* sums, __local const REAL* points) {
    const int row = d->dilation_h * d->pitch * VW, column = d->dilation_w * VW;
#if FILTER_IN_REGISTERS
    VEC sum[TAPS];
#pragma unroll
    for (int t = 0; t < TAPS; ++t) sum[t] = VLOAD(sums + t * VW);
    for (int e = from; e < count; ++e) {
        __local const REAL* z = grid + table[e];
        const VEC point = VLOAD(points + e * VW);
#pragma unroll
        for (int i = 0; i < TAPS_H; ++i, z += row)
#pragma unroll
            for (int j = 0; j < TAPS_W; ++j)
                sum[i * TAPS_W + j] = fma(point, VLOAD(z + j * column), sum[i * TAPS_W + j]);
    }
#pragma unroll
    for (int t = 0; t < TAPS; ++t) VSTORE(sum[t], sums + t * VW);
#else
    for (int i = 0; i < TAPS_H; ++i, grid += row, sums += TAPS_W * VW) {
        VEC sum[TAPS_W];
#pragma unroll
        for (int j = 0; j < TAPS_W; ++j) sum[j] = VLOAD(sums + j * VW);
        for (int e = from; e < count; ++e) {
            __local const REAL* z = grid + table[e];
            const VEC point = VLOAD(points + e * VW);
#pragma unroll
            for (int j = 0; j < TAPS_W; ++j) sum[j] = fma(point, VLOAD(z + j * column), sum[j]);
        }
#pragma unroll
        for (int j = 0; j < TAPS_W; ++j) VSTORE(sum[j], sums + j * VW);
    }
#endif
}
#endif

#if KERNEL_KIND != SCATTER
// Loads the rows of the grid that points from row `first` read.
static void load_band(const struct ChannelsLast* d, __global const REAL* x, const int first, const int valid,
                      __local REAL* block, __local const int* tables) {
    const int top = first * d->stride_h - d->first_h;  // row of the grid at row 0 of the block
    const int begin = clamp(-top, 0, d->grid_rows), end = clamp(d->height - top, begin, d->grid_rows);
    clear(block, begin * d->pitch);
    clear(block + end * d->pitch * VW, (d->grid_rows - end) * d->pitch);
    load_run_channels_last(x + (long)(top + begin) * d->width, (long)d->height * d->width, valid,
                           (end - begin) * d->width, block, tables + begin * d->width);
}
#endif

#if KERNEL_KIND == GATHER
// global size (ceil(units / each))
NOINLINE void conv2d_depthwise_gather_part(const size_t id0, const struct ChannelsLast args,
                                           __local REAL* restrict block, __local int* restrict tables,
                                           __global const REAL* restrict x, const long x_offset,
                                           __global const REAL* restrict weight, const long weight_offset,
                                           __global REAL* restrict out, const long out_offset,
                                           __global const REAL* restrict bias,
                                           const long bias_offset EPILOGUE_STORED_PARAMETERS) {
    const struct ChannelsLast d = args;
#ifdef EPILOGUE
    const struct Epilogue epilogue = EPILOGUE_OF_PARAMETERS;
#endif
    make_tables(&d, d.grid_rows, d.band, tables);
    clear(block, d.grid_rows * d.pitch);
    const long units = (long)((d.channels + VW - 1) / VW) * d.images, plane = (long)d.rows * d.columns;
    const long end_unit = min(units, (long)(id0 + 1) * d.each);
    for (long unit = id0 * (long)d.each, last = -1; unit < end_unit; ++unit) {
        const int c = (int)(unit / d.images) * VW, n = (int)(unit % d.images), valid = min(VW, d.channels - c);
        if (c != last)
            load_filters(&d, weight + weight_offset, c, valid, block + d.filter_offset, tables + d.filter_table);
        last = c;
        REAL biases[VW];
        for (int e = 0; e < VW; ++e) biases[e] = d.has_bias ? bias[bias_offset + c + min(e, valid - 1)] : (REAL)0;
        const VEC begin = VLOAD(biases);
        __global const REAL* from = x + x_offset + ((long)n * d.channels + c) * d.height * d.width;
        const long plane_offset = ((long)n * d.channels + c) * plane;
        __global REAL* to = out + out_offset + plane_offset;
        for (int p = 0; p < d.rows; p += d.band) {
            const int first = min(p, d.rows - d.band),
                      count = d.band * d.columns;  // the last band overlaps the one before
            load_band(&d, from, first, valid, block, tables);
            for (int f = 0; f < count; f += VW) {
                const int at = min(f, max(0, count - VW)), size = min(VW, count);
                gather(&d, block, tables + d.point_table + at, size, block + d.filter_offset, begin,
                       block + d.tile_offset);
                store_channels_last(block + d.tile_offset, tables + d.filter_table + max(TAPS, VW),
                                    to + (long)first * d.columns + at, plane, valid, size);
            }
#ifdef EPILOGUE
            for (int e = 0; e < valid; ++e)
                epilogue_stored(epilogue, out + out_offset, c + e, plane_offset + e * plane + (long)first * d.columns,
                                count);
#endif
        }
    }
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void conv2d_depthwise_gather(
    const struct ChannelsLast args, __local REAL* restrict block, __local int* restrict tables,
    __global const REAL* restrict x, const long x_offset, __global const REAL* restrict weight,
    const long weight_offset, __global REAL* restrict out, const long out_offset, __global const REAL* restrict bias,
    const long bias_offset EPILOGUE_STORED_PARAMETERS) {
    conv2d_depthwise_gather_part(get_global_id(0), args, block, tables, x, x_offset, weight, weight_offset, out,
                                 out_offset, bias, bias_offset EPILOGUE_STORED_ARGUMENTS);
}
#elif KERNEL_KIND == SCATTER
// A band of the grid has margins of (TAPS_H - 1) * dilation_h rows above and below, which receive results of other
// bands. global size (ceil(units / each))
NOINLINE void conv2d_depthwise_scatter_part(const size_t id0, const struct ChannelsLast args,
                                            __local REAL* restrict block, __local int* restrict tables,
                                            __global const REAL* restrict g, const long g_offset,
                                            __global const REAL* restrict weight, const long weight_offset,
                                            __global REAL* restrict x_gradient, const long x_gradient_offset) {
    const struct ChannelsLast d = args;
    const int margin = (TAPS_H - 1) * d.dilation_h;
    make_tables(&d, d.band, min(d.rows, (d.band + margin - 1) / d.stride_h + 1), tables);
    const long units = (long)((d.channels + VW - 1) / VW) * d.images, plane = (long)d.rows * d.columns;
    const long end_unit = min(units, (long)(id0 + 1) * d.each);
    for (long unit = id0 * (long)d.each, last = -1; unit < end_unit; ++unit) {
        const int c = (int)(unit / d.images) * VW, n = (int)(unit % d.images), valid = min(VW, d.channels - c);
        if (c != last)
            load_filters(&d, weight + weight_offset, c, valid, block + d.filter_offset, tables + d.filter_table);
        last = c;
        __global const REAL* from = g + g_offset + ((long)n * d.channels + c) * plane;
        __global REAL* to = x_gradient + x_gradient_offset + ((long)n * d.channels + c) * d.height * d.width;
        for (int h = 0; h < d.height; h += d.band) {
            const int first = min(h, d.height - d.band);
            clear(block, d.grid_rows * d.pitch);
            // Points whose taps reach rows [first, first + band).
            const int begin = clamp((first + d.first_h - margin + d.stride_h - 1) / d.stride_h, 0, d.rows);
            const int end = clamp((first + d.band - 1 + d.first_h) / d.stride_h + 1, begin, d.rows),
                      count = (end - begin) * d.columns;
            __local REAL* grid = block + (begin * d.stride_h - d.first_h - first + margin) * d.pitch * VW;
            for (int f = 0; f < count; f += VW) {
                const int at = min(f, max(0, count - VW)), size = min(VW, count);
                load_channels_last(from + (long)begin * d.columns + at, plane, valid, size, block + d.tile_offset,
                                   tables + d.filter_table + max(TAPS, VW));
                scatter(&d, grid, tables + d.point_table + at, f - at, size, block + d.filter_offset,
                        block + d.tile_offset);
            }
            const int band_size = d.band * d.width;
            for (int f = 0; f < band_size; f += VW) {
                const int at = min(f, max(0, band_size - VW));
                store_channels_last(block + margin * d.pitch * VW, tables + at, to + (long)first * d.width + at,
                                    (long)d.height * d.width, valid, min(VW, band_size));
            }
        }
    }
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void conv2d_depthwise_scatter(
    const struct ChannelsLast args, __local REAL* restrict block, __local int* restrict tables,
    __global const REAL* restrict g, const long g_offset, __global const REAL* restrict weight,
    const long weight_offset, __global REAL* restrict x_gradient, const long x_gradient_offset) {
    conv2d_depthwise_scatter_part(get_global_id(0), args, block, tables, g, g_offset, weight, weight_offset, x_gradient,
                                  x_gradient_offset);
}
#else
// global size (vectors of channels, ceil(images / each)); partials[chunk][c][i][j]
NOINLINE void conv2d_depthwise_correlate_part(const size_t id0, const size_t id1, const struct ChannelsLast args,
                                              __local REAL* restrict block, __local int* restrict tables,
                                              __global const REAL* restrict x, const long x_offset,
                                              __global const REAL* restrict g, const long g_offset,
                                              __global REAL* restrict partials, const long partials_offset) {
    const struct ChannelsLast d = args;
    make_tables(&d, d.grid_rows, d.band, tables);
    clear(block, d.grid_rows * d.pitch);
    clear(block + d.filter_offset, TAPS);
    const long plane = (long)d.rows * d.columns;
    const int c = id0 * VW, valid = min(VW, d.channels - c), end_image = min(d.images, (int)(id1 + 1) * d.each);
    for (int n = id1 * d.each; n < end_image; ++n) {
        __global const REAL* from = x + x_offset + ((long)n * d.channels + c) * d.height * d.width;
        __global const REAL* points = g + g_offset + ((long)n * d.channels + c) * plane;
        for (int p = 0; p < d.rows; p += d.band) {
            const int first = min(p, d.rows - d.band), count = d.band * d.columns;
            load_band(&d, from, first, valid, block, tables);
            for (int f = (p - first) * d.columns; f < count; f += VW) {
                const int at = min(f, max(0, count - VW)), size = min(VW, count);
                load_channels_last(points + (long)first * d.columns + at, plane, valid, size, block + d.tile_offset,
                                   tables + d.filter_table + max(TAPS, VW));
                correlate(&d, block, tables + d.point_table + at, f - at, size, block + d.filter_offset,
                          block + d.tile_offset);
            }
        }
    }
    __global REAL* to = partials + partials_offset + ((long)id1 * d.channels + c) * TAPS;
    for (int t = 0; t < TAPS; t += VW) {
        const int at = min(t, max(0, TAPS - VW));
        store_channels_last(block + d.filter_offset, tables + d.filter_table + at, to + at, TAPS, valid, min(VW, TAPS));
    }
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void conv2d_depthwise_correlate(
    const struct ChannelsLast args, __local REAL* restrict block, __local int* restrict tables,
    __global const REAL* restrict x, const long x_offset, __global const REAL* restrict g, const long g_offset,
    __global REAL* restrict partials, const long partials_offset) {
    conv2d_depthwise_correlate_part(get_global_id(0), get_global_id(1), args, block, tables, x, x_offset, g, g_offset,
                                    partials, partials_offset);
}
#endif
