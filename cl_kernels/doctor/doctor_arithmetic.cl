// Arithmetic that `declivity doctor` checks: doctor_<name>(a, b, c, out) computes out[i] = an expression of x = a[i],
// y = b[i] and z = c[i], as many as it has.
//
//   HAS_DOUBLE   defined if the device has fp64
#ifdef HAS_DOUBLE
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
#define REDUCED_PRECISION
#include "storage.clh"

#define OF_1(name, IN, OUT, RESULT)                                                                             \
    __kernel void doctor_##name(__global const IN* restrict a, const long a_offset, __global OUT* restrict out, \
                                const long out_offset) {                                                        \
        const size_t i = get_global_id(0);                                                                      \
        const IN x = a[a_offset + i];                                                                           \
        out[out_offset + i] = RESULT;                                                                           \
    }
#define OF_2(name, IN, OUT, RESULT)                                                                                \
    __kernel void doctor_##name(__global const IN* restrict a, const long a_offset, __global const IN* restrict b, \
                                const long b_offset, __global OUT* restrict out, const long out_offset) {          \
        const size_t i = get_global_id(0);                                                                         \
        const IN x = a[a_offset + i], y = b[b_offset + i];                                                         \
        out[out_offset + i] = RESULT;                                                                              \
    }
#define OF_3(name, IN, OUT, RESULT)                                                                                \
    __kernel void doctor_##name(__global const IN* restrict a, const long a_offset, __global const IN* restrict b, \
                                const long b_offset, __global const IN* restrict c, const long c_offset,           \
                                __global OUT* restrict out, const long out_offset) {                               \
        const size_t i = get_global_id(0);                                                                         \
        const IN x = a[a_offset + i], y = b[b_offset + i], z = c[c_offset + i];                                    \
        out[out_offset + i] = RESULT;                                                                              \
    }

OF_2(add, float, float, x + y)
OF_2(subtract, float, float, x - y)
OF_2(multiply, float, float, (x * y))
OF_2(divide, float, float, x / y)
OF_1(sqrt, float, float, sqrt(x))
OF_3(fma, float, float, fma(x, y, z))
OF_3(multiply_add, float, float, x* y + z)
#define IN_STATEMENTS(name, PRODUCT)                                                                                  \
    __kernel void doctor_##name(                                                                                      \
        __global const float* restrict a, const long a_offset, __global const float* restrict b, const long b_offset, \
        __global const float* restrict c, const long c_offset, __global float* restrict out, const long out_offset) { \
        const size_t i = get_global_id(0);                                                                            \
        const float product = PRODUCT(a[a_offset + i], b[b_offset + i]);                                              \
        const float sum = product + c[c_offset + i];                                                                  \
        out[out_offset + i] = sum;                                                                                    \
    }
#define PLAIN_PRODUCT(x, y) (x) * (y)
IN_STATEMENTS(multiply_then_add, PLAIN_PRODUCT)
static float product_apart(const float x, const float y) {
#pragma OPENCL FP_CONTRACT OFF
    return x * y;
}
IN_STATEMENTS(multiply_apart_then_add, product_apart)
#pragma OPENCL FP_CONTRACT OFF
IN_STATEMENTS(multiply_then_add_apart, PLAIN_PRODUCT)
OF_3(multiply_add_apart, float, float, x* y + z)
#pragma OPENCL FP_CONTRACT DEFAULT
OF_2(compare, float, int,
     (x < y ? 1 : 0) + (x <= y ? 2 : 0) + (x > y ? 4 : 0) + (x >= y ? 8 : 0) + (x == y ? 16 : 0) + (x != y ? 32 : 0))
OF_2(least, float, float, fmin(x, y))
OF_2(largest, float, float, fmax(x, y))
OF_1(nearest, float, float, rint(x))
OF_1(below, float, float, floor(x))
OF_1(above, float, float, ceil(x))
OF_1(towards_zero, float, float, trunc(x))
OF_1(bits, float, uint, as_uint(x))
OF_1(copy, float, float, x)
OF_1(scaled_up, float, float, x * 0x1p24f)
OF_1(scaled_down, float, float, x * 0x1p-24f)

OF_1(float_to_int, float, int, (int)x)
OF_1(float_to_int_saturated, float, int, convert_int_sat(x))
OF_1(float_to_int_nearest, float, int, convert_int_sat_rte(x))
OF_1(float_to_uchar_saturated, float, uchar, convert_uchar_sat(x))
OF_1(float_to_long, float, long, (long)x)
OF_1(float_to_long_saturated, float, long, convert_long_sat(x))
OF_1(int_to_float, int, float, (float)x)
OF_1(uint_to_float, uint, float, (float)x)
OF_1(long_to_float, long, float, (float)x)
OF_1(ulong_to_float, ulong, float, (float)x)
OF_1(int_to_char, int, char, (char)x)
OF_1(long_to_int, long, int, (int)x)
OF_1(int_to_long, int, long, (long)x)

OF_2(int_divide, int, int, x / y)
OF_2(int_remainder, int, int, x % y)
OF_2(int_multiply, int, int, (int)((uint)x*(uint)y))
OF_2(uint_divide, uint, uint, x / y)
OF_2(uint_high, uint, uint, mul_hi(x, y))
OF_2(long_multiply, long, long, (long)((ulong)x*(ulong)y))
OF_2(long_divide, long, long, x / y)
OF_2(long_remainder, long, long, x % y)
OF_2(ulong_divide, ulong, ulong, x / y)
OF_2(ulong_shift, ulong, ulong, (x << (y & 63)) ^ (x >> (y & 31)))
OF_2(long_less, long, int, x < y ? 1 : 0)

OF_1(from_f16, ushort, float, from_f16(x))
OF_1(to_f16, float, ushort, to_f16(x))
OF_1(from_bf16, ushort, float, from_bf16(x))
OF_1(to_bf16, float, ushort, to_bf16(x))

__kernel void doctor_vload_half(__global const ushort* restrict a, const long a_offset, __global float* restrict out,
                                const long out_offset) {
    const size_t i = get_global_id(0);
    out[out_offset + i] = vload_half(a_offset + i, (__global const half*)a);
}

__kernel void doctor_vstore_half(__global const float* restrict a, const long a_offset, __global ushort* restrict out,
                                 const long out_offset) {
    const size_t i = get_global_id(0);
    vstore_half(a[a_offset + i], out_offset + i, (__global half*)out);
}

// Vector operations that the library's kernels use.
__kernel void doctor_vectors(__global const float* restrict a, const long a_offset, __global const float* restrict b,
                             const long b_offset, __global float* restrict out, const long out_offset) {
    const size_t i = get_global_id(0);
    const float16 x = vload16(i, a + a_offset), y = vload16(i, b + b_offset);
    const float4 mixed = (float4)(x.s0, y.s1, x.sf, y.se);
    float16 result = x < y ? fma(x, y, (float16)(1.0f)) : x - y;
    result.lo.s0246 += mixed.wzyx;
    vstore16(result, i, out + out_offset);
}

#ifdef HAS_DOUBLE
OF_2(double_add, double, double, x + y)
OF_2(double_multiply, double, double, x* y)
OF_2(double_divide, double, double, x / y)
OF_3(double_fma, double, double, fma(x, y, z))
OF_1(double_sqrt, double, double, sqrt(x))
OF_1(double_to_float, double, float, (float)x)
OF_1(double_to_long, double, long, convert_long_sat(x))
OF_1(float_to_double, float, double, (double)x)
OF_1(long_to_double, long, double, (double)x)
#endif
