// Peak throughput of a device, which a profile compares kernels with.
//
//   ceiling_multiply_add   sum[i] = sum[i] * by + added, `steps` times, for each of CHAINS vectors: 2 * CHAINS * lanes
//                          * steps FLOPs per work-item. The chains are independent, which hides the latency of fma
//   ceiling_copy           to[i] = from[i] for `count` vectors, `each` contiguous ones per work-item (simd style), or
//                          one in each round of all work-items (simt style)
//
//   REAL      element type
//   VEC       vector type: the device's own width in simd style
//   FIRST(v)  an element of it
//   CHAINS    8 or 12
//   COPY      element of the copy
//   BLOCKS    1: contiguous blocks, 0: rounds
#ifdef REAL_IS_DOUBLE
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif

__kernel void ceiling_multiply_add(const int steps, const float factor, __global REAL* restrict out,
                                   const long out_offset) {
    VEC sum[CHAINS];
#pragma unroll
    for (int i = 0; i < CHAINS; ++i) sum[i] = (VEC)((REAL)(get_global_id(0) + i));
    const VEC by = (VEC)((REAL)factor), added = (VEC)((REAL)1 - (REAL)factor);
    for (int step = 0; step < steps; ++step)
#pragma unroll
        for (int i = 0; i < CHAINS; ++i) sum[i] = fma(sum[i], by, added);
    VEC total = (VEC)(0);
#pragma unroll
    for (int i = 0; i < CHAINS; ++i) total += sum[i];
    out[out_offset + get_global_id(0)] = FIRST(total);
}

__kernel void ceiling_copy(const long count, const long each, __global const COPY* restrict from,
                           const long from_offset, __global COPY* restrict to, const long to_offset) {
#if BLOCKS
    const long first = get_global_id(0) * each, end = min(first + each, count);
    for (long i = first; i < end; ++i) to[to_offset + i] = from[from_offset + i];
#else
    for (long i = get_global_id(0); i < count; i += get_global_size(0)) to[to_offset + i] = from[from_offset + i];
#endif
}
