// Elements of rows by their places, rows of a table by their numbers, and sums of rows of equal numbers.
//
//   gather:       out[row][i] = x[row][places[row][i]], for x (rows, size), places and out (rows, taken)
//   scatter:      out[row][places[row][i]] = x[row][i], for x and places (rows, taken), out (rows, size)
//   gather_rows:  out[row] = x[places[row]], for x (size, taken), out (rows, taken); `missing` for places outside of x
//   number_keys:  keys[i] = number and i, or the largest key for what counts for nothing; in their order, keys of equal
//                 numbers stand together, in the order of i. global (keys)
//   sort_keys:    one step of a bitonic sort (Batcher 1968) of a power of two of keys: those `reach` apart are put in
//                 order, rising in every other block of `block` keys. global (keys / 2)
//   fold_sorted:  out[number] = FOLD of x[i] over the keys of each number, in the order of i: the work-items of its
//                 first key take them all. global (keys * taken)
//   last_sorted:  out[number] = the largest i of each number. global (keys)
//   sum_owned, last_owned: the same for CPU-like devices without sorting: a work-item goes through the numbers of a
//                 chunk of rows, in order, and takes those that it owns, `owned` neighbouring ones, into the chunk's
//                 own table. global (owners, chunks)
//   add_tables:   out = the sum of the chunks' tables. global (ceil(elements / each))
//
//   CPU      gather, scatter, gather_rows: 1: a work-item takes `each` rows, global size (ceil(rows / each));
//            0: an element each, global size (rows * taken), rounded up to the local size
//   REAL     float or double; STORED, OUTPUT  the types of x and out in memory (storage.clh), which are one
//   PLACE    int or long
//   WHOLE    REAL is an integer
//   FOLD     ADDED, MULTIPLIED, LARGER or SMALLER
#ifndef WHOLE
#include "math.clh"
#endif
#include "storage.clh"
#include "combine.clh"
#define MULTIPLIED(a, b) ((a) * (b))
#ifndef FOLD
#define FOLD ADDED
#endif

struct Gather {
    long rows, each;
    long size, taken;
};

// Without %: a pair of / and % becomes an instruction (freeze) that Oclgrind does not know.
#if CPU
#define OVER_ELEMENTS                                                                                  \
    const long first = (long)get_global_id(0) * sizes.each, end = min(sizes.rows, first + sizes.each); \
    for (long row = first; row < end; ++row)                                                           \
        for (long i = 0; i < sizes.taken; ++i)
#else
#define OVER_ELEMENTS                                              \
    const long id = get_global_id(0);                              \
    const long row = id / sizes.taken, i = id - row * sizes.taken; \
    if (row < sizes.rows)
#endif

__kernel void gather(const struct Gather sizes, __global const STORED* restrict x, const long x_offset,
                     __global const PLACE* restrict places, const long places_offset, __global OUTPUT* restrict out,
                     const long out_offset) {
    OVER_ELEMENTS {
        const long at = row * sizes.taken + i;
        out[out_offset + at] = x[x_offset + row * sizes.size + places[places_offset + at]];
    }
}

__kernel void scatter(const struct Gather sizes, __global const STORED* restrict x, const long x_offset,
                      __global const PLACE* restrict places, const long places_offset, __global OUTPUT* restrict out,
                      const long out_offset) {
    OVER_ELEMENTS {
        const long at = row * sizes.taken + i;
        out[out_offset + row * sizes.size + places[places_offset + at]] = x[x_offset + at];
    }
}

__kernel void gather_rows(const struct Gather sizes, __global const STORED* restrict x, const long x_offset,
                          __global const PLACE* restrict places, const long places_offset,
                          __global OUTPUT* restrict out, const long out_offset, const REAL missing) {
    OVER_ELEMENTS {
        const PLACE place = places[places_offset + row];
        const int inside = place >= 0 && (long)place < sizes.size;
        out[out_offset + row * sizes.taken + i] =
            inside ? x[x_offset + (inside ? (long)place : 0) * sizes.taken + i] : ROUNDED(missing);
    }
}

#define NO_KEY ((ulong)-1)

__kernel void number_keys(const long count, const long keys_count, const long size,
                          __global const PLACE* restrict numbers, const long numbers_offset,
                          __global ulong* restrict keys, const long keys_offset) {
    const long i = get_global_id(0);
    if (i >= keys_count) return;
    // Compared as what it is: DriverFault "extended_constant_compare".
    const PLACE number = i < count ? numbers[numbers_offset + i] : (PLACE)-1;
    keys[keys_offset + i] = number >= 0 && (long)number < size ? (ulong)(long)number << 32 | (ulong)i : NO_KEY;
}

