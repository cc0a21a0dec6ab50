// Depthwise convolution (one filter per channel). simd style, vectors along the positions.
//
//   forward:           out[n, c, p, q] = bias[c] + sum over i, j of  weight[c, i, j] * x[n, c, h, w]
//   backward_weights:  weight_gradient[c, i, j] = sum over n, p, q of  g[n, c, p, q] * x[n, c, h, w]
//   h = p * stride_h + i * dilation_h - first_h, w = q * stride_w + j * dilation_w - first_w
//
// with zeros outside of x, and g the gradient of out. backward_input is forward of g with flipped filters; with strides
// up_h, up_w it is one such sum per phase of the result, whose rows and columns are interleaved at the end.
//
// Rows are short in late layers of a network, so a plane is processed as one long row: position p * pitch + q, in whole
// vectors for any width. For that a work-item copies a band of rows of x into local memory, with rows of zeros above
// and below (bands.clh). A tap past the end of a row reads an element of another row: those lanes keep their sum.
//
//   TAPS_H, TAPS_W   size of the filter
//   PHASES_H, PHASES_W  phases of the result
//   WEIGHTS          1: the kernel for backward_weights
//   REAL, VW         element type and vector width (vectors.clh)
#define GROUP 1
#define COPY_BAND static  // planes are small, and there are many
#include "bands.clh"
#include "epilogue_stored.clh"

#ifdef REAL_IS_DOUBLE
#define UNSIGNED_LANES PASTE(ulong, VW)
#define AS_UNSIGNED PASTE(as_ulong, VW)
#define LANE long
#else
#define UNSIGNED_LANES PASTE(uint, VW)
#define AS_UNSIGNED PASTE(as_uint, VW)
#define LANE int
#endif
#define PHASES (PHASES_H * PHASES_W)

struct Depthwise {
    long planes;  // of x and of out: images * channels
    int channels, images;
    int height, width;  // of a plane of x
    int rows, columns;  // of a plane of out
    int stride_h, stride_w, first_h, first_w, dilation_h,
        dilation_w;          // first_h, first_w with PHASES > 1: the padding of forward
    int pad_top;             // zero rows above x; negative: that many rows are skipped
    int pitch;               // of a phase: columns of x or of out, whichever is larger
    int band;                // rows of a phase of out for which x is copied at once
    int halo_rows;           // rows of a phase of x from the first to the last that an output row reads
    int phase_size;          // elements of a copied phase of x, including a spare vector
    int planes_at_once;      // planes copied before the first is used: hides the latency of store forwarding
    int copy_size;           // elements of the phases of a plane of x
    int margin, local_size;  // elements of local memory before the first phase, and in total
    int staged,
        staged_size;  // offset of the sums before they are stored in rows, and elements of a phase; < 0: not needed
    int sums,
        channel_blocks_each;  // WEIGHTS: offset of the sums, and blocks of `planes_at_once` channels per work-item
    int each;                 // planes, or with WEIGHTS images, per work-item
    int flip, has_bias;
};

// The taps of a phase of out: their indices in the filter, their offsets in x relative to the position, and the shift
// in columns.
struct Taps {
    int count_h, count_w;
    int element_h[TAPS_H], element_w[TAPS_W];
    int offset_h[TAPS_H], offset_w[TAPS_W], shift[TAPS_W];
};

static int floor_div(const int a, const int b) { return a >= 0 ? a / b : -((b - 1 - a) / b); }

