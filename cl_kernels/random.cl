// Fills out[0 .. n) with random numbers: block number state[1] + offset + b of Philox gives elements b * D_RANDOM_COUNT on.
//
// A work-item makes `chunk` blocks, neighbouring ones.
//   REAL   element type
//   KIND   0: uniform, 1: normal, 2: bernoulli, of random_numbers.clh
#include "random_numbers.clh"

__kernel void random_fill(const long n, const int chunk, __global REAL* restrict out_base, const long out_offset,
                          __global const long* restrict state_base, const long state_offset, const long offset, const REAL a,
                          const REAL b, const REAL most) {
    const ulong key = (ulong)state_base[state_offset];
    const ulong base = (ulong)(state_base[state_offset + 1] + offset);
    __global REAL* out = out_base + out_offset;
    const long first = get_global_id(0) * (long)chunk;
    for (long block = first; block < first + chunk && block * D_RANDOM_COUNT < n; ++block) {
        const uint4 words = philox(base + (ulong)block, 0, key);
#if KIND == 1
        const D_RANDOM r = d_normal_block(words);
#else
        const D_RANDOM r = d_uniform_block(words);
#endif
        REAL values[D_RANDOM_COUNT];
#ifdef REAL_IS_DOUBLE
        values[0] = r.x, values[1] = r.y;
#else
        values[0] = r.x, values[1] = r.y, values[2] = r.z, values[3] = r.w;
#endif
        const int count = (int)min((long)D_RANDOM_COUNT, n - block * D_RANDOM_COUNT);
        for (int i = 0; i < count; ++i) {
#if KIND == 2
            out[block * D_RANDOM_COUNT + i] = RANDOM_BERNOULLI(values[i]);
#elif KIND == 0
            out[block * D_RANDOM_COUNT + i] = RANDOM_UNIFORM(values[i]);
#else
            out[block * D_RANDOM_COUNT + i] = RANDOM_NORMAL(values[i]);
#endif
        }
    }
}
