// FFTs of n complex numbers, VW transforms at a time, one per lane. simd style, for short rows, for columns (an axis
// that is not the last), and for the parts of long transforms.
//
// Transform L = q + s p of a line, 0 <= q < s, 0 <= p < m, reads element j at in_lane L + in_step j, and writes element
// k, times exp(-2 pi i p k / (n m)) if m > 1, to out_q q + out_p p + out_step k. With in_step = 2 s m,
// in_lane = out_q = 2, out_p = 2 n s and out_step = 2 s this is a pass of radix n of a longer transform
// (fft_vectors.clh).
//
//   REAL     type of real and imaginary part; complex numbers are pairs
//   VW       elements per vector: 4, 8 or 16
//   sign     1; -1 for the conjugate transform
//   scale    factor of the result
//   w        twiddle factors of the passes (fft_vectors.clh)
//   segment  for m > 1 the factors exp(-2 pi i p k / (n m)) as products: for k < `block`, m real and m imaginary parts
//            each, followed by those for k = 0, block, 2 block, ...
//   kind     C2C; R2C: rows of 2 n real numbers to n + 1 complex ones; C2R: back (fft_real.clh)
//   circle   exp(-pi i k / n), k <= n, for R2C and C2R
//   scratch  workspace of 4 (n + 1) VW REALs per work-item
//   global   work-items, each of which processes a range of the units: VW transforms of one line
#include "fft_vectors.clh"
#include "fft_real.clh"

TRANSPOSITION(transpose_vectors, VEC, VW)

struct FftLanes {
    long outer, lanes, in_outer, in_lane, in_step, out_outer, out_q, out_p, out_step, s, m;
    ulong radices;                                 // radices of the passes, 4 bits each, the first lowest
    int n, passes, twiddled, block, kind, unused;  // twiddled: m > 1, and the factors are applied
};

// Loads rows of pairs, `lane` apart, one row per lane.
NOINLINE void fft_load_rows(const int n, const REAL sign, __global const REAL* restrict in, const long lane,
                            __global REAL* restrict out) {
    int e = 0;
    for (; e + VW / 2 <= n; e += VW / 2) {
        VEC tile[VW];
#pragma unroll
        for (int l = 0; l < VW; ++l) tile[l] = VLOAD(in + l * lane + 2 * e);
        transpose_vectors(tile);
#pragma unroll
        for (int i = 0; i < VW / 2; ++i) store_complex(tile[2 * i], tile[2 * i + 1] * sign, out, e + i);
    }
    for (; e < n; ++e)
        for (int l = 0; l < VW; ++l) {
            out[2 * VW * e + l] = in[l * lane + 2 * e];
            out[2 * VW * e + VW + l] = in[l * lane + 2 * e + 1] * sign;
        }
}

// Loads with any strides; of `count` lanes the last one is repeated for the missing ones.
NOINLINE void fft_load_any(const int n, const REAL sign, __global const REAL* restrict in, const long lane,
                           const long step, const int count, __global REAL* restrict out) {
    for (int e = 0; e < n; ++e)
        for (int l = 0; l < VW; ++l) {
            __global const REAL* at = in + min(l, count - 1) * lane + e * step;
            out[2 * VW * e + l] = at[0];
            out[2 * VW * e + VW + l] = at[1] * sign;
        }
}

// Output offsets of the lanes, and the p of their factors.
struct FftOutputs {
    long to[VW], p[VW];
    int count, same_p, consecutive_p;  // same_p: all p are equal; consecutive_p: those of neighbouring lanes
};

static inline struct FftOutputs fft_outputs(const struct FftLanes* f, const long first) {
    struct FftOutputs outputs;
    outputs.count = (int)min((long)VW, f->lanes - first);
    for (int l = 0; l < VW; ++l) {
        const long lane = first + min(l, outputs.count - 1), p = lane / f->s;
        outputs.p[l] = p;
        outputs.to[l] = (lane - p * f->s) * f->out_q + p * f->out_p;
    }
    outputs.same_p = outputs.p[0] == outputs.p[VW - 1];
    outputs.consecutive_p = outputs.count == VW && f->s == 1;
    return outputs;
}

