// Multiplication by the chirp of Bluestein's FFT (1970): out[o][j][q] = c[j] x[o][j][q] for j < count, 0 for the rest.
//
//   REAL      type of real and imaginary part; complex numbers are pairs; out (outer, n, inner) is dense
//   c         factors, complex
//   sign_in   -1: conjugates x
//   sign_out  -1: conjugates the result
//   scale     factor of the result
//   global    (inner, n, outer)
#ifdef REAL_IS_DOUBLE
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif

struct FftChirp {
    long count, in_outer, in_step, in_inner;
};

__kernel void fft_chirp(const struct FftChirp f, const REAL sign_in, const REAL sign_out, const REAL scale,
                        __global const REAL* restrict x, const long x_offset, __global const REAL* restrict c,
                        const long c_offset, __global REAL* restrict out, const long out_offset) {
    const long q = get_global_id(0), j = get_global_id(1), o = get_global_id(2);
    __global REAL* to = out + out_offset + 2 * ((o * get_global_size(1) + j) * get_global_size(0) + q);
    const int inside = j < f.count;
    const long at = x_offset + o * f.in_outer + (inside ? j : 0) * f.in_step + q * f.in_inner;
    const long factor_at = c_offset + 2 * (inside ? j : 0);
    const REAL re = x[at], im = x[at + 1] * sign_in, cr = c[factor_at], ci = c[factor_at + 1];
    to[0] = inside ? (re * cr - im * ci) * scale : (REAL)0;
    to[1] = inside ? (re * ci + im * cr) * scale * sign_out : (REAL)0;
}
