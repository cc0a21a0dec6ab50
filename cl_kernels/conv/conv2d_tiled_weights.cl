// Gradient of a convolution's weights by register tiles, both kernel styles.
//
//   weight_gradient[o, c, t] = sum over n and positions f of g[n, o, f] * x[n, c, f + offset[t]]
//
// over copies of x and of g, the gradient of the result, made by conv2d_tiled_pad.cl: rows of x have zero padding, rows
// of g have the same pitch with zeros after their end, so that both are processed at all positions f in [0, flat)
// without a branch (conv2d_tiled.cl). A pair (c, t) is called a stream; stream j = c * taps + t of a filter is its
// element j.
//
// A work-group computes a tile of TILE_CHANNELS output channels times TILE_STREAMS streams, over `images_each` images
// of one chunk; each chunk writes a partial result, and sum_partials (partial_sums.cl) adds them in order, so that
// results are deterministic. In simt style the work-items of a group process neighbouring positions and reduce their
// sums in local memory.
//
//   TILE_CHANNELS        output channels per tile
//   TILE_STREAMS         streams per tile. TILE_CHANNELS * TILE_STREAMS + TILE_CHANNELS + 1 vectors must fit in the
//             registers (src/ops/conv/conv2d_tiled_weights.cpp chooses both by a cost model)
//   MAX_TAPS             capacity of the table of taps
//   REAL, VW, GROUP (vectors.clh); GROUP is 1 in simd style
#include "taps.clh"
#include "vectors.clh"

#define INLINE static inline __attribute__((always_inline))

struct Streams {
    long x_image, x_channel;           // strides between images and channels in the copy of x
    long g_image, g_channel;           // the same in the copy of g
    long partial;                      // stride between partial results
    int channels, filters;             // input and output channels per group
    int filter_blocks, stream_blocks;  // per group
    int groups, taps;
    int flat;  // a multiple of RUN
    int images, images_each;
    int taps_w;  // taps along the horizontal axis
    struct TapAxis vertical, horizontal;
    int offset[MAX_TAPS];
};

// Table of the offsets of all taps.
#if GROUP == 1
typedef const int* Offsets;
#else
typedef __local const int* Offsets;
#endif

#if GROUP == 1
// Adds the lanes of a vector, lower half plus upper half at each step.
static REAL sum_lanes(VEC v) {
    REAL part[VW];
    VSTORE(v, part);
#pragma unroll
    for (int width = VW / 2; width > 0; width /= 2)
#pragma unroll
        for (int i = 0; i < width; ++i) part[i] += part[i + width];
    return part[0];
}
#endif

// The tile that a work-group computes: its first output channel and stream of a group, over the images of a chunk.
struct Tile {
    int first_filter, first_stream, chunk, group;
};

// Streams are consecutive, so that the chunk of g stays in the cache.
static inline struct Tile own_tile(const struct Streams* d) {
    // Without %: clang turns a pair of / and % into a freeze instruction, which Oclgrind does not support.
    const long filter_row = get_group_id(0) / d->stream_blocks, group_row = filter_row / d->filter_blocks;
    struct Tile tile;
    tile.first_stream = (int)(get_group_id(0) - filter_row * d->stream_blocks) * TILE_STREAMS;
    tile.first_filter = (int)(filter_row - group_row * d->filter_blocks) * TILE_CHANNELS;
    tile.chunk = (int)(group_row / d->groups);
    tile.group = (int)(group_row - (long)tile.chunk * d->groups);
    return tile;
}

