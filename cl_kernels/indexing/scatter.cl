// Scatter along an axis, and scatter of rows to a table: sum and other reductions of elements with the same index, or
// the last of them. All results are deterministic.
//
//   scatter:       out[row][indices[row][i]] = x[row][i], for x and indices (rows, taken), out (rows, size); indices
//                  are unique
//   sum_along:     simd style: table[o][v][k] = base[o][v][k] + the sum of x[o][i][k] with indices[o][i][k] == v, in
//                  the order of i, for x and indices (outer, taken, inner), base and table (outer, size, inner). A
//                  work-item owns a block of the table: `rows` outer rows, `owned` elements of the axis, `columns`
//                  inner columns. global (blocks of the axis, of columns, of rows)
//   write_along:   the same, but the last x replaces base
//   along_numbers: flat_indices[o][i][k] = flat index of its element in the table, or -1 if out of range
//   number_keys:   keys[i] = index << 32 | i, or the largest key for an index out of range. Sorting the keys makes
//                  those with equal index contiguous, in the order of i. global (keys)
//   sort_keys:     one step of a bitonic sort (Batcher 1968) of a power of two of keys: compares and exchanges keys
//                  `distance` apart, ascending in every other block of `block` keys. global (keys / 2)
//   fold_sorted:   out[index] = FOLD of x[i] over the keys with that index, in the order of i, starting from out if
//                  `has_base`. The work-items of the first key of an index process all of them. global (keys * taken)
//   write_sorted:  out[index] = x[i] of the largest i with that index. global (keys)
//   last_sorted:   out[index] = the largest i with that index. global (keys)
//   sum_owned, last_owned: the same in simd style, without sorting: a work-item goes through the indices of a chunk of
//                  rows, in order, and accumulates those that it owns, `owned` neighbouring ones, to the table of the
//                  chunk. global (owners, chunks)
//   add_tables:    out = base + the sum of the chunks' tables. global (ceil(elements / each))
//
// Without `has_base`, base is 0 and not read.
//
//   SIMD            scatter: a work-item takes `each` rows, global (ceil(rows / each));
//   SIMT            scatter: one element each, global (rows * taken), rounded up to the local size
//   REAL            float or double, or an integer type if INTEGER is defined
//   STORED, OUTPUT  types of x and out in memory (storage.clh), which are the same
//   INDEX_TYPE      type of the indices: int or long
//   FOLD            ADDED, MULTIPLIED, LARGER or SMALLER (combine.clh)
#ifndef INTEGER
#include "math.clh"
#endif
#include "storage.clh"
#include "combine.clh"
#define MULTIPLIED(a, b) ((a) * (b))
#ifndef FOLD
#define FOLD ADDED
#endif
#ifdef INTEGER
#define SUM_IDENTITY ((REAL)0)
#else
#define SUM_IDENTITY (-(REAL)0)  // neutral element of the sum, even for -0
#endif

struct Scatter {
    long rows, each, size, taken;
};

__kernel void scatter(const struct Scatter sizes, __global const STORED* restrict x, const long x_offset,
                      __global const INDEX_TYPE* restrict indices, const long indices_offset,
                      __global OUTPUT* restrict out, const long out_offset) {
#ifdef SIMD
    const long first = (long)get_global_id(0) * sizes.each, end = min(sizes.rows, first + sizes.each);
    for (long row = first; row < end; ++row)
        for (long i = 0; i < sizes.taken; ++i) {
            const long element = row * sizes.taken + i;
            out[out_offset + row * sizes.size + indices[indices_offset + element]] = x[x_offset + element];
        }
#else
    // Without %: clang turns a pair of / and % into a freeze instruction, which Oclgrind does not support.
    const long element = get_global_id(0);
    const long row = element / sizes.taken;
    if (row < sizes.rows)
        out[out_offset + row * sizes.size + indices[indices_offset + element]] = x[x_offset + element];
#endif
}

