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

// Without %: clang turns a pair of / and % into a freeze instruction, which Oclgrind does not support.
#define ELEMENT(e)                               \
    const long e = get_global_id(0);             \
    const long at = e / sizes.inner;             \
    if (at >= sizes.outer * sizes.taken) return; \
    const long o = at / sizes.taken, k = e - at * sizes.inner;

#define IN_RANGE(index) ((index) >= 0 && (long)(index) < sizes.size)

__kernel void gather(const struct Gather sizes, __global const UNIT* restrict x, const long x_offset,
                     __global const INDEX_TYPE* restrict indices, const long indices_offset,
                     __global UNIT* restrict out, const long out_offset, const uint low, const uint high) {
#ifdef SIMD
    long at = (long)get_global_id(0) * sizes.each;
    const long end = min(sizes.outer * sizes.taken, at + sizes.each);
    while (at < end) {
        const long o = at / sizes.taken, stop = min(end, (o + 1) * sizes.taken);
        __global const UNIT* from = x + x_offset + o * sizes.size * sizes.inner;
        if (sizes.inner == 1) {
            for (; at < stop; ++at) {
                const INDEX_TYPE index = indices[indices_offset + at];
                const int in_range = IN_RANGE(index);
                const UNIT value = from[in_range ? (long)index : 0];
                out[out_offset + at] = in_range ? value : FILL_VALUE;
            }
            continue;
        }
        for (; at < stop; ++at)
            for (long k = 0; k < sizes.inner; ++k) {
                const INDEX_TYPE index = indices[indices_offset + at * sizes.inner + k];
                const int in_range = IN_RANGE(index);
                const UNIT value = from[(in_range ? (long)index : 0) * sizes.inner + k];
                out[out_offset + at * sizes.inner + k] = in_range ? value : FILL_VALUE;
            }
    }
#else
    ELEMENT(e)
    const INDEX_TYPE index = indices[indices_offset + e];
    const int in_range = IN_RANGE(index);
    const UNIT value = x[x_offset + (o * sizes.size + (in_range ? (long)index : 0)) * sizes.inner + k];
    out[out_offset + e] = in_range ? value : FILL_VALUE;
#endif
}

__kernel void gather_rows(const struct Gather sizes, __global const UNIT* restrict x, const long x_offset,
                          __global const INDEX_TYPE* restrict indices, const long indices_offset,
                          __global UNIT* restrict out, const long out_offset, const uint low, const uint high) {
#ifdef SIMD
    const long first = (long)get_global_id(0) * sizes.each, end = min(sizes.taken, first + sizes.each);
    for (long at = first; at < end; ++at) {
        const INDEX_TYPE index = indices[indices_offset + at];
        __global UNIT* to = out + out_offset + at * sizes.inner;
        if (!IN_RANGE(index)) {
            for (long k = 0; k < sizes.inner; ++k) to[k] = FILL_VALUE;
            continue;
        }
        __global const UNIT* from = x + x_offset + (long)index * sizes.inner;
        for (long k = 0; k < sizes.inner; ++k) to[k] = from[k];
    }
#else
    ELEMENT(e)
    const INDEX_TYPE index = indices[indices_offset + at];
    const int in_range = IN_RANGE(index);
    const UNIT value = x[x_offset + (o + (in_range ? (long)index : 0)) * sizes.inner + k];
    out[out_offset + e] = in_range ? value : FILL_VALUE;
#endif
}
