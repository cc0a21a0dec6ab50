// Max and average pooling over windows of WINDOW_H x WINDOW_W with strides STRIDE_H, STRIDE_W over x (planes, H, W)
// padded by PADDING_H, PADDING_W; out (planes, P, Q). A plane is one channel of one example.
//
//   max_pool2d_forward:   out[i][p][q] = max of x over the window; winners[i][p][q] = h * W + w of its first occurrence
//   max_pool2d_backward:  x_gradient[i][h][w] = sum of g[i][p][q] over the windows whose winner is (h, w)
//   avg_pool2d_forward:   out[i][p][q] = sum of x over the window / count
//   avg_pool2d_backward:  x_gradient[i][h][w] = sum of g[i][p][q] / count over the windows that contain (h, w)
//   ..._whole:            the same for one window as large as the plane, without padding (P = Q = 1)
//
// Each sum is computed by one work-item in the order of p, q: results are bitwise reproducible.
//
//   SIMD, SIMT      simd or simt style
//                   simd: a work-item takes `each` rows of the result, or planes, global (ceil(rows / each));
//                   max_pool2d_backward: `each` planes and `band` rows of them, global (ceil(planes / each),
//                   ceil(H / band))
//                   simt: one element of the result each, global (columns, rows), rounded up to the local size
//   LANES           SIMD: elements per vector
//   MAX             1: max_pool2d, 0: avg_pool2d
//   GLOBAL_POOL     defined: the kernels ..._whole
//   COUNT_PADDING   1: count is the window's area; 0: the part of it inside x
//   NO_WINNERS      defined: max_pool2d_forward does not write winners, which may be any buffer
//   REAL            type of the arithmetic (math.clh)
//   STORED, OUTPUT  types of operands and result in memory (storage.clh)
#include "noinline.clh"
#include "math.clh"
#include "storage.clh"

struct Pool {
    long rows, each;  // rows of the result in all planes, or planes; number per work-item
    long elements;    // of the operand, in all planes
    int H, W, P, Q;
    int band;    // max_pool2d_backward: rows of x_gradient per work-item
    int unused;  // avoids padding of the struct
};

#ifdef NO_WINNERS
#define WITH_WINNERS 0
#else
#define WITH_WINNERS 1
#endif

// Row indices are split without %: clang turns a pair of / and % into a freeze instruction, which Oclgrind does not
// support.

#ifndef GLOBAL_POOL

// The windows that contain row h are [first_window_h(h), last_window_h(h, P)]; _w: those that contain column w.
static inline int first_window_h(const int h) {
    return h + PADDING_H >= WINDOW_H ? (h + PADDING_H - WINDOW_H) / STRIDE_H + 1 : 0;
}
static inline int last_window_h(const int h, const int P) { return min((h + PADDING_H) / STRIDE_H, P - 1); }
static inline int first_window_w(const int w) {
    return w + PADDING_W >= WINDOW_W ? (w + PADDING_W - WINDOW_W) / STRIDE_W + 1 : 0;
}
static inline int last_window_w(const int w, const int Q) { return min((w + PADDING_W) / STRIDE_W, Q - 1); }

struct Best {
    REAL value;
    int winner;
};

#ifdef SIMT
#define SCALAR_FN static inline
#else
#define SCALAR_FN NOINLINE  // vectors do most of the work
#endif

// Maximum of one window of a plane x, over its rows first_h to last_h.
SCALAR_FN struct Best max_of_window(__global const STORED* x, const int W, const int first_h, const int last_h,
                                    const int q) {
    const int first_w = max(q * STRIDE_W - PADDING_W, 0), last_w = min(q * STRIDE_W - PADDING_W + WINDOW_W, W);
    struct Best best = {LOADED(x[first_h * W + first_w]), first_h * W + first_w};
    for (int h = first_h; h < last_h; ++h)
        for (int w = first_w; w < last_w; ++w) {
            const REAL value = LOADED(x[h * W + w]);
            const int better = value > best.value || (value != value && best.value == best.value);
            best.value = better ? value : best.value;
            best.winner = better ? h * W + w : best.winner;
        }
    return best;
}

