// What stands behind, or before, the complex transforms of half the length that transforms of real numbers are made of,
// for rows of any length: fft_real.clh has the formula.
//
//   REAL    type of the numbers; complex ones are pairs
//   VW      elements of a vector on CPU-like devices, 1 on GPU-like ones
//   way     1: from rows of h numbers to rows of h + 1; -1: back
//   w       exp(-pi i k / h), pairs
//   scale   what the result is multiplied by
//   EACH    numbers of a work-item, of h / 2 + 1
//   global  (work-items of a row, rows)
#define GROUP 1
#include "vectors.clh"
#include "noinline.clh"
#include "fft_real.clh"

NOINLINE void fft_real_part(const int h, const int way, const REAL scale, __global const REAL* restrict x,
                            __global const REAL* restrict w, __global REAL* restrict out) {
    const long row = get_global_id(1);
    const int first = (int)get_global_id(0) * EACH;
    fft_real_pairs(h, way, scale, first, min(first + EACH, h / 2 + 1), x + row * 2 * (way > 0 ? h : h + 1), w,
                   out + row * 2 * (way > 0 ? h + 1 : h));
}

__kernel void fft_real(const int h, const int way, const REAL scale, __global const REAL* restrict x,
                       const long x_offset, __global const REAL* restrict w, const long w_offset,
                       __global REAL* restrict out, const long out_offset) {
    fft_real_part(h, way, scale, x + x_offset, w + w_offset, out + out_offset);
}
