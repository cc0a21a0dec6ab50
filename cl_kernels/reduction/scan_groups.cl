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
//   REGISTER_TYPE  folded.clh
//   WITH_INDICES   FOLD_MAX and FOLD_MIN, defined: i64 indices are written as well as values
#include "folded.clh"

#define TILE (GROUP * PER_ITEM)
#define ROW (PER_ITEM + 1)  // in local memory: padded by one, so that neighbouring work-items read from different banks

struct Lines {
    long n, inner, chunks, tiles, lines;
};

// TOTALS: the totals of the chunks, in global memory. ITEMS: a folded value per work-item, in local memory.
#ifdef WITH_INDICES
#define TOTALS_PARAMETERS \
    __global REAL *restrict totals, const long totals_offset, __global long *restrict indices, const long indices_offset
#define TOTALS_ARGUMENTS totals, totals_offset, indices, indices_offset
#define ITEMS_PARAMETERS __local REAL *item_values, __local long *item_indices
#define ITEMS_ARGUMENTS item_values, item_indices
#else
#define TOTALS_PARAMETERS __global REAL *restrict totals, const long totals_offset
#define TOTALS_ARGUMENTS totals, totals_offset
#define ITEMS_PARAMETERS __local REAL* item_values
#define ITEMS_ARGUMENTS item_values
#endif

static inline struct Folded load_total(TOTALS_PARAMETERS, const long chunk) {
#ifdef WITH_INDICES
    return folded_of(totals[totals_offset + chunk], indices[indices_offset + chunk]);
#else
    return folded_of(totals[totals_offset + chunk], 0);
#endif
}

static inline void store_total(TOTALS_PARAMETERS, const long chunk, const struct Folded total) {
    totals[totals_offset + chunk] = total.value;
#ifdef WITH_INDICES
    indices[indices_offset + chunk] = total.index;
#endif
}

static inline struct Folded load_item(ITEMS_PARAMETERS, const int item) {
#ifdef WITH_INDICES
    return folded_of(item_values[item], item_indices[item]);
#else
    return folded_of(item_values[item], 0);
#endif
}

static inline void store_item(ITEMS_PARAMETERS, const int item, const struct Folded value) {
    item_values[item] = value.value;
#ifdef WITH_INDICES
    item_indices[item] = value.index;
#endif
}

// Folds the values of all items into that of item 0.
static inline void fold_items(ITEMS_PARAMETERS) {
    const int item = get_local_id(0);
    for (int distance = 1; distance < GROUP; distance *= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (item % (2 * distance) == 0) {
            const struct Folded current = load_item(ITEMS_ARGUMENTS, item);
            const struct Folded after = load_item(ITEMS_ARGUMENTS, item + distance);
            store_item(ITEMS_ARGUMENTS, item, folded(current, after));
        }
    }
}

// Inclusive scan over the items' values. Items past the end of the line do not affect those before it.
static inline void scan_items(ITEMS_PARAMETERS) {
    const int item = get_local_id(0);
    for (int distance = 1; distance < GROUP; distance *= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        const struct Folded before = load_item(ITEMS_ARGUMENTS, max(item - distance, 0));
        const struct Folded current = load_item(ITEMS_ARGUMENTS, item);
        barrier(CLK_LOCAL_MEM_FENCE);
        if (item >= distance) store_item(ITEMS_ARGUMENTS, item, folded(before, current));
    }
    barrier(CLK_LOCAL_MEM_FENCE);
}

// The chunk of a work-group.
struct Chunk {
    long number;  // among all chunks
    long index;   // in its line
    long line;    // offset of the first element of the line in x
};
static inline struct Chunk own_chunk(const struct Lines* sizes) {
    struct Chunk chunk;
    chunk.number = get_group_id(0);
    const long line_number = chunk.number / sizes->chunks;
    chunk.index = chunk.number - line_number * sizes->chunks;
    chunk.line = line_number / sizes->inner * sizes->n * sizes->inner + line_number % sizes->inner;
    return chunk;
}

// Loads the tile that begins at element `first` of the line to local memory, PER_ITEM elements to a row.
static inline void load_tile(__local REAL* elements, __global const STORED* line, const long first,
                             const struct Lines* sizes) {
    for (int e = get_local_id(0); e < TILE; e += GROUP)
        elements[e / PER_ITEM * ROW + e % PER_ITEM] =
            first + e < sizes->n ? LOADED(line[(first + e) * sizes->inner]) : (REAL)0;
    barrier(CLK_LOCAL_MEM_FENCE);
}

// Folds the first `count` elements of a row; `first` is the index in the line of the first of them.
static inline struct Folded fold_row(const __local REAL* row, const long first, const int count) {
    struct Folded total = folded_of(row[0], first);
    for (int k = 1; k < count; ++k) total = folded(total, folded_of(row[k], first + k));
    return total;
}

// Number of elements in the row of a work-item that are within the line.
static inline int row_length(const long first, const struct Lines* sizes) {
    return (int)clamp(sizes->n - first, 0l, (long)PER_ITEM);
}

