// Batch normalisation, forward
//
//   y[n, c, l] = (x[n, c, l] - mean[c]) scale[c] weight[c] + bias[c],  scale[c] = 1 / sqrt(variance[c] + epsilon)
//
// and backward, with g the gradient of y, B[c] = sum of g, W[c] = sum of g (x - mean) scale, both over n and l:
//
//   dbias = B,  dweight = W,  dx = scale weight (g - B / M - (x - mean) scale W / M),  M = N L,
//   without the terms over M unless mean and variance are those of x.
//
// x[n, c, l] with n in [0, N), c in [0, C), l in [0, L), dense.
//
// Sums over n and l run over the `positions` of a column, in two passes: chunk s of `chunk` positions gives a pair of
// partial results, parts[2 (s columns + column)] and the next element, and one work-item per channel combines them. If
// a column is a channel and one chunk covers all its positions, the kernels named _whole do both passes and the
// elementwise part while the channel is in the cache.
//
//   The meaning of a column depends on which of these is defined:
//   SIMD          simd style, large planes: a column is a channel, its positions are (n, l), vectors along l.
//                 global (C, chunks)
//   SIMD_COLUMNS  simd style, small planes: a column is one (c, l), its positions are n, vectors across columns.
//                 global (column blocks, chunks)
//   SIMT          simt style: either, several work-items per column. global (column groups * local size, chunks)
//   REAL, T       float or double
//   LANES         SIMD: elements per vector
//   BLOCK         SIMD, SIMD_COLUMNS: positions whose mean is computed before their deviations from it, while in the
//                 cache
//   COLUMNS       SIMD_COLUMNS: columns per work-item
//   MAX_CHANNELS  SIMD: maximum number of channels per work-item; several if planes are small, for longer contiguous
//             reads
//   EPILOGUE, ...  epilogue of batch_norm_whole (epilogue_stored.clh)
#include "noinline.clh"
#include "math.clh"
#ifdef SIMT
#ifdef EPILOGUE
#include "epilogue.clh"
#define EPILOGUE_STORED_PARAMETERS , EPILOGUE_PARAMETERS
#else
#define EPILOGUE_STORED_PARAMETERS
#endif
#else
#include "row.clh"
#define VW LANES
#define VEC ROW_VEC
#define VLOAD(pointer) row_load(pointer)
#define VSTORE(value, pointer) row_store(value, pointer)
#include "epilogue_stored.clh"
#endif

#include "batch_norm_parts.clh"
#include "batch_norm_elements.clh"

// ---- sums, first pass

#ifdef SIMT

__kernel void batch_norm_statistics(const struct Sizes sizes, const int lanes, const int lane_stride,
                                    __local REAL* shared, __global const REAL* restrict x_base, const long x_offset,
                                    __global REAL* restrict parts, const long parts_offset) {
    const struct RowGroup group = row_group(lanes, lane_stride);
    REAL mean, squares;
    group_statistics(sizes, group, shared, x_base + x_offset, &mean, &squares);
    if (group.lane != 0 || group.row >= sizes.columns) return;
    parts[parts_offset + 2 * (get_group_id(1) * sizes.columns + group.row)] = mean;
    parts[parts_offset + 2 * (get_group_id(1) * sizes.columns + group.row) + 1] = squares;
}

__kernel void batch_norm_gradient_sums(const struct Sizes sizes, const int lanes, const int lane_stride,
                                       __local REAL* shared, __global const REAL* restrict x_base, const long x_offset,
                                       __global const REAL* restrict g_base, const long g_offset,
                                       __global const REAL* restrict mean_base, const long mean_offset,
                                       __global REAL* restrict parts, const long parts_offset) {
    const struct RowGroup group = row_group(lanes, lane_stride);
    const long column = min(group.row, sizes.columns - 1);
    REAL sum, products;
    group_gradient_sums(sizes, group, shared, x_base + x_offset, g_base + g_offset,
                        mean_base[mean_offset + column / (sizes.columns / sizes.C)], &sum, &products);
    if (group.lane != 0 || group.row >= sizes.columns) return;
    parts[parts_offset + 2 * (get_group_id(1) * sizes.columns + column)] = sum;
    parts[parts_offset + 2 * (get_group_id(1) * sizes.columns + column) + 1] = products;
}

