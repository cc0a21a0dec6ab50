// The gradient of a convolution's weights by register tiles, and sums of partial results.
//
//   dweight[o, c, t] = sum over n and positions f of dout[n, o, f] * x[n, c, f + offset[t]]
//
// over copies of x and dout made by conv2d_tiled_pad: rows of x are padded with zeros, those of dout have the same pitch
// with zeros behind their end, so that both run over all positions f in [0, flat) without a branch (see conv2d_tiled.cl).
// A pair (c, t) is called a stream; stream j = c * taps + t of a filter is its element j.
//
// A work-group computes the tile of OB output channels times TB streams, over `images_each` images of one chunk; each chunk
// leaves a partial result, and conv2d_sum_partials adds them in their order, so that results do not depend on timing.
// On GPU-like devices the work-items of a group take neighbouring positions and add up their sums in local memory.
//
//   OB      output channels of a tile; TB  streams of a tile. OB * TB + OB + 1 vectors must fit in the registers
//           (src/ops/conv2d_tiled_weights.cpp chooses both by a cost model)
//   MAX_TAPS, REAL, VW, GROUP (conv2d_tiled.clh)
#include "conv2d_tiled.clh"

#ifdef OB

struct Streams {
    long x_image, x_channel;        // elements from one image and channel to the next, in the copy of x
    long dout_image, dout_channel;  // the same in the copy of dout
    long partial;                   // elements from one partial result to the next
    int channels, filters;          // input and output channels of a group
    int filter_blocks, stream_blocks;  // in a group
    int groups, taps;
    int flat;                       // a multiple of RUN
    int images, images_each;
    int offset[MAX_TAPS];
};

// Adds the lanes of a vector, halves first.
static REAL lanes(VEC v) {
    REAL part[VW];
    VSTORE(v, part);
    #pragma unroll
    for (int width = VW / 2; width > 0; width /= 2)
        #pragma unroll
        for (int i = 0; i < width; ++i) part[i] += part[i + width];
    return part[0];
}

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void conv2d_tiled_backward_weights(const struct Streams d, __global const REAL* restrict x, const long x_offset,
                                   __global const REAL* restrict dout, const long dout_offset,
                                   __global REAL* restrict partials, const long partials_offset) {
    // Streams follow one another, so that the chunk of dout stays in the cache.
    long rest = get_group_id(0);
    const int stream_block = (int)(rest % d.stream_blocks);
    rest /= d.stream_blocks;
    const int filter_block = (int)(rest % d.filter_blocks);
    rest /= d.filter_blocks;
    const int group = (int)(rest % d.groups);
    const int chunk = (int)(rest / d.groups);
    const int streams = d.channels * d.taps;

    // Behind the last stream and output channel the last one is computed again, and not stored.
    long stream[TB];
    #pragma unroll
    for (int j = 0; j < TB; ++j) {
        const int at = min(stream_block * TB + j, streams - 1);
        const int c = at / d.taps;
        stream[j] = (group * d.channels + c) * d.x_channel + d.offset[at - c * d.taps];
    }
    long row[OB];
    #pragma unroll
    for (int i = 0; i < OB; ++i) row[i] = (group * d.filters + min(filter_block * OB + i, d.filters - 1)) * d.dout_channel;

    VEC sum[OB][TB];
    #pragma unroll
    for (int i = 0; i < OB; ++i)
        #pragma unroll
        for (int j = 0; j < TB; ++j) sum[i][j] = (VEC)(0);
    const int last = min(d.images, (chunk + 1) * d.images_each);
    for (int n = chunk * d.images_each; n < last; ++n) {
        __global const REAL* from_x = x + x_offset + n * d.x_image + get_local_id(0) * VW;
        __global const REAL* from_dout = dout + dout_offset + n * d.dout_image + get_local_id(0) * VW;
        for (int f = 0; f < d.flat; f += RUN) {
            VEC gradients[OB];
            #pragma unroll
            for (int i = 0; i < OB; ++i) gradients[i] = VLOAD(from_dout + row[i] + f);
            #pragma unroll
            for (int j = 0; j < TB; ++j) {
                const VEC value = VLOAD(from_x + stream[j] + f);
                #pragma unroll
                for (int i = 0; i < OB; ++i) sum[i][j] += gradients[i] * value;
            }
        }
    }

    __global REAL* result = partials + partials_offset + chunk * d.partial + (long)group * d.filters * streams;
#if GROUP > 1
    __local REAL shared[GROUP];
    const int me = get_local_id(0);
#endif
    #pragma unroll
    for (int i = 0; i < OB; ++i)
        #pragma unroll
        for (int j = 0; j < TB; ++j) {
            REAL total = lanes(sum[i][j]);
#if GROUP > 1
            shared[me] = total;
            barrier(CLK_LOCAL_MEM_FENCE);
            for (int width = GROUP / 2; width > 0; width /= 2) {
                if (me < width) shared[me] += shared[me + width];
                barrier(CLK_LOCAL_MEM_FENCE);
            }
            total = shared[0];
            barrier(CLK_LOCAL_MEM_FENCE);
#endif
            const int o = filter_block * OB + i, at = stream_block * TB + j;
            if (get_local_id(0) == 0 && o < d.filters && at < streams) result[(long)o * streams + at] = total;
        }
}

#endif  // OB

// sum[i] = sum over k in [0, partials) of partial[k][i], for i in [0, count). A work-item adds SUM_RUN neighbours on
// CPU-like devices, one on GPU-like ones.
__kernel void conv2d_sum_partials(const long count, const long partials, __global const REAL* restrict partial,
                                  const long partial_offset, __global REAL* restrict sum, const long sum_offset) {
    const long first = get_global_id(0) * (long)SUM_RUN;
    if (first >= count) return;
    const int here = (int)min((long)SUM_RUN, count - first);
    REAL total[SUM_RUN];
    for (int i = 0; i < here; ++i) total[i] = 0;
    for (long k = 0; k < partials; ++k) {
        __global const REAL* from = partial + partial_offset + k * count + first;
        for (int i = 0; i < here; ++i) total[i] += from[i];
    }
    for (int i = 0; i < here; ++i) sum[sum_offset + first + i] = total[i];
}

// partial[plane] = sum of the `size` elements of a plane of dout: the first half of the gradient of a bias. A work-group
// adds up one plane.
__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void conv2d_backward_bias(const long size, __global const REAL* restrict dout, const long dout_offset,
                          __global REAL* restrict partial, const long partial_offset) {
    __global const REAL* from = dout + dout_offset + get_group_id(0) * size;
    REAL total = 0;
#if GROUP == 1
    VEC sum = (VEC)(0);
    long i = 0;
    for (; i + VW <= size; i += VW) sum += VLOAD(from + i);
    for (; i < size; ++i) total += from[i];
    REAL part[VW];
    VSTORE(sum, part);
    for (int lane = 0; lane < VW; ++lane) total += part[lane];
    partial[partial_offset + get_group_id(0)] = total;
#else
    __local REAL shared[GROUP];
    const int me = get_local_id(0);
    for (long i = me; i < size; i += GROUP) total += from[i];
    shared[me] = total;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int width = GROUP / 2; width > 0; width /= 2) {
        if (me < width) shared[me] += shared[me + width];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (me == 0) partial[partial_offset + get_group_id(0)] = shared[0];
#endif
}
