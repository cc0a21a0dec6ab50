// Softmax and its gradient along an axis that is not the last (inner > 1). simd style: a work-item takes COLUMNS
// neighbouring k of `each` o. global (column blocks, o groups). The formulas are in softmax.clh.
//
//   COLUMNS  neighbouring k per work-item
#include "softmax.clh"
#include "combine.clh"

NOINLINE void softmax_part(const size_t id0, const size_t id1, const long inner, const long outer, const long n,
                           const long each, __global const REAL* restrict x_base, const long x_offset,
                           __global REAL* restrict y_base, const long y_offset) {
    REAL m[COLUMNS], sum[COLUMNS];
    const long first = id0 * (long)COLUMNS;
    const int count = (int)min((long)COLUMNS, inner - first);
    const long last = min(outer, ((long)id1 + 1) * each);
    for (long o = id1 * each; o < last; ++o) {
        __global const REAL* x = x_base + x_offset + o * n * inner + first;
        __global REAL* y = y_base + y_offset + o * n * inner + first;
        for (int k = 0; k < count; ++k) {
            m[k] = x[k];
            sum[k] = 0;
        }
        for (long c = 1; c < n; ++c)
            for (int k = 0; k < count; ++k) m[k] = LARGER(m[k], x[c * inner + k]);
        for (long c = 0; c < n; ++c)
            for (int k = 0; k < count; ++k) {
                const REAL e = d_exp(x[c * inner + k] - m[k]);
                sum[k] += e;
#if !LOG
                y[c * inner + k] = e;
#endif
            }
#if LOG
        for (int k = 0; k < count; ++k) sum[k] = d_log(sum[k]);
        for (long c = 0; c < n; ++c)
            for (int k = 0; k < count; ++k) y[c * inner + k] = (x[c * inner + k] - m[k]) - sum[k];
#else
        for (int k = 0; k < count; ++k) sum[k] = 1 / sum[k];
        for (long c = 0; c < n; ++c)
            for (int k = 0; k < count; ++k) y[c * inner + k] *= sum[k];
#endif
    }
}

__kernel void softmax(const long inner, const long outer, const long n, const long each,
                      __global const REAL* restrict x_base, const long x_offset, __global REAL* restrict y_base,
                      const long y_offset) {
    softmax_part(get_global_id(0), get_global_id(1), inner, outer, n, each, x_base, x_offset, y_base, y_offset);
}

NOINLINE void softmax_backward_part(const size_t id0, const size_t id1, const long inner, const long outer,
                                    const long n, const long each, __global const REAL* restrict y_base,
                                    const long y_offset, __global const REAL* restrict g_base, const long g_offset,
                                    __global REAL* restrict x_gradient_base, const long x_gradient_offset) {
    REAL total[COLUMNS];
    const long first = id0 * (long)COLUMNS;
    const int count = (int)min((long)COLUMNS, inner - first);
    const long last = min(outer, ((long)id1 + 1) * each);
    for (long o = id1 * each; o < last; ++o) {
        const long at = o * n * inner + first;
        __global const REAL* y = y_base + y_offset + at;
        __global const REAL* g = g_base + g_offset + at;
        __global REAL* x_gradient = x_gradient_base + x_gradient_offset + at;
        for (int k = 0; k < count; ++k) total[k] = 0;
        for (long c = 0; c < n; ++c)
            for (int k = 0; k < count; ++k) total[k] += SUMMAND(g[c * inner + k], y[c * inner + k]);
        for (long c = 0; c < n; ++c)
            for (int k = 0; k < count; ++k)
                x_gradient[c * inner + k] = GRADIENT(g[c * inner + k], y[c * inner + k], total[k]);
    }
}

__kernel void softmax_backward(const long inner, const long outer, const long n, const long each,
                               __global const REAL* restrict y_base, const long y_offset,
                               __global const REAL* restrict g_base, const long g_offset,
                               __global REAL* restrict x_gradient_base, const long x_gradient_offset) {
    softmax_backward_part(get_global_id(0), get_global_id(1), inner, outer, n, each, y_base, y_offset, g_base, g_offset,
                          x_gradient_base, x_gradient_offset);
}