#else

__kernel void batch_norm_statistics(const struct Sizes sizes, __global const REAL* restrict x_base, const long x_offset,
                                    __global REAL* restrict parts_base, const long parts_offset) {
    batch_norm_statistics_part(get_global_id(0), get_global_id(1), sizes, x_base, x_offset, parts_base, parts_offset);
}

__kernel void batch_norm_gradient_sums(const struct Sizes sizes, __global const REAL* restrict x_base,
                                       const long x_offset, __global const REAL* restrict g_base, const long g_offset,
                                       __global const REAL* restrict mean_base, const long mean_offset,
                                       __global REAL* restrict parts_base, const long parts_offset) {
    batch_norm_gradient_sums_part(get_global_id(0), get_global_id(1), sizes, x_base, x_offset, g_base, g_offset,
                                  mean_base, mean_offset, parts_base, parts_offset);
}

#endif

// ---- sums, second pass: global (C)

#define STATISTICS_PARAMETERS                                                                                         \
    const REAL epsilon, const REAL momentum, const int running, __global REAL *restrict parts_base,                   \
        const long parts_offset, __global REAL *restrict means, const long means_offset,                              \
        __global REAL *restrict scales, const long scales_offset, __global REAL *restrict running_mean,               \
        const long running_mean_offset, __global REAL *restrict running_variance, const long running_variance_offset, \
        __global long *restrict batches, const long batches_offset
#define STATISTICS_ARGUMENTS                                                                                        \
    epsilon, momentum, running, parts_base, parts_offset, means, means_offset, scales, scales_offset, running_mean, \
        running_mean_offset, running_variance, running_variance_offset, batches, batches_offset

// running: bit 0, there is a running mean; bit 1, a running variance; bit 2, `batches` is to be incremented; bit 3, it
// has been incremented already, and momentum is 1 / batches.
static inline void finish_statistics(const long c, const REAL mean, const REAL squares, const long count,
                                     STATISTICS_PARAMETERS) {
    means[means_offset + c] = mean;
    scales[scales_offset + c] = d_rsqrt(squares / (REAL)count + epsilon);
    const REAL share = running & 8 ? 1 / (REAL)batches[batches_offset] : momentum;
    if (running & 1) running_mean[running_mean_offset + c] += share * (mean - running_mean[running_mean_offset + c]);
    if (running & 2) {
        const REAL variance = squares / (REAL)(count - 1);
        running_variance[running_variance_offset + c] +=
            share * (variance - running_variance[running_variance_offset + c]);
    }
    if (c == 0 && (running & 4)) batches[batches_offset] += 1;
}

static inline void merge_statistics(const long c, const struct Sizes sizes, const long splits, STATISTICS_PARAMETERS) {
    const long width = sizes.columns / sizes.C;
    REAL mean = 0, squares = 0;
    long count = 0;
    for (long split = 0; split < splits; ++split) {
        const long more = min(sizes.chunk, sizes.positions - split * sizes.chunk);
        __global const REAL* parts = parts_base + parts_offset + 2 * (split * sizes.columns + c * width);
        for (long l = 0; l < width; ++l) {
            merge_moments(&mean, &squares, count, parts[2 * l], parts[2 * l + 1], more);
            count += more;
        }
    }
    finish_statistics(c, mean, squares, count, STATISTICS_ARGUMENTS);
}

__kernel void batch_norm_combine_statistics(const struct Sizes sizes, const long splits, STATISTICS_PARAMETERS) {
    merge_statistics(get_global_id(0), sizes, splits, STATISTICS_ARGUMENTS);
}

