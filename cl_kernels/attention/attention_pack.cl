// Packs a matrix of each head, (B, heads, rows, depth), into panels of KEYS rows, with zeros after the last row:
// to[z][panel][d][row], for attention_blocks.clh. simd style; global (panels, heads, B).
//
//   REAL  type of the elements
//   KEYS  rows per panel
#include "math.clh"
#include "noinline.clh"

NOINLINE void attention_pack_part(const long panel, const long z, const long rows, const int depth,
                                  __global const REAL* restrict from, const long from_row, __global REAL* restrict to) {
    const int valid = (int)min((long)KEYS, rows - panel * KEYS);
    const long panels = (rows + KEYS - 1) / KEYS;
    from += panel * KEYS * from_row;
    to += (z * panels + panel) * depth * KEYS;
    for (int d = 0; d < depth; ++d)
        for (int j = 0; j < KEYS; ++j) to[d * KEYS + j] = j < valid ? from[j * from_row + d] : (REAL)0;
}

__kernel void attention_pack(const long rows, const int depth, __global const REAL* restrict from, const long offset,
                             const long batch, const long head, const long row, __global REAL* restrict to,
                             const long to_offset) {
    const long h = get_global_id(1), b = get_global_id(2);
    attention_pack_part(get_global_id(0), b * get_global_size(1) + h, rows, depth, from + offset + b * batch + h * head,
                        row, to + to_offset);
}
