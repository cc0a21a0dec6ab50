// Inclusive scan (cumulative operation) along the middle axis of x (outer, n, inner):
// out[o, j, i] = fold of x[o, 0, i], ..., x[o, j, i].
//
// A line is split into chunks for parallelism: `scan_totals` folds each chunk but the last, and `scan` starts each
// chunk with the totals of the chunks before it.
//
//   global    (blocks of columns, chunks, outer); a block is WIDTH columns of the inner axis
//   WIDTH           several in simd style, with contiguous elements; otherwise 1
//   LINE_PER_ITEM   1: simt style, where scan_groups.cl processes long lines: a work-item per line, one chunk; global
//                   (lines)
//   REAL            type of the arithmetic; INTEGER is defined if it is an integer type
//   STORED, OUTPUT  types in memory (storage.clh)
//   FOLD            scan.clh
//   WITH_INDICES    FOLD_MAX and FOLD_MIN, defined: i64 indices are written as well as values
//   SKIP_LENGTH     WITH_INDICES, simd style and one column: that many elements are skipped at once if none of them
//                   changes the result, which is so for most elements in random order; otherwise 1
//   LANES           FOLD_SUM and FOLD_PRODUCT, simd style with contiguous lines: 8 or 16 elements at a time, in
//                   vectors, which are scanned by shifts of 1, 2, 4, 8; otherwise 1
#include "scan.clh"

#ifndef SKIP_LENGTH
#define SKIP_LENGTH 1
#endif
#if SKIP_LENGTH > 1
// True if none of the next SKIP_LENGTH elements replaces `total`.
static inline int none_replaces(const REAL total, __global const STORED* next) {
    int none = 1;
    for (int k = 0; k < SKIP_LENGTH; ++k) {
        const REAL value = LOADED(next[k]);
        none &= IS_NOT_REPLACED(total, value);
    }
    return none;
}
#endif

struct Scan {
    long n, inner, chunks, each, lines;
};

#if LINE_PER_ITEM
#define FIRST_COLUMN ((long)get_global_id(0) % sizes.inner)
#define OUTER ((long)get_global_id(0) / sizes.inner)
#define COLUMNS (get_global_id(0) < sizes.lines ? 1 : 0)
#else
#define FIRST_COLUMN ((long)get_global_id(0) * WIDTH)
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
#define IDENTITY ((REAL)(FOLD == FOLD_PRODUCT ? 1 : 0))

// Element by element; compilers turn this into shuffles. Oclgrind cannot read vectors composed of vectors.
#if LANES == 16
#define LAST_LANE(v) ((v).sf)
static inline V scanned(V v) {
    const REAL N = IDENTITY;
    v = FOLDED((V)(N, v.s0, v.s1, v.s2, v.s3, v.s4, v.s5, v.s6, v.s7, v.s8, v.s9, v.sa, v.sb, v.sc, v.sd, v.se), v);
    v = FOLDED((V)(N, N, v.s0, v.s1, v.s2, v.s3, v.s4, v.s5, v.s6, v.s7, v.s8, v.s9, v.sa, v.sb, v.sc, v.sd), v);
    v = FOLDED((V)(N, N, N, N, v.s0, v.s1, v.s2, v.s3, v.s4, v.s5, v.s6, v.s7, v.s8, v.s9, v.sa, v.sb), v);
    return FOLDED((V)(N, N, N, N, N, N, N, N, v.s0, v.s1, v.s2, v.s3, v.s4, v.s5, v.s6, v.s7), v);
}
#else
#define LAST_LANE(v) ((v).s7)
static inline V scanned(V v) {
    const REAL N = IDENTITY;
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
    V sums = IDENTITY, others = IDENTITY;
    long j = from;
    for (; j + 2 * LANES <= to; j += 2 * LANES) {
        sums = FOLDED(sums, LOAD_LANES(line + j));
        others = FOLDED(others, LOAD_LANES(line + j + LANES));
    }
    REAL total = LAST_LANE(scanned(FOLDED(sums, others)));
    for (; j < to; ++j) total = FOLDED(total, line[j]);
    totals[totals_offset + (long)get_global_id(2) * sizes.chunks + chunk] = total;
}

__kernel void scan(const struct Scan sizes, __global const STORED* restrict x, const long x_offset,
                   __global const REAL* restrict totals, const long totals_offset, __global OUTPUT* restrict out,
                   const long out_offset) {
    const long chunk = get_global_id(1);
    if (get_global_id(0) > 0) return;
    __global const STORED* line = LINE(x, x_offset);
    __global OUTPUT* result = LINE(out, out_offset);
    const long from = chunk * sizes.each, to = min(sizes.n, from + sizes.each);
    REAL total = IDENTITY;
    for (long before = 0; before < chunk; ++before)
        total = FOLDED(total, totals[totals_offset + (long)get_global_id(2) * sizes.chunks + before]);
    long j = from;
    for (; j + LANES <= to; j += LANES) {
        const V v = FOLDED((V)total, scanned(LOAD_LANES(line + j)));
        STORE_LANES(v, result + j);
        total = LAST_LANE(v);
    }
    for (; j < to; ++j) result[j] = total = FOLDED(total, line[j]);
}

