// The recurrent weights (GATES H, H) in panels, for the kernels of recurrent.cl. Units beyond the last are 0.
//
//   recurrent_pack_forward    panels[block][k][gate][lane] = weight[gate H + block UNITS + lane][k]
//   recurrent_pack_backward   panels[block][k][lane] = weight[k][block UNITS + lane], k < GATES H
//
// A work-item makes a panel; global (panels).
//
//   REAL   float or double
//   GATES  of the cell
//   UNITS  of a panel
#include "noinline.clh"

NOINLINE void pack_forward(const long block, const int H, __global const REAL* restrict from,
                           __global REAL* restrict to) {
    const int first = block * UNITS, count = min(UNITS, H - first);
    to += block * UNITS * GATES * H;
    for (int k = 0; k < H; k += 16) {  // as many as a cache line has of float
        const int n = min(16, H - k);
        for (int gate = 0; gate < GATES; ++gate)
            for (int lane = 0; lane < UNITS; ++lane) {
                __global const REAL* row = from + ((long)gate * H + first + lane) * H + k;
                __global REAL* column = to + ((long)k * GATES + gate) * UNITS + lane;
                if (lane < count)
                    for (int i = 0; i < n; ++i) column[i * GATES * UNITS] = row[i];
                else
                    for (int i = 0; i < n; ++i) column[i * GATES * UNITS] = 0;
            }
    }
}

__kernel void recurrent_pack_forward(const int H, __global const REAL* restrict from, const long from_offset,
                                     __global REAL* restrict to, const long to_offset) {
    pack_forward(get_global_id(0), H, from + from_offset, to + to_offset);
}

NOINLINE void pack_backward(const long block, const int H, __global const REAL* restrict from,
                            __global REAL* restrict to) {
    const int first = block * UNITS, count = min(UNITS, H - first);
    to += block * UNITS * GATES * H;
    for (int k = 0; k < GATES * H; ++k) {
        __global const REAL* row = from + (long)k * H + first;
        for (int lane = 0; lane < UNITS; ++lane) to[(long)k * UNITS + lane] = lane < count ? row[lane] : 0;
    }
}

__kernel void recurrent_pack_backward(const int H, __global const REAL* restrict from, const long from_offset,
                                      __global REAL* restrict to, const long to_offset) {
    pack_backward(get_global_id(0), H, from + from_offset, to + to_offset);
}