NOINLINE void find_taps(const struct Depthwise* d, const int b, const int a, struct Taps* taps) {
    taps->count_h = taps->count_w = 0;
    for (int i = 0; i < TAPS_H; ++i) {
        const int k = PHASES > 1 ? b + d->first_h - i * d->dilation_h : i * d->dilation_h,
                  step = PHASES > 1 ? PHASES_H : d->stride_h, row = floor_div(k, step);
        if (PHASES > 1 && row * PHASES_H != k) continue;
        taps->element_h[taps->count_h] = i;
        taps->offset_h[taps->count_h++] = PHASES > 1 ? (row + d->pad_top) * d->pitch
                                                     : (k - row * step) * d->stride_w * d->phase_size + row * d->pitch;
    }
    for (int j = 0; j < TAPS_W; ++j) {
        const int k = PHASES > 1 ? a + d->first_w - j * d->dilation_w : j * d->dilation_w - d->first_w,
                  step = PHASES > 1 ? PHASES_W : d->stride_w, column = floor_div(k, step);
        if (PHASES > 1 && column * PHASES_W != k) continue;
        taps->element_w[taps->count_w] = j;
        // A shift by a whole row or more reads nothing.
        taps->shift[taps->count_w] = clamp(column, -d->pitch, d->pitch);
        taps->offset_w[taps->count_w] =
            taps->shift[taps->count_w] + (PHASES > 1 ? 0 : (k - column * step) * d->phase_size);
        ++taps->count_w;
    }
}

// Columns of the VW positions from `position`.
NOINLINE LANES columns_of_positions(const int position, const int pitch) {
    LANE columns[VW];
    for (int e = 0, column = position % pitch; e < VW; ++e) {
        columns[e] = column;
        if (++column == pitch) column = 0;
    }
    return PASTE(vload, VW)(0, columns);
}

// Lanes whose tap, `shift` columns from the position, is in the same row as the position.
static inline LANES is_inside(const LANES column, const int shift, const int pitch) {
    return AS_UNSIGNED(column + (LANES)(shift)) < (UNSIGNED_LANES)(pitch);
}

// Columns of the VW positions after those with columns `column`; `step` is VW % pitch.
static inline LANES next_columns(const LANES column, const int step, const int pitch) {
    const LANES next = column + (LANES)(step);
    return select(next, next - (LANES)(pitch), next >= (LANES)(pitch));
}

#if !WEIGHTS
// Sums at VW positions from `f`; `column` has their columns.
static VEC sums_at(const struct Depthwise d, const struct Taps* taps, const REAL* w, __local const REAL* z,
                   const LANES column, const VEC begin) {
    VEC sum = begin;
#if PHASES == 1
#pragma unroll
    for (int j = 0; j < TAPS_W; ++j) {
        VEC part = (VEC)(w[j]) * VLOAD(z + taps->offset_h[0] + taps->offset_w[j]);
#pragma unroll
        for (int i = 1; i < TAPS_H; ++i)
            part = fma((VEC)(w[i * TAPS_W + j]), VLOAD(z + taps->offset_h[i] + taps->offset_w[j]), part);
        sum = select(sum, sum + part, is_inside(column, taps->shift[j], d.pitch));
    }
#else
    for (int j = 0; j < taps->count_w; ++j) {
        VEC part = (VEC)(0);
        for (int i = 0; i < taps->count_h; ++i)
            part = fma((VEC)(w[taps->element_h[i] * TAPS_W + taps->element_w[j]]),
                       VLOAD(z + taps->offset_h[i] + taps->offset_w[j]), part);
        sum = select(sum, sum + part, is_inside(column, taps->shift[j], d.pitch));
    }
#endif
    return sum;
}

// Columns of the first and of the last VW positions of a band of `size` positions.
struct BandColumns {
    int step;  // VW % pitch
    int size;
    LANES first, last;
};

// Computes the sums of a plane at all positions of a band in local memory, one phase after the other.
static inline __attribute__((always_inline)) void compute_staged(const struct Depthwise d, const struct Taps* taps,
                                                                 const struct BandColumns b, const REAL* w,
                                                                 const VEC begin, __local const REAL* z,
                                                                 __local REAL* to) {
    for (int phase = 0; phase < PHASES; ++phase) {
        LANES column = b.first;
        for (int f = 0; f < b.size; f += VW) {
            VSTORE(sums_at(d, taps + phase, w, z + f, column, begin), to + phase * d.staged_size + f);
            column = next_columns(column, b.step, d.pitch);
        }
    }
}

