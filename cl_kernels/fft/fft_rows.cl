// FFTs of rows of n = VW m complex numbers, m >= VW, one row at a time, vectorised within the row. simd style. Element
// j = VW a + b is in lane b, so that transforms over a, of length m, need no exchange between lanes; then
//
//   X[k + m l] = sum over b of exp(-2 pi i b l / VW) exp(-2 pi i b k / n) Y[b][k]
//   Y[b][k] = sum over a of exp(-2 pi i a k / m) x[VW a + b]
//
// for VW elements k at once, after a transposition of lanes and registers.
//
//   REAL    type of real and imaginary part; complex numbers are pairs
//   VW      elements per vector: 4, 8 or 16
//   sign    1; -1 for the conjugate transform
//   scale   factor of the result
//   w       twiddle factors of the passes (fft_vectors.clh)
//   table   exp(-2 pi i b k / n), two vectors per k
//   kind    C2C; R2C: rows of 2 n real numbers to n + 1 complex ones; C2R: back (fft_real.clh)
//   circle  exp(-pi i k / n), k <= n, for R2C and C2R
//   scratch workspace of 4 n REALs per work-item
//   global  work-items, each of which processes a range of rows
#include "fft_vectors.clh"
#include "fft_real.clh"

#define DFT_VW PASTE(dft_, VW)

TRANSPOSITION(transpose_vectors, VEC, VW)

struct FftRows {
    long rows, in_row, out_row;  // strides in REALs
    ulong radices;               // radices of the passes, 4 bits each, the first lowest
    int n, m, passes, kind;
};

// Last pass, of radix VW: computes and stores VW elements at each of k, k + m, ... of the result.
NOINLINE void fft_rows_store(const int m, const REAL sign, const REAL scale, __global const REAL* restrict in,
                             __global REAL* restrict out) {
    const REAL sign_scale = sign * scale;
    for (int block = 0; block < m; block += VW) {
        const int k = min(block, m - VW);
        VEC re[VW], im[VW];
#pragma unroll
        for (int i = 0; i < VW; ++i) re[i] = VLOAD(in + (long)(k + i) * (2 * VW));
        transpose_vectors(re);
#pragma unroll
        for (int i = 0; i < VW; ++i) im[i] = VLOAD(in + (long)(k + i) * (2 * VW) + VW);
        transpose_vectors(im);
        DFT_VW(re, im);
#pragma unroll
        for (int l = 0; l < VW; ++l) {
            __global REAL* to = out + 2 * (k + (long)m * l);
            const VEC r = re[l] * scale, i = im[l] * sign_scale;
            VSTORE(ZIP_LOW(r, i), to);
            VSTORE(ZIP_HIGH(r, i), to + VW);
        }
    }
}

NOINLINE void fft_rows_real(const int n, const int kind, const REAL scale, __global const REAL* restrict in,
                            __global const REAL* restrict circle, __global REAL* restrict out) {
    fft_real_pairs(n, kind, scale, 0, n / 2 + 1, in, circle, out);
}

__kernel void fft_rows(const struct FftRows f, const REAL sign, const REAL scale, __global const REAL* restrict x,
                       const long x_offset, __global const REAL* restrict w, const long w_offset,
                       __global const REAL* restrict table, const long table_offset,
                       __global const REAL* restrict circle, const long circle_offset, __global REAL* restrict scratch,
                       const long scratch_offset, __global REAL* restrict out, const long out_offset) {
    const long item = get_global_id(0), items = get_global_size(0);
    __global REAL *a = scratch + scratch_offset + item * 4 * f.n, *b = a + 2 * f.n;
    for (long row = item * f.rows / items; row < (item + 1) * f.rows / items; ++row) {
        __global const REAL* in = x + x_offset + row * f.in_row;
        __global REAL* to = out + out_offset + row * f.out_row;
        if (f.kind == C2R) {
            fft_rows_real(f.n, f.kind, 1, in, circle + circle_offset, a);
            in = a;
        }
        __global const REAL* result =
            fft_passes(f.m, f.passes, f.radices, in, 2 * VW, sign, w + w_offset, table + table_offset, 1, a, b);
        if (f.kind == R2C) {
            __global REAL* spectrum = result == a ? b : a;
            fft_rows_store(f.m, sign, 1, result, spectrum);
            fft_rows_real(f.n, f.kind, scale, spectrum, circle + circle_offset, to);
        } else {
            fft_rows_store(f.m, sign, scale, result, to);
        }
    }
}
