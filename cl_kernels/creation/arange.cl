// out[i] = start + i * step, i in [0, n). global (n)
//
//   OUT      type of out
//   COMPUTE  type of the arithmetic: OUT for floating types, long for integers
#ifdef REAL_IS_DOUBLE
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif

__kernel void arange(const long n, __global OUT* restrict out_base, const long out_offset, const COMPUTE start,
                     const COMPUTE step) {
    const long i = get_global_id(0);
    if (i < n) out_base[out_offset + i] = (OUT)(start + (COMPUTE)i * step);
}
