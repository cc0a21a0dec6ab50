// The device's own ceilings.
//
//   REAL    element type; VEC its vector of the device's width
//   CHAINS  sums that are independent of each other, so that no multiply-add waits for the one before
#ifdef REAL_IS_DOUBLE
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif

// `steps` times CHAINS multiply-adds of vectors for each work-item.
__kernel void multiply_add(const int steps, const REAL factor, __global REAL* restrict out, const long out_offset) {
    VEC sum[CHAINS];
    #pragma unroll
    for (int i = 0; i < CHAINS; ++i) sum[i] = (VEC)((REAL)(get_global_id(0) + i));
    const VEC by = (VEC)(factor), added = (VEC)((REAL)1 - factor);
    for (int step = 0; step < steps; ++step)
        #pragma unroll
        for (int i = 0; i < CHAINS; ++i) sum[i] = fma(sum[i], by, added);
    VEC total = (VEC)(0);
    #pragma unroll
    for (int i = 0; i < CHAINS; ++i) total += sum[i];
    out[out_offset + get_global_id(0)] = FIRST(total);
}

__kernel void nothing(__global REAL* restrict out, const long out_offset) {
    if (get_global_id(0) == 0) out[out_offset] = 0;
}
