// Arithmetic in half, which requires cl_khr_fp16: on devices without it, this may fail to build. The library itself
// stores f16 and computes in f32.
#ifdef ENABLED
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#endif

__kernel void doctor_half(__global const float* restrict a, const long a_offset, __global const float* restrict b,
                          const long b_offset, __global float* restrict out, const long out_offset) {
    const size_t i = get_global_id(0);
    const half x = (half)a[a_offset + i], y = (half)b[b_offset + i];
    const half sum = x + y, product = x * y;
    out[out_offset + 2 * i] = (float)sum;
    out[out_offset + 2 * i + 1] = (float)product;
}
