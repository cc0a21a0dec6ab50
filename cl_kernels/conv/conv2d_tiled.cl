// Convolution by register tiles over a padded copy of the input, forward and backward_input, both kernel styles. Both
// are sums
//
//   out[n, o, p, q] = bias[o] + sum over c and taps t of  x[n, c, p + shift_h(t), q + shift_w(t)] * weight[o, c, t]
//
// over a copy of the input with zero padding, so that the inner loop has no branch. The copy (conv2d_tiled_pad.cl) has
// rows of `pitch` elements, and an output position has the flat index f = p * pitch + q, so that vectors of positions
// extend past the ends of rows: tap t is at f + offset[t]. Results at q >= columns are invalid and not stored. With a
// stride, the input is split into phases, one per remainder of the position modulo the stride; offset[t] then includes
// the phase. For backward_input the input is the gradient of the output, weights are flipped and transposed (by
// conv2d_tiled_pack), and a stride gives one launch per phase of x.
//
// A work-group computes a tile of TILE_CHANNELS output channels times VECTORS * RUN positions in registers; in simd
// style it processes `tiles_each` tiles one after the other. The weights are packed as [block of TILE_CHANNELS
// channels][c][t][TILE_CHANNELS].
//
//   TILE_CHANNELS       output channels per tile
//   VECTORS             vectors of positions per tile. TILE_CHANNELS * VECTORS + VECTORS + 1 vectors must fit in the
//             registers (src/ops/conv/conv2d_tiled.cpp chooses both by a cost model)
//   MAX_TAPS            capacity of the tables of taps
//   REAL, VW, GROUP (vectors.clh); GROUP is 1 in simd style
//
// Offsets of taps are read from tables in simd style and computed in simt style (taps.clh).
#include "taps.clh"
#include "vectors.clh"

#define INLINE static inline __attribute__((always_inline))

struct Pack {
    long group_step, filter_step,
        channel_step;       // strides of the weights between groups, and output and input channels of this sum
    int channels, filters;  // input and output channels per group
    int blocks;             // of TILE_CHANNELS output channels, per group
    int taps;
    int first, step_h, step_w,
        taps_w;  // index of tap (i, j) = (t / across, the rest) in the filter: first + i * step_h + j * step_w
    int source[MAX_TAPS];  // index of tap t in the filter
};

// Index of tap t in the filter.
INLINE int filter_index(const struct Pack* pack, const int t) {
#if GROUP == 1
    return pack->source[t];
#else
    const int i = t / pack->taps_w;
    return pack->first + i * pack->step_h + (t - i * pack->taps_w) * pack->step_w;
#endif
}

// packed[group][block][c][t][i] = weight of output channel block * TILE_CHANNELS + i, 0 past the last. A work-item
// packs one c.
__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void conv2d_tiled_pack(
    const struct Pack pack, const long count, __global const REAL* restrict weight, const long weight_offset,
    __global REAL* restrict packed, const long packed_offset) {
    const long item = get_global_id(0);
    if (item >= count) return;
    const long block = item / pack.channels;
    const long group = block / pack.blocks;
    const int first = (int)(block - group * pack.blocks) * TILE_CHANNELS;
    __global const REAL* from =
        weight + weight_offset + group * pack.group_step + (item - block * pack.channels) * pack.channel_step;
    __global REAL* to = packed + packed_offset + item * pack.taps * TILE_CHANNELS;
    for (int i = 0; i < TILE_CHANNELS; ++i)
        for (int t = 0; t < pack.taps; ++t)
            to[t * TILE_CHANNELS + i] =
                first + i < pack.filters ? from[(first + i) * pack.filter_step + filter_index(&pack, t)] : (REAL)0;
}

struct Tile {
    long x_image, x_channel;      // strides between images and channels of the padded copy
    long out_image, out_channel;  // the same of the output
    long out_first;               // offset of position (0, 0)
    int channels, filters;        // input and output channels per group
    int blocks;                   // of TILE_CHANNELS output channels, per group
    int groups, taps;
    int pitch, columns, flat;           // positions are f in [0, flat); those with f % pitch < columns are stored
    int tiles_each, parts;              // parts = tiles of an image / tiles_each, rounded up
    int out_row_step, out_column_step;  // strides between neighbouring positions of the output
    int has_bias;                       // 0: `bias` may be any buffer and is not read
    int taps_w;                         // taps along the horizontal axis
    struct TapAxis vertical, horizontal;
    int offset[MAX_TAPS];
};

// Table of the offsets of all taps.
#if GROUP == 1
typedef const int* Offsets;
#else
typedef __local const int* Offsets;
#endif

// The block of output channels of a part of an image that a work-group computes.
struct Block {
    long n;
    int part;
    int block;  // in all groups
    int group;
    int first, valid;  // first output channel within its group, and output channels that exist
};