static inline void merge_gradient_sums(const long c, const struct Sizes sizes, const long splits,
                                       __global const REAL* restrict parts_base, const long parts_offset,
                                       __global const REAL* restrict scales, const long scales_offset,
                                       __global REAL* restrict weight_gradient, const long weight_gradient_offset,
                                       __global REAL* restrict bias_gradient, const long bias_gradient_offset) {
    const long width = sizes.columns / sizes.C;
    REAL sum = 0, products = 0;
    for (long split = 0; split < splits; ++split) {
        __global const REAL* parts = parts_base + parts_offset + 2 * (split * sizes.columns + c * width);
        for (long l = 0; l < width; ++l) {
            sum += parts[2 * l];
            products += parts[2 * l + 1];
        }
    }
    bias_gradient[bias_gradient_offset + c] = sum;
    weight_gradient[weight_gradient_offset + c] = products * scales[scales_offset + c];
}

__kernel void batch_norm_combine_gradient_sums(const struct Sizes sizes, const long splits,
                                               __global const REAL* restrict parts_base, const long parts_offset,
                                               __global const REAL* restrict scales, const long scales_offset,
                                               __global REAL* restrict weight_gradient,
                                               const long weight_gradient_offset, __global REAL* restrict bias_gradient,
                                               const long bias_gradient_offset) {
    merge_gradient_sums(get_global_id(0), sizes, splits, parts_base, parts_offset, scales, scales_offset,
                        weight_gradient, weight_gradient_offset, bias_gradient, bias_gradient_offset);
}

__kernel void batch_norm_scale(const REAL epsilon, __global const REAL* restrict variance, const long variance_offset,
                               __global REAL* restrict scale, const long scale_offset) {
    const long c = get_global_id(0);
    scale[scale_offset + c] = d_rsqrt(variance[variance_offset + c] + epsilon);
}

// ---- elementwise

// affine: bit 0, there is a weight; bit 1, a bias. A missing argument is replaced by the buffer of the mean and not
// read.
__kernel void batch_norm(const struct Sizes sizes, ITEM_PARAMETER, const long chunk, const int affine,
                         __global const REAL* restrict x_base, const long x_offset, __global const REAL* restrict means,
                         const long means_offset, __global const REAL* restrict scales, const long scales_offset,
                         __global const REAL* restrict weights, const long weights_offset,
                         __global const REAL* restrict biases, const long biases_offset, __global REAL* restrict y_base,
                         const long y_offset) {
    __global const REAL* x = x_base + x_offset;
    __global REAL* y = y_base + y_offset;
#ifdef SIMT
    const struct RowGroup group = row_group(lanes, 1);
    if (group.row >= sizes.N * sizes.C) return;
    const long first = get_group_id(1) * chunk, end = min(sizes.L, first + chunk), start = group.row * sizes.L;
    const struct Normalisation channel = normalisation_of(group.row % sizes.C, NORMALISATION_ARGUMENTS);
    for (long i = first + group.lane; i < end; i += lanes) y[start + i] = NORMALISED(x[start + i], channel);
#else
    const struct Rows own = own_rows(sizes, each, chunk);
    long c = own.first % sizes.C;
    for (long row = own.first; row < own.last; ++row) {
        const long start = row * own.length;
        if (sizes.L == 1) {
            for (long i = own.begin; i < own.end; ++i) {
                const struct Normalisation channel = normalisation_of(i, NORMALISATION_ARGUMENTS);
                y[start + i] = NORMALISED(x[start + i], channel);
            }
            continue;
        }
        const struct Normalisation channel = normalisation_of(c, NORMALISATION_ARGUMENTS);
        normalise_row(x, y, start, own.begin, own.end, own.rows * own.length, channel);
        c = c + 1 < sizes.C ? c + 1 : 0;
    }
#endif
}

