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
    int n, passes, twiddled, block, kind, unused;
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
            __global const REAL* factors = w + 2 * (R - 1) * p;                                                       \
            out[qc + s * columns * R * p] = (REAL2)(re[0], im[0]);                                                    \
            _Pragma("unroll") for (int k = 1; k < R; ++k) {                                                           \
                const REAL wr = factors[2 * k - 2], wi = factors[2 * k - 1];                                          \
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

static inline void group_pass(const int radix, const int s, const int m, const int columns, const int item,
                              const int items, __local const REAL2* in, __global const REAL* w, __local REAL2* out) {
    switch (radix) {
        case 2:
            group_pass_2(s, m, columns, item, items, in, w, out);
            break;
        case 3:
            group_pass_3(s, m, columns, item, items, in, w, out);
            break;
        case 4:
            group_pass_4(s, m, columns, item, items, in, w, out);
            break;
        case 5:
            group_pass_5(s, m, columns, item, items, in, w, out);
            break;
        case 7:
            group_pass_7(s, m, columns, item, items, in, w, out);
            break;
        default:
            group_pass_8(s, m, columns, item, items, in, w, out);
            break;
    }
}

// Loads `columns` transforms from lane `first` of a line. Neighbouring work-items read neighbouring elements.
static inline void load_columns(const struct FftLanes f, const int columns, const REAL sign, const long first,
                                __global const REAL* in, __local REAL2* shared) {
    const int by_rows = f.in_step < f.in_lane, count = f.n * columns;
    for (int i = get_local_id(0); i < count; i += (int)get_local_size(0)) {
        const int c = by_rows ? i / f.n : i % columns, e = by_rows ? i % f.n : i / columns;
        __global const REAL* at = in + min(first + c, f.lanes - 1) * f.in_lane + e * f.in_step;
        shared[e * columns + c] = (REAL2)(at[0], at[1] * sign);
    }
}

// Factor exp(-2 pi i p k / (n m)) of element k in lane q + s p.
static inline REAL2 lane_factor(const struct FftLanes f, __global const REAL* segment, const int k, const long p) {
    __global const REAL* coarse = segment + 2 * f.m * f.block;
    const long fine_at = 2 * f.m * (k % f.block) + p, coarse_at = 2 * f.m * (k / f.block) + p;
    const REAL fr = segment[fine_at], fi = segment[fine_at + f.m], cr = coarse[coarse_at], ci = coarse[coarse_at + f.m];
    return (REAL2)(fr * cr - fi * ci, fr * ci + fi * cr);
}

// Stores `columns` transforms from lane `first` of a line, multiplied by their factors. Neighbouring work-items write
// neighbouring elements.
static inline void store_columns(const struct FftLanes f, const int columns, const REAL sign, const REAL scale,
                                 const long first, __local const REAL2* shared, __global const REAL* segment,
                                 __global REAL* out) {
    const int by_rows = f.out_step < f.out_p && (f.s == 1 || f.out_step < f.out_q), count = f.n * columns;
    for (int i = get_local_id(0); i < count; i += (int)get_local_size(0)) {
        const int c = by_rows ? i / f.n : i % columns, k = by_rows ? i % f.n : i / columns;
        const long lane = first + c, p = lane / f.s;
        if (lane >= f.lanes) continue;
        const REAL2 value = shared[k * columns + c];
        REAL re = value.x, im = value.y;
        if (f.twiddled) {
            const REAL2 w = lane_factor(f, segment, k, p);
            const REAL rotated = re * w.x - im * w.y;
            im = re * w.y + im * w.x;
            re = rotated;
        }
        __global REAL* to = out + (lane - p * f.s) * f.out_q + p * f.out_p + k * f.out_step;
        to[0] = re * scale;
        to[1] = im * sign * scale;
    }
}

__kernel void fft_group(const struct FftLanes f, const int columns, const REAL sign, const REAL scale,
                        __global const REAL* restrict x, const long x_offset, __global const REAL* restrict w,
                        const long w_offset, __global const REAL* restrict segment, const long segment_offset,
                        __global REAL* restrict result, const long out_offset, __local REAL2* shared) {
    const int item = get_local_id(0), items = get_local_size(0);
    const long first = (long)get_group_id(0) * columns, o = get_group_id(1);
    load_columns(f, columns, sign, first, x + x_offset + o * f.in_outer, shared);
    __local REAL2 *a = shared, *b = shared + f.n * columns;
    int s = 1, m = f.n;
    __global const REAL* factors = w + w_offset;
    for (int pass = 0; pass < f.passes; ++pass) {
        barrier(CLK_LOCAL_MEM_FENCE);
        const int radix = FFT_RADIX(f.radices, pass);
        m /= radix;
        group_pass(radix, s, m, columns, item, items, a, factors, b);
        factors += 2 * (radix - 1) * m;
        s *= radix;
        __local REAL2* const swapped = a;
        a = b;
        b = swapped;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    store_columns(f, columns, sign, scale, first, a, segment + segment_offset, result + out_offset + o * f.out_outer);
}
