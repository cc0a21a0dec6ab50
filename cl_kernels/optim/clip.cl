// Gradient clipping by global norm and by value, over many tensors (multi_tensor.clh).
//
//   clip_partial:  partial[piece] = sum of squares of the elements of a piece
//   clip_factor:   norm[0] = sqrt(sum of partial), norm[1] = min(1, max_norm / (norm[0] + 1e-6)), NaN if the norm is
//                  NaN. One work-item, so that the order of the sum is fixed
//   clip_scale:    multiplies every element by norm[1]
//   clip_value:    clamps every element to [-limit, limit]; NaN stays NaN
#include "math.clh"
#include "multi_tensor.clh"

#define LANES 8  // separate accumulators, since the compiler may not reorder float additions

__kernel void clip_partial(MULTI_TENSOR_PARAMETERS, __global REAL* restrict partial_base, const long partial_offset) {
    __global const REAL* x = MULTI_TENSOR_POINTER(0);
    const int count = MULTI_TENSOR_COUNT;
#if GROUP == 1
    REAL lanes[LANES];
    for (int lane = 0; lane < LANES; ++lane) lanes[lane] = 0;
    int i = 0;
    for (; i + LANES <= count; i += LANES)
        for (int lane = 0; lane < LANES; ++lane) lanes[lane] = fma(x[i + lane], x[i + lane], lanes[lane]);
    REAL sum = 0;
    for (; i < count; ++i) sum = fma(x[i], x[i], sum);
    for (int lane = 0; lane < LANES; ++lane) sum += lanes[lane];
    partial_base[partial_offset + MULTI_TENSOR_PIECE] = sum;
#else
    __local REAL sums[GROUP];
    REAL sum = 0;
    for (int i = MULTI_TENSOR_FIRST; i < count; i += GROUP) sum = fma(x[i], x[i], sum);
    const int item = get_local_id(0);
    sums[item] = sum;
    for (int distance = GROUP / 2; distance > 0; distance /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (item < distance) sums[item] += sums[item + distance];
    }
    if (item == 0) partial_base[partial_offset + MULTI_TENSOR_PIECE] = sums[0];
#endif
}

__kernel void clip_factor(const long pieces, __global const REAL* restrict partial_base, const long partial_offset,
                          __global REAL* restrict norm_base, const long norm_offset, const REAL max_norm) {
    REAL sum = 0;
    for (long i = 0; i < pieces; ++i) sum += partial_base[partial_offset + i];
    const REAL norm = sqrt(sum);
    norm_base[norm_offset] = norm;
    const REAL factor = max_norm / (norm + REAL_C(1e-6));
    // fmin would return 1 for a NaN factor.
    norm_base[norm_offset + 1] = factor > 1 ? (REAL)1 : factor;
}

__kernel void clip_scale(MULTI_TENSOR_PARAMETERS, __global const REAL* restrict norm_base, const long norm_offset) {
    const REAL factor = norm_base[norm_offset + 1];
    __global REAL* x = MULTI_TENSOR_POINTER(0);
    const int count = MULTI_TENSOR_COUNT;
    for (int i = MULTI_TENSOR_FIRST; i < count; i += GROUP) x[i] *= factor;
}

__kernel void clip_value(MULTI_TENSOR_PARAMETERS, const REAL limit) {
    __global REAL* x = MULTI_TENSOR_POINTER(0);
    const int count = MULTI_TENSOR_COUNT;
    // Comparisons with NaN are false, so NaN stays.
    for (int i = MULTI_TENSOR_FIRST; i < count; i += GROUP) x[i] = x[i] > limit ? limit : x[i] < -limit ? -limit : x[i];
}