// The same, stored to the result: positions are its elements. The last vector overlaps the one before.
static inline __attribute__((always_inline)) void compute_direct(const struct Depthwise d, const struct Taps* taps,
                                                                 const struct BandColumns b, const REAL* w,
                                                                 const VEC begin, __local const REAL* z,
                                                                 __global REAL* to) {
    LANES column = b.first;
    int f = 0;
    for (; f + VW <= b.size; f += VW) {
        VSTORE(sums_at(d, taps, w, z + f, column, begin), to + f);
        column = next_columns(column, b.step, d.pitch);
    }
    if (f < b.size && b.size >= VW) VSTORE(sums_at(d, taps, w, z + b.size - VW, b.last, begin), to + b.size - VW);
    else if (f < b.size) {
        REAL values[VW];
        VSTORE(sums_at(d, taps, w, z, column, begin), values);
        for (int e = 0; e < b.size; ++e) to[e] = values[e];
    }
}

// global size (ceil(planes / each))
NOINLINE void conv2d_depthwise_part(const size_t id0, const struct Depthwise args, __local REAL* restrict block,
                                    __global const REAL* restrict x, const long x_offset,
                                    __global const REAL* restrict weight, const long weight_offset,
                                    __global REAL* restrict out, const long out_offset,
                                    __global const REAL* restrict bias,
                                    const long bias_offset EPILOGUE_STORED_PARAMETERS) {
    const struct Depthwise d = args;
    const struct Band shape = {d.height, d.width, d.stride_h, d.stride_w, d.pad_top, 0, d.pitch, d.phase_size};
    clear(block, d.local_size);  // elements that no row covers are read, and not used
    struct Taps taps[PHASES];
    for (int b = 0; b < PHASES_H; ++b)
        for (int a = 0; a < PHASES_W; ++a) find_taps(&d, b, a, taps + b * PHASES_W + a);
    const int phase_rows = (d.rows + PHASES_H - 1) / PHASES_H;
    struct BandColumns columns = {VW % d.pitch, 0, columns_of_positions(0, d.pitch), (LANES)(0)};
#ifdef EPILOGUE
    const struct Epilogue epilogue = EPILOGUE_OF_PARAMETERS;
#endif
    const long first_plane = id0 * (long)d.each, end_plane = min(d.planes, first_plane + d.each);
    for (long plane0 = first_plane; plane0 < end_plane; plane0 += d.planes_at_once) {
        const int plane_count = (int)min((long)d.planes_at_once, end_plane - plane0),
                  first_channel = (int)(plane0 % d.channels);
        __global REAL* planes_out = out + out_offset + plane0 * d.rows * d.columns;
        for (int first = 0; first < phase_rows; first += d.band) {
            const int count = min(d.band, phase_rows - first), size = count * d.pitch;
            for (int n = 0; n < plane_count; ++n)
                copy_band(&shape, x + x_offset + (plane0 + n) * d.height * d.width,
                          (d.planes - plane0 - n) * d.height * d.width, first, count + d.halo_rows,
                          block + d.margin + n * d.copy_size);
            if (size != columns.size) {
                columns.size = size;
                columns.last = columns_of_positions(max(0, size - VW), d.pitch);
            }
            int c = first_channel;
            for (int n = 0; n < plane_count; ++n) {
                __local const REAL* z = block + d.margin + n * d.copy_size;
                __global const REAL* filter = weight + weight_offset + c * (TAPS_H * TAPS_W);
                REAL w[TAPS_H * TAPS_W];
#pragma unroll
                for (int t = 0; t < TAPS_H * TAPS_W; ++t)
                    w[t] = filter[PHASES == 1 && d.flip ? TAPS_H * TAPS_W - 1 - t : t];
                const VEC begin = (VEC)(d.has_bias ? bias[bias_offset + c] : (REAL)0);
                if (++c == d.channels) c = 0;
                if (d.staged >= 0)
                    compute_staged(d, taps, columns, w, begin, z, block + d.staged + n * PHASES * d.staged_size);
                else compute_direct(d, taps, columns, w, begin, z, planes_out + ((long)n * d.rows + first) * d.pitch);
            }
            const int out_rows = min(count * PHASES_H, d.rows - first * PHASES_H);
            if (d.staged >= 0)
                for (int n = 0; n < plane_count; ++n)
                    store_rows(block + d.staged + n * PHASES * d.staged_size, d.staged_size, d.pitch, d.columns,
                               out_rows, planes_out + ((long)n * d.rows + first * PHASES_H) * d.columns,
                               planes_out + (long)(n + 1) * d.rows * d.columns);
#ifdef EPILOGUE
            for (int n = 0; n < plane_count; ++n)
                epilogue_stored(epilogue, out + out_offset, (plane0 + n) % d.channels,
                                ((plane0 + n) * d.rows + first * PHASES_H) * d.columns, (long)out_rows * d.columns);
#endif
        }
    }
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void conv2d_depthwise(
    const struct Depthwise args, __local REAL* restrict block, __global const REAL* restrict x, const long x_offset,
    __global const REAL* restrict weight, const long weight_offset, __global REAL* restrict out, const long out_offset,
    __global const REAL* restrict bias, const long bias_offset EPILOGUE_STORED_PARAMETERS) {
    conv2d_depthwise_part(get_global_id(0), args, block, x, x_offset, weight, weight_offset, out, out_offset, bias,
                          bias_offset EPILOGUE_STORED_ARGUMENTS);
}
#else
// The sums of a plane's taps, one vector each, between local memory and registers.
static inline __attribute__((always_inline)) void load_sums(__local const REAL* from, VEC (*sum)[TAPS_W]) {
#pragma unroll
    for (int i = 0; i < TAPS_H; ++i)
#pragma unroll
        for (int j = 0; j < TAPS_W; ++j) sum[i][j] = VLOAD(from + (i * TAPS_W + j) * VW);
}
static inline __attribute__((always_inline)) void store_sums(VEC (*sum)[TAPS_W], __local REAL* to) {
#pragma unroll
    for (int i = 0; i < TAPS_H; ++i)
#pragma unroll
        for (int j = 0; j < TAPS_W; ++j) VSTORE(sum[i][j], to + (i * TAPS_W + j) * VW);
}

// Adds the products of VW gradients, of which those of the lanes `valid` exist, and the elements of x that each tap
// reads at positions f, f + 1, ...
static inline __attribute__((always_inline)) void add_products(const struct Taps* taps, const int pitch,
                                                               __local const REAL* z, const int f, const VEC gradient,
                                                               const LANES column, const LANES valid,
                                                               VEC (*sum)[TAPS_W]) {
#pragma unroll
    for (int j = 0; j < TAPS_W; ++j) {
        const LANES inside = is_inside(column, taps->shift[j], pitch) && valid;
#pragma unroll
        for (int i = 0; i < TAPS_H; ++i)
            sum[i][j] = select(sum[i][j],
                               fma(gradient, VLOAD(z + taps->offset_h[i] + taps->offset_w[j] + f), sum[i][j]), inside);
    }
}

// A work-item processes `planes_at_once` channels at once, since their planes are contiguous in memory, and keeps their
// sums in local memory. global size (ceil(channels / (planes_at_once * channel_blocks_each)), ceil(images / each));
// partials[chunk][c][i][j]
NOINLINE void conv2d_depthwise_backward_weights_part(const size_t id0, const size_t id1, const struct Depthwise args,
                                                     __local REAL* restrict block, __global const REAL* restrict x,
                                                     const long x_offset, __global const REAL* restrict g,
                                                     const long g_offset, __global REAL* restrict partials,
                                                     const long partials_offset) {
    const struct Depthwise d = args;
    const struct Band shape = {d.height, d.width, d.stride_h, d.stride_w, d.pad_top, 0, d.pitch, d.phase_size};
    clear(block, d.local_size);
    const struct Band gradient_shape = {d.rows, d.columns, 1, 1, 0, 0, d.pitch, 0};
    struct Taps taps;
    find_taps(&d, 0, 0, &taps);
    const int column_step = VW % d.pitch;
    const LANES first_columns = columns_of_positions(0, d.pitch);
    const int end_image = min(d.images, (int)(id1 + 1) * d.each);
    const int end_channel = min(d.channels, (int)(id0 + 1) * d.planes_at_once * d.channel_blocks_each);
    __local REAL* sums = block + d.sums;
    for (int first_channel = id0 * d.planes_at_once * d.channel_blocks_each; first_channel < end_channel;
         first_channel += d.planes_at_once) {
        const int plane_count = min(d.planes_at_once, end_channel - first_channel);
        clear(sums, d.planes_at_once * TAPS_H * TAPS_W * VW);
        for (int image = id1 * d.each; image < end_image; ++image) {
            const long plane0 = (long)image * d.channels + first_channel;
            for (int first = 0; first < d.rows; first += d.band) {
                const int count = min(d.band, d.rows - first), size = count * d.pitch;
                for (int n = 0; n < plane_count; ++n) {
                    const long plane = plane0 + n, left = d.planes - plane;
                    copy_band(&shape, x + x_offset + plane * d.height * d.width, left * d.height * d.width, first,
                              count + d.halo_rows, block + d.margin + n * d.copy_size);
                    if (d.staged >= 0)
                        copy_band(&gradient_shape, g + g_offset + plane * d.rows * d.columns, left * d.rows * d.columns,
                                  first, count, block + d.staged + n * d.staged_size);
                }
                for (int n = 0; n < plane_count; ++n) {
                    const long gradient_at = ((plane0 + n) * d.rows + first) * d.columns,
                               readable = (d.planes - plane0 - n) * d.rows * d.columns - first * d.columns;
                    __global const REAL* gradients = g + g_offset + gradient_at;
                    __local const REAL* z = block + d.margin + n * d.copy_size;
                    __local REAL* tap_sums = sums + n * (TAPS_H * TAPS_W * VW);
                    VEC sum[TAPS_H][TAPS_W];
                    load_sums(tap_sums, sum);
                    LANES column = first_columns;
                    for (int f = 0; f < size; f += VW) {
                        VEC gradient;
                        if (d.staged >= 0) gradient = VLOAD(block + d.staged + n * d.staged_size + f);
                        else if (readable >= f + VW) gradient = VLOAD(gradients + f);
                        else gradient = load_some(gradients + f, size - f, readable - f);
                        add_products(&taps, d.pitch, z, f, gradient, column, LANE_NUMBERS < (LANES)(size - f), sum);
                        column = next_columns(column, column_step, d.pitch);
                    }
                    store_sums(sum, tap_sums);
                }
            }
        }
        add_lanes(sums, plane_count * TAPS_H * TAPS_W);
        __global REAL* to = partials + partials_offset + (id1 * d.channels + first_channel) * (TAPS_H * TAPS_W);
        for (int t = 0; t < plane_count * TAPS_H * TAPS_W; ++t) to[t] = sums[t];
    }
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void conv2d_depthwise_backward_weights(
    const struct Depthwise args, __local REAL* restrict block, __global const REAL* restrict x, const long x_offset,
    __global const REAL* restrict g, const long g_offset, __global REAL* restrict partials,
    const long partials_offset) {
    conv2d_depthwise_backward_weights_part(get_global_id(0), get_global_id(1), args, block, x, x_offset, g, g_offset,
                                           partials, partials_offset);
}
#endif
