// Inclusive scan along the middle axis of x (outer, n, inner), with one or several work-groups per line. simt style,
// for long lines; scan.cl has the other forms.
//
// A line is split into chunks of `tiles` tiles of GROUP * PER_ITEM elements. A work-item has PER_ITEM contiguous
// elements of a tile; tiles pass through local memory, so that neighbouring work-items access neighbouring elements.
//
//   scan_group_totals   folds each chunk but the last; a group per chunk of each line
//   scan_group_carries  inclusive scan of the totals of a line; a group per line
//   scan_groups         the result, from the carries; a group per chunk of each line
//
//   GROUP          work-items per group, a power of two
//   PER_ITEM       elements per work-item and tile
//   REGISTER_TYPE  type of elements in registers: REAL, or a wider type with the same values
//   WITH_INDICES   FOLD_MAX and FOLD_MIN, defined: i64 indices are written as well as values
#include "scan.clh"

#define ROW (PER_ITEM + 1)  // in local memory: padded by one, so that neighbouring work-items read from different banks

struct Lines {
    long n, inner, chunks, tiles, lines;
};

// A folded value and, with WITH_INDICES, its index. folded(a, b): b comes after a.
struct Folded {
    REGISTER_TYPE value;
#ifdef WITH_INDICES
    long index;
#endif
};
static inline struct Folded folded(const struct Folded a, const struct Folded b) {
#ifdef WITH_INDICES
    struct Folded total;
    const int replaces = REPLACES(a.value, b.value);
    total.value = replaces ? b.value : a.value;
    total.index = replaces ? b.index : a.index;
#else
    const struct Folded total = {FOLDED(a.value, b.value)};
#endif
    return total;
}

#ifdef WITH_INDICES
#define TOTALS \
    __global REAL *restrict totals, const long totals_offset, __global long *restrict indices, const long indices_offset
#define MAKE_FOLDED(name, chunk_number, out_indices) \
    struct Folded name;                              \
    name.value = chunk_number;                       \
    name.index = out_indices;
#define TOTAL_AT(name, at) MAKE_FOLDED(name, totals[totals_offset + (at)], indices[indices_offset + (at)])
#define SET_TOTAL(at, name)                    \
    totals[totals_offset + (at)] = name.value; \
    indices[indices_offset + (at)] = name.index;
#define ITEMS                   \
    __local REAL values[GROUP]; \
    __local long item_indices[GROUP];
#define ITEM_AT(name, at) MAKE_FOLDED(name, values[at], item_indices[at])
#define SET_ITEM(at, name)   \
    values[at] = name.value; \
    item_indices[at] = name.index;
#else
#define TOTALS __global REAL *restrict totals, const long totals_offset
#define MAKE_FOLDED(name, chunk_number, out_indices) \
    struct Folded name;                              \
    name.value = chunk_number;
#define TOTAL_AT(name, at) MAKE_FOLDED(name, totals[totals_offset + (at)], 0)
#define SET_TOTAL(at, name) totals[totals_offset + (at)] = name.value;
#define ITEMS __local REAL values[GROUP];
#define ITEM_AT(name, at) MAKE_FOLDED(name, values[at], 0)
#define SET_ITEM(at, name) values[at] = name.value;
#endif

#define CHUNK_OF_LINE                                                                                 \
    const int item = get_local_id(0);                                                                 \
    const long chunk_number = get_group_id(0), line_number = chunk_number / sizes.chunks,             \
               chunk = chunk_number - line_number * sizes.chunks;                                     \
    const long first = line_number / sizes.inner * sizes.n * sizes.inner + line_number % sizes.inner; \
    __global const STORED* line = x + x_offset + first;
#define TILE (GROUP * PER_ITEM)

// Loads the tile that begins at element `at` of the line to local memory.
#define LOAD_TILE                                                              \
    for (int e = item; e < TILE; e += GROUP)                                   \
        elements[e / PER_ITEM * ROW + e % PER_ITEM] =                          \
            at + e < sizes.n ? LOADED(line[(at + e) * sizes.inner]) : (REAL)0; \
    barrier(CLK_LOCAL_MEM_FENCE);
// The elements of a work-item: `own` is the index of the first, `count` their number, `total` their fold.
#define OWN_ELEMENTS                                                 \
    const long own = at + item * PER_ITEM;                           \
    const int count = (int)clamp(sizes.n - own, 0l, (long)PER_ITEM); \
    MAKE_FOLDED(total, elements[item * ROW], own)                    \
    for (int k = 1; k < count; ++k) {                                \
        MAKE_FOLDED(next, elements[item * ROW + k], own + k)         \
        total = folded(total, next);                                 \
    }
