// The functions of math.clh and philox.clh, one element a work-item: y[i] = d_f(x[i]).
// Of VECTOR, when it is defined as 2 to 16: the same functions on vectors of that many elements.

#include "math.clh"
#ifdef VECTOR
#undef D_WIDTH
#define D_WIDTH VECTOR
#include "math.clh"
#define T_JOIN_(a, b) a##b
#define T_JOIN(a, b) T_JOIN_(a, b)
#define T T_JOIN(REAL, VECTOR)
#else
#define T REAL
#endif
#include "philox.clh"

#define SWEEP(name)                                                                      \
    __kernel void math_sweep_##name(__global const T* restrict x, __global T* restrict y) { \
        size_t i = get_global_id(0);                                                     \
        y[i] = d_##name(x[i]);                                                           \
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
SWEEP(sqrt)
SWEEP(rsqrt)

__kernel void math_sweep_pow(__global const T* restrict x, __global const T* restrict y, __global T* restrict z) {
    size_t i = get_global_id(0);
    z[i] = d_pow(x[i], y[i]);
}

// 1 where x is finite, plus 2 where it is NaN.
__kernel void math_sweep_classify(__global const REAL* restrict x, __global int* restrict y) {
    size_t i = get_global_id(0);
    y[i] = d_is_finite(x[i]) + 2 * d_is_nan(x[i]);
}

__kernel void philox_words(ulong block, ulong stream, ulong key, __global uint* restrict words) {
    size_t i = get_global_id(0);
    vstore4(philox(block + i, stream, key), i, words);
}

#ifdef REAL_IS_DOUBLE
#define STORE vstore2
#else
#define STORE vstore4
#endif

__kernel void philox_uniform(ulong block, ulong stream, ulong key, __global REAL* restrict values) {
    size_t i = get_global_id(0);
    STORE(d_uniform_block(philox(block + i, stream, key)), i, values);
}

__kernel void philox_normal(ulong block, ulong stream, ulong key, __global REAL* restrict values) {
    size_t i = get_global_id(0);
    STORE(d_normal_block(philox(block + i, stream, key)), i, values);
}
