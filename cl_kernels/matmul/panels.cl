// Packing of matrices into panels: packed[z][panel][k][i] = source[z][panel * PANEL_WIDTH + i][k], zero after the last
// row, for products that read both operands sequentially. simd style. The strides select rows or columns.
//
//   REAL, VW     element type of the packed matrix and vector width (vectors.clh)
//   STORED       type of the operand (storage.clh)
//   PANEL_WIDTH  width of a panel
//   K_PER_ITEM   elements along k that a work-item packs, of PANELS_PER_ITEM panels
//   PANELS_PER_ITEM  panels per work-item
//   UNIT_STRIDE  contiguous direction of the operand: ALONG_PANEL, ALONG_K, or 0 for neither
#define ALONG_PANEL 1
#define ALONG_K 2
#define GROUP 1
#include "vectors.clh"
#include "stored_vectors.clh"

// global size (ceil(panels / PANELS_PER_ITEM), ceil(K / K_PER_ITEM), batch). `count` rows or columns with stride
// `across`; `step` is the stride along k.
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void pack_panels(
    const long count, const long K, __global const STORED* restrict source, const long source_offset,
    const long source_batch, const long across, const long step, __global REAL* restrict packed,
    const long packed_offset) {
    const long panels = (count + PANEL_WIDTH - 1) / PANEL_WIDTH, k_first = get_global_id(1) * (long)K_PER_ITEM,
               z = get_global_id(2);
    const int steps = (int)min((long)K_PER_ITEM, K - k_first);
    // Neighbouring panels share pages of the operand.
    for (long panel = get_global_id(0) * (long)PANELS_PER_ITEM;
         panel < min(panels, (long)(get_global_id(0) + 1) * PANELS_PER_ITEM); ++panel) {
        const int valid = (int)min((long)PANEL_WIDTH, count - panel * PANEL_WIDTH);
        __global const STORED* from =
            source + source_offset + z * source_batch + panel * PANEL_WIDTH * across + k_first * step;
        __global REAL* to = packed + packed_offset + ((z * panels + panel) * K + k_first) * PANEL_WIDTH;
        int k = 0;
        if (valid == PANEL_WIDTH) {
#if UNIT_STRIDE == ALONG_PANEL && PANEL_WIDTH % VW == 0
            for (; k < steps; ++k)
#pragma unroll
                for (int i = 0; i < PANEL_WIDTH; i += VW)
                    VSTORE(STORED_VLOAD(from + k * step + i), to + k * PANEL_WIDTH + i);
#elif UNIT_STRIDE == ALONG_PANEL
            for (; k < steps; ++k)
#pragma unroll
                for (int i = 0; i < PANEL_WIDTH; ++i) to[k * PANEL_WIDTH + i] = LOADED(from[k * step + i]);
#elif UNIT_STRIDE == ALONG_K && PANEL_WIDTH % 4 == 0
            // Blocks of 4 x 4, four in a row, so that each cache line of the operand is read once.
            for (; k + 16 <= steps; k += 16)
                for (int i = 0; i < PANEL_WIDTH; i += 4)
#pragma unroll
                    for (int kk = k; kk < k + 16; kk += 4) {
                        __global const STORED* source_block = from + i * across + kk;
                        const REAL4 r0 = LOADED(vload4(0, source_block)), r1 = LOADED(vload4(0, source_block + across));
                        const REAL4 r2 = LOADED(vload4(0, source_block + 2 * across)),
                                    r3 = LOADED(vload4(0, source_block + 3 * across));
                        __global REAL* block = to + kk * PANEL_WIDTH + i;
                        vstore4((REAL4)(r0.x, r1.x, r2.x, r3.x), 0, block);
                        vstore4((REAL4)(r0.y, r1.y, r2.y, r3.y), 0, block + PANEL_WIDTH);
                        vstore4((REAL4)(r0.z, r1.z, r2.z, r3.z), 0, block + 2 * PANEL_WIDTH);
                        vstore4((REAL4)(r0.w, r1.w, r2.w, r3.w), 0, block + 3 * PANEL_WIDTH);
                    }
#endif
        }
        for (; k < steps; ++k)
            for (int i = 0; i < PANEL_WIDTH; ++i)
                to[k * PANEL_WIDTH + i] = i < valid ? LOADED(from[i * across + k * step]) : (REAL)0;
    }
}