#else

__kernel void scan_totals(const struct Scan sizes, __global const STORED* restrict x, const long x_offset,
                          __global REAL* restrict totals, const long totals_offset
#ifdef WITH_INDICES
                          ,
                          __global long* restrict total_indices, const long total_indices_offset
#endif
) {
    const long first = FIRST_COLUMN, chunk = get_global_id(1);
    const int width = COLUMNS;
    if (width <= 0 || chunk + 1 >= sizes.chunks) return;
    __global const STORED* line = LINE(x, x_offset) + first;
    const long from = chunk * sizes.each, to = min(sizes.n, from + sizes.each);
    const long at = ((long)get_global_id(2) * sizes.chunks + chunk) * sizes.inner + first;
    for (int k = 0; k < width; ++k) {
        REAL total = LOADED(line[from * sizes.inner + k]);
#ifdef WITH_INDICES
        long index = from;
#endif
        for (long j = from + 1; j < to; ++j) {
#if SKIP_LENGTH > 1
            if (j % SKIP_LENGTH == 0 && j + SKIP_LENGTH <= to && none_replaces(total, line + j)) {
                j += SKIP_LENGTH - 1;
                continue;
            }
#endif
            const REAL value = LOADED(line[j * sizes.inner + k]);
#ifdef WITH_INDICES
            const int replaces = REPLACES(total, value);
            index = replaces ? j : index;
            total = replaces ? value : total;
#else
            total = FOLDED(total, value);
#endif
        }
        totals[totals_offset + at + k] = total;
#ifdef WITH_INDICES
        total_indices[total_indices_offset + at + k] = index;
#endif
    }
}

__kernel void scan(const struct Scan sizes, __global const STORED* restrict x, const long x_offset,
                   __global const REAL* restrict totals, const long totals_offset, __global OUTPUT* restrict out,
                   const long out_offset
#ifdef WITH_INDICES
                   ,
                   __global const long* restrict total_indices, const long total_indices_offset,
                   __global long* restrict indices, const long indices_offset
#endif
) {
    const long first = FIRST_COLUMN, chunk = get_global_id(1);
    const int width = COLUMNS;
    if (width <= 0) return;
    __global const STORED* line = LINE(x, x_offset) + first;
    __global OUTPUT* result = LINE(out, out_offset) + first;
    const long from = chunk * sizes.each, to = min(sizes.n, from + sizes.each);
    if (from >= to) return;
    REAL total[WIDTH];
#ifdef WITH_INDICES
    long index[WIDTH];
    __global long* out_indices = LINE(indices, indices_offset) + first;
#endif
    for (int k = 0; k < width; ++k) {
        total[k] = LOADED(line[from * sizes.inner + k]);
#ifdef WITH_INDICES
        index[k] = from;
#endif
    }
    // From the previous chunk back to the first, so that the right operand always comes after the left one.
    for (long before = chunk - 1; before >= 0; --before) {
        const long at = ((long)get_global_id(2) * sizes.chunks + before) * sizes.inner + first;
        for (int k = 0; k < width; ++k) {
            const REAL chunk_total = totals[totals_offset + at + k];
#ifdef WITH_INDICES
            const int replaces = REPLACES(chunk_total, total[k]);
            index[k] = replaces ? index[k] : total_indices[total_indices_offset + at + k];
            total[k] = replaces ? total[k] : chunk_total;
#else
            total[k] = FOLDED(chunk_total, total[k]);
#endif
        }
    }
    for (long j = from; j < to; ++j) {
#if SKIP_LENGTH > 1
        if (j > from && j % SKIP_LENGTH == 0 && j + SKIP_LENGTH <= to && none_replaces(total[0], line + j)) {
            for (int k = 0; k < SKIP_LENGTH; ++k) {
                result[j + k] = ROUNDED(total[0]);
                out_indices[j + k] = index[0];
            }
            j += SKIP_LENGTH - 1;
            continue;
        }
#endif
        for (int k = 0; k < width; ++k) {
            if (j > from) {
                const REAL value = LOADED(line[j * sizes.inner + k]);
#ifdef WITH_INDICES
                const int replaces = REPLACES(total[k], value);
                index[k] = replaces ? j : index[k];
                total[k] = replaces ? value : total[k];
#else
                total[k] = FOLDED(total[k], value);
#endif
            }
            result[j * sizes.inner + k] = ROUNDED(total[k]);
#ifdef WITH_INDICES
            out_indices[j * sizes.inner + k] = index[k];
#endif
        }
    }
}

#endif  // LANES
