// Batch normalisation, forward
//
//   y[n, c, l] = (x[n, c, l] - mean[c]) scale[c] weight[c] + bias[c],  scale[c] = 1 / sqrt(variance[c] + epsilon)
//
// and backward, with g the gradient of y, B[c] = sum of g, W[c] = sum of g (x - mean) scale, both over n and l:
//
//   bias_gradient = B,  weight_gradient = W,  x_gradient = scale weight (g - B / M - (x - mean) scale W / M),  M = N L,
//   without the terms over M unless mean and variance are those of x.
//
// x[n, c, l] with n in [0, N), c in [0, C), l in [0, L), dense.
//
// Sums over n and l run over the `positions` of a slice of x, in two passes: chunk s of `chunk` positions gives a pair
// of partial results, parts[2 (s slices + slice)] and the next element, and one work-item per channel combines them. A
// slice is a channel x[:, c, :] if planes of L elements are large, else a column x[:, c, l] of x as a matrix of N rows
// and C L columns. If slices are channels and one chunk covers all their positions, the kernels named _whole do both
// passes and the elementwise part while the channel is in the cache.
//
//   One of these is defined:
//   SIMD          simd style, large planes: slices are channels, their positions are (n, l), vectors along l.
//                 global (C, chunks)
//   SIMD_COLUMNS  simd style, small planes: slices are columns, their positions are n, vectors across columns.
//                 global (column blocks, chunks)
//   SIMT          simt style: slices of either kind, several work-items per slice.
//                 global (slice groups * local size, chunks)
//   REAL, T       float or double
//   LANES         SIMD: elements per vector
//   BLOCK         SIMD, SIMD_COLUMNS: positions whose mean is computed before their deviations from it, while in the
//                 cache
//   COLUMNS       SIMD_COLUMNS: columns per work-item
//   MAX_CHANNELS  SIMD: maximum number of channels per work-item; several if planes are small, for longer contiguous
//                 reads
//   EPILOGUE, ...  epilogue of batch_norm_whole (epilogue_stored.clh)
//
// Parameters that several kernels and the functions they call share are lists in macros: ..._PARAMETERS in
// declarations, ..._ARGUMENTS in calls. In OpenCL C 1.2 a kernel argument may not be a struct of pointers.
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
    if (group.lane != 0 || group.row >= sizes.slices) return;
    parts[parts_offset + 2 * (get_group_id(1) * sizes.slices + group.row)] = mean;
    parts[parts_offset + 2 * (get_group_id(1) * sizes.slices + group.row) + 1] = squares;
}

