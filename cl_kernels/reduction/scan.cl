// Inclusive scan (cumulative operation) along the middle axis of x (outer, n, inner):
// out[o, j, i] = fold of x[o, 0, i], ..., x[o, j, i].
//
// A line is split into chunks for parallelism: `scan_totals` folds each chunk but the last, and `scan` starts each
// chunk with the totals of the chunks before it.
//
//   global    (blocks of columns, chunks, outer); a block is WIDTH columns of the inner axis
//   WIDTH     several in simd style, with contiguous elements; otherwise 1
//   SINGLE    1: simt style, where scan_groups.cl processes long lines: a work-item per line, one chunk; global (lines)
//   REAL            type of the arithmetic; WHOLE is defined if it is an integer type
//   STORED, OUTPUT  types in memory (storage.clh)
//   FOLD      scan.clh
//   PLACES    FOLD 3 and 4, defined: i64 indices are written as well as values
//   SKIP      with PLACES, simd style and one column: that many elements are skipped at once if none of them changes
//             the result, which is so for most elements in random order; otherwise 1
//   LANES     FOLD 0 and 1, simd style with contiguous lines: 8 or 16 elements at a time, in vectors, which are scanned
//             by shifts of 1, 2, 4, 8; otherwise 1
#include "scan.clh"

#ifndef SKIP
#define SKIP 1
#endif
#if SKIP > 1
// True if none of the next SKIP elements replaces `all`.
static inline int all_stay(const REAL all, __global const STORED* next) {
    int stay = 1;
    for (int k = 0; k < SKIP; ++k) {
        const REAL one = LOADED(next[k]);
        stay &= STAYS(all, one);
    }
    return stay;
}
#endif

struct Scan {
    long n, inner, chunks, each, lines;
};

#if SINGLE
#define FIRST ((long)get_global_id(0) % sizes.inner)
#define OUTER ((long)get_global_id(0) / sizes.inner)
#define COLUMNS (get_global_id(0) < sizes.lines ? 1 : 0)
#else
#define FIRST ((long)get_global_id(0) * WIDTH)
#define OUTER ((long)get_global_id(2))
#define COLUMNS (int)min((long)WIDTH, sizes.inner - first)
#endif
#define LINE(base, offset) (base + offset + OUTER * sizes.n * sizes.inner)

#if LANES > 1

#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)
#define V PASTE(REAL, LANES)
#define LOAD_LANES(p) PASTE(vload, LANES)(0, p)
#define STORE_LANES(v, p) PASTE(vstore, LANES)(v, 0, p)
#define NOTHING ((REAL)FOLD)  // neutral element: 0 of sums, 1 of products

// Element by element; compilers turn this into shuffles. Oclgrind cannot read vectors composed of vectors.
#if LANES == 16
#define LAST_LANE(v) ((v).sf)
static inline V scanned(V v) {
    const REAL N = NOTHING;
    v = FOLDED((V)(N, v.s0, v.s1, v.s2, v.s3, v.s4, v.s5, v.s6, v.s7, v.s8, v.s9, v.sa, v.sb, v.sc, v.sd, v.se), v);
    v = FOLDED((V)(N, N, v.s0, v.s1, v.s2, v.s3, v.s4, v.s5, v.s6, v.s7, v.s8, v.s9, v.sa, v.sb, v.sc, v.sd), v);
    v = FOLDED((V)(N, N, N, N, v.s0, v.s1, v.s2, v.s3, v.s4, v.s5, v.s6, v.s7, v.s8, v.s9, v.sa, v.sb), v);
    return FOLDED((V)(N, N, N, N, N, N, N, N, v.s0, v.s1, v.s2, v.s3, v.s4, v.s5, v.s6, v.s7), v);
}
#else
#define LAST_LANE(v) ((v).s7)
static inline V scanned(V v) {
    const REAL N = NOTHING;
    v = FOLDED((V)(N, v.s0, v.s1, v.s2, v.s3, v.s4, v.s5, v.s6), v);
    v = FOLDED((V)(N, N, v.s0, v.s1, v.s2, v.s3, v.s4, v.s5), v);
    return FOLDED((V)(N, N, N, N, v.s0, v.s1, v.s2, v.s3), v);
}
#endif

__kernel void scan_totals(const struct Scan sizes, __global const STORED* restrict x, const long x_offset,
                          __global REAL* restrict totals, const long totals_offset) {
    const long chunk = get_global_id(1);
    if (get_global_id(0) > 0 || chunk + 1 >= sizes.chunks) return;
    __global const STORED* line = LINE(x, x_offset);
    const long from = chunk * sizes.each, to = min(sizes.n, from + sizes.each);
    V sums = NOTHING, others = NOTHING;
    long j = from;
    for (; j + 2 * LANES <= to; j += 2 * LANES) {
        sums = FOLDED(sums, LOAD_LANES(line + j));
        others = FOLDED(others, LOAD_LANES(line + j + LANES));
    }
    REAL all = LAST_LANE(scanned(FOLDED(sums, others)));
    for (; j < to; ++j) all = FOLDED(all, line[j]);
    totals[totals_offset + (long)get_global_id(2) * sizes.chunks + chunk] = all;
}

