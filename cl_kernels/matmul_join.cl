// out[i][n] = tail(sum over p in [0, parts) of partial[p][i][n]), in the order of p: the second step of products whose sums
// were cut into parts, for GPU-like devices. tail as in product_tail.clh. A work-item computes one element.
//
//   global size   count, the elements of out, rounded up to the local size
//   REAL          type of the parts (math.clh); STORED that of what the tail adds, OUTPUT that of out (storage.clh)
#include "product_tail.clh"

__kernel void matmul_join(const long count, const long columns, const long parts, __global const REAL* restrict partial, const long partial_offset,
                          __global OUTPUT* restrict out, const long out_offset, TAIL_PARAMETERS) {
    const long i = get_global_id(0);
    if (i >= count) return;
    const struct Tail tail = TAIL_OF_PARAMETERS;
    __global const REAL* from = partial + partial_offset + i;
    REAL sum = 0;
    for (long p = 0; p < parts; ++p) sum += from[p * count];
    out[out_offset + i] = ROUNDED(finished(tail, sum, i - i / columns * columns, i));
}
