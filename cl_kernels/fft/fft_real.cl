// Post-processing of the forward and pre-processing of the backward FFT of real numbers around complex FFTs of half the
// length, for rows of any length; formula in fft_real.clh. Both kernel styles.
//
//   REAL    type of real and imaginary part; complex numbers are pairs
//   VW      elements per vector in simd style, 1 in simt style
//   direction  1: from rows of h complex numbers to rows of h + 1; -1: back
//   w       exp(-pi i k / h), complex
//   scale   factor of the result
//   PER_ITEM  elements per work-item, of h / 2 + 1
//   global  (work-items per row, rows)
#define GROUP 1
#include "vectors.clh"
#include "noinline.clh"
#include "fft_real.clh"

NOINLINE void fft_real_part(const int h, const int direction, const REAL scale, __global const REAL* restrict x,
                            __global const REAL* restrict w, __global REAL* restrict out) {
    const long row = get_global_id(1);
    const int first = (int)get_global_id(0) * PER_ITEM;
    fft_real_pairs(h, direction, scale, first, min(first + PER_ITEM, h / 2 + 1),
                   x + row * 2 * (direction > 0 ? h : h + 1), w, out + row * 2 * (direction > 0 ? h + 1 : h));
}

__kernel void fft_real(const int h, const int direction, const REAL scale, __global const REAL* restrict x,
                       const long x_offset, __global const REAL* restrict w, const long w_offset,
                       __global REAL* restrict out, const long out_offset) {
    fft_real_part(h, direction, scale, x + x_offset, w + w_offset, out + out_offset);
}