__kernel void scan(const struct Scan sizes, __global const STORED* restrict x, const long x_offset,
                   __global const REAL* restrict totals, const long totals_offset, __global OUTPUT* restrict out,
                   const long out_offset) {
    const long chunk = get_global_id(1);
    if (get_global_id(0) > 0) return;
    __global const STORED* line = LINE(x, x_offset);
    __global OUTPUT* result = LINE(out, out_offset);
    const long from = chunk * sizes.each, to = min(sizes.n, from + sizes.each);
    REAL all = NOTHING;
    for (long before = 0; before < chunk; ++before)
        all = FOLDED(all, totals[totals_offset + (long)get_global_id(2) * sizes.chunks + before]);
    long j = from;
    for (; j + LANES <= to; j += LANES) {
        const V v = FOLDED((V)all, scanned(LOAD_LANES(line + j)));
        STORE_LANES(v, result + j);
        all = LAST_LANE(v);
    }
    for (; j < to; ++j) result[j] = all = FOLDED(all, line[j]);
}

#else

__kernel void scan_totals(const struct Scan sizes, __global const STORED* restrict x, const long x_offset,
                          __global REAL* restrict totals, const long totals_offset
#ifdef PLACES
                          ,
                          __global long* restrict total_places, const long total_places_offset
#endif
) {
    const long first = FIRST, chunk = get_global_id(1);
    const int width = COLUMNS;
    if (width <= 0 || chunk + 1 >= sizes.chunks) return;
    __global const STORED* line = LINE(x, x_offset) + first;
    const long from = chunk * sizes.each, to = min(sizes.n, from + sizes.each);
    const long at = ((long)get_global_id(2) * sizes.chunks + chunk) * sizes.inner + first;
    for (int k = 0; k < width; ++k) {
        REAL all = LOADED(line[from * sizes.inner + k]);
#ifdef PLACES
        long place = from;
#endif
        for (long j = from + 1; j < to; ++j) {
#if SKIP > 1
            if (j % SKIP == 0 && j + SKIP <= to && all_stay(all, line + j)) {
                j += SKIP - 1;
                continue;
            }
#endif
            const REAL one = LOADED(line[j * sizes.inner + k]);
#ifdef PLACES
            const int wins = WINS(all, one);
            place = wins ? j : place;
            all = wins ? one : all;
#else
            all = FOLDED(all, one);
#endif
        }
        totals[totals_offset + at + k] = all;
#ifdef PLACES
        total_places[total_places_offset + at + k] = place;
#endif
    }
}

__kernel void scan(const struct Scan sizes, __global const STORED* restrict x, const long x_offset,
                   __global const REAL* restrict totals, const long totals_offset, __global OUTPUT* restrict out,
                   const long out_offset
#ifdef PLACES
                   ,
                   __global const long* restrict total_places, const long total_places_offset,
                   __global long* restrict places, const long places_offset
#endif
) {
    const long first = FIRST, chunk = get_global_id(1);
    const int width = COLUMNS;
    if (width <= 0) return;
    __global const STORED* line = LINE(x, x_offset) + first;
    __global OUTPUT* result = LINE(out, out_offset) + first;
    const long from = chunk * sizes.each, to = min(sizes.n, from + sizes.each);
    if (from >= to) return;
    REAL all[WIDTH];
#ifdef PLACES
    long place[WIDTH];
    __global long* where = LINE(places, places_offset) + first;
#endif
    for (int k = 0; k < width; ++k) {
        all[k] = LOADED(line[from * sizes.inner + k]);
#ifdef PLACES
        place[k] = from;
#endif
    }
    // From the previous chunk back to the first, so that the right operand always comes after the left one.
    for (long before = chunk - 1; before >= 0; --before) {
        const long at = ((long)get_global_id(2) * sizes.chunks + before) * sizes.inner + first;
        for (int k = 0; k < width; ++k) {
            const REAL total = totals[totals_offset + at + k];
#ifdef PLACES
            const int wins = WINS(total, all[k]);
            place[k] = wins ? place[k] : total_places[total_places_offset + at + k];
            all[k] = wins ? all[k] : total;
#else
            all[k] = FOLDED(total, all[k]);
#endif
        }
    }
    for (long j = from; j < to; ++j) {
#if SKIP > 1
        if (j > from && j % SKIP == 0 && j + SKIP <= to && all_stay(all[0], line + j)) {
            for (int k = 0; k < SKIP; ++k) {
                result[j + k] = ROUNDED(all[0]);
                where[j + k] = place[0];
            }
            j += SKIP - 1;
            continue;
        }
#endif
        for (int k = 0; k < width; ++k) {
            if (j > from) {
                const REAL one = LOADED(line[j * sizes.inner + k]);
#ifdef PLACES
                const int wins = WINS(all[k], one);
                place[k] = wins ? j : place[k];
                all[k] = wins ? one : all[k];
#else
                all[k] = FOLDED(all[k], one);
#endif
            }
            result[j * sizes.inner + k] = ROUNDED(all[k]);
#ifdef PLACES
            where[j * sizes.inner + k] = place[k];
#endif
        }
    }
}

#endif  // LANES
