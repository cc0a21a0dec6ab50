// out[i][n] = epilogue(sum over p in [0, parts) of partial[p][i][n]), in the order of p: the second step of split-K
// products, with the epilogue of epilogue.clh. simt style; a work-item computes one element.
//
//   global size   count, the elements of out, rounded up to the local size
//   REAL          type of the partial sums (math.clh)
//   STORED        type of the operands of the epilogue (storage.clh)
//   OUTPUT        type of out (storage.clh)
#include "epilogue.clh"

__kernel void matmul_reduce(const long count, const long columns, const long parts,
                            __global const REAL* restrict partial, const long partial_offset,
                            __global OUTPUT* restrict out, const long out_offset, EPILOGUE_PARAMETERS) {
    const long i = get_global_id(0);
    if (i >= count) return;
    const struct Epilogue epilogue = EPILOGUE_OF_PARAMETERS;
    __global const REAL* from = partial + partial_offset + i;
    REAL sum = 0;
    for (long p = 0; p < parts; ++p) sum += from[p * count];
    out[out_offset + i] = ROUNDED(with_epilogue(epilogue, sum, i - i / columns * columns, i));
}