struct Along {
    long outer, taken, size, inner;
    long rows, owned, columns;
};

// The block of the table that a work-item owns.
struct Block {
    long low, high;    // elements of the axis
    long left, right;  // inner columns
    long top, bottom;  // outer rows
};
static inline struct Block own_block(const struct Along* sizes) {
    struct Block block;
    block.low = (long)get_global_id(0) * sizes->owned;
    block.high = min(sizes->size, block.low + sizes->owned);
    block.left = (long)get_global_id(1) * sizes->columns;
    block.right = min(sizes->inner, block.left + sizes->columns);
    block.top = (long)get_global_id(2) * sizes->rows;
    block.bottom = min(sizes->outer, block.top + sizes->rows);
    return block;
}

// sum_along and write_along initialise each element of the block from `base`, or with 0, and then apply x in order.
// Elements of other blocks are handled without a branch, which would be mispredicted often: they leave element `low` of
// the own block unchanged.

__kernel void sum_along(const struct Along sizes, __global const INDEX_TYPE* restrict indices,
                        const long indices_offset, __global const STORED* restrict x, const long x_offset,
                        __global REAL* restrict tables, const long tables_offset, __global const STORED* restrict base,
                        const long base_offset, const int has_base) {
    const struct Block block = own_block(&sizes);
    if (block.low >= block.high) return;
    for (long o = block.top; o < block.bottom; ++o) {
        __global REAL* table = tables + tables_offset + o * sizes.size * sizes.inner;
        __global const STORED* before = base + base_offset + o * sizes.size * sizes.inner;
        for (long v = block.low; v < block.high; ++v)
            for (long k = block.left; k < block.right; ++k) {
                const STORED initial = has_base ? before[v * sizes.inner + k] : (STORED)0;
                table[v * sizes.inner + k] = LOADED(initial);
            }
        for (long i = o * sizes.taken; i < (o + 1) * sizes.taken; ++i)
            for (long k = block.left; k < block.right; ++k) {
                const long index = indices[indices_offset + i * sizes.inner + k];
                const int is_own = (index >= block.low) & (index < block.high);
                const long at = (is_own ? index : block.low) * sizes.inner + k;
                const STORED value = x[x_offset + i * sizes.inner + k];
                table[at] = ADDED(table[at], is_own ? LOADED(value) : SUM_IDENTITY);
            }
    }
}

__kernel void write_along(const struct Along sizes, __global const INDEX_TYPE* restrict indices,
                          const long indices_offset, __global const STORED* restrict x, const long x_offset,
                          __global OUTPUT* restrict tables, const long tables_offset,
                          __global const STORED* restrict base, const long base_offset, const int has_base) {
    const struct Block block = own_block(&sizes);
    if (block.low >= block.high) return;
    for (long o = block.top; o < block.bottom; ++o) {
        __global OUTPUT* table = tables + tables_offset + o * sizes.size * sizes.inner;
        __global const STORED* before = base + base_offset + o * sizes.size * sizes.inner;
        for (long v = block.low; v < block.high; ++v)
            for (long k = block.left; k < block.right; ++k) {
                const STORED initial = has_base ? before[v * sizes.inner + k] : (STORED)0;
                table[v * sizes.inner + k] = initial;
            }
        for (long i = o * sizes.taken; i < (o + 1) * sizes.taken; ++i)
            for (long k = block.left; k < block.right; ++k) {
                const long index = indices[indices_offset + i * sizes.inner + k];
                const int is_own = (index >= block.low) & (index < block.high);
                const long at = (is_own ? index : block.low) * sizes.inner + k;
                const STORED value = x[x_offset + i * sizes.inner + k];
                const OUTPUT old = table[at];
                table[at] = is_own ? value : old;
            }
    }
}

