// Transposing copy: to[o, a, b] = from[o, a, b], where a is contiguous in `from` and b is contiguous in `to`. simd
// style.
//
// The axes are size[0 .. rank): outer axes o, then a, then b; strides in elements. Tiles of LANES x LANES elements are
// transposed in registers, so that both sides are accessed in whole vectors.
//
//   global size  (blocks of a, number of o): a work-item takes BLOCK of a and all b
//   T            uint or ulong: any type of 4 or 8 bytes
//   LANES        elements per vector, 16 or 8
//   BLOCK        elements per side of a cache block: limits the number of memory lines in use at the same time
#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)
#define VEC PASTE(T, LANES)
#define MAX_RANK 8

struct Permutation {
    long size[MAX_RANK], from[MAX_RANK], to[MAX_RANK];
    long rank;
};

#include "noinline.clh"
#include "transpose_tile.clh"
TRANSPOSITION(transpose_vectors, VEC, LANES)

NOINLINE void transpose_tile(__global const T* from, const long from_b, __global T* to, const long to_a) {
    VEC rows[LANES];
#pragma unroll
    for (int i = 0; i < LANES; ++i) rows[i] = PASTE(vload, LANES)(0, from + i * from_b);
    transpose_vectors(rows);
#pragma unroll
    for (int i = 0; i < LANES; ++i) PASTE(vstore, LANES)(rows[i], 0, to + i * to_a);
}

__kernel void permute(const struct Permutation p, __global const T* restrict from_base, const long from_offset,
                      __global T* restrict to_base, const long to_offset) {
    const int a_axis = (int)p.rank - 2, b_axis = (int)p.rank - 1;
    __global const T* from = from_base + from_offset;
    __global T* to = to_base + to_offset;
    long rest = get_global_id(1);
    for (int axis = a_axis - 1; axis >= 0; --axis) {
        const long next = rest / p.size[axis], index = rest - next * p.size[axis];
        from += index * p.from[axis];
        to += index * p.to[axis];
        rest = next;
    }
    const long from_b = p.from[b_axis], to_a = p.to[a_axis];
    const long a_begin = get_global_id(0) * (long)BLOCK, a_end = min(p.size[a_axis], a_begin + BLOCK),
               b_end = p.size[b_axis];
    for (long block = 0; block < b_end; block += BLOCK) {
        const long block_end = min(b_end, block + BLOCK);
        for (long b = block; b < block_end; b += LANES)
            for (long a = a_begin; a < a_end; a += LANES) {
                if (a + LANES <= a_end && b + LANES <= block_end) {
                    transpose_tile(from + a + b * from_b, from_b, to + b + a * to_a, to_a);
                    continue;
                }
                const long i_end = min(a_end, a + LANES), j_end = min(block_end, b + LANES);
                for (long i = a; i < i_end; ++i)
                    for (long j = b; j < j_end; ++j) to[j + i * to_a] = from[i + j * from_b];
            }
    }
}
