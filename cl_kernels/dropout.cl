// out[i] = u_i < probability ? 0 : x[i] * scale, with u_i from block state[1] + offset + i / D_RANDOM_COUNT of Philox.
// A work-item handles `chunk` neighbouring blocks. IN_PLACE: x is out.
#include "philox.clh"

__kernel void dropout(const long n, const int chunk,
#if !IN_PLACE
                      __global const REAL* restrict x_base, const long x_offset,
#endif
                      __global REAL* restrict out_base, const long out_offset, __global const long* restrict state_base,
                      const long state_offset, const long offset, const REAL probability, const REAL scale) {
    const ulong key = (ulong)state_base[state_offset];
    const ulong base = (ulong)(state_base[state_offset + 1] + offset);
    __global REAL* out = out_base + out_offset;
#if IN_PLACE
    __global const REAL* x = out;
#else
    __global const REAL* x = x_base + x_offset;
#endif
    const long first = get_global_id(0) * (long)chunk;
    for (long block = first; block < first + chunk && block * D_RANDOM_COUNT < n; ++block) {
        const D_RANDOM r = d_uniform_block(philox(base + (ulong)block, 0, key));
        REAL values[D_RANDOM_COUNT];
#ifdef REAL_IS_DOUBLE
        values[0] = r.x, values[1] = r.y;
#else
        values[0] = r.x, values[1] = r.y, values[2] = r.z, values[3] = r.w;
#endif
        const int count = (int)min((long)D_RANDOM_COUNT, n - block * D_RANDOM_COUNT);
        for (int i = 0; i < count; ++i) {
            const long at = block * D_RANDOM_COUNT + i;
            out[at] = values[i] < probability ? (REAL)0 : x[at] * scale;
        }
    }
}