SCALAR_FN REAL sum_of_window(__global const STORED* x, const int W, const int first_h, const int last_h, const int q) {
    const int first_w = max(q * STRIDE_W - PADDING_W, 0), last_w = min(q * STRIDE_W - PADDING_W + WINDOW_W, W);
    REAL sum = 0;
    for (int h = first_h; h < last_h; ++h)
        for (int w = first_w; w < last_w; ++w) sum += LOADED(x[h * W + w]);
    return sum;
}

// The factor 1 / count of a window.
static inline REAL inverse_count(const int p, const int q, const int H, const int W) {
#if COUNT_PADDING
    return (REAL)1 / (REAL)(WINDOW_H * WINDOW_W);
#else
    const int height = min(p * STRIDE_H - PADDING_H + WINDOW_H, H) - max(p * STRIDE_H - PADDING_H, 0);
    const int width = min(q * STRIDE_W - PADDING_W + WINDOW_W, W) - max(q * STRIDE_W - PADDING_W, 0);
    return (REAL)1 / (REAL)(height * width);
#endif
}

// avg_pool2d gradient at column w, from the rows first_p to last_p of a plane g whose windows contain the row.
SCALAR_FN REAL backward_sum(__global const STORED* g, const struct Pool* pool, const int first_p, const int last_p,
                            const int w) {
    const int first_q = first_window_w(w), last_q = last_window_w(w, pool->Q);
    REAL sum = 0;
    for (int p = first_p; p <= last_p; ++p)
        for (int q = first_q; q <= last_q; ++q)
            sum += LOADED(g[p * pool->Q + q]) * inverse_count(p, q, pool->H, pool->W);
    return sum;
}

#endif

#ifdef SIMT

__kernel void max_pool2d_forward(const struct Pool pool, __global const STORED* restrict x_base, const long x_offset,
                                 __global OUTPUT* restrict out, const long out_offset, __global int* restrict winners,
                                 const long winners_offset) {
    const int column = get_global_id(0);
    const long row = get_global_id(1);
    if (row >= pool.rows || column >= pool.Q) return;
    const long plane = row / pool.P;
    const int h = (int)(row - plane * pool.P) * STRIDE_H - PADDING_H;
    const struct Best best = max_of_window(x_base + x_offset + plane * pool.H * pool.W, pool.W, max(h, 0),
                                           min(h + WINDOW_H, pool.H), column);
    out[out_offset + row * pool.Q + column] = ROUNDED(best.value);
    if (WITH_WINNERS) winners[winners_offset + row * pool.Q + column] = best.winner;
}

__kernel void max_pool2d_backward(const struct Pool pool, __global const STORED* restrict g_base, const long g_offset,
                                  __global const int* restrict winners_base, const long winners_offset,
                                  __global OUTPUT* restrict x, const long x_offset) {
    const int column = get_global_id(0);
    const long row = get_global_id(1);
    if (row >= pool.rows || column >= pool.W) return;
    const long plane = row / pool.H;
    const int h = (int)(row - plane * pool.H);
    __global const STORED* g = g_base + g_offset + plane * pool.P * pool.Q;
    __global const int* winners = winners_base + winners_offset + plane * pool.P * pool.Q;
    const int first_p = first_window_h(h), last_p = last_window_h(h, pool.P);
    const int first_q = first_window_w(column), last_q = last_window_w(column, pool.Q);
    REAL sum = 0;
    for (int p = first_p; p <= last_p; ++p)
        for (int q = first_q; q <= last_q; ++q)
            sum += winners[p * pool.Q + q] == h * pool.W + column ? LOADED(g[p * pool.Q + q]) : (REAL)0;
    x[x_offset + row * pool.W + column] = ROUNDED(sum);
}

__kernel void avg_pool2d_forward(const struct Pool pool, __global const STORED* restrict x_base, const long x_offset,
                                 __global OUTPUT* restrict out, const long out_offset) {
    const int column = get_global_id(0);
    const long row = get_global_id(1);
    if (row >= pool.rows || column >= pool.Q) return;
    const long plane = row / pool.P;
    const int p = (int)(row - plane * pool.P), h = p * STRIDE_H - PADDING_H;
    const REAL sum = sum_of_window(x_base + x_offset + plane * pool.H * pool.W, pool.W, max(h, 0),
                                   min(h + WINDOW_H, pool.H), column);
    out[out_offset + row * pool.Q + column] = ROUNDED(sum * inverse_count(p, column, pool.H, pool.W));
}

