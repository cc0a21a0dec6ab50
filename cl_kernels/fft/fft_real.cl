// Transforms of 2 h real numbers by those of h complex ones, z[j] = x[2 j] + i x[2 j + 1] (Press et al., Numerical
// Recipes, 12.3).
//
//   fft_real_after   of Z (rows, h), the transform of z, that of x: out (rows, h + 1),
//                    X[k] = (Z[k] + Z*[h - k]) / 2 - i w[k] (Z[k] - Z*[h - k]) / 2
//   fft_real_before  of X (rows, h + 1) what the conjugate transform makes 2 h real numbers of: out (rows, h),
//                    Z[k] = X[k] + X*[h - k] + i w*[k] (X[k] - X*[h - k]); the imaginary parts of X[0] and X[h] count
//                    as 0
//
//   REAL    type of the numbers; complex ones are pairs
//   w       exp(-pi i k / h), k = 0 .. h, pairs
//   scale   what the result is multiplied by
//   EACH    numbers of a work-item
//   global  (work-items of a row, rows)
#ifdef REAL_IS_DOUBLE
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif

__kernel void fft_real_after(const long h, const REAL scale, __global const REAL* restrict z, const long z_offset,
                             __global const REAL* restrict w, const long w_offset, __global REAL* restrict out,
                             const long out_offset) {
    const long row = get_global_id(1), first = (long)get_global_id(0) * EACH;
    __global const REAL* from = z + z_offset + row * 2 * h;
    __global REAL* to = out + out_offset + row * 2 * (h + 1);
    for (long k = first; k < min(first + EACH, h + 1); ++k) {
        const long a = k < h ? k : 0, b = k > 0 ? h - k : 0;
        const REAL ar = from[2 * a], ai = from[2 * a + 1], br = from[2 * b], bi = -from[2 * b + 1];
        const REAL by = (REAL)0.5 * scale, wr = w[w_offset + 2 * k], wi = w[w_offset + 2 * k + 1];
        const REAL dr = ar - br, di = ai - bi;
        to[2 * k] = by * (ar + br + (wr * di + wi * dr));
        to[2 * k + 1] = by * (ai + bi - (wr * dr - wi * di));
    }
}

__kernel void fft_real_before(const long h, const REAL scale, __global const REAL* restrict x, const long x_offset,
                              __global const REAL* restrict w, const long w_offset, __global REAL* restrict out,
                              const long out_offset) {
    const long row = get_global_id(1), first = (long)get_global_id(0) * EACH;
    __global const REAL* from = x + x_offset + row * 2 * (h + 1);
    __global REAL* to = out + out_offset + row * 2 * h;
    for (long k = first; k < min(first + EACH, h); ++k) {
        const REAL ar = from[2 * k], ai = k > 0 ? from[2 * k + 1] : (REAL)0;
        const REAL br = from[2 * (h - k)], bi = k > 0 ? -from[2 * (h - k) + 1] : (REAL)0;
        const REAL wr = w[w_offset + 2 * k], wi = -w[w_offset + 2 * k + 1];
        const REAL dr = ar - br, di = ai - bi;
        to[2 * k] = scale * (ar + br - (wr * di + wi * dr));
        to[2 * k + 1] = scale * (ai + bi + (wr * dr - wi * di));
    }
}