static inline VEC fft_factor(__global const REAL* from, const struct FftOutputs* outputs) {
    if (outputs->same_p) return (VEC)(from[outputs->p[0]]);
    if (outputs->consecutive_p) return VLOAD(from + outputs->p[0]);
    REAL each[VW];
    for (int l = 0; l < VW; ++l) each[l] = from[outputs->p[l]];
    return VLOAD(each);
}

// Multiplies the elements of a unit with its factors, in place.
NOINLINE void fft_twiddle(const struct FftLanes* f, __global const REAL* restrict segment,
                          const struct FftOutputs* outputs, __global REAL* restrict out) {
    __global const REAL* coarse = segment + 2 * f->m * f->block;
    for (int first = 0; first < f->n; first += f->block, coarse += 2 * f->m) {
        const VEC cr = fft_factor(coarse, outputs), ci = fft_factor(coarse + f->m, outputs);
        __global const REAL* fine = segment;
        for (int k = first; k < min(first + f->block, f->n); ++k, fine += 2 * f->m) {
            VEC wr = fft_factor(fine, outputs), wi = fft_factor(fine + f->m, outputs);
            complex_multiply(&wr, &wi, cr, ci);
            VEC re, im;
            load_complex(out, k, &re, &im);
            complex_multiply(&re, &im, wr, wi);
            store_complex(re, im, out, k);
        }
    }
}

NOINLINE void fft_store_columns(const int n, const REAL scale, const REAL sign_scale, __global const REAL* restrict in,
                                __global REAL* restrict out, const long step) {
    for (int k = 0; k < n; ++k) {
        VEC re, im;
        load_complex(in, k, &re, &im);
        re = re * scale, im = im * sign_scale;
        VSTORE(ZIP_LOW(re, im), out + k * step);
        VSTORE(ZIP_HIGH(re, im), out + k * step + VW);
    }
}

NOINLINE void fft_store_rows(const int n, const REAL scale, const REAL sign_scale, __global const REAL* restrict in,
                             __global REAL* restrict out, const struct FftOutputs* outputs) {
    int e = 0;
    for (; e + VW / 2 <= n; e += VW / 2) {
        VEC tile[VW];
#pragma unroll
        for (int i = 0; i < VW / 2; ++i) {
            tile[2 * i] = VLOAD(in + (long)(e + i) * (2 * VW)) * scale;
            tile[2 * i + 1] = VLOAD(in + (long)(e + i) * (2 * VW) + VW) * sign_scale;
        }
        transpose_vectors(tile);
#pragma unroll
        for (int l = 0; l < VW; ++l) VSTORE(tile[l], out + outputs->to[l] + 2 * e);
    }
    for (; e < n; ++e)
        for (int l = 0; l < VW; ++l) {
            out[outputs->to[l] + 2 * e] = in[2 * VW * e + l] * scale;
            out[outputs->to[l] + 2 * e + 1] = in[2 * VW * e + VW + l] * sign_scale;
        }
}

NOINLINE void fft_store_any(const int n, const REAL scale, const REAL sign_scale, __global const REAL* restrict in,
                            __global REAL* restrict out, const struct FftOutputs* outputs, const long step) {
    for (int k = 0; k < n; ++k)
        for (int l = 0; l < outputs->count; ++l) {
            out[outputs->to[l] + k * step] = in[2 * VW * k + l] * scale;
            out[outputs->to[l] + k * step + 1] = in[2 * VW * k + VW + l] * sign_scale;
        }
}