// Computes the sums of a tile over the positions of a work-item. Past the last stream or output channel, that one is
// computed again and not stored.
INLINE void sum_products(const struct Streams* d, const struct Tile tile, Offsets offset, __global const REAL* x,
                         __global const REAL* g, VEC (*sum)[TILE_STREAMS]) {
    long stream[TILE_STREAMS];
#pragma unroll
    for (int j = 0; j < TILE_STREAMS; ++j) {
        const int at = min(tile.first_stream + j, d->channels * d->taps - 1);
        const int c = at / d->taps;
        stream[j] = (tile.group * d->channels + c) * d->x_channel + offset[at - c * d->taps];
    }
    long row[TILE_CHANNELS];
#pragma unroll
    for (int i = 0; i < TILE_CHANNELS; ++i)
        row[i] = (tile.group * d->filters + min(tile.first_filter + i, d->filters - 1)) * d->g_channel;
    const int last = min(d->images, (tile.chunk + 1) * d->images_each);
    for (int n = tile.chunk * d->images_each; n < last; ++n) {
        __global const REAL* from_x = x + n * d->x_image + get_local_id(0) * VW;
        __global const REAL* from_g = g + n * d->g_image + get_local_id(0) * VW;
        for (int f = 0; f < d->flat; f += RUN) {
            VEC gradients[TILE_CHANNELS];
#pragma unroll
            for (int i = 0; i < TILE_CHANNELS; ++i) gradients[i] = VLOAD(from_g + row[i] + f);
#pragma unroll
            for (int j = 0; j < TILE_STREAMS; ++j) {
                const VEC value = VLOAD(from_x + stream[j] + f);
#pragma unroll
                for (int i = 0; i < TILE_CHANNELS; ++i) sum[i][j] += gradients[i] * value;
            }
        }
    }
}

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void conv2d_tiled_backward_weights(
    const struct Streams d, __global const REAL* restrict x, const long x_offset, __global const REAL* restrict g,
    const long g_offset, __global REAL* restrict partials, const long partials_offset) {
    const struct Tile tile = own_tile(&d);
    const int streams = d.channels * d.taps;
#if GROUP == 1
    const int* offset = d.offset;
#else
    __local int offset[MAX_TAPS];
    for (int t = get_local_id(0); t < d.taps; t += GROUP)
        offset[t] = taps_offset(d.vertical, d.horizontal, d.taps_w, t);
    barrier(CLK_LOCAL_MEM_FENCE);
#endif
    VEC sum[TILE_CHANNELS][TILE_STREAMS];
#pragma unroll
    for (int i = 0; i < TILE_CHANNELS; ++i)
#pragma unroll
        for (int j = 0; j < TILE_STREAMS; ++j) sum[i][j] = (VEC)(0);
    sum_products(&d, tile, offset, x + x_offset, g + g_offset, sum);

    __global REAL* result =
        partials + partials_offset + tile.chunk * d.partial + (long)tile.group * d.filters * streams;
#if GROUP == 1
#pragma unroll
    for (int i = 0; i < TILE_CHANNELS; ++i)
#pragma unroll
        for (int j = 0; j < TILE_STREAMS; ++j) {
            const REAL total = sum_lanes(sum[i][j]);
            if (tile.first_filter + i < d.filters && tile.first_stream + j < streams)
                result[(long)(tile.first_filter + i) * streams + tile.first_stream + j] = total;
        }
#else
    // Padded by one column, so that items that add up different rows access different banks.
    __local REAL shared[TILE_CHANNELS * TILE_STREAMS][GROUP + 1];
#pragma unroll
    for (int i = 0; i < TILE_CHANNELS; ++i)
#pragma unroll
        for (int j = 0; j < TILE_STREAMS; ++j) shared[i * TILE_STREAMS + j][get_local_id(0)] = sum[i][j];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int k = get_local_id(0); k < TILE_CHANNELS * TILE_STREAMS; k += GROUP) {
        REAL total = 0;
        for (int item = 0; item < GROUP; ++item) total += shared[k][item];
        const int i = k / TILE_STREAMS;
        const int o = tile.first_filter + i, at = tile.first_stream + k - i * TILE_STREAMS;
        if (o < d.filters && at < streams) result[(long)o * streams + at] = total;
    }
#endif
}
