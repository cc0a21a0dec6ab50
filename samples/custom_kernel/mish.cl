// mish(x) = x * tanh(softplus(x)) (Misra 2020) and its gradient as custom kernels. math.clh comes with the library.
#include "math.clh"

__kernel void mish_forward(const long n, __global const REAL* restrict x, const long x_offset,
                           __global REAL* restrict y, const long y_offset) {
    const long i = get_global_id(0);
    if (i < n) y[y_offset + i] = x[x_offset + i] * d_tanh(d_softplus(x[x_offset + i]));
}

// d mish / dx = t + x * sigmoid(x) * (1 - t^2) with t = tanh(softplus(x)).
__kernel void mish_backward(const long n, __global const REAL* restrict x, const long x_offset,
                            __global const REAL* restrict g, const long g_offset, __global REAL* restrict out,
                            const long out_offset) {
    const long i = get_global_id(0);
    if (i >= n) return;
    const REAL v = x[x_offset + i], t = d_tanh(d_softplus(v));
    out[out_offset + i] = g[g_offset + i] * (t + v * d_sigmoid(v) * (REAL_C(1.0) - t * t));
}
