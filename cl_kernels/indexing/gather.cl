// Gather along an axis, and lookup of rows of a table. Elements are copied bitwise, so kernels are specialised by
// element size only.
//
//   gather:       out[o][i][k] = x[o][indices[o][i][k]][k], for x (outer, size, inner), indices and out (outer, taken,
//                 inner)
//   gather_rows:  out[i] = table[indices[i]], for table (size, inner), out (taken, inner); `outer` is 1
//   An index outside [0, size) gives the fill value in `low` and `high`: the two words of an 8-byte element; for
//   smaller ones `low`, which repeats the element
//
//   SIMD     simd style: a work-item takes `each` pairs of o and i, global (ceil(outer * taken / each))
//   SIMT     simt style: one element each, global (outer * taken * inner), rounded up to the local size
//   UNIT     uchar, ushort, uint, ulong: an element; in gather_rows also uint4: several contiguous ones
//   FILL_VALUE  the fill value as a UNIT, an expression of low and high
//   INDEX_TYPE  type of the indices: int or long

struct Gather {
    long outer, taken, size, inner, each;
};

static inline int is_in_range(const INDEX_TYPE index, const long size) { return index >= 0 && (long)index < size; }

#ifdef SIMD

// Gathers the pairs [first, end), which have the same o, for inner == 1.
static inline void gather_elements(__global const UNIT* from, const long size, const long first, const long end,
                                   __global const INDEX_TYPE* indices, __global UNIT* out, const uint low,
                                   const uint high) {
    for (long pair = first; pair < end; ++pair) {
        const INDEX_TYPE index = indices[pair];
        const int in_range = is_in_range(index, size);
        const UNIT value = from[in_range ? (long)index : 0];
        out[pair] = in_range ? value : FILL_VALUE;
    }
}

// The same for any inner axis: element k of a pair has an index of its own.
static inline void gather_columns(__global const UNIT* from, const long size, const long inner, const long first,
                                  const long end, __global const INDEX_TYPE* indices, __global UNIT* out,
                                  const uint low, const uint high) {
    for (long pair = first; pair < end; ++pair)
        for (long k = 0; k < inner; ++k) {
            const INDEX_TYPE index = indices[pair * inner + k];
            const int in_range = is_in_range(index, size);
            const UNIT value = from[(in_range ? (long)index : 0) * inner + k];
            out[pair * inner + k] = in_range ? value : FILL_VALUE;
        }
}

__kernel void gather(const struct Gather sizes, __global const UNIT* restrict x, const long x_offset,
                     __global const INDEX_TYPE* restrict indices, const long indices_offset,
                     __global UNIT* restrict out, const long out_offset, const uint low, const uint high) {
    long pair = (long)get_global_id(0) * sizes.each;
    const long end = min(sizes.outer * sizes.taken, pair + sizes.each);
    while (pair < end) {
        const long o = pair / sizes.taken, stop = min(end, (o + 1) * sizes.taken);
        __global const UNIT* from = x + x_offset + o * sizes.size * sizes.inner;
        if (sizes.inner == 1)
            gather_elements(from, sizes.size, pair, stop, indices + indices_offset, out + out_offset, low, high);
        else
            gather_columns(from, sizes.size, sizes.inner, pair, stop, indices + indices_offset, out + out_offset, low,
                           high);
        pair = stop;
    }
}

__kernel void gather_rows(const struct Gather sizes, __global const UNIT* restrict x, const long x_offset,
                          __global const INDEX_TYPE* restrict indices, const long indices_offset,
                          __global UNIT* restrict out, const long out_offset, const uint low, const uint high) {
    const long first = (long)get_global_id(0) * sizes.each, end = min(sizes.taken, first + sizes.each);
    for (long i = first; i < end; ++i) {
        const INDEX_TYPE index = indices[indices_offset + i];
        __global UNIT* to = out + out_offset + i * sizes.inner;
        if (!is_in_range(index, sizes.size)) {
            for (long k = 0; k < sizes.inner; ++k) to[k] = FILL_VALUE;
            continue;
        }
        __global const UNIT* from = x + x_offset + (long)index * sizes.inner;
        for (long k = 0; k < sizes.inner; ++k) to[k] = from[k];
    }
}

#else

// Indices are split without %, since clang turns a pair of / and % into a freeze instruction, which Oclgrind does not
// support.

__kernel void gather(const struct Gather sizes, __global const UNIT* restrict x, const long x_offset,
                     __global const INDEX_TYPE* restrict indices, const long indices_offset,
                     __global UNIT* restrict out, const long out_offset, const uint low, const uint high) {
    const long element = get_global_id(0), pair = element / sizes.inner, k = element - pair * sizes.inner;
    if (pair >= sizes.outer * sizes.taken) return;
    const long o = pair / sizes.taken;
    const INDEX_TYPE index = indices[indices_offset + element];
    const int in_range = is_in_range(index, sizes.size);
    const UNIT value = x[x_offset + (o * sizes.size + (in_range ? (long)index : 0)) * sizes.inner + k];
    out[out_offset + element] = in_range ? value : FILL_VALUE;
}

__kernel void gather_rows(const struct Gather sizes, __global const UNIT* restrict x, const long x_offset,
                          __global const INDEX_TYPE* restrict indices, const long indices_offset,
                          __global UNIT* restrict out, const long out_offset, const uint low, const uint high) {
    const long element = get_global_id(0), i = element / sizes.inner, k = element - i * sizes.inner;
    if (i >= sizes.taken) return;
    const INDEX_TYPE index = indices[indices_offset + i];
    const int in_range = is_in_range(index, sizes.size);
    const UNIT value = x[x_offset + (in_range ? (long)index : 0) * sizes.inner + k];
    out[out_offset + element] = in_range ? value : FILL_VALUE;
}

#endif
