// Post-processing of the forward and pre-processing of the backward FFT of real numbers around complex FFTs of half the
// length, for rows of any length; formula in fft_real.clh. Both kernel styles.
//
//   REAL    type of real and imaginary part; complex numbers are pairs
//   VW      elements per vector in simd style, 1 in simt style
//   kind    R2C: from rows of h complex numbers to rows of h + 1; C2R: back
//   w       exp(-pi i k / h), complex
//   scale   factor of the result
//   PER_ITEM  elements per work-item, of h / 2 + 1
//   global  (work-items per row, rows)
#define GROUP 1
#include "vectors.clh"
#include "noinline.clh"
#include "fft_real.clh"

NOINLINE void fft_real_part(const int h, const int kind, const REAL scale, __global const REAL* restrict x,
                            __global const REAL* restrict w, __global REAL* restrict out) {
    const long row = get_global_id(1);
    const int first = (int)get_global_id(0) * PER_ITEM;
    fft_real_pairs(h, kind, scale, first, min(first + PER_ITEM, h / 2 + 1), x + row * 2 * (kind == R2C ? h : h + 1), w,
                   out + row * 2 * (kind == R2C ? h + 1 : h));
}

__kernel void fft_real(const int h, const int kind, const REAL scale, __global const REAL* restrict x,
                       const long x_offset, __global const REAL* restrict w, const long w_offset,
                       __global REAL* restrict out, const long out_offset) {
    fft_real_part(h, kind, scale, x + x_offset, w + w_offset, out + out_offset);
}