__kernel void avg_pool2d_backward(const struct Pool pool, __global const STORED* restrict g_base, const long g_offset,
                                  __global OUTPUT* restrict x, const long x_offset) {
    const int column = get_global_id(0);
    const long row = get_global_id(1);
    if (row >= pool.rows || column >= pool.W) return;
    const long plane = row / pool.H;
    const int h = (int)(row - plane * pool.H);
    const int first_p = first_window_h(h), last_p = last_window_h(h, pool.P);
    x[x_offset + row * pool.W + column] =
        ROUNDED(backward_sum(g_base + g_offset + plane * pool.P * pool.Q, &pool, first_p, last_p, column));
}

#else

#define T REAL
#include "row.clh"

// A vector may read past the ends of its row as long as it stays inside the planes; elements outside the row are masked
// or not stored. Where it would leave the planes (in the very first and last rows), elements are computed one by one.

#define IVEC ROW_PASTE(D_INT, LANES)  // integers of the width of REAL, as comparison results are
#define TO_REALS(v) ROW_PASTE(convert_, ROW_VEC)(v)
#define INSIDE(at, size) (((at) >= 0) & ((at) < (size)))
#include "shuffles.clh"
#define EVEN(a, b) ((ROW_VEC)(ROW_PASTE(EVEN_, LANES)(a, b)))
#define ZIP_LOW(a, b) ((ROW_VEC)(ROW_PASTE(ZIP_LOW_, LANES)(a, b)))
#define ZIP_HIGH(a, b) ((ROW_VEC)(ROW_PASTE(ZIP_HIGH_, LANES)(a, b)))
#if LANES == 16
#define LANE_INDICES ((IVEC)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15))
#else
#define LANE_INDICES ((IVEC)(0, 1, 2, 3, 4, 5, 6, 7))
#endif

#if STORED_AS + OUTPUT_AS > 0
UNALIGNED(row_16bit, ushort, LANES)
#endif
#if STORED_AS == 0
#define LOAD_ROW(p) ROW_LOAD(p)
#else
#define LOAD_ROW(p) LOADED(row_16bit_load(p))
#endif

// Stores the first `count` elements of v, or all of them.
static inline void store_reals(const ROW_VEC v, __global OUTPUT* to, const int count) {
#if OUTPUT_AS == 0
    if (count >= LANES) row_store(v, to);
    else row_store_rest(v, to, count);
#else
    if (count >= LANES) {
        row_16bit_store(ROUNDED(v), to);
        return;
    }
    ushort from[LANES];
    row_16bit_store(ROUNDED(v), from);
    for (int i = 0; i < count; ++i) to[i] = from[i];
#endif
}
#define INTS ROW_PASTE(int, LANES)
static inline void store_ints(const INTS v, __global int* to, const int count) {
    if (count >= LANES) {
        ROW_PASTE(vstore, LANES)(v, 0, to);
        return;
    }
    int from[LANES], i = 0;
    ROW_PASTE(vstore, LANES)(v, 0, from);
    if (count & 8) vstore8(vload8(0, from), 0, to), i = 8;
    if (count & 4) vstore4(vload4(0, from + i), 0, to + i), i += 4;
    if (count & 2) vstore2(vload2(0, from + i), 0, to + i), i += 2;
    if (count & 1) to[i] = from[i];
}

#ifdef GLOBAL_POOL

#undef T
#define T D_INT
ROW_HORIZONTAL(first_of, SMALLER)
#undef T
#define T REAL