// of_batch: mean and scale depend on x; otherwise the sums are not read.
__kernel void batch_norm_backward_input(const struct Sizes sizes, ITEM_PARAMETER, const long chunk, const int affine,
                                        const int of_batch, __global const REAL* restrict x_base, const long x_offset,
                                        __global const REAL* restrict g_base, const long g_offset,
                                        __global const REAL* restrict means, const long means_offset,
                                        __global const REAL* restrict scales, const long scales_offset,
                                        __global const REAL* restrict weights, const long weights_offset,
                                        __global const REAL* restrict weight_gradient,
                                        const long weight_gradient_offset, __global const REAL* restrict bias_gradient,
                                        const long bias_gradient_offset, __global REAL* restrict dx_base,
                                        const long dx_offset) {
    __global const REAL* x = x_base + x_offset;
    __global const REAL* g = g_base + g_offset;
    __global REAL* dx = dx_base + dx_offset;
    const REAL share = of_batch ? 1 / (REAL)(sizes.N * sizes.L) : 0;
#ifdef SIMT
    const struct RowGroup group = row_group(lanes, 1);
    if (group.row >= sizes.N * sizes.C) return;
    const long first = get_group_id(1) * chunk, end = min(sizes.L, first + chunk), start = group.row * sizes.L;
    const struct Gradient channel = gradient_of(group.row % sizes.C, GRADIENT_ARGUMENTS);
    for (long i = first + group.lane; i < end; i += lanes)
        dx[start + i] = GRADIENT(x[start + i], g[start + i], channel);
#else
    const struct Rows own = own_rows(sizes, each, chunk);
    long c = own.first % sizes.C;
    for (long row = own.first; row < own.last; ++row) {
        const long start = row * own.length;
        if (sizes.L == 1) {
            for (long i = own.begin; i < own.end; ++i) {
                const struct Gradient channel = gradient_of(i, GRADIENT_ARGUMENTS);
                dx[start + i] = GRADIENT(x[start + i], g[start + i], channel);
            }
            continue;
        }
        const struct Gradient channel = gradient_of(c, GRADIENT_ARGUMENTS);
        gradient_row(x, g, dx, start, own.begin, own.end, own.rows * own.length, channel);
        c = c + 1 < sizes.C ? c + 1 : 0;
    }
#endif
}

// ---- whole: columns are channels, and there is one chunk. `parts` passes the sums from the first pass to the second
// of the same work-items.

// Channels per work-item in SIMD and SIMD_COLUMNS.
#ifdef SIMD_COLUMNS
#define ITEM_CHANNELS ((long)COLUMNS)
#else
#define ITEM_CHANNELS sizes.channels
#endif

// flags: bit 0, there is a weight; bit 1, of_batch; bit 2, dx is computed as well (SIMD and SIMT).
#define BACKWARD_PARAMETERS                                                                                           \
    const int flags, __global const REAL *restrict x_base, const long x_offset, __global const REAL *restrict g_base, \
        const long g_offset, __global const REAL *restrict means, const long means_offset,                            \
        __global const REAL *restrict scales, const long scales_offset, __global const REAL *restrict weights,        \
        const long weights_offset, __global REAL *restrict weight_gradient, const long weight_gradient_offset,        \
        __global REAL *restrict bias_gradient, const long bias_gradient_offset, __global REAL *restrict dx_base,      \
        const long dx_offset, __global REAL *restrict parts, const long parts_offset
#define BACKWARD_ARGUMENTS                                                                                          \
    flags, x_base, x_offset, g_base, g_offset, means, means_offset, scales, scales_offset, weights, weights_offset, \
        weight_gradient, weight_gradient_offset, bias_gradient, bias_gradient_offset, dx_base, dx_offset, parts,    \
        parts_offset

#define FORWARD_PARAMETERS                                                                                      \
    const int affine, __global const REAL *restrict x_base, const long x_offset,                                \
        __global const REAL *restrict weights, const long weights_offset, __global const REAL *restrict biases, \
        const long biases_offset, __global REAL *restrict y_base, const long y_offset
#define FORWARD_ARGUMENTS affine, x_base, x_offset, weights, weights_offset, biases, biases_offset, y_base, y_offset

#ifndef SIMT