__kernel void along_numbers(const struct Along sizes, __global const INDEX_TYPE* restrict indices,
                            const long indices_offset, __global long* restrict flat_indices,
                            const long flat_indices_offset) {
    const long e = get_global_id(0);
    const long i = e / sizes.inner;
    if (i >= sizes.outer * sizes.taken) return;
    const long o = i / sizes.taken, k = e - i * sizes.inner;
    const INDEX_TYPE index = indices[indices_offset + e];
    const int in_range = index >= 0 && (long)index < sizes.size;
    flat_indices[flat_indices_offset + e] = in_range ? (o * sizes.size + (long)index) * sizes.inner + k : -1;
}

#define INVALID_KEY ((ulong)-1)

__kernel void number_keys(const long count, const long keys_count, const long size,
                          __global const INDEX_TYPE* restrict indices, const long indices_offset,
                          __global ulong* restrict keys, const long keys_offset) {
    const long i = get_global_id(0);
    if (i >= keys_count) return;
    // Compared in its own type (driver workaround "extended_constant_compare").
    const INDEX_TYPE index = i < count ? indices[indices_offset + i] : (INDEX_TYPE)-1;
    keys[keys_offset + i] = index >= 0 && (long)index < size ? (ulong)(long)index << 32 | (ulong)i : INVALID_KEY;
}

__kernel void sort_keys(const long half_count, const long block, const long distance, __global ulong* restrict keys,
                        const long keys_offset) {
    const long i = get_global_id(0);
    if (i >= half_count) return;
    const long pair = i / distance, low = i + pair * distance, high = low + distance;
    const ulong a = keys[keys_offset + low], b = keys[keys_offset + high];
    const int ascending = ((low / block) & 1) == 0;
    const int swap = ascending ? a > b : a < b;
    keys[keys_offset + low] = swap ? b : a;
    keys[keys_offset + high] = swap ? a : b;
}

__kernel void fold_sorted(const long taken, const long count, __global const ulong* restrict keys,
                          const long keys_offset, __global const STORED* restrict x, const long x_offset,
                          __global OUTPUT* restrict out, const long out_offset, const int has_base) {
    const long id = get_global_id(0);
    const long at = id / taken, column = id - at * taken;
    if (at >= count) return;
    const ulong first = keys[keys_offset + at];
    if (first == INVALID_KEY) return;
    const ulong index = first >> 32;
    if (at > 0 && keys[keys_offset + at - 1] >> 32 == index) return;
    __global OUTPUT* to = out + out_offset + (long)index * taken + column;
    const REAL own = LOADED(x[x_offset + (long)(first & 0xffffffffu) * taken + column]);
    REAL total = own;
    if (has_base) {
        const REAL before = LOADED(*to);
        total = FOLD(before, own);
    }
    for (long i = at + 1; i < count; ++i) {
        const ulong key = keys[keys_offset + i];
        if (key == INVALID_KEY || key >> 32 != index) break;
        const REAL value = LOADED(x[x_offset + (long)(key & 0xffffffffu) * taken + column]);
        total = FOLD(total, value);
    }
    *to = ROUNDED(total);
}

// True if `at` is the last of `count` keys with its index. There are no work-items past the last valid key.
static inline bool is_last_of_index(__global const ulong* keys, const long at, const long count) {
    if (at >= count) return false;
    const ulong key = keys[at];
    if (key == INVALID_KEY) return false;
    return at + 1 >= count || keys[at + 1] >> 32 != key >> 32;
}

__kernel void write_sorted(const long count, __global const ulong* restrict keys, const long keys_offset,
                           __global const STORED* restrict x, const long x_offset, __global OUTPUT* restrict out,
                           const long out_offset) {
    const long at = get_global_id(0);
    if (!is_last_of_index(keys + keys_offset, at, count)) return;
    const ulong key = keys[keys_offset + at];
    out[out_offset + (long)(key >> 32)] = x[x_offset + (long)(key & 0xffffffffu)];
}