__kernel void scan_group_totals(const struct Lines sizes, __global const STORED* restrict x, const long x_offset,
                                TOTALS_PARAMETERS) {
    __local REAL elements[GROUP * ROW];
    __local REAL item_values[GROUP];
#ifdef WITH_INDICES
    __local long item_indices[GROUP];
#endif
    const int item = get_local_id(0);
    const struct Chunk chunk = own_chunk(&sizes);
    struct Folded sum = folded_of(0, 0);
    // The total of the last chunk is not needed; all other chunks are complete.
    const long tiles = chunk.index + 1 < sizes.chunks ? sizes.tiles : 0;
    for (long tile = 0; tile < tiles; ++tile) {
        const long first = (chunk.index * sizes.tiles + tile) * TILE, own = first + item * PER_ITEM;
        load_tile(elements, x + x_offset + chunk.line, first, &sizes);
        store_item(ITEMS_ARGUMENTS, item, fold_row(elements + item * ROW, own, row_length(own, &sizes)));
        fold_items(ITEMS_ARGUMENTS);
        if (item == 0) {
            const struct Folded tile_total = load_item(ITEMS_ARGUMENTS, 0);
            sum = tile == 0 ? tile_total : folded(sum, tile_total);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (item == 0 && tiles > 0) store_total(TOTALS_ARGUMENTS, chunk.number, sum);
}

__kernel void scan_group_carries(const struct Lines sizes, TOTALS_PARAMETERS) {
    __local REAL item_values[GROUP];
#ifdef WITH_INDICES
    __local long item_indices[GROUP];
#endif
    const int item = get_local_id(0);
    const long first = (long)get_group_id(0) * sizes.chunks, count = sizes.chunks - 1;
    struct Folded carry = folded_of(0, 0);
    for (long at = 0; at < count; at += GROUP) {
        struct Folded total = folded_of(0, 0);  // items past the end do not affect those before it
        if (at + item < count) total = load_total(TOTALS_ARGUMENTS, first + at + item);
        store_item(ITEMS_ARGUMENTS, item, total);
        scan_items(ITEMS_ARGUMENTS);
        struct Folded current = load_item(ITEMS_ARGUMENTS, item);
        if (at > 0) current = folded(carry, current);
        const struct Folded last = load_item(ITEMS_ARGUMENTS, GROUP - 1);
        carry = at > 0 ? folded(carry, last) : last;
        if (at + item < count) store_total(TOTALS_ARGUMENTS, first + at + item, current);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

__kernel void scan_groups(const struct Lines sizes, __global const STORED* restrict x, const long x_offset,
                          TOTALS_PARAMETERS, __global OUTPUT* restrict out, const long out_offset
#ifdef WITH_INDICES
                          ,
                          __global long* restrict out_indices, const long out_indices_offset
#endif
) {
    __local REAL elements[GROUP * ROW];
    __local REAL item_values[GROUP];
#ifdef WITH_INDICES
    __local long element_indices[GROUP * ROW];
    __local long item_indices[GROUP];
#endif
    const int item = get_local_id(0);
    const struct Chunk chunk = own_chunk(&sizes);
    struct Folded carry = folded_of(0, 0);
    if (chunk.index > 0) carry = load_total(TOTALS_ARGUMENTS, chunk.number - 1);
    for (long tile = 0; tile < sizes.tiles; ++tile) {
        const long first = (chunk.index * sizes.tiles + tile) * TILE, own = first + item * PER_ITEM;
        const int count = row_length(own, &sizes);
        const int has_carry = chunk.index > 0 || tile > 0;
        load_tile(elements, x + x_offset + chunk.line, first, &sizes);
        store_item(ITEMS_ARGUMENTS, item, fold_row(elements + item * ROW, own, count));
        scan_items(ITEMS_ARGUMENTS);
        // The fold of all elements before the row of the item.
        struct Folded total = carry;
        if (item > 0) {
            total = load_item(ITEMS_ARGUMENTS, item - 1);
            if (has_carry) total = folded(carry, total);
        }
        const int has_previous = has_carry || item > 0;
        for (int k = 0; k < count; ++k) {
            const struct Folded next = folded_of(elements[item * ROW + k], own + k);
            total = has_previous || k > 0 ? folded(total, next) : next;
            elements[item * ROW + k] = total.value;
#ifdef WITH_INDICES
            element_indices[item * ROW + k] = total.index;
#endif
        }
        const struct Folded last = load_item(ITEMS_ARGUMENTS, GROUP - 1);
        carry = has_carry ? folded(carry, last) : last;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int e = item; e < TILE; e += GROUP)
            if (first + e < sizes.n) {
                const long to = chunk.line + (first + e) * sizes.inner;
                out[out_offset + to] = ROUNDED(elements[e / PER_ITEM * ROW + e % PER_ITEM]);
#ifdef WITH_INDICES
                out_indices[out_indices_offset + to] = element_indices[e / PER_ITEM * ROW + e % PER_ITEM];
#endif
            }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}