// Elements are compared in LANES columns, then the columns with each other.
__kernel void max_pool2d_forward_whole(const struct Pool pool, __global const STORED* restrict x_base,
                                       const long x_offset, __global OUTPUT* restrict out, const long out_offset,
                                       __global int* restrict winners, const long winners_offset) {
    const size_t id0 = get_global_id(0);
    const int n = pool.H * pool.W;
    const long end = min(pool.rows, ((long)id0 + 1) * pool.each);
    for (long row = id0 * pool.each; row < end; ++row) {
        __global const STORED* x = x_base + x_offset + row * n;
        REAL value = LOADED(x[0]);
        int winner = 0, i = 1;
        if (n >= LANES) {
            ROW_VEC best = LOAD_ROW(x);
            IVEC at = LANE_INDICES;
            for (i = LANES; i + LANES <= n; i += LANES) {
                const ROW_VEC next = LOAD_ROW(x + i);
                const IVEC better = ~(next <= best) & (best == best);
                best = better ? next : best;
                at = better ? LANE_INDICES + i : at;
            }
            value = row_largest_of(best);
            at = ((best == value) | (best != best)) ? at : (IVEC)(n);
            winner = (int)first_of(at);
        }
        for (; i < n; ++i) {
            const REAL next = LOADED(x[i]);
            const int better = !(next <= value) & (value == value);
            value = better ? next : value;
            winner = better ? i : winner;
        }
        out[out_offset + row] = ROUNDED(value);
        if (WITH_WINNERS) winners[winners_offset + row] = winner;
    }
}

#if STORED_AS == 0
#define VALUE_TERM(v, w, m) (v)
ROW_SUM(row_sum, VALUE_TERM)

// For 16-bit types the operand is first copied to REAL.
__kernel void avg_pool2d_forward_whole(const struct Pool pool, __global const STORED* restrict x, const long x_offset,
                                       __global OUTPUT* restrict out, const long out_offset) {
    const size_t id0 = get_global_id(0);
    const int n = pool.H * pool.W;
    const long end = min(pool.rows, ((long)id0 + 1) * pool.each);
    for (long row = id0 * pool.each; row < end; ++row) {
        __global const STORED* from = x + x_offset + row * n;
        out[out_offset + row] = ROUNDED(row_sum(from, from, n, 0, pool.elements - row * n) * ((REAL)1 / (REAL)n));
    }
}
#endif

__kernel void avg_pool2d_backward_whole(const struct Pool pool, __global const STORED* restrict g, const long g_offset,
                                        __global OUTPUT* restrict x_base, const long x_offset) {
    const size_t id0 = get_global_id(0);
    const int n = pool.H * pool.W;
    const long end = min(pool.rows, ((long)id0 + 1) * pool.each);
    for (long row = id0 * pool.each; row < end; ++row) {
        __global OUTPUT* x = x_base + x_offset + row * n;
        const ROW_VEC part = (ROW_VEC)(LOADED(g[g_offset + row]) * ((REAL)1 / (REAL)n));
        for (int i = 0; i < n; i += LANES) store_reals(part, x + i, n - i);
    }
}

#else

// Loads LANES elements with a distance of STRIDE_W.
#if STRIDE_W == 1
#define LOAD_STRIDED(p) LOAD_ROW(p)
#elif STRIDE_W == 2
static inline ROW_VEC load_even(__global const STORED* p) {
    const ROW_VEC a = LOAD_ROW(p), b = LOAD_ROW(p + LANES);
    return EVEN(a, b);
}
#define LOAD_STRIDED(p) load_even(p)
#else
#define STRIDED(p, i) LOADED(p[(i)*STRIDE_W])
#define STRIDED4(p, i) STRIDED(p, i), STRIDED(p, i + 1), STRIDED(p, i + 2), STRIDED(p, i + 3)
#if LANES == 16
#define LOAD_STRIDED(p) ((ROW_VEC)(STRIDED4((p), 0), STRIDED4((p), 4), STRIDED4((p), 8), STRIDED4((p), 12)))
#else
#define LOAD_STRIDED(p) ((ROW_VEC)(STRIDED4((p), 0), STRIDED4((p), 4)))
#endif
#endif

