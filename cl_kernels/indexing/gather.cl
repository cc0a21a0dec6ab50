// Gather along an axis, and lookup of rows of a table. Elements are copied bitwise, so kernels are specialised by
// element size only.
//
//   gather:       out[o][i][k] = x[o][places[o][i][k]][k], for x (outer, size, inner), places and out (outer, taken,
//                 inner)
//   gather_rows:  out[i] = table[places[i]], for table (size, inner), out (taken, inner); `outer` is 1
//   An index outside [0, size) gives the fill value in `low` and `high`: the two words of an 8-byte element; for
//   smaller ones `low`, which repeats the element
//
//   SIMD     simd style: a work-item takes `each` pairs of o and i, global (ceil(outer * taken / each))
//   SIMT     simt style: one element each, global (outer * taken * inner), rounded up to the local size
//   UNIT     uchar, ushort, uint, ulong: an element; in gather_rows also uint4: several contiguous ones
//   MISSING  the fill value as a UNIT, an expression of low and high
//   PLACE    type of the indices: int or long

struct Gather {
    long outer, taken, size, inner, each;
};

// Without %: clang turns a pair of / and % into a freeze instruction, which Oclgrind does not support.
#define ELEMENT(e)                               \
    const long e = get_global_id(0);             \
    const long at = e / sizes.inner;             \
    if (at >= sizes.outer * sizes.taken) return; \
    const long o = at / sizes.taken, k = e - at * sizes.inner;

#define INSIDE(place) ((place) >= 0 && (long)(place) < sizes.size)

__kernel void gather(const struct Gather sizes, __global const UNIT* restrict x, const long x_offset,
                     __global const PLACE* restrict places, const long places_offset, __global UNIT* restrict out,
                     const long out_offset, const uint low, const uint high) {
#ifdef SIMD
    long at = (long)get_global_id(0) * sizes.each;
    const long end = min(sizes.outer * sizes.taken, at + sizes.each);
    while (at < end) {
        const long o = at / sizes.taken, stop = min(end, (o + 1) * sizes.taken);
        __global const UNIT* from = x + x_offset + o * sizes.size * sizes.inner;
        if (sizes.inner == 1) {
            for (; at < stop; ++at) {
                const PLACE place = places[places_offset + at];
                const int inside = INSIDE(place);
                const UNIT one = from[inside ? (long)place : 0];
                out[out_offset + at] = inside ? one : MISSING;
            }
            continue;
        }
        for (; at < stop; ++at)
            for (long k = 0; k < sizes.inner; ++k) {
                const PLACE place = places[places_offset + at * sizes.inner + k];
                const int inside = INSIDE(place);
                const UNIT one = from[(inside ? (long)place : 0) * sizes.inner + k];
                out[out_offset + at * sizes.inner + k] = inside ? one : MISSING;
            }
    }
#else
    ELEMENT(e)
    const PLACE place = places[places_offset + e];
    const int inside = INSIDE(place);
    const UNIT one = x[x_offset + (o * sizes.size + (inside ? (long)place : 0)) * sizes.inner + k];
    out[out_offset + e] = inside ? one : MISSING;
#endif
}

__kernel void gather_rows(const struct Gather sizes, __global const UNIT* restrict x, const long x_offset,
                          __global const PLACE* restrict places, const long places_offset, __global UNIT* restrict out,
                          const long out_offset, const uint low, const uint high) {
#ifdef SIMD
    const long first = (long)get_global_id(0) * sizes.each, end = min(sizes.taken, first + sizes.each);
    for (long at = first; at < end; ++at) {
        const PLACE place = places[places_offset + at];
        __global UNIT* to = out + out_offset + at * sizes.inner;
        if (!INSIDE(place)) {
            for (long k = 0; k < sizes.inner; ++k) to[k] = MISSING;
            continue;
        }
        __global const UNIT* from = x + x_offset + (long)place * sizes.inner;
        for (long k = 0; k < sizes.inner; ++k) to[k] = from[k];
    }
#else
    ELEMENT(e)
    const PLACE place = places[places_offset + at];
    const int inside = INSIDE(place);
    const UNIT one = x[x_offset + (o + (inside ? (long)place : 0)) * sizes.inner + k];
    out[out_offset + e] = inside ? one : MISSING;
#endif
}