NOINLINE void batch_norm_statistics_channels(const size_t id, const struct Sizes sizes,
                                             __global const REAL* restrict x_base, const long x_offset,
                                             STATISTICS_PARAMETERS) {
    batch_norm_statistics_part(id, 0, sizes, x_base, x_offset, parts_base, parts_offset);
    const long first = id * ITEM_CHANNELS, end = min(sizes.C, first + ITEM_CHANNELS);
    for (long c = first; c < end; ++c) merge_statistics(c, sizes, 1, STATISTICS_ARGUMENTS);
}

// global (ceil(C / wide)) or (column blocks)
__kernel void batch_norm_statistics_whole(const struct Sizes sizes, __global const REAL* restrict x_base,
                                          const long x_offset, STATISTICS_PARAMETERS) {
    batch_norm_statistics_channels(get_global_id(0), sizes, x_base, x_offset, STATISTICS_ARGUMENTS);
}

NOINLINE void batch_norm_backward_channels(const size_t id, const struct Sizes sizes, BACKWARD_PARAMETERS) {
    batch_norm_gradient_sums_part(id, 0, sizes, x_base, x_offset, g_base, g_offset, means, means_offset, parts,
                                  parts_offset);
    const long first = id * ITEM_CHANNELS, last = min(sizes.C, first + ITEM_CHANNELS);
    for (long c = first; c < last; ++c)
        merge_gradient_sums(c, sizes, 1, parts, parts_offset, scales, scales_offset, weight_gradient,
                            weight_gradient_offset, bias_gradient, bias_gradient_offset);
    if ((flags & 4) == 0) return;
    __global const REAL* x = x_base + x_offset;
    __global const REAL* g = g_base + g_offset;
    __global REAL* dx = dx_base + dx_offset;
#ifdef SIMD
    const REAL share = flags & 2 ? 1 / (REAL)(sizes.N * sizes.L) : 0;
    for (long n = 0; n < sizes.N; ++n)
        for (long c = first; c < last; ++c) {
            struct Gradient channel;
            const REAL scale = scales[scales_offset + c];
            channel.mean = means[means_offset + c];
            channel.factor = scale * (flags & 1 ? weights[weights_offset + c] : 1);
            channel.shift = bias_gradient[bias_gradient_offset + c] * share;
            channel.slope = weight_gradient[weight_gradient_offset + c] * scale * share;
            const long start = (n * sizes.C + c) * sizes.L;
            gradient_row(x, g, dx, start, 0, sizes.L, sizes.N * sizes.C * sizes.L, channel);
        }
#endif
}

#ifdef SIMD

NOINLINE void batch_norm_channels(const size_t id, const struct Sizes sizes, FORWARD_PARAMETERS,
                                  STATISTICS_PARAMETERS EPILOGUE_STORED_PARAMETERS) {
    batch_norm_statistics_channels(id, sizes, x_base, x_offset, STATISTICS_ARGUMENTS);
    const long first = id * sizes.channels, last = min(sizes.C, first + sizes.channels);
    __global const REAL* x = x_base + x_offset;
    __global REAL* y = y_base + y_offset;
#ifdef EPILOGUE
    const struct Epilogue epilogue = EPILOGUE_OF_PARAMETERS;
#endif
    for (long n = 0; n < sizes.N; ++n)
        for (long c = first; c < last; ++c) {
            const struct Normalisation channel = normalisation_of(c, NORMALISATION_ARGUMENTS);
            const long start = (n * sizes.C + c) * sizes.L, room = sizes.N * sizes.C * sizes.L;
#ifdef EPILOGUE
            normalise_row_with_epilogue(x, y, start, 0, sizes.L, room, channel, epilogue, c);
#else
            normalise_row(x, y, start, 0, sizes.L, room, channel);
#endif
        }
}

// global (ceil(C / wide))
__kernel void batch_norm_whole(const struct Sizes sizes, FORWARD_PARAMETERS,
                               STATISTICS_PARAMETERS EPILOGUE_STORED_PARAMETERS) {
    batch_norm_channels(get_global_id(0), sizes, FORWARD_ARGUMENTS, STATISTICS_ARGUMENTS EPILOGUE_STORED_ARGUMENTS);
}

#endif