// True if vectors may read all elements of windows q to q + LANES in rows first_h to last_h of the plane that begins at
// element `start`. With a stride above 2, elements are gathered one by one, which is worthwhile for whole vectors only.
static inline bool is_readable(const struct Pool* pool, const long start, const int first_h, const int last_h,
                               const int q) {
    return start + first_h * pool->W + q * STRIDE_W - PADDING_W >= 0 && (STRIDE_W <= 2 || pool->Q - q >= LANES) &&
           start + (last_h - 1) * pool->W + (q + LANES) * STRIDE_W - PADDING_W + WINDOW_W <= pool->elements;
}

#if MAX

struct BestVector {
    ROW_VEC value;
    IVEC winner;
};

// Maxima of the windows q to q + LANES of a plane x, over its rows first_h to last_h.
static inline struct BestVector max_of_windows(__global const STORED* x, const int W, const int first_h,
                                               const int last_h, const int q) {
    const IVEC column = LANE_INDICES * STRIDE_W + (q * STRIDE_W - PADDING_W);
    struct BestVector best = {(ROW_VEC)(-(REAL)INFINITY), max(column, (IVEC)(0)) + first_h * W};
    for (int h = first_h; h < last_h; ++h)
#pragma unroll
        for (int s = 0; s < WINDOW_W; ++s) {
            const ROW_VEC value = LOAD_STRIDED(x + h * W + q * STRIDE_W - PADDING_W + s);
            IVEC better = ~(value <= best.value) & (best.value == best.value);
#if PADDING_W > 0
            better &= INSIDE(column + s, W);
#endif
            best.value = better ? value : best.value;
            best.winner = better ? column + (h * W + s) : best.winner;
        }
    return best;
}

NOINLINE void max_pool2d_forward_part(const size_t id0, const struct Pool pool, __global const STORED* restrict x_base,
                                      const long x_offset, __global OUTPUT* restrict out_base, const long out_offset,
                                      __global int* restrict winners_base, const long winners_offset) {
    const long begin = id0 * pool.each, end = min(pool.rows, begin + pool.each);
    long plane = begin / pool.P;
    int p = (int)(begin - plane * pool.P);
    for (long row = begin; row < end; ++row) {
        const long start = plane * pool.H * pool.W;
        const int first_h = max(p * STRIDE_H - PADDING_H, 0), last_h = min(p * STRIDE_H - PADDING_H + WINDOW_H, pool.H);
        __global const STORED* x = x_base + x_offset + start;
        __global OUTPUT* out = out_base + out_offset + row * pool.Q;
        __global int* winners = winners_base + winners_offset + row * pool.Q;
        for (int q = 0; q < pool.Q; q += LANES) {
            if (!is_readable(&pool, start, first_h, last_h, q)) {
                for (int k = q; k < min(q + LANES, pool.Q); ++k) {
                    const struct Best best = max_of_window(x, pool.W, first_h, last_h, k);
                    out[k] = ROUNDED(best.value);
                    if (WITH_WINNERS) winners[k] = best.winner;
                }
                continue;
            }
            const struct BestVector best = max_of_windows(x, pool.W, first_h, last_h, q);
            store_reals(best.value, out + q, pool.Q - q);
            if (WITH_WINNERS) store_ints(ROW_PASTE(convert_int, LANES)(best.winner), winners + q, pool.Q - q);
        }
        if (++p == pool.P) p = 0, ++plane;
    }
}

__kernel void max_pool2d_forward(const struct Pool pool, __global const STORED* restrict x_base, const long x_offset,
                                 __global OUTPUT* restrict out_base, const long out_offset,
                                 __global int* restrict winners_base, const long winners_offset) {
    max_pool2d_forward_part(get_global_id(0), pool, x_base, x_offset, out_base, out_offset, winners_base,
                            winners_offset);
}

