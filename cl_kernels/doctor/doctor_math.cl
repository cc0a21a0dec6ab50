// The functions of math.clh, special.clh and philox.clh, one element, or one block of random numbers, per work-item:
// for the test of their error bounds, and `declivity doctor`.
//
//   REAL     float or double, with REAL_IS_DOUBLE
//   VECTOR   2 to 16: the functions on vectors of that width; special.clh and philox.clh are scalar and not included
#ifdef VECTOR
#define D_WIDTH VECTOR
#endif
#include "math.clh"

#ifdef VECTOR
#define T_PASTE_(a, b) a##b
#define T_PASTE(a, b) T_PASTE_(a, b)
#define T T_PASTE(REAL, VECTOR)
#else
#define T REAL
#endif

// Each macro pastes the name itself: PoCL defines macros with the names of functions, which nested macros would expand.
#define SWEEP(name)                                                                                        \
    __kernel void doctor_##name(__global const T* restrict x, const long x_offset, __global T* restrict y, \
                                const long y_offset) {                                                     \
        size_t i = get_global_id(0);                                                                       \
        y[y_offset + i] = d_##name(x[x_offset + i]);                                                       \
    }

SWEEP(exp)
SWEEP(expm1)
SWEEP(log)
SWEEP(log1p)
SWEEP(tanh)
SWEEP(sigmoid)
SWEEP(silu)
SWEEP(softplus)
SWEEP(erf)
SWEEP(erfc)
SWEEP(gelu)
SWEEP(gelu_gradient)
SWEEP(gelu_tanh_gradient)
SWEEP(sqrt)
SWEEP(rsqrt)

#ifndef VECTOR
#include "special.clh"
#define SWEEP_SPECIAL(name)                                                                                      \
    __kernel void doctor_##name(__global const REAL* restrict x, const long x_offset, __global REAL* restrict y, \
                                const long y_offset) {                                                           \
        size_t i = get_global_id(0);                                                                             \
        y[y_offset + i] = s_##name(x[x_offset + i]);                                                             \
    }
SWEEP_SPECIAL(log2)
SWEEP_SPECIAL(log10)
SWEEP_SPECIAL(exp2)
SWEEP_SPECIAL(sin)
SWEEP_SPECIAL(cos)
SWEEP_SPECIAL(tan)
SWEEP_SPECIAL(asin)
SWEEP_SPECIAL(acos)
SWEEP_SPECIAL(atan)
SWEEP_SPECIAL(sinh)
SWEEP_SPECIAL(cosh)
SWEEP_SPECIAL(asinh)
SWEEP_SPECIAL(acosh)
SWEEP_SPECIAL(atanh)
SWEEP_SPECIAL(erfinv)
SWEEP_SPECIAL(lgamma)
SWEEP_SPECIAL(digamma)
#endif

__kernel void doctor_pow(__global const T* restrict x, const long x_offset, __global const T* restrict y,
                         const long y_offset, __global T* restrict z, const long z_offset) {
    size_t i = get_global_id(0);
    z[z_offset + i] = d_pow(x[x_offset + i], y[y_offset + i]);
}

#ifndef VECTOR

#include "philox.clh"

// 1 if x is finite, 2 if it is NaN.
__kernel void doctor_classify(__global const REAL* restrict x, const long x_offset, __global int* restrict y,
                              const long y_offset) {
    size_t i = get_global_id(0);
    y[y_offset + i] = d_is_finite(x[x_offset + i]) + 2 * d_is_nan(x[x_offset + i]);
}

__kernel void doctor_philox_words(ulong block, ulong stream, ulong key, __global uint* restrict words,
                                  const long offset) {
    size_t i = get_global_id(0);
    vstore4(philox(block + i, stream, key), i, words + offset);
}

#ifdef REAL_IS_DOUBLE
#define STORE vstore2
#else
#define STORE vstore4
#endif

__kernel void doctor_philox_uniform(ulong block, ulong stream, ulong key, __global REAL* restrict values,
                                    const long offset) {
    size_t i = get_global_id(0);
    STORE(d_uniform_block(philox(block + i, stream, key)), i, values + offset);
}

__kernel void doctor_philox_normal(ulong block, ulong stream, ulong key, __global REAL* restrict values,
                                   const long offset) {
    size_t i = get_global_id(0);
    STORE(d_normal_block(philox(block + i, stream, key)), i, values + offset);
}

#endif  // VECTOR
