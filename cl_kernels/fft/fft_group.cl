// FFTs of n complex numbers: each work-group computes `columns` of them in local memory, by Stockham's passes (formula
// in fft_vectors.clh). simt style. Input and output of transform L = q + s p are as in fft_lanes.cl: rows, columns, and
// passes of longer transforms.
//
//   REAL     type of real and imaginary part; complex numbers are pairs
//   sign     1; -1 for the conjugate transform
//   scale    factor of the result
//   w        twiddle factors of the passes (fft_vectors.clh)
//   segment  factors exp(-2 pi i p k / (n m)) as in fft_lanes.cl
//   shared   local memory of 4 n columns REALs: two buffers
//   global   (groups of `columns` lanes, outer)
#include "math.clh"
#define VEC REAL
#include "fft_radix.clh"

#define REAL2 D_PASTE(REAL, 2)
#define FFT_RADIX(radices, pass) ((int)((radices) >> (4 * (pass))) & 15)

struct FftLanes {
    long outer, lanes, in_outer, in_lane, in_step, out_outer, out_q, out_p, out_step, s, m;
    ulong radices;
    int n, passes, twiddled, block, real, more;
};

// Element e of column c is at e * columns + c.
#define GROUP_PASS(R)                                                                                                 \
    static inline void group_pass_##R(const int s, const int m, const int columns, const int item, const int items,   \
                                      __local const REAL2* in, __global const REAL* restrict w, __local REAL2* out) { \
        for (int b = item; b < s * m * columns; b += items) {                                                         \
            const int qc = b % (s * columns), p = b / (s * columns);                                                  \
            REAL re[R], im[R];                                                                                        \
            _Pragma("unroll") for (int j = 0; j < R; ++j) {                                                           \
                const REAL2 value = in[b + s * m * columns * j];                                                      \
                re[j] = value.x, im[j] = value.y;                                                                     \
            }                                                                                                         \
            dft_##R(re, im);                                                                                          \
            __global const REAL* of = w + 2 * (R - 1) * p;                                                            \
            out[qc + s * columns * R * p] = (REAL2)(re[0], im[0]);                                                    \
            _Pragma("unroll") for (int k = 1; k < R; ++k) {                                                           \
                const REAL wr = of[2 * k - 2], wi = of[2 * k - 1];                                                    \
                out[qc + s * columns * (R * p + k)] = (REAL2)(re[k] * wr - im[k] * wi, re[k] * wi + im[k] * wr);      \
            }                                                                                                         \
        }                                                                                                             \
    }
GROUP_PASS(2)
GROUP_PASS(3)
GROUP_PASS(4)
GROUP_PASS(5)
GROUP_PASS(7)
GROUP_PASS(8)

__kernel void fft_group(const struct FftLanes f, const int columns, const REAL sign, const REAL scale,
                        __global const REAL* restrict x, const long x_offset, __global const REAL* restrict w,
                        const long w_offset, __global const REAL* restrict segment, const long segment_offset,
                        __global REAL* restrict result, const long out_offset, __local REAL2* shared) {
    const int item = get_local_id(0), items = get_local_size(0), all = f.n * columns;
    const long first = (long)get_group_id(0) * columns, o = get_group_id(1);
    __global const REAL* in = x + x_offset + o * f.in_outer;
    __global REAL* out = result + out_offset + o * f.out_outer;
    // Neighbouring work-items access neighbouring elements in memory.
    const int in_rows = f.in_step < f.in_lane, out_rows = f.out_step < f.out_p && (f.s == 1 || f.out_step < f.out_q);
    for (int i = item; i < all; i += items) {
        const int c = in_rows ? i / f.n : i % columns, e = in_rows ? i % f.n : i / columns;
        __global const REAL* at = in + min(first + c, f.lanes - 1) * f.in_lane + e * f.in_step;
        shared[e * columns + c] = (REAL2)(at[0], at[1] * sign);
    }
    __local REAL2 *a = shared, *b = shared + all;
    int s = 1, m = f.n;
    __global const REAL* of = w + w_offset;
    for (int pass = 0; pass < f.passes; ++pass) {
        barrier(CLK_LOCAL_MEM_FENCE);
        const int radix = FFT_RADIX(f.radices, pass);
        m /= radix;
        switch (radix) {
            case 2:
                group_pass_2(s, m, columns, item, items, a, of, b);
                break;
            case 3:
                group_pass_3(s, m, columns, item, items, a, of, b);
                break;
            case 4:
                group_pass_4(s, m, columns, item, items, a, of, b);
                break;
            case 5:
                group_pass_5(s, m, columns, item, items, a, of, b);
                break;
            case 7:
                group_pass_7(s, m, columns, item, items, a, of, b);
                break;
            default:
                group_pass_8(s, m, columns, item, items, a, of, b);
                break;
        }
        of += 2 * (radix - 1) * m;
        s *= radix;
        __local REAL2* const swapped = a;
        a = b;
        b = swapped;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    __global const REAL* fine = segment + segment_offset;
    __global const REAL* coarse = fine + 2 * f.m * f.block;
    for (int i = item; i < all; i += items) {
        const int c = out_rows ? i / f.n : i % columns, k = out_rows ? i % f.n : i / columns;
        const long lane = first + c, p = lane / f.s;
        if (lane >= f.lanes) continue;
        const REAL2 value = a[k * columns + c];
        REAL re = value.x, im = value.y;
        if (f.twiddled) {
            const long at = 2 * f.m * (k % f.block) + p, over = 2 * f.m * (k / f.block) + p;
            const REAL fr = fine[at], fi = fine[at + f.m], cr = coarse[over], ci = coarse[over + f.m];
            const REAL wr = fr * cr - fi * ci, wi = fr * ci + fi * cr, rotated = re * wr - im * wi;
            im = re * wi + im * wr;
            re = rotated;
        }
        __global REAL* to = out + (lane - p * f.s) * f.out_q + p * f.out_p + k * f.out_step;
        to[0] = re * scale;
        to[1] = im * sign * scale;
    }
}
