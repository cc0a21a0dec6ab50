// Packing of matrices into panels: packed[z][panel][k][i] = source[z][panel * PACK + i][k], zero after the last row,
// for products that read both operands sequentially. simd style. The strides select rows or columns.
//
//   REAL, VW     element type of the packed matrix and vector width (vectors.clh)
//   STORED       type of the operand (storage.clh)
//   PACK         width of a panel
//   PACK_STEP    elements along k that a work-item packs, of PACK_EACH panels
//   PACK_EACH    panels per work-item
//   UNIT         contiguous direction of the operand: 1 along the panel, 2 along k, 0 neither
#define GROUP 1
#include "vectors.clh"
#include "stored_vectors.clh"

// global size (ceil(panels / PACK_EACH), ceil(K / PACK_STEP), batch). `count` rows or columns with stride `across`;
// `step` is the stride along k.
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void pack_panels(
    const long count, const long K, __global const STORED* restrict source, const long source_offset,
    const long source_batch, const long across, const long step, __global REAL* restrict packed,
    const long packed_offset) {
    const long panels = (count + PACK - 1) / PACK, k_first = get_global_id(1) * (long)PACK_STEP, z = get_global_id(2);
    const int steps = (int)min((long)PACK_STEP, K - k_first);
    // Neighbouring panels share pages of the operand.
    for (long panel = get_global_id(0) * (long)PACK_EACH; panel < min(panels, (long)(get_global_id(0) + 1) * PACK_EACH);
         ++panel) {
        const int here = (int)min((long)PACK, count - panel * PACK);
        __global const STORED* from =
            source + source_offset + z * source_batch + panel * PACK * across + k_first * step;
        __global REAL* to = packed + packed_offset + ((z * panels + panel) * K + k_first) * PACK;
        int k = 0;
        if (here == PACK) {
#if UNIT == 1 && PACK % VW == 0
            for (; k < steps; ++k)
#pragma unroll
                for (int i = 0; i < PACK; i += VW) VSTORE(STORED_VLOAD(from + k * step + i), to + k * PACK + i);
#elif UNIT == 1
            for (; k < steps; ++k)
#pragma unroll
                for (int i = 0; i < PACK; ++i) to[k * PACK + i] = LOADED(from[k * step + i]);
#elif UNIT == 2 && PACK % 4 == 0
            // Blocks of 4 x 4, four in a row, so that each cache line of the operand is read once.
            for (; k + 16 <= steps; k += 16)
                for (int i = 0; i < PACK; i += 4)
#pragma unroll
                    for (int kk = k; kk < k + 16; kk += 4) {
                        __global const STORED* square = from + i * across + kk;
                        const REAL4 r0 = LOADED(vload4(0, square)), r1 = LOADED(vload4(0, square + across));
                        const REAL4 r2 = LOADED(vload4(0, square + 2 * across)),
                                    r3 = LOADED(vload4(0, square + 3 * across));
                        __global REAL* corner = to + kk * PACK + i;
                        vstore4((REAL4)(r0.x, r1.x, r2.x, r3.x), 0, corner);
                        vstore4((REAL4)(r0.y, r1.y, r2.y, r3.y), 0, corner + PACK);
                        vstore4((REAL4)(r0.z, r1.z, r2.z, r3.z), 0, corner + 2 * PACK);
                        vstore4((REAL4)(r0.w, r1.w, r2.w, r3.w), 0, corner + 3 * PACK);
                    }
#endif
        }
        for (; k < steps; ++k)
            for (int i = 0; i < PACK; ++i) to[k * PACK + i] = i < here ? LOADED(from[i * across + k * step]) : (REAL)0;
    }
}
