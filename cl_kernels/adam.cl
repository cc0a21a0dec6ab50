// One step of Adam over many tensors: see include/declivity/ops/adam.hpp for the formulas.
// Roles: parameters, gradients, first and second moments.
#include "math.clh"
#include "multi_tensor.clh"

__kernel void adam_step(MULTI_TENSOR_PARAMETERS, __global const REAL* restrict progress_base,
                        const long progress_offset, __global const int* restrict guard_base, const long guard_offset,
                        const REAL beta1, const REAL one_less_beta1, const REAL log_beta1, const REAL beta2,
                        const REAL one_less_beta2, const REAL log_beta2, const REAL epsilon, const REAL weight_decay,
                        const int decoupled) {
    if (guard_base[guard_offset] != 0) return;
    const REAL rate = progress_base[progress_offset], step = progress_base[progress_offset + 1];
    // 1 - beta^t by way of expm1: in f32 the difference itself would lose half its digits in the first steps.
    const REAL correction1 = -d_expm1(step * log_beta1), correction2 = -d_expm1(step * log_beta2);
    const REAL size = rate / correction1, root = sqrt(correction2);
    const REAL shrink = decoupled ? (REAL)1 - rate * weight_decay : (REAL)1;
    const REAL decay = decoupled ? (REAL)0 : weight_decay;
    __global REAL* p = MULTI_TENSOR_POINTER(0);
    __global const REAL* g = MULTI_TENSOR_POINTER(1);
    __global REAL* m = MULTI_TENSOR_POINTER(2);
    __global REAL* v = MULTI_TENSOR_POINTER(3);
    MULTI_TENSOR_LOOP {
        const REAL gradient = fma(decay, p[i], g[i]);
        const REAL mean = fma(beta1, m[i], one_less_beta1 * gradient);
        const REAL square = fma(beta2, v[i], one_less_beta2 * gradient * gradient);
        m[i] = mean;
        v[i] = square;
        p[i] = shrink * p[i] - size * mean / (sqrt(square) / root + epsilon);
    }
}
