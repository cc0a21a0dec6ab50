// Samples of the gamma distribution: out[i] has shape concentration[i] and rate 1, or is the logarithm of such a
// number, which does not underflow for small concentrations.
//
// Marsaglia, Tsang: A simple method for generating gamma variables (ACM TOMS 26, 2000): for a >= 1, with d = a - 1/3,
// n normal and v = (1 + n / sqrt(9 d))^3, the number d v is accepted if log u < n^2 / 2 + d - d v + d log v, which is
// so for at least 95 %. For a < 1 the sample for a + 1 is multiplied by u^(1/a). Element i uses the BLOCKS Philox
// blocks from i * BLOCKS, one (f64: two) per attempt, so that results do not depend on how elements are distributed
// over work-items.
//
//   global   elements, rounded up to the local size
//   BLOCKS   Philox blocks per element
//   LOG      1: the logarithm
//   REAL, REAL_IS_DOUBLE   type of both
#ifdef REAL_IS_DOUBLE
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
#include "philox.clh"

#ifdef REAL_IS_DOUBLE
#define BLOCKS_OF_ATTEMPT 2
#else
#define BLOCKS_OF_ATTEMPT 1
#endif
#define WORD_UNIFORM(w) (((REAL)(w) + (REAL)0.5) * (REAL)0x1p-32)

__kernel void random_gamma(const long n, __global const REAL* restrict concentration, const long concentration_offset,
                           __global REAL* restrict out, const long out_offset, __global const long* restrict state,
                           const long state_offset, const long first) {
    const long i = get_global_id(0);
    if (i >= n) return;
    const REAL a = concentration[concentration_offset + i];
    const ulong key = (ulong)state[state_offset], block = (ulong)state[state_offset + 1] + (ulong)(first + i * BLOCKS);
    const int boosted = a < (REAL)1;
    const REAL d = (boosted ? a + (REAL)1 : a) - (REAL)(1.0 / 3.0), c = (REAL)1 / sqrt((REAL)9 * d);
    REAL root = (REAL)1,
         boost = (REAL)0.5;  // result if no attempt is accepted: once in 1e20, or if a is infinite
    for (int attempt = 0; attempt < BLOCKS / BLOCKS_OF_ATTEMPT; ++attempt) {
#ifdef REAL_IS_DOUBLE
        const REAL normal = d_normal_block(philox(block + (ulong)(2 * attempt), 0, key)).x;
        const uint4 words = philox(block + (ulong)(2 * attempt + 1), 0, key);
        const REAL u = WORD_UNIFORM(words.x), rest = WORD_UNIFORM(words.y);
#else
        const uint4 words = philox(block + (ulong)attempt, 0, key);
        const REAL normal = d_normal_turn(d_normal_radius(words.x), words.y).x;
        const REAL u = WORD_UNIFORM(words.z), rest = WORD_UNIFORM(words.w);
#endif
        const REAL r = (REAL)1 + c * normal;
        if (r <= (REAL)0) continue;
        const REAL v = r * r * r;
        if (d_log(u) < (REAL)0.5 * normal * normal + d * ((REAL)1 - v + (REAL)3 * d_log(r))) {
            root = r;
            boost = rest;
            break;
        }
    }
    const REAL power = boosted ? d_log(boost) / a : (REAL)0;
    // A negative or NaN concentration gives NaN.
#if LOG
    const REAL result = d_log(d) + (REAL)3 * d_log(root) + power;
#else
    const REAL result = d * root * root * root * (boosted ? d_exp(power) : (REAL)1);
#endif
    out[out_offset + i] = a >= (REAL)0 ? result : (REAL)NAN;
}