// global (ceil(C / wide)) or (column blocks)
__kernel void batch_norm_backward_whole(const struct Sizes sizes, BACKWARD_PARAMETERS) {
    batch_norm_backward_channels(get_global_id(0), sizes, BACKWARD_ARGUMENTS);
}

#else

// global (column groups * local size)
__kernel void batch_norm_statistics_whole(const struct Sizes sizes, const int lanes, const int lane_stride,
                                          __local REAL* shared, __global const REAL* restrict x_base,
                                          const long x_offset, STATISTICS_PARAMETERS) {
    const struct RowGroup group = row_group(lanes, lane_stride);
    REAL mean, squares;
    group_statistics(sizes, group, shared, x_base + x_offset, &mean, &squares);
    if (group.lane != 0 || group.row >= sizes.C) return;
    finish_statistics(group.row, mean, squares, sizes.positions, STATISTICS_ARGUMENTS);
}

__kernel void batch_norm_whole(const struct Sizes sizes, const int lanes, const int lane_stride, __local REAL* shared,
                               FORWARD_PARAMETERS, STATISTICS_PARAMETERS EPILOGUE_STORED_PARAMETERS) {
    __global const REAL* x = x_base + x_offset;
    __global REAL* y = y_base + y_offset;
    const struct RowGroup group = row_group(lanes, lane_stride);
    REAL mean, squares;
    group_statistics(sizes, group, shared, x, &mean, &squares);
    if (group.row >= sizes.C) return;
    const long c = group.row;
    struct Normalisation channel;
    channel.mean = mean;
    channel.factor =
        d_rsqrt(squares / (REAL)sizes.positions + epsilon) * (affine & 1 ? weights[weights_offset + c] : 1);
    channel.bias = affine & 2 ? biases[biases_offset + c] : 0;
    if (group.lane == 0) finish_statistics(c, mean, squares, sizes.positions, STATISTICS_ARGUMENTS);
#ifdef EPILOGUE
    const struct Epilogue epilogue = EPILOGUE_OF_PARAMETERS;
#endif
    const struct Column column = column_of(sizes, c, lanes);
    for (struct Position p = position_of(column, group.lane); p.position < sizes.positions;
         p = next_position(column, p, lanes)) {
        const long at = index_in_x(sizes, column, p);
        const REAL value = NORMALISED(x[at], channel);
#ifdef EPILOGUE
        y[at] = with_epilogue(epilogue, value, c, at);
#else
        y[at] = value;
#endif
    }
}

__kernel void batch_norm_backward_whole(const struct Sizes sizes, const int lanes, const int lane_stride,
                                        __local REAL* shared, BACKWARD_PARAMETERS) {
    __global const REAL* x = x_base + x_offset;
    __global const REAL* g = g_base + g_offset;
    __global REAL* dx = dx_base + dx_offset;
    const struct RowGroup group = row_group(lanes, lane_stride);
    const long c = min(group.row, sizes.C - 1);
    REAL sum, products;
    group_gradient_sums(sizes, group, shared, x, g, means[means_offset + c], &sum, &products);
    if (group.row >= sizes.C) return;
    const REAL scale = scales[scales_offset + c];
    if (group.lane == 0) {
        bias_gradient[bias_gradient_offset + c] = sum;
        weight_gradient[weight_gradient_offset + c] = products * scale;
    }
    if ((flags & 4) == 0) return;
    const REAL share = flags & 2 ? 1 / (REAL)(sizes.N * sizes.L) : 0;
    struct Gradient channel;
    channel.mean = means[means_offset + c];
    channel.factor = scale * (flags & 1 ? weights[weights_offset + c] : 1);
    channel.shift = sum * share;
    channel.slope = products * scale * scale * share;
    const struct Column column = column_of(sizes, c, lanes);
    for (struct Position p = position_of(column, group.lane); p.position < sizes.positions;
         p = next_position(column, p, lanes)) {
        const long at = index_in_x(sizes, column, p);
        dx[at] = GRADIENT(x[at], g[at], channel);
    }
}

#endif