__kernel void batch_norm_gradient_sums(const struct Sizes sizes, const int lanes, const int lane_stride,
                                       __local REAL* shared, __global const REAL* restrict x_base, const long x_offset,
                                       __global const REAL* restrict g_base, const long g_offset,
                                       __global const REAL* restrict mean_base, const long mean_offset,
                                       __global REAL* restrict parts, const long parts_offset) {
    const struct RowGroup group = row_group(lanes, lane_stride);
    const long slice = min(group.row, sizes.slices - 1);
    REAL sum, products;
    group_gradient_sums(sizes, group, shared, x_base + x_offset, g_base + g_offset,
                        mean_base[mean_offset + slice / (sizes.slices / sizes.C)], &sum, &products);
    if (group.lane != 0 || group.row >= sizes.slices) return;
    parts[parts_offset + 2 * (get_group_id(1) * sizes.slices + slice)] = sum;
    parts[parts_offset + 2 * (get_group_id(1) * sizes.slices + slice) + 1] = products;
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

// Statistics of the batch, `means` and `scales`, and running statistics. `running` has a flag (batch_norm_elements.clh)
// for each of the latter that is updated; the other arguments may be any buffer and are not read. `batches` is
// PyTorch's num_batches_tracked.
#define STATISTICS_PARAMETERS                                                                                         \
    const REAL epsilon, const REAL momentum, const int running, __global REAL *restrict parts_base,                   \
        const long parts_offset, __global REAL *restrict means, const long means_offset,                              \
        __global REAL *restrict scales, const long scales_offset, __global REAL *restrict running_mean,               \
        const long running_mean_offset, __global REAL *restrict running_variance, const long running_variance_offset, \
        __global long *restrict batches, const long batches_offset
#define STATISTICS_ARGUMENTS                                                                                        \
    epsilon, momentum, running, parts_base, parts_offset, means, means_offset, scales, scales_offset, running_mean, \
        running_mean_offset, running_variance, running_variance_offset, batches, batches_offset

static inline void finish_statistics(const long c, const REAL mean, const REAL squares, const long count,
                                     STATISTICS_PARAMETERS) {
    means[means_offset + c] = mean;
    scales[scales_offset + c] = d_rsqrt(squares / (REAL)count + epsilon);
    const REAL average_factor = running & CUMULATIVE_AVERAGE ? 1 / (REAL)batches[batches_offset] : momentum;
    if (running & HAS_RUNNING_MEAN)
        running_mean[running_mean_offset + c] += average_factor * (mean - running_mean[running_mean_offset + c]);
    if (running & HAS_RUNNING_VARIANCE) {
        const REAL variance = squares / (REAL)(count - 1);
        running_variance[running_variance_offset + c] +=
            average_factor * (variance - running_variance[running_variance_offset + c]);
    }
    if (c == 0 && (running & COUNTS_BATCHES)) batches[batches_offset] += 1;
}

static inline void merge_statistics(const long c, const struct Sizes sizes, const long splits, STATISTICS_PARAMETERS) {
    const long channel_slices = sizes.slices / sizes.C;
    REAL mean = 0, squares = 0;
    long count = 0;
    for (long split = 0; split < splits; ++split) {
        const long more = min(sizes.chunk, sizes.positions - split * sizes.chunk);
        __global const REAL* parts = parts_base + parts_offset + 2 * (split * sizes.slices + c * channel_slices);
        for (long i = 0; i < channel_slices; ++i) {
            merge_moments(&mean, &squares, count, parts[2 * i], parts[2 * i + 1], more);
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
    const long channel_slices = sizes.slices / sizes.C;
    REAL sum = 0, products = 0;
    for (long split = 0; split < splits; ++split) {
        __global const REAL* parts = parts_base + parts_offset + 2 * (split * sizes.slices + c * channel_slices);
        for (long i = 0; i < channel_slices; ++i) {
            sum += parts[2 * i];
            products += parts[2 * i + 1];
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

// flags: HAS_WEIGHT, HAS_BIAS. A missing argument is replaced by the buffer of the mean and not read.
__kernel void batch_norm(const struct Sizes sizes, ITEM_PARAMETER, const long chunk, const int flags,
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

// flags: HAS_WEIGHT. training: mean and scale depend on x; otherwise the sums are not read.
__kernel void batch_norm_backward_input(const struct Sizes sizes, ITEM_PARAMETER, const long chunk, const int flags,
                                        const int training, __global const REAL* restrict x_base, const long x_offset,
                                        __global const REAL* restrict g_base, const long g_offset,
                                        __global const REAL* restrict means, const long means_offset,
                                        __global const REAL* restrict scales, const long scales_offset,
                                        __global const REAL* restrict weights, const long weights_offset,
                                        __global const REAL* restrict weight_gradient,
                                        const long weight_gradient_offset, __global const REAL* restrict bias_gradient,
                                        const long bias_gradient_offset, __global REAL* restrict x_gradient_base,
                                        const long x_gradient_offset) {
    __global const REAL* x = x_base + x_offset;
    __global const REAL* g = g_base + g_offset;
    __global REAL* x_gradient = x_gradient_base + x_gradient_offset;
    const REAL inverse_count = training ? 1 / (REAL)(sizes.N * sizes.L) : 0;
#ifdef SIMT
    const struct RowGroup group = row_group(lanes, 1);
    if (group.row >= sizes.N * sizes.C) return;
    const long first = get_group_id(1) * chunk, end = min(sizes.L, first + chunk), start = group.row * sizes.L;
    const struct Gradient channel = gradient_of(group.row % sizes.C, GRADIENT_ARGUMENTS);
    for (long i = first + group.lane; i < end; i += lanes)
        x_gradient[start + i] = GRADIENT(x[start + i], g[start + i], channel);
#else
    const struct Rows own = own_rows(sizes, each, chunk);
    long c = own.first % sizes.C;
    for (long row = own.first; row < own.last; ++row) {
        const long start = row * own.length;
        if (sizes.L == 1) {
            for (long i = own.begin; i < own.end; ++i) {
                const struct Gradient channel = gradient_of(i, GRADIENT_ARGUMENTS);
                x_gradient[start + i] = GRADIENT(x[start + i], g[start + i], channel);
            }
            continue;
        }
        const struct Gradient channel = gradient_of(c, GRADIENT_ARGUMENTS);
        gradient_row(x, g, x_gradient, start, own.begin, own.end, own.rows * own.length, channel);
        c = c + 1 < sizes.C ? c + 1 : 0;
    }
#endif
}

// ---- whole: slices are channels, and there is one chunk. `parts` passes the sums from the first pass to the second
// of the same work-items.

// Channels per work-item in SIMD and SIMD_COLUMNS.
#ifdef SIMD_COLUMNS
#define ITEM_CHANNELS ((long)COLUMNS)
#else
#define ITEM_CHANNELS sizes.channels_each
#endif

// flags: HAS_WEIGHT, TRAINING, WITH_X_GRADIENT (SIMD and SIMT).
#define BACKWARD_PARAMETERS                                                                                           \
    const int flags, __global const REAL *restrict x_base, const long x_offset, __global const REAL *restrict g_base, \
        const long g_offset, __global const REAL *restrict means, const long means_offset,                            \
        __global const REAL *restrict scales, const long scales_offset, __global const REAL *restrict weights,        \
        const long weights_offset, __global REAL *restrict weight_gradient, const long weight_gradient_offset,        \
        __global REAL *restrict bias_gradient, const long bias_gradient_offset,                                       \
        __global REAL *restrict x_gradient_base, const long x_gradient_offset, __global REAL *restrict parts,         \
        const long parts_offset
#define BACKWARD_ARGUMENTS                                                                                          \
    flags, x_base, x_offset, g_base, g_offset, means, means_offset, scales, scales_offset, weights, weights_offset, \
        weight_gradient, weight_gradient_offset, bias_gradient, bias_gradient_offset, x_gradient_base,              \
        x_gradient_offset, parts, parts_offset

// flags: HAS_WEIGHT, HAS_BIAS.
#define FORWARD_PARAMETERS                                                                                             \
    const int flags, __global const REAL *restrict x_base, const long x_offset, __global const REAL *restrict weights, \
        const long weights_offset, __global const REAL *restrict biases, const long biases_offset,                     \
        __global REAL *restrict y_base, const long y_offset
#define FORWARD_ARGUMENTS flags, x_base, x_offset, weights, weights_offset, biases, biases_offset, y_base, y_offset

#ifndef SIMT

NOINLINE void batch_norm_statistics_channels(const size_t id, const struct Sizes sizes,
                                             __global const REAL* restrict x_base, const long x_offset,
                                             STATISTICS_PARAMETERS) {
    batch_norm_statistics_part(id, 0, sizes, x_base, x_offset, parts_base, parts_offset);
    const long first = id * ITEM_CHANNELS, end = min(sizes.C, first + ITEM_CHANNELS);
    for (long c = first; c < end; ++c) merge_statistics(c, sizes, 1, STATISTICS_ARGUMENTS);
}

// global (ceil(C / channels_each)) or (column blocks)
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
    if ((flags & WITH_X_GRADIENT) == 0) return;
    __global const REAL* x = x_base + x_offset;
    __global const REAL* g = g_base + g_offset;
    __global REAL* x_gradient = x_gradient_base + x_gradient_offset;
#ifdef SIMD
    const REAL inverse_count = flags & TRAINING ? 1 / (REAL)(sizes.N * sizes.L) : 0;
    for (long n = 0; n < sizes.N; ++n)
        for (long c = first; c < last; ++c) {
            struct Gradient channel;
            const REAL scale = scales[scales_offset + c];
            channel.mean = means[means_offset + c];
            channel.factor = scale * (flags & HAS_WEIGHT ? weights[weights_offset + c] : 1);
            channel.shift = bias_gradient[bias_gradient_offset + c] * inverse_count;
            channel.slope = weight_gradient[weight_gradient_offset + c] * scale * inverse_count;
            const long start = (n * sizes.C + c) * sizes.L;
            gradient_row(x, g, x_gradient, start, 0, sizes.L, sizes.N * sizes.C * sizes.L, channel);
        }
#endif
}

#ifdef SIMD

NOINLINE void batch_norm_channels(const size_t id, const struct Sizes sizes, FORWARD_PARAMETERS,
                                  STATISTICS_PARAMETERS EPILOGUE_STORED_PARAMETERS) {
    batch_norm_statistics_channels(id, sizes, x_base, x_offset, STATISTICS_ARGUMENTS);
    const long first = id * sizes.channels_each, last = min(sizes.C, first + sizes.channels_each);
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

// global (ceil(C / channels_each))
__kernel void batch_norm_whole(const struct Sizes sizes, FORWARD_PARAMETERS,
                               STATISTICS_PARAMETERS EPILOGUE_STORED_PARAMETERS) {
    batch_norm_channels(get_global_id(0), sizes, FORWARD_ARGUMENTS, STATISTICS_ARGUMENTS EPILOGUE_STORED_ARGUMENTS);
}

#endif

// global (ceil(C / channels_each)) or (column blocks)
__kernel void batch_norm_backward_whole(const struct Sizes sizes, BACKWARD_PARAMETERS) {
    batch_norm_backward_channels(get_global_id(0), sizes, BACKWARD_ARGUMENTS);
}

#else

// global (slice groups * local size)
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
        d_rsqrt(squares / (REAL)sizes.positions + epsilon) * (flags & HAS_WEIGHT ? weights[weights_offset + c] : 1);
    channel.bias = flags & HAS_BIAS ? biases[biases_offset + c] : 0;
    if (group.lane == 0) finish_statistics(c, mean, squares, sizes.positions, STATISTICS_ARGUMENTS);
#ifdef EPILOGUE
    const struct Epilogue epilogue = EPILOGUE_OF_PARAMETERS;
#endif
    const struct Slice slice = slice_of(sizes, c, lanes);
    for (struct Position p = position_of(slice, group.lane); p.position < sizes.positions;
         p = next_position(slice, p, lanes)) {
        const long at = index_in_x(sizes, slice, p);
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
    __global REAL* x_gradient = x_gradient_base + x_gradient_offset;
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
    if ((flags & WITH_X_GRADIENT) == 0) return;
    const REAL inverse_count = flags & TRAINING ? 1 / (REAL)(sizes.N * sizes.L) : 0;
    struct Gradient channel;
    channel.mean = means[means_offset + c];
    channel.factor = scale * (flags & HAS_WEIGHT ? weights[weights_offset + c] : 1);
    channel.shift = sum * inverse_count;
    channel.slope = products * scale * scale * inverse_count;
    const struct Slice slice = slice_of(sizes, c, lanes);
    for (struct Position p = position_of(slice, group.lane); p.position < sizes.positions;
         p = next_position(slice, p, lanes)) {
        const long at = index_in_x(sizes, slice, p);
        x_gradient[at] = GRADIENT(x[at], g[at], channel);
    }
}

#endif