// fft_real_pairs() for VW rows at once; for C2R the result is conjugated if `conj` is -1.
NOINLINE void fft_lanes_real(const int h, const int kind, const REAL conj, __global const REAL* restrict in,
                             __global const REAL* restrict w, __global REAL* restrict out) {
    const struct FftRealFactors factors = fft_real_factors(kind, 1);
    const REAL sign = (REAL)kind;
    const VEC first_re = VLOAD(in), first_im = kind == R2C ? VLOAD(in + VW) : VLOAD(in + (long)h * (2 * VW));
    const VEC zero = 0;
    if (kind == R2C) {
        store_complex(first_re + first_im, zero, out, 0);
        store_complex(first_re - first_im, zero, out, h);
    } else {
        store_complex(first_re + first_im, (first_re - first_im) * conj, out, 0);
    }
    for (int k = 1; k <= h / 2; ++k) {
        VEC ar, ai, br, bi;
        load_complex(in, k, &ar, &ai);
        load_complex(in, h - k, &br, &bi);
        fft_real_pair_vector(&ar, &ai, &br, &bi, (VEC)(w[2 * k]), (VEC)(w[2 * k + 1] * sign), factors);
        store_complex(br, kind == R2C ? bi : bi * conj, out, h - k);
        store_complex(ar, kind == R2C ? ai : ai * conj, out, k);
    }
}

NOINLINE void fft_lanes_unit(const struct FftLanes* f, const REAL sign, const REAL scale,
                             __global const REAL* restrict in, __global const REAL* restrict w,
                             __global const REAL* restrict segment, __global const REAL* restrict circle,
                             __global REAL* a, __global REAL* restrict out, const long first) {
    __global REAL* b = a + (long)(f->n + 1) * (2 * VW);
    const int loaded = f->kind == C2R ? f->n + 1 : f->n, stored = f->kind == R2C ? f->n + 1 : f->n;
    const struct FftOutputs outputs = fft_outputs(f, first);
    const int all_lanes = outputs.count == VW;

    in += first * f->in_lane;
    const int columns = all_lanes && f->in_lane == 2 && f->kind == C2C;
    // Half spectra are conjugated after fft_lanes_real instead.
    const REAL load_sign = f->kind == C2R ? (REAL)1 : sign;
    if (!columns && all_lanes && f->in_step == 2) fft_load_rows(loaded, load_sign, in, f->in_lane, a);
    else if (!columns) fft_load_any(loaded, load_sign, in, f->in_lane, f->in_step, outputs.count, a);
    if (f->kind == C2R) {
        fft_lanes_real(f->n, f->kind, sign, a, circle, b);
        __global REAL* const swapped = a;
        a = b;
        b = swapped;
    }
    __global REAL* result = fft_passes(f->n, f->passes, f->radices, in, columns ? f->in_step : 0, sign, w, w, 0, a, b);
    if (f->twiddled) fft_twiddle(f, segment, &outputs, result);
    if (f->kind == R2C) {
        __global REAL* const other = result == a ? b : a;
        fft_lanes_real(f->n, f->kind, sign, result, circle, other);
        result = other;
    }
    if (all_lanes && outputs.same_p && f->out_q == 2)
        fft_store_columns(stored, scale, sign * scale, result, out + outputs.to[0], f->out_step);
    else if (all_lanes && f->out_step == 2) fft_store_rows(stored, scale, sign * scale, result, out, &outputs);
    else fft_store_any(stored, scale, sign * scale, result, out, &outputs, f->out_step);
}

__kernel void fft_lanes(const struct FftLanes f, const REAL sign, const REAL scale, __global const REAL* restrict x,
                        const long x_offset, __global const REAL* restrict w, const long w_offset,
                        __global const REAL* restrict segment, const long segment_offset,
                        __global const REAL* restrict circle, const long circle_offset, __global REAL* restrict scratch,
                        const long scratch_offset, __global REAL* restrict out, const long out_offset) {
    const long item = get_global_id(0), items = get_global_size(0);
    const long groups = (f.lanes + VW - 1) / VW, units = f.outer * groups;
    const struct FftLanes copy = f;
    for (long unit = item * units / items; unit < (item + 1) * units / items; ++unit) {
        const long o = unit / groups;
        fft_lanes_unit(&copy, sign, scale, x + x_offset + o * f.in_outer, w + w_offset, segment + segment_offset,
                       circle + circle_offset, scratch + scratch_offset + item * 4 * VW * (f.n + 1),
                       out + out_offset + o * f.out_outer, (unit - o * groups) * VW);
    }
}
