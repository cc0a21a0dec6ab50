// Inclusive scan along the middle axis of x (outer, n, inner), with one or several work-groups per line. simt style,
// for long lines; scan.cl has the other forms.
//
// A line is split into chunks of `tiles` tiles of GROUP * EACH elements. A work-item has EACH contiguous elements of a
// tile; tiles pass through local memory, so that neighbouring work-items access neighbouring elements.
//
//   scan_group_totals   folds each chunk but the last; a group per chunk of each line
//   scan_group_carries  inclusive scan of the totals of a line; a group per line
//   scan_groups         the result, from the carries; a group per chunk of each line
//
//   GROUP   work-items per group, a power of two
//   EACH    elements per work-item and tile
//   HELD    type of elements in registers: REAL, or a wider type with the same values
//   PLACES  FOLD 3 and 4, defined: i64 indices are written as well as values
#include "scan.clh"

#define ROW (EACH + 1)  // in local memory: padded by one, so that neighbouring work-items read from different banks

struct Lines {
    long n, inner, chunks, tiles, lines;
};

// A folded value and, with PLACES, its index. folded(a, b): b comes after a.
struct Folded {
    HELD value;
#ifdef PLACES
    long place;
#endif
};
static inline struct Folded folded(const struct Folded a, const struct Folded b) {
#ifdef PLACES
    struct Folded all;
    const int wins = WINS(a.value, b.value);
    all.value = wins ? b.value : a.value;
    all.place = wins ? b.place : a.place;
#else
    const struct Folded all = {FOLDED(a.value, b.value)};
#endif
    return all;
}

#ifdef PLACES
#define TOTALS \
    __global REAL *restrict totals, const long totals_offset, __global long *restrict places, const long places_offset
#define MADE(name, number, where) \
    struct Folded name;           \
    name.value = number;          \
    name.place = where;
#define TOTAL_AT(name, at) MADE(name, totals[totals_offset + (at)], places[places_offset + (at)])
#define SET_TOTAL(at, name)                    \
    totals[totals_offset + (at)] = name.value; \
    places[places_offset + (at)] = name.place;
#define ITEMS                   \
    __local REAL values[GROUP]; \
    __local long standing[GROUP];
#define ITEM_AT(name, at) MADE(name, values[at], standing[at])
#define SET_ITEM(at, name)   \
    values[at] = name.value; \
    standing[at] = name.place;
#else
#define TOTALS __global REAL *restrict totals, const long totals_offset
#define MADE(name, number, where) \
    struct Folded name;           \
    name.value = number;
#define TOTAL_AT(name, at) MADE(name, totals[totals_offset + (at)], 0)
#define SET_TOTAL(at, name) totals[totals_offset + (at)] = name.value;
#define ITEMS __local REAL values[GROUP];
#define ITEM_AT(name, at) MADE(name, values[at], 0)
#define SET_ITEM(at, name) values[at] = name.value;
#endif

#define CHUNK_OF_LINE                                                                                    \
    const int item = get_local_id(0);                                                                    \
    const long number = get_group_id(0), on = number / sizes.chunks, chunk = number - on * sizes.chunks; \
    const long first = on / sizes.inner * sizes.n * sizes.inner + on % sizes.inner;                      \
    __global const STORED* line = x + x_offset + first;
#define TILE (GROUP * EACH)

// Loads the tile that begins at element `at` of the line to local memory.
#define LOAD_TILE                                                                                                \
    for (int e = item; e < TILE; e += GROUP)                                                                     \
        elements[e / EACH * ROW + e % EACH] = at + e < sizes.n ? LOADED(line[(at + e) * sizes.inner]) : (REAL)0; \
    barrier(CLK_LOCAL_MEM_FENCE);
// The elements of a work-item: `own` is the index of the first, `count` their number, `all` their fold.
#define OWN_ELEMENTS                                             \
    const long own = at + item * EACH;                           \
    const int count = (int)clamp(sizes.n - own, 0l, (long)EACH); \
    MADE(all, elements[item * ROW], own)                         \
    for (int k = 1; k < count; ++k) {                            \
        MADE(next, elements[item * ROW + k], own + k)            \
        all = folded(all, next);                                 \
    }