// All blocks of a part are consecutive, so that its input stays in the cache.
static inline struct Block own_block(const struct Tile* tile) {
    const int blocks = tile->groups * tile->blocks;
    const long group_id = get_group_id(0), image_part = group_id / blocks;
    struct Block b;
    b.block = (int)(group_id - image_part * blocks);
    b.n = image_part / tile->parts;
    b.part = (int)(image_part - b.n * tile->parts);
    b.group = b.block / tile->blocks;
    b.first = (b.block - b.group * tile->blocks) * TILE_CHANNELS;
    b.valid = min(TILE_CHANNELS, tile->filters - b.first);
    return b;
}

// Adds the products of all channels and taps to the sums of a tile; `plane` is its first position in channel 0.
INLINE void add_channels(const struct Tile* tile, Offsets offset, __global const REAL* plane, __global const REAL* w,
                         VEC (*sum)[VECTORS]) {
    for (int c = 0; c < tile->channels; ++c, plane += tile->x_channel)
        for (int t = 0; t < tile->taps; ++t, w += TILE_CHANNELS) {
            __global const REAL* from = plane + offset[t];
            VEC values[VECTORS];
#pragma unroll
            for (int v = 0; v < VECTORS; ++v) values[v] = VLOAD(from + v * RUN);
#pragma unroll
            for (int i = 0; i < TILE_CHANNELS; ++i)
#pragma unroll
                for (int v = 0; v < VECTORS; ++v) sum[i][v] += (VEC)(w[i]) * values[v];
        }
}

// Stores `valid` channels of a tile, which begins at position `start`, to `result`, channel by channel.
#if GROUP == 1
INLINE void store_tile(const struct Tile* tile, VEC (*sum)[VECTORS], const int start, const int valid,
                       __global REAL* result) {
    REAL rows[TILE_CHANNELS][VECTORS * VW];
#pragma unroll
    for (int i = 0; i < TILE_CHANNELS; ++i)
#pragma unroll
        for (int v = 0; v < VECTORS; ++v) VSTORE(sum[i][v], rows[i] + v * VW);
    const int stop = min(start + VECTORS * VW, tile->flat);
    int p = start / tile->pitch, q = start - p * tile->pitch;
    for (int f = start; f < stop; f += tile->pitch - q, q = 0, ++p) {
        const int count = min(tile->columns - q, stop - f);
        __global REAL* to = result + (long)p * tile->out_row_step + (long)q * tile->out_column_step;
        for (int i = 0; i < valid; ++i, to += tile->out_channel)
            if (tile->out_column_step == 1) store_run(rows[i] + (f - start), to, count, false);
            else
                for (int k = 0; k < count; ++k) to[(long)k * tile->out_column_step] = rows[i][f - start + k];
    }
}
#else
INLINE void store_tile(const struct Tile* tile, VEC (*sum)[VECTORS], const int start, const int valid,
                       __global REAL* result) {
#pragma unroll
    for (int v = 0; v < VECTORS; ++v) {
        const int f = start + v * RUN + get_local_id(0);
        const int p = f / tile->pitch, q = f - p * tile->pitch;
        if (f >= tile->flat || q >= tile->columns) continue;
        __global REAL* to = result + (long)p * tile->out_row_step + (long)q * tile->out_column_step;
#pragma unroll
        for (int i = 0; i < TILE_CHANNELS; ++i)
            if (i < valid) to[i * tile->out_channel] = sum[i][v];
    }
}
#endif

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void conv2d_tiled(
    const struct Tile tile, __global const REAL* restrict x, const long x_offset, __global const REAL* restrict packed,
    const long packed_offset, __global REAL* restrict out, const long out_offset, __global const REAL* restrict bias,
    const long bias_offset) {
    const struct Block b = own_block(&tile);
    const int first_channel = b.group * tile.filters + b.first;
    __global const REAL* image = x + x_offset + b.n * tile.x_image + (long)b.group * tile.channels * tile.x_channel;
    __global const REAL* weights = packed + packed_offset + (long)b.block * tile.channels * tile.taps * TILE_CHANNELS;
    __global REAL* result =
        out + out_offset + tile.out_first + b.n * tile.out_image + (long)first_channel * tile.out_channel;

#if GROUP == 1
    const int* offset = tile.offset;
#else
    __local int offset[MAX_TAPS];
    for (int t = get_local_id(0); t < tile.taps; t += GROUP)
        offset[t] = taps_offset(tile.vertical, tile.horizontal, tile.taps_w, t);
    barrier(CLK_LOCAL_MEM_FENCE);
#endif
    const int end = min(tile.flat, (b.part + 1) * tile.tiles_each * (VECTORS * RUN));
    for (int start = b.part * tile.tiles_each * (VECTORS * RUN); start < end; start += VECTORS * RUN) {
        VEC sum[TILE_CHANNELS][VECTORS];
#pragma unroll
        for (int i = 0; i < TILE_CHANNELS; ++i) {
            const VEC begin = (VEC)(tile.has_bias ? bias[bias_offset + first_channel + min(i, b.valid - 1)] : (REAL)0);
#pragma unroll
            for (int v = 0; v < VECTORS; ++v) sum[i][v] = begin;
        }
        add_channels(&tile, offset, image + start + get_local_id(0) * VW, weights, sum);
        store_tile(&tile, sum, start, b.valid, result);
    }
}
