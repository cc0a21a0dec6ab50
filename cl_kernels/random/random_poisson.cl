// Samples of the Poisson distribution: out[i] has rate[i].
//
// Below a rate of 10 it is the number of uniforms whose product stays above exp(-rate) (Knuth: The Art of Computer
// Programming, volume 2, 3.4.1); above by transformed rejection (PTRS of Hörmann: The transformed rejection method for
// generating Poisson random variables, Insurance: Mathematics and Economics 12, 1993). Element i uses the BLOCKS Philox
// blocks from i * BLOCKS, so that results do not depend on how elements are distributed over work-items. A negative or
// NaN rate gives NaN.
//
//   global   elements, rounded up to the local size
//   BLOCKS   Philox blocks per element
//   REAL, REAL_IS_DOUBLE   type of both
#ifdef REAL_IS_DOUBLE
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
#include "philox.clh"

#define WORD_UNIFORM(w) (((REAL)(w) + (REAL)0.5) * (REAL)0x1p-32)

// log(rate^k exp(-rate) / k!) by Stirling's series, rearranged to avoid cancellation of large terms.
static inline REAL log_probability(const REAL rate, const REAL k) {
    if (k < (REAL)1) return -rate;
    const REAL x = (rate - k) / k;
    return k * (d_log1p(x) - x) - (REAL)0.5 * d_log((REAL)6.28318530717958648 * k) -
           ((REAL)(1.0 / 12.0) - (REAL)(1.0 / 360.0) / (k * k)) / k;
}

static inline REAL by_product(const REAL rate, const ulong block, const ulong key) {
    const REAL threshold = d_exp(-rate);
    REAL product = (REAL)1;
    int count = 0, more = 1;
    for (int b = 0; b < BLOCKS && more; ++b) {
        const uint4 words = philox(block + (ulong)b, 0, key);
        product *= WORD_UNIFORM(words.x);
        more = more && product > threshold;
        count += more;
        product *= WORD_UNIFORM(words.y);
        more = more && product > threshold;
        count += more;
        product *= WORD_UNIFORM(words.z);
        more = more && product > threshold;
        count += more;
        product *= WORD_UNIFORM(words.w);
        more = more && product > threshold;
        count += more;
    }
    return (REAL)count;
}

static inline REAL by_rejection(const REAL rate, const ulong block, const ulong key) {
    const REAL b = (REAL)0.931 + (REAL)2.53 * sqrt(rate), a = (REAL)-0.059 + (REAL)0.02483 * b;
    const REAL inverse_alpha = (REAL)1.1239 + (REAL)1.1328 / (b - (REAL)3.4);
    const REAL accepted = (REAL)0.9277 - (REAL)3.6224 / (b - (REAL)2);
    for (int attempt = 0; attempt < BLOCKS; ++attempt) {
        const uint4 words = philox(block + (ulong)attempt, 0, key);
        const REAL u = WORD_UNIFORM(words.x) - (REAL)0.5, v = WORD_UNIFORM(words.y);
        const REAL us = (REAL)0.5 - fabs(u);
        const REAL k = floor(((REAL)2 * a / us + b) * u + rate + (REAL)0.43);
        if (us >= (REAL)0.07 && v <= accepted) return k;
        if (k < (REAL)0 || (us < (REAL)0.013 && v > us)) continue;
        if (d_log(v * inverse_alpha / (a / (us * us) + b)) <= log_probability(rate, k)) return k;
    }
    return floor(rate);  // once in 1e12
}

__kernel void random_poisson(const long n, __global const REAL* restrict rate, const long rate_offset,
                             __global REAL* restrict out, const long out_offset, __global const long* restrict state,
                             const long state_offset, const long first) {
    const long i = get_global_id(0);
    if (i >= n) return;
    const REAL mean = rate[rate_offset + i];
    const ulong key = (ulong)state[state_offset], block = (ulong)state[state_offset + 1] + (ulong)(first + i * BLOCKS);
    REAL result = mean;  // for NaN and infinity
    if (mean < (REAL)10) result = by_product(mean, block, key);
    else if (d_is_finite(mean)) result = by_rejection(mean, block, key);
    out[out_offset + i] = mean < (REAL)0 ? (REAL)NAN : result;
}
