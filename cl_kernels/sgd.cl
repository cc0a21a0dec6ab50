// One step of gradient descent over many tensors: see include/declivity/ops/sgd.hpp for the formulas.
// Roles: parameters, gradients and, with MOMENTUM, their running mean.
#include "math.clh"
#include "multi_tensor.clh"

__kernel void sgd_step(MULTI_TENSOR_PARAMETERS, __global const REAL* restrict progress_base, const long progress_offset,
                       __global const int* restrict guard_base, const long guard_offset, const REAL momentum,
                       const REAL dampening, const REAL weight_decay, const int nesterov) {
    if (guard_base[guard_offset] != 0) return;
    const REAL rate = progress_base[progress_offset];
    __global REAL* p = MULTI_TENSOR_POINTER(0);
    __global const REAL* g = MULTI_TENSOR_POINTER(1);
#if MOMENTUM
    __global REAL* m = MULTI_TENSOR_POINTER(2);
    // In the first step the mean is the gradient itself, whatever the memory holds.
    const int first = progress_base[progress_offset + 1] <= (REAL)1;
    const REAL take = first ? (REAL)1 : (REAL)1 - dampening;
    const REAL of_gradient = nesterov ? (REAL)1 : (REAL)0, of_mean = nesterov ? momentum : (REAL)1;
#endif
    MULTI_TENSOR_LOOP {
        const REAL gradient = fma(weight_decay, p[i], g[i]);
#if MOMENTUM
        const REAL mean = fma(momentum, first ? (REAL)0 : m[i], take * gradient);  // 0 * NaN would stay
        m[i] = mean;
        p[i] = fma(-rate, fma(of_mean, mean, of_gradient * gradient), p[i]);
#else
        p[i] = fma(-rate, gradient, p[i]);
#endif
    }
}