__kernel void sort_keys(const long half_count, const long block, const long reach, __global ulong* restrict keys,
                        const long keys_offset) {
    const long i = get_global_id(0);
    if (i >= half_count) return;
    const long pair = i / reach, low = i + pair * reach, high = low + reach;
    const ulong a = keys[keys_offset + low], b = keys[keys_offset + high];
    const int rising = ((low / block) & 1) == 0;
    const int swap = rising ? a > b : a < b;
    keys[keys_offset + low] = swap ? b : a;
    keys[keys_offset + high] = swap ? a : b;
}

__kernel void fold_sorted(const long taken, const long count, __global const ulong* restrict keys,
                          const long keys_offset, __global const STORED* restrict x, const long x_offset,
                          __global OUTPUT* restrict out, const long out_offset) {
    const long id = get_global_id(0);
    const long at = id / taken, column = id - at * taken;
    if (at >= count) return;
    const ulong first = keys[keys_offset + at];
    if (first == NO_KEY) return;
    const ulong number = first >> 32;
    if (at > 0 && keys[keys_offset + at - 1] >> 32 == number) return;
    REAL all = LOADED(x[x_offset + (long)(first & 0xffffffffu) * taken + column]);
    for (long i = at + 1; i < count; ++i) {
        const ulong key = keys[keys_offset + i];
        if (key == NO_KEY || key >> 32 != number) break;
        const REAL one = LOADED(x[x_offset + (long)(key & 0xffffffffu) * taken + column]);
        all = FOLD(all, one);
    }
    out[out_offset + (long)number * taken + column] = ROUNDED(all);
}

__kernel void last_sorted(const long count, __global const ulong* restrict keys, const long keys_offset,
                          __global long* restrict out, const long out_offset) {
    const long at = get_global_id(0);
    if (at >= count) return;
    const ulong key = keys[keys_offset + at];
    if (key == NO_KEY) return;
    // Behind the last one there is none: the kernel has no more items than there are keys that count.
    if (at + 1 < count && keys[keys_offset + at + 1] >> 32 == key >> 32) return;
    out[out_offset + (long)(key >> 32)] = (long)(key & 0xffffffffu);
}

struct Owned {
    long count, taken, size;
    long owned, chunk;  // numbers of a work-item, rows of a chunk
};

// A place that nobody else writes, for numbers of others: without a branch, which would be mistaken every other time.
#define OWN_NUMBERS                                                                                    \
    const long low = (long)get_global_id(0) * sizes.owned, high = min(sizes.size, low + sizes.owned);  \
    const long from = (long)get_global_id(1) * sizes.chunk, to = min(sizes.count, from + sizes.chunk); \
    if (low >= high) return;

__kernel void sum_owned(const struct Owned sizes, __global const PLACE* restrict numbers, const long numbers_offset,
                        __global const STORED* restrict x, const long x_offset, __global REAL* restrict tables,
                        const long tables_offset) {
    OWN_NUMBERS
    __global REAL* table = tables + tables_offset + (long)get_global_id(1) * sizes.size * sizes.taken;
    for (long e = low * sizes.taken; e < high * sizes.taken; ++e) table[e] = (REAL)0;
    if (sizes.taken == 1)
        for (long i = from; i < to; ++i) {
            const long number = numbers[numbers_offset + i];
            const int mine = (number >= low) & (number < high);
            const long at = mine ? number : low;
            const REAL one = LOADED(x[x_offset + i]);
            table[at] = ADDED(table[at], mine ? one : (REAL)0);
        }
    else
        for (long i = from; i < to; ++i) {
            const long number = numbers[numbers_offset + i];
            if ((number < low) | (number >= high)) continue;
            __global const STORED* row = x + x_offset + i * sizes.taken;
            __global REAL* sum = table + number * sizes.taken;
            for (long j = 0; j < sizes.taken; ++j) sum[j] = ADDED(sum[j], LOADED(row[j]));
        }
}

__kernel void add_tables(const long count, const long each, const long tables_count,
                         __global const REAL* restrict tables, const long tables_offset, __global OUTPUT* restrict out,
                         const long out_offset) {
    const long from = (long)get_global_id(0) * each, to = min(count, from + each);
    for (long e = from; e < to; ++e) {
        REAL all = tables[tables_offset + e];
        for (long t = 1; t < tables_count; ++t) all = ADDED(all, tables[tables_offset + t * count + e]);
        out[out_offset + e] = ROUNDED(all);
    }
}

__kernel void last_owned(const struct Owned sizes, __global const PLACE* restrict numbers, const long numbers_offset,
                         __global long* restrict out, const long out_offset) {
    OWN_NUMBERS
    for (long e = low; e < high; ++e) out[out_offset + e] = -1;
    long first = -1;  // what stands at `low`
    for (long i = from; i < to; ++i) {
        const long number = numbers[numbers_offset + i];
        const int mine = (number >= low) & (number < high);
        first = number == low ? i : first;
        out[out_offset + (mine ? number : low)] = mine ? i : first;
    }
}
