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
#include "folded.clh"

#ifndef SKIP_LENGTH
#define SKIP_LENGTH 1
#endif

struct Scan {
    long n, inner, chunks, each, lines;
};

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
    const long chunk = get_global_id(1), outer = get_global_id(2);
    if (get_global_id(0) > 0 || chunk + 1 >= sizes.chunks) return;
    __global const STORED* line = x + x_offset + outer * sizes.n * sizes.inner;
    const long from = chunk * sizes.each, to = min(sizes.n, from + sizes.each);
    V sums = IDENTITY, others = IDENTITY;
    long j = from;
    for (; j + 2 * LANES <= to; j += 2 * LANES) {
        sums = FOLDED(sums, LOAD_LANES(line + j));
        others = FOLDED(others, LOAD_LANES(line + j + LANES));
    }
    REAL total = LAST_LANE(scanned(FOLDED(sums, others)));
    for (; j < to; ++j) total = FOLDED(total, line[j]);
    totals[totals_offset + outer * sizes.chunks + chunk] = total;
}

__kernel void scan(const struct Scan sizes, __global const STORED* restrict x, const long x_offset,
                   __global const REAL* restrict totals, const long totals_offset, __global OUTPUT* restrict out,
                   const long out_offset) {
    const long chunk = get_global_id(1), outer = get_global_id(2);
    if (get_global_id(0) > 0) return;
    __global const STORED* line = x + x_offset + outer * sizes.n * sizes.inner;
    __global OUTPUT* result = out + out_offset + outer * sizes.n * sizes.inner;
    const long from = chunk * sizes.each, to = min(sizes.n, from + sizes.each);
    REAL total = IDENTITY;
    for (long before = 0; before < chunk; ++before)
        total = FOLDED(total, totals[totals_offset + outer * sizes.chunks + before]);
    long j = from;
    for (; j + LANES <= to; j += LANES) {
        const V v = FOLDED((V)total, scanned(LOAD_LANES(line + j)));
        STORE_LANES(v, result + j);
        total = LAST_LANE(v);
    }
    for (; j < to; ++j) result[j] = total = FOLDED(total, line[j]);
}

#else

// The lines of a work-item: neighbouring columns of one outer index.
struct Columns {
    long outer;
    long first;  // the first column
    int count;   // 0 or less if there are none
};
static inline struct Columns own_columns(const struct Scan* sizes) {
    struct Columns columns;
#if LINE_PER_ITEM
    columns.outer = (long)get_global_id(0) / sizes->inner;
    columns.first = (long)get_global_id(0) % sizes->inner;
    columns.count = get_global_id(0) < sizes->lines ? 1 : 0;
#else
    columns.outer = get_global_id(2);
    columns.first = (long)get_global_id(0) * WIDTH;
    columns.count = (int)min((long)WIDTH, sizes->inner - columns.first);
#endif
    return columns;
}

// Offset in x of the first element of these lines.
static inline long lines_offset(const struct Scan* sizes, const struct Columns* columns) {
    return columns->outer * sizes->n * sizes->inner + columns->first;
}

// True if none of the next SKIP_LENGTH elements replaces `total`.
static inline int none_replaces(const REAL total, __global const STORED* next) {
#if SKIP_LENGTH > 1
    int none = 1;
    for (int k = 0; k < SKIP_LENGTH; ++k) {
        const REAL value = LOADED(next[k]);
        none &= IS_NOT_REPLACED(total, value);
    }
    return none;
#else
    return 0;
#endif
}

__kernel void scan_totals(const struct Scan sizes, __global const STORED* restrict x, const long x_offset,
                          __global REAL* restrict totals, const long totals_offset
#ifdef WITH_INDICES
                          ,
                          __global long* restrict total_indices, const long total_indices_offset
#endif
) {
    const struct Columns columns = own_columns(&sizes);
    const long chunk = get_global_id(1);
    if (columns.count <= 0 || chunk + 1 >= sizes.chunks) return;
    __global const STORED* lines = x + x_offset + lines_offset(&sizes, &columns);
    const long from = chunk * sizes.each, to = min(sizes.n, from + sizes.each);
    const long at = (columns.outer * sizes.chunks + chunk) * sizes.inner + columns.first;
    for (int k = 0; k < columns.count; ++k) {
        struct Folded total = folded_of(LOADED(lines[from * sizes.inner + k]), from);
        for (long j = from + 1; j < to; ++j) {
            if (j % SKIP_LENGTH == 0 && j + SKIP_LENGTH <= to && none_replaces(total.value, lines + j)) {
                j += SKIP_LENGTH - 1;
                continue;
            }
            total = folded(total, folded_of(LOADED(lines[j * sizes.inner + k]), j));
        }
        totals[totals_offset + at + k] = total.value;
#ifdef WITH_INDICES
        total_indices[total_indices_offset + at + k] = total.index;
#endif
    }
}

// The scan of the lines of a work-item.
struct Results {
    __global OUTPUT* values;
    __global long* indices;  // not used without WITH_INDICES
};
static inline void store_result(const struct Results results, const long at, const struct Folded total) {
    results.values[at] = ROUNDED(total.value);
#ifdef WITH_INDICES
    results.indices[at] = total.index;
#endif
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
    const struct Columns columns = own_columns(&sizes);
    const long chunk = get_global_id(1);
    if (columns.count <= 0) return;
    const long from = chunk * sizes.each, to = min(sizes.n, from + sizes.each);
    if (from >= to) return;
    __global const STORED* lines = x + x_offset + lines_offset(&sizes, &columns);
    struct Results results;
    results.values = out + out_offset + lines_offset(&sizes, &columns);
#ifdef WITH_INDICES
    results.indices = indices + indices_offset + lines_offset(&sizes, &columns);
#endif
    // Two arrays rather than one of structs, so that the loops over columns are vectorised.
    REAL total[WIDTH];
    long total_index[WIDTH];
    for (int k = 0; k < columns.count; ++k) {
        total[k] = LOADED(lines[from * sizes.inner + k]);
        total_index[k] = from;
    }
    // From the previous chunk back to the first, so that the right operand always comes after the left one.
    for (long before = chunk - 1; before >= 0; --before) {
        const long at = (columns.outer * sizes.chunks + before) * sizes.inner + columns.first;
        for (int k = 0; k < columns.count; ++k) {
#ifdef WITH_INDICES
            const REAL chunk_total = totals[totals_offset + at + k];
            const int replaces = REPLACES(chunk_total, total[k]);
            total_index[k] = replaces ? total_index[k] : total_indices[total_indices_offset + at + k];
            total[k] = replaces ? total[k] : chunk_total;
#else
            total[k] = FOLDED(totals[totals_offset + at + k], total[k]);
#endif
        }
    }
    for (long j = from; j < to; ++j) {
        if (j > from && j % SKIP_LENGTH == 0 && j + SKIP_LENGTH <= to && none_replaces(total[0], lines + j)) {
            for (int k = 0; k < SKIP_LENGTH; ++k) store_result(results, j + k, folded_of(total[0], total_index[0]));
            j += SKIP_LENGTH - 1;
            continue;
        }
        for (int k = 0; k < columns.count; ++k) {
            struct Folded sum = folded_of(total[k], total_index[k]);
            if (j > from) sum = folded(sum, folded_of(LOADED(lines[j * sizes.inner + k]), j));
            store_result(results, j * sizes.inner + k, sum);
            total[k] = sum.value;
            total_index[k] = sum.index;
        }
    }
}

#endif  // LANES
