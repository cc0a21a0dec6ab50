// With s the smoothing and q[c] = (c == label ? 1 - s : 0) + s / C:
//   cross_entropy_forward:   lse[n] = log sum over c of exp(x[n][c]), losses[n] = lse[n] - sum over c of q[c] x[n][c]
//   cross_entropy_backward:  gradient[n][c] = g[n] (exp(x[n][c] - lse[n]) - q[c])
// n in [0, N), c in [0, C). Ignored rows give 0 and count 0; a label outside [0, C) gives NaN and is never used as an index.
//
//   REAL   element type
//   LABEL  int or long
//   GROUP  work-items that share a row, a power of two (CPU 1, GPU 64); one group a row
#include "math.clh"

#if GROUP == 1
#define ACROSS(combine, value)
#else
// Combines `value` of all items of the group; every item gets the result.
#define ACROSS(combine, value)                                                        \
    shared[item] = value;                                                             \
    for (int reach = GROUP / 2; reach > 0; reach /= 2) {                              \
        barrier(CLK_LOCAL_MEM_FENCE);                                                 \
        if (item < reach) shared[item] = combine(shared[item], shared[item + reach]); \
    }                                                                                 \
    barrier(CLK_LOCAL_MEM_FENCE);                                                     \
    value = shared[0];                                                                \
    barrier(CLK_LOCAL_MEM_FENCE);
#endif
#define SUM(a, b) ((a) + (b))
// NaN wins, so that a NaN score gives a NaN loss.
#define LARGER(a, b) (((a) > (b) || (a) != (a)) ? (a) : (b))

__kernel void cross_entropy_forward(const long N, const long C, __global const REAL* restrict x_base, const long x_offset,
                                    __global const LABEL* restrict labels_base, const long labels_offset,
                                    __global REAL* restrict losses_base, const long losses_offset, __global REAL* restrict counts_base,
                                    const long counts_offset, __global REAL* restrict lse_base, const long lse_offset,
                                    const REAL smoothing, const long ignored) {
    const long n = get_group_id(0);
    const int item = get_local_id(0);
#if GROUP > 1
    __local REAL shared[GROUP];
#endif
    __global const REAL* x = x_base + x_offset + n * C;
    REAL largest = x[0];
    for (long c = item; c < C; c += GROUP) largest = LARGER(x[c], largest);
    ACROSS(LARGER, largest)
    REAL exponentials = 0, total = 0;
    for (long c = item; c < C; c += GROUP) {
        exponentials += d_exp(x[c] - largest);
        total += x[c];
    }
    ACROSS(SUM, exponentials)
    ACROSS(SUM, total)
    if (item == 0) {
        const long label = labels_base[labels_offset + n];
        const int ignore = label == ignored, valid = label >= 0 && label < C;
        const REAL lse = largest + d_log(exponentials);
        const REAL at_label = x[valid ? label : 0];
        // Without smoothing the other scores must not count, not even infinite ones.
        const REAL others = smoothing > (REAL)0 ? smoothing * (lse - total / (REAL)C) : (REAL)0;
        const REAL loss = ((REAL)1 - smoothing) * (lse - at_label) + others;
        lse_base[lse_offset + n] = lse;
        losses_base[losses_offset + n] = ignore ? (REAL)0 : (valid ? loss : (REAL)NAN);
        counts_base[counts_offset + n] = ignore ? (REAL)0 : (REAL)1;
    }
}

__kernel void cross_entropy_backward(const long N, const long C, __global const REAL* restrict x_base, const long x_offset,
                                     __global const LABEL* restrict labels_base, const long labels_offset,
                                     __global const REAL* restrict lse_base, const long lse_offset, __global const REAL* restrict g_base,
                                     const long g_offset, const long g_stride, __global REAL* restrict gradient_base,
                                     const long gradient_offset, const REAL smoothing, const long ignored) {
    const long n = get_group_id(0);
    __global const REAL* x = x_base + x_offset + n * C;
    __global REAL* gradient = gradient_base + gradient_offset + n * C;
    const REAL lse = lse_base[lse_offset + n];
    const long label = labels_base[labels_offset + n];
    const REAL g = label == ignored ? (REAL)0 : g_base[g_offset + n * g_stride];
    const REAL even = smoothing / (REAL)C, peak = (REAL)1 - smoothing;
    for (long c = get_local_id(0); c < C; c += GROUP) {
        const REAL q = even + (c == label ? peak : (REAL)0);
        gradient[c] = label == ignored ? (REAL)0 : g * (d_exp(x[c] - lse) - q);
    }
}