// A work-item clears the rows of its band and adds the gradient of each window at its winner. A window at the border of
// a band is visited by two work-items, but its winner is in one band.
NOINLINE void max_pool2d_backward_part(const size_t id0, const size_t id1, const struct Pool pool,
                                       __global const STORED* restrict g_base, const long g_offset,
                                       __global const int* restrict winners_base, const long winners_offset,
                                       __global OUTPUT* restrict x_base, const long x_offset) {
    const int first_h = id1 * pool.band, last_h = min(pool.H, first_h + pool.band);
    const int first_p = first_window_h(first_h), last_p = last_window_h(last_h - 1, pool.P);
    const int count = (last_h - first_h) * pool.W;
    const long end = min(pool.rows, ((long)id0 + 1) * pool.each);
    for (long row = id0 * pool.each; row < end; ++row) {
        __global OUTPUT* x = x_base + x_offset + (row * pool.H + first_h) * pool.W;
        __global const STORED* g = g_base + g_offset + row * pool.P * pool.Q;
        __global const int* winners = winners_base + winners_offset + row * pool.P * pool.Q;
        for (int i = 0; i < count; i += LANES) store_reals((ROW_VEC)(0), x + i, count - i);
        for (int i = first_p * pool.Q; i < (last_p + 1) * pool.Q; ++i) {
            const int at = winners[i] - first_h * pool.W;
            if (at < 0 || at >= count) continue;
#if STRIDE_H >= WINDOW_H && STRIDE_W >= WINDOW_W
            x[at] = ROUNDED(LOADED(g[i]));
#else
            x[at] += LOADED(g[i]);  // OUTPUT is REAL
#endif
        }
    }
}

__kernel void max_pool2d_backward(const struct Pool pool, __global const STORED* restrict g_base, const long g_offset,
                                  __global const int* restrict winners_base, const long winners_offset,
                                  __global OUTPUT* restrict x_base, const long x_offset) {
    max_pool2d_backward_part(get_global_id(0), get_global_id(1), pool, g_base, g_offset, winners_base, winners_offset,
                             x_base, x_offset);
}

#else

// The factors 1 / count of windows q to q + LANES; `column` is the first column of each, `height` the number of their
// rows inside x.
static inline ROW_VEC inverse_counts(const int height, const IVEC column, const int W) {
#if COUNT_PADDING
    return (ROW_VEC)((REAL)1 / (REAL)(WINDOW_H * WINDOW_W));
#else
    return (ROW_VEC)(1) / TO_REALS((min(column + WINDOW_W, (IVEC)(W)) - max(column, (IVEC)(0))) * height);
#endif
}

// Sums of the windows q to q + LANES of a plane x, over its rows first_h to last_h; `column` is the first column of
// each.
static inline ROW_VEC sum_of_windows(__global const STORED* x, const int W, const int first_h, const int last_h,
                                     const int q, const IVEC column) {
    ROW_VEC sum = (ROW_VEC)(0);
    for (int h = first_h; h < last_h; ++h)
#pragma unroll
        for (int s = 0; s < WINDOW_W; ++s) {
            const ROW_VEC value = LOAD_STRIDED(x + h * W + q * STRIDE_W - PADDING_W + s);
#if PADDING_W > 0
            sum += INSIDE(column + s, W) ? value : (ROW_VEC)(0);
#else
            sum += value;
#endif
        }
    return sum;
}

NOINLINE void avg_pool2d_forward_part(const size_t id0, const struct Pool pool, __global const STORED* restrict x_base,
                                      const long x_offset, __global OUTPUT* restrict out_base, const long out_offset) {
    const long begin = id0 * pool.each, end = min(pool.rows, begin + pool.each);
    long plane = begin / pool.P;
    int p = (int)(begin - plane * pool.P);
    for (long row = begin; row < end; ++row) {
        const long start = plane * pool.H * pool.W;
        const int first_h = max(p * STRIDE_H - PADDING_H, 0), last_h = min(p * STRIDE_H - PADDING_H + WINDOW_H, pool.H);
        __global const STORED* x = x_base + x_offset + start;
        __global OUTPUT* out = out_base + out_offset + row * pool.Q;
        for (int q = 0; q < pool.Q; q += LANES) {
            if (!is_readable(&pool, start, first_h, last_h, q)) {
                for (int k = q; k < min(q + LANES, pool.Q); ++k)
                    out[k] =
                        ROUNDED(sum_of_window(x, pool.W, first_h, last_h, k) * inverse_count(p, k, pool.H, pool.W));
                continue;
            }
            const IVEC column = LANE_INDICES * STRIDE_W + (q * STRIDE_W - PADDING_W);
            const ROW_VEC sum = sum_of_windows(x, pool.W, first_h, last_h, q, column);
            store_reals(sum * inverse_counts(last_h - first_h, column, pool.W), out + q, pool.Q - q);
        }
        if (++p == pool.P) p = 0, ++plane;
    }
}

