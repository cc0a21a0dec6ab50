// The gradient of a convolution's bias, and sums of partial results, in a fixed order.
//
//   dbias[o] = sum over n, p, q of dout[n, o, p, q], in two steps: over each plane (n, o), then over n
//
//   SUM_RUN   neighbouring elements that a work-item of conv2d_sum_partials adds: many on CPU-like devices, 1 on GPU-like ones
//   REAL, VW, GROUP (vectors.clh)
#include "vectors.clh"

// sum[i] = sum over k in [0, partials) of partial[k][i], for i in [0, count).
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

// partial[plane] = sum of the `size` elements of a plane of dout. A work-group adds up one plane.
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
