// Gradient of a convolution's bias, in a fixed order:
//
//   bias_gradient[o] = sum over n, p, q of g[n, o, p, q],  g the gradient of the result
//
// in two steps: over each plane (n, o), then over n (partial_sums.cl).
//
//   REAL, VW, GROUP (vectors.clh); GROUP is 1 in simd style
#include "vectors.clh"

// partial[plane] = sum of the `size` elements of a plane of g; one work-group per plane.
__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void conv2d_backward_bias(const long size,
                                                                                      __global const REAL* restrict g,
                                                                                      const long g_offset,
                                                                                      __global REAL* restrict partial,
                                                                                      const long partial_offset) {
    __global const REAL* from = g + g_offset + get_group_id(0) * size;
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
    const int item = get_local_id(0);
    for (long i = item; i < size; i += GROUP) total += from[i];
    shared[item] = total;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int width = GROUP / 2; width > 0; width /= 2) {
        if (item < width) shared[item] += shared[item + width];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (item == 0) partial[partial_offset + get_group_id(0)] = shared[0];
#endif
}