// Inclusive scan over the items' values. Items past the end of the line do not affect those before it.
#define SCAN_ITEMS                                            \
    for (int distance = 1; distance < GROUP; distance *= 2) { \
        barrier(CLK_LOCAL_MEM_FENCE);                         \
        ITEM_AT(before, max(item - distance, 0))              \
        ITEM_AT(here, item)                                   \
        barrier(CLK_LOCAL_MEM_FENCE);                         \
        if (item >= distance) {                               \
            here = folded(before, here);                      \
            SET_ITEM(item, here)                              \
        }                                                     \
    }                                                         \
    barrier(CLK_LOCAL_MEM_FENCE);

__kernel void scan_group_totals(const struct Lines sizes, __global const STORED* restrict x, const long x_offset,
                                TOTALS) {
    __local REAL elements[GROUP * ROW];
    ITEMS
    CHUNK_OF_LINE
    MADE(sum, 0, 0)
    // The total of the last chunk is not needed; all other chunks are complete.
    const long tiles = chunk + 1 < sizes.chunks ? sizes.tiles : 0;
    for (long tile = 0; tile < tiles; ++tile) {
        const long at = (chunk * sizes.tiles + tile) * TILE;
        LOAD_TILE
        OWN_ELEMENTS
        SET_ITEM(item, all)
        for (int distance = 1; distance < GROUP; distance *= 2) {
            barrier(CLK_LOCAL_MEM_FENCE);
            if (item % (2 * distance) == 0) {
                ITEM_AT(here, item)
                ITEM_AT(behind, item + distance)
                here = folded(here, behind);
                SET_ITEM(item, here)
            }
        }
        if (item == 0) {
            ITEM_AT(here, 0)
            if (tile == 0) sum = here;
            else sum = folded(sum, here);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (item == 0 && tiles > 0) {
        SET_TOTAL(number, sum)
    }
}

__kernel void scan_group_carries(const struct Lines sizes, TOTALS) {
    ITEMS
    const int item = get_local_id(0);
    const long first = (long)get_group_id(0) * sizes.chunks, count = sizes.chunks - 1;
    MADE(carry, 0, 0)
    for (long at = 0; at < count; at += GROUP) {
        MADE(all, 0, 0)
        if (at + item < count) {  // items past the end do not affect those before it
            TOTAL_AT(own, first + at + item)
            all = own;
        }
        SET_ITEM(item, all)
        SCAN_ITEMS
        ITEM_AT(here, item)
        if (at > 0) here = folded(carry, here);
        ITEM_AT(last, GROUP - 1)
        if (at > 0) carry = folded(carry, last);
        else carry = last;
        if (at + item < count) {
            const long to = first + at + item;
            SET_TOTAL(to, here)
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

__kernel void scan_groups(const struct Lines sizes, __global const STORED* restrict x, const long x_offset, TOTALS,
                          __global OUTPUT* restrict out, const long out_offset
#ifdef PLACES
                          ,
                          __global long* restrict where, const long where_offset
#endif
) {
    __local REAL elements[GROUP * ROW];
#ifdef PLACES
    __local long found[GROUP * ROW];
#endif
    ITEMS
    CHUNK_OF_LINE
    MADE(carry, 0, 0)
    if (chunk > 0) {
        TOTAL_AT(before, number - 1)
        carry = before;
    }
    for (long tile = 0; tile < sizes.tiles; ++tile) {
        const long at = (chunk * sizes.tiles + tile) * TILE;
        const int carried = chunk > 0 || tile > 0;
        LOAD_TILE
        OWN_ELEMENTS
        SET_ITEM(item, all)
        SCAN_ITEMS
        if (item > 0) {
            ITEM_AT(before, item - 1)
            all = before;
            if (carried) all = folded(carry, all);
        } else {
            all = carry;
        }
        const int led = carried || item > 0;
        for (int k = 0; k < count; ++k) {
            MADE(next, elements[item * ROW + k], own + k)
            if (led || k > 0) all = folded(all, next);
            else all = next;
            elements[item * ROW + k] = all.value;
#ifdef PLACES
            found[item * ROW + k] = all.place;
#endif
        }
        ITEM_AT(last, GROUP - 1)
        if (carried) carry = folded(carry, last);
        else carry = last;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int e = item; e < TILE; e += GROUP)
            if (at + e < sizes.n) {
                const long to = first + (at + e) * sizes.inner;
                out[out_offset + to] = ROUNDED(elements[e / EACH * ROW + e % EACH]);
#ifdef PLACES
                where[where_offset + to] = found[e / EACH * ROW + e % EACH];
#endif
            }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}