// Inclusive scan over the items' values. Items past the end of the line do not affect those before it.
#define SCAN_ITEMS                                            \
    for (int distance = 1; distance < GROUP; distance *= 2) { \
        barrier(CLK_LOCAL_MEM_FENCE);                         \
        ITEM_AT(before, max(item - distance, 0))              \
        ITEM_AT(current, item)                                \
        barrier(CLK_LOCAL_MEM_FENCE);                         \
        if (item >= distance) {                               \
            current = folded(before, current);                \
            SET_ITEM(item, current)                           \
        }                                                     \
    }                                                         \
    barrier(CLK_LOCAL_MEM_FENCE);

__kernel void scan_group_totals(const struct Lines sizes, __global const STORED* restrict x, const long x_offset,
                                TOTALS) {
    __local REAL elements[GROUP * ROW];
    ITEMS
    CHUNK_OF_LINE
    MAKE_FOLDED(sum, 0, 0)
    // The total of the last chunk is not needed; all other chunks are complete.
    const long tiles = chunk + 1 < sizes.chunks ? sizes.tiles : 0;
    for (long tile = 0; tile < tiles; ++tile) {
        const long at = (chunk * sizes.tiles + tile) * TILE;
        LOAD_TILE
        OWN_ELEMENTS
        SET_ITEM(item, total)
        for (int distance = 1; distance < GROUP; distance *= 2) {
            barrier(CLK_LOCAL_MEM_FENCE);
            if (item % (2 * distance) == 0) {
                ITEM_AT(current, item)
                ITEM_AT(after, item + distance)
                current = folded(current, after);
                SET_ITEM(item, current)
            }
        }
        if (item == 0) {
            ITEM_AT(current, 0)
            if (tile == 0) sum = current;
            else sum = folded(sum, current);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (item == 0 && tiles > 0) {
        SET_TOTAL(chunk_number, sum)
    }
}

__kernel void scan_group_carries(const struct Lines sizes, TOTALS) {
    ITEMS
    const int item = get_local_id(0);
    const long first = (long)get_group_id(0) * sizes.chunks, count = sizes.chunks - 1;
    MAKE_FOLDED(carry, 0, 0)
    for (long at = 0; at < count; at += GROUP) {
        MAKE_FOLDED(total, 0, 0)
        if (at + item < count) {  // items past the end do not affect those before it
            TOTAL_AT(own, first + at + item)
            total = own;
        }
        SET_ITEM(item, total)
        SCAN_ITEMS
        ITEM_AT(current, item)
        if (at > 0) current = folded(carry, current);
        ITEM_AT(last, GROUP - 1)
        if (at > 0) carry = folded(carry, last);
        else carry = last;
        if (at + item < count) {
            const long to = first + at + item;
            SET_TOTAL(to, current)
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

__kernel void scan_groups(const struct Lines sizes, __global const STORED* restrict x, const long x_offset, TOTALS,
                          __global OUTPUT* restrict out, const long out_offset
#ifdef WITH_INDICES
                          ,
                          __global long* restrict out_indices, const long out_indices_offset
#endif
) {
    __local REAL elements[GROUP * ROW];
#ifdef WITH_INDICES
    __local long element_indices[GROUP * ROW];
#endif
    ITEMS
    CHUNK_OF_LINE
    MAKE_FOLDED(carry, 0, 0)
    if (chunk > 0) {
        TOTAL_AT(before, chunk_number - 1)
        carry = before;
    }
    for (long tile = 0; tile < sizes.tiles; ++tile) {
        const long at = (chunk * sizes.tiles + tile) * TILE;
        const int has_carry = chunk > 0 || tile > 0;
        LOAD_TILE
        OWN_ELEMENTS
        SET_ITEM(item, total)
        SCAN_ITEMS
        if (item > 0) {
            ITEM_AT(before, item - 1)
            total = before;
            if (has_carry) total = folded(carry, total);
        } else {
            total = carry;
        }
        const int has_previous = has_carry || item > 0;
        for (int k = 0; k < count; ++k) {
            MAKE_FOLDED(next, elements[item * ROW + k], own + k)
            if (has_previous || k > 0) total = folded(total, next);
            else total = next;
            elements[item * ROW + k] = total.value;
#ifdef WITH_INDICES
            element_indices[item * ROW + k] = total.index;
#endif
        }
        ITEM_AT(last, GROUP - 1)
        if (has_carry) carry = folded(carry, last);
        else carry = last;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int e = item; e < TILE; e += GROUP)
            if (at + e < sizes.n) {
                const long to = first + (at + e) * sizes.inner;
                out[out_offset + to] = ROUNDED(elements[e / PER_ITEM * ROW + e % PER_ITEM]);
#ifdef WITH_INDICES
                out_indices[out_indices_offset + to] = element_indices[e / PER_ITEM * ROW + e % PER_ITEM];
#endif
            }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}