__kernel void avg_pool2d_forward(const struct Pool pool, __global const STORED* restrict x_base, const long x_offset,
                                 __global OUTPUT* restrict out_base, const long out_offset) {
    avg_pool2d_forward_part(get_global_id(0), pool, x_base, x_offset, out_base, out_offset);
}

// Sums for the columns w + b + STRIDE_W k in lanes k, phase b. Such a column is at offset `rest` of window `first` + k,
// and further right in the windows before it.
#if STRIDE_W <= 2
static inline ROW_VEC backward_phase(__global const STORED* g, const struct Pool* pool, const int first_p,
                                     const int last_p, const int w, const int b) {
    const int first = w / STRIDE_W + (b + PADDING_W) / STRIDE_W, rest = (b + PADDING_W) % STRIDE_W;
    ROW_VEC sum = (ROW_VEC)(0);
    for (int p = first_p; p <= last_p; ++p)
#pragma unroll
        for (int before = (WINDOW_W - 1) / STRIDE_W; before >= 0; --before) {
            if (rest + before * STRIDE_W >= WINDOW_W) continue;
            const IVEC q = LANE_INDICES + (first - before);
            const int height = min(p * STRIDE_H - PADDING_H + WINDOW_H, pool->H) - max(p * STRIDE_H - PADDING_H, 0);
            const ROW_VEC part = inverse_counts(height, q * STRIDE_W - PADDING_W, pool->W);
            const ROW_VEC term = LOAD_ROW(g + p * pool->Q + first - before) * part;
            sum += INSIDE(q, pool->Q) ? term : (ROW_VEC)(0);
        }
    return sum;
}
#endif

NOINLINE void avg_pool2d_backward_part(const size_t id0, const struct Pool pool, __global const STORED* restrict g_base,
                                       const long g_offset, __global OUTPUT* restrict x_base, const long x_offset) {
    const long begin = id0 * pool.each, end = min(pool.rows, begin + pool.each);
    long plane = begin / pool.H;
    int h = (int)(begin - plane * pool.H);
    for (long row = begin; row < end; ++row) {
        const long start = plane * pool.P * pool.Q;
        const int first_p = first_window_h(h), last_p = last_window_h(h, pool.P);
        __global const STORED* g = g_base + g_offset + start;
        __global OUTPUT* x = x_base + x_offset + row * pool.W;
        for (int w = 0; w < pool.W; w += STRIDE_W * LANES) {
            const int remaining = pool.W - w;
#if STRIDE_W <= 2
            const long lowest = start + first_p * pool.Q + w / STRIDE_W + (PADDING_W - WINDOW_W + 1) / STRIDE_W;
            const long highest = start + last_p * pool.Q + w / STRIDE_W + (STRIDE_W - 1 + PADDING_W) / STRIDE_W + LANES;
            if (lowest > 0 && highest <= pool.elements) {
                const ROW_VEC a = backward_phase(g, &pool, first_p, last_p, w, 0);
#if STRIDE_W == 1
                store_reals(a, x + w, remaining);
#else
                const ROW_VEC b = backward_phase(g, &pool, first_p, last_p, w, 1);
                store_reals(ZIP_LOW(a, b), x + w, remaining);
                if (remaining > LANES) store_reals(ZIP_HIGH(a, b), x + w + LANES, remaining - LANES);
#endif
                continue;
            }
#endif
            for (int k = w; k < min(w + STRIDE_W * LANES, pool.W); ++k)
                x[k] = ROUNDED(backward_sum(g, &pool, first_p, last_p, k));
        }
        if (++h == pool.H) h = 0, ++plane;
    }
}

__kernel void avg_pool2d_backward(const struct Pool pool, __global const STORED* restrict g_base, const long g_offset,
                                  __global OUTPUT* restrict x_base, const long x_offset) {
    avg_pool2d_backward_part(get_global_id(0), pool, g_base, g_offset, x_base, x_offset);
}

#endif
#endif
#endif