__kernel void last_sorted(const long count, __global const ulong* restrict keys, const long keys_offset,
                          __global long* restrict out, const long out_offset) {
    const long at = get_global_id(0);
    if (!is_last_of_index(keys + keys_offset, at, count)) return;
    const ulong key = keys[keys_offset + at];
    out[out_offset + (long)(key >> 32)] = (long)(key & 0xffffffffu);
}

struct Owned {
    long count, taken, size;
    long owned, chunk;  // indices per work-item, rows per chunk
};

// The indices that a work-item owns, and the rows that it goes through.
struct OwnRange {
    long low, high;    // indices
    long first, last;  // rows of its chunk; `last` is exclusive
};
static inline struct OwnRange own_range(const struct Owned* sizes) {
    struct OwnRange own;
    own.low = (long)get_global_id(0) * sizes->owned;
    own.high = min(sizes->size, own.low + sizes->owned);
    own.first = (long)get_global_id(1) * sizes->chunk;
    own.last = min(sizes->count, own.first + sizes->chunk);
    return own;
}

__kernel void sum_owned(const struct Owned sizes, __global const INDEX_TYPE* restrict indices,
                        const long indices_offset, __global const STORED* restrict x, const long x_offset,
                        __global REAL* restrict tables, const long tables_offset, __global const STORED* restrict base,
                        const long base_offset, const int has_base) {
    const struct OwnRange own = own_range(&sizes);
    if (own.low >= own.high) return;
    __global REAL* table = tables + tables_offset + (long)get_global_id(1) * sizes.size * sizes.taken;
    for (long e = own.low * sizes.taken; e < own.high * sizes.taken; ++e)
        table[e] = has_base ? LOADED(base[base_offset + e]) : (REAL)0;
    if (sizes.taken == 1)
        for (long i = own.first; i < own.last; ++i) {
            const long index = indices[indices_offset + i];
            const int is_own = (index >= own.low) & (index < own.high);
            const long at = is_own ? index : own.low;
            const REAL value = LOADED(x[x_offset + i]);
            table[at] = ADDED(table[at], is_own ? value : SUM_IDENTITY);
        }
    else
        for (long i = own.first; i < own.last; ++i) {
            const long index = indices[indices_offset + i];
            if ((index < own.low) | (index >= own.high)) continue;
            __global const STORED* row = x + x_offset + i * sizes.taken;
            __global REAL* sum = table + index * sizes.taken;
            for (long j = 0; j < sizes.taken; ++j) sum[j] = ADDED(sum[j], LOADED(row[j]));
        }
}

__kernel void add_tables(const long count, const long each, const long tables_count,
                         __global const REAL* restrict tables, const long tables_offset, __global OUTPUT* restrict out,
                         const long out_offset, __global const STORED* restrict base, const long base_offset,
                         const int has_base) {
    const long from = (long)get_global_id(0) * each, to = min(count, from + each);
    for (long e = from; e < to; ++e) {
        REAL total = tables[tables_offset + e];
        if (has_base) total = ADDED(LOADED(base[base_offset + e]), total);
        for (long t = 1; t < tables_count; ++t) total = ADDED(total, tables[tables_offset + t * count + e]);
        out[out_offset + e] = ROUNDED(total);
    }
}

__kernel void last_owned(const struct Owned sizes, __global const INDEX_TYPE* restrict indices,
                         const long indices_offset, __global long* restrict out, const long out_offset) {
    const struct OwnRange own = own_range(&sizes);
    if (own.low >= own.high) return;
    for (long e = own.low; e < own.high; ++e) out[out_offset + e] = -1;
    long first = -1;  // value at `low`
    for (long i = own.first; i < own.last; ++i) {
        const long index = indices[indices_offset + i];
        const int is_own = (index >= own.low) & (index < own.high);
        first = index == own.low ? i : first;
        out[out_offset + (is_own ? index : own.low)] = is_own ? i : first;
    }
}
