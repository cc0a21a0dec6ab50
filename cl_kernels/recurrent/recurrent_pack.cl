// Packing of the recurrent weights (GATES H, H) into panels for recurrent.cl. Units past the last are 0. simd style.
//
//   recurrent_pack_forward    panels[block][k][gate][lane] = weight[gate H + block UNITS + lane][k]
//   recurrent_pack_backward   panels[block][k][lane] = weight[k][block UNITS + lane], k < GATES H
//
// A work-item packs one panel; global (panels).
//
//   REAL, VW   element type and vector width (vectors.clh)
//   GATES      gates of the cell
//   UNITS      units per panel, a multiple of VW
#define GROUP 1
#include "noinline.clh"
#include "vectors.clh"
#if VW > 1
#include "transpose_tile.clh"
TRANSPOSITION(transpose_vectors, VEC, VW)
#endif

// Transposes a tile of weights into the panel; the tile may be incomplete.
static inline void pack_square(const int H, const int units, const int n, __global const REAL* restrict from,
                               __global REAL* restrict to) {
#if VW > 1
    if (units == VW && n == VW) {
        VEC rows[VW];
#pragma unroll
        for (int i = 0; i < VW; ++i) rows[i] = VLOAD(from + (long)i * H);
        transpose_vectors(rows);
#pragma unroll
        for (int i = 0; i < VW; ++i) VSTORE(rows[i], to + i * GATES * UNITS);
        return;
    }
#endif
    for (int lane = 0; lane < VW; ++lane)
        for (int i = 0; i < n; ++i) to[i * GATES * UNITS + lane] = lane < units ? from[(long)lane * H + i] : 0;
}

NOINLINE void pack_forward(const long block, const int H, __global const REAL* restrict from,
                           __global REAL* restrict to) {
    const int first = block * UNITS;
    to += block * UNITS * GATES * H;
    for (int k = 0; k < H; k += VW)
        for (int gate = 0; gate < GATES; ++gate)
            for (int lane = 0; lane < UNITS; lane += VW)
                pack_square(H, min(VW, H - first - lane), min(VW, H - k),
                            from + ((long)gate * H + first + lane) * H + k,
                            to + ((long)k * GATES + gate) * UNITS + lane);
}

__kernel void recurrent_pack_forward(const int H, __global const REAL* restrict from, const long from_offset,
                                     __global REAL* restrict to, const long to_offset) {
    pack_forward(get_global_id(0), H, from + from_offset, to + to_offset);
}

NOINLINE void pack_backward(const long block, const int H, __global const REAL* restrict from,
                            __global REAL* restrict to) {
    const int first = block * UNITS, count = min(UNITS, H - first);
    to += block * UNITS * GATES * H;
    for (int k = 0; k < GATES * H; ++k, to += UNITS) {
        __global const REAL* row = from + (long)k * H + first;
        int lane = 0;
        for (; lane + VW <= count; lane += VW) VSTORE(VLOAD(row + lane), to + lane);
        for (; lane < UNITS; ++lane) to[lane] = lane < count ? row[lane] : 0;
    }
}

__kernel void recurrent_pack_backward(const int H, __global const REAL* restrict from, const long from_offset,
                                      __global REAL* restrict to, const long to_offset) {
    pack_backward(get_global_id(0), H, from + from_offset, to + to_offset);
}
