// out[z][m][n] = epilogue(sum over k of a[z][m][k] * b[z][k][n]) for a with few rows or b with few columns (GEMV), with
// the epilogue of epilogue.clh: a matrix with many lines times VECTORS vectors, with each matrix element read once.
// simt style. With few lines k is split (split-K), and out is [part][z][m][n] for matmul_reduce.cl.
//
// A work-group processes several lines with `lanes` work-items each, numbered so that neighbouring work-items read
// neighbouring elements (row_group.clh). A lane sums every lanes-th product; the lanes of a line are then reduced.
//
//   VECTORS         number of vectors, the sums of a work-item
//   WIDTH           4: matrix and vectors are contiguous along k, and all sizes, strides and offsets are multiples of
//                   4; 1: no condition
//   REAL            type of the arithmetic (math.clh)
//   STORED, OUTPUT  types in memory (storage.clh)
#include "epilogue.clh"
#include "row_group.clh"

struct OperandStrides {
    long batch, across, along;
};

struct Gemv {
    long lines, K, batch;
    long each;  // steps of k per part
    struct OperandStrides matrix,
        vectors;  // strides between matrices, between lines or vectors, and along k
    long out_matrix, out_line, out_vector;
    long blocks;             // groups per matrix
    int lines_are_columns;   // lines are columns of out; otherwise vectors are
    int lanes, lane_stride;  // row_group.clh
    int unused;              // avoids padding of the struct
};

ROW_GROUP_COMBINE(added, REAL, ADDED)

// global size: work-items of a group * blocks * batch * parts
__kernel void matmul_gemv(const struct Gemv d, __local REAL* shared, __global const STORED* restrict matrix_base,
                          const long matrix_offset, __global const STORED* restrict vectors_base,
                          const long vectors_offset, __global OUTPUT* restrict out_base, const long out_offset,
                          EPILOGUE_PARAMETERS) {
    const struct Epilogue epilogue = EPILOGUE_OF_PARAMETERS;
    const struct RowGroup g = row_group(d.lanes, d.lane_stride);
    const long z = get_group_id(0) / d.blocks, part = z / d.batch, at = z - part * d.batch;
    const long line = (get_group_id(0) - z * d.blocks) * (get_local_size(0) / d.lanes) + g.slot;
    const long k_first = part * d.each, k_end = min(d.K, k_first + d.each);
    REAL sum[VECTORS];
#pragma unroll
    for (int f = 0; f < VECTORS; ++f) sum[f] = 0;
    if (line < d.lines) {
        __global const STORED* matrix = matrix_base + matrix_offset + at * d.matrix.batch + line * d.matrix.across;
        __global const STORED* vectors = vectors_base + vectors_offset + at * d.vectors.batch;
#if WIDTH == 4
        typedef D_PASTE(REAL, 4) Vector;
        typedef D_PASTE(STORED, 4) Stored;
        Vector total[VECTORS];
#pragma unroll
        for (int f = 0; f < VECTORS; ++f) total[f] = (Vector)(0);
#pragma unroll 4
        for (long k = k_first + 4 * g.lane; k < k_end; k += 4 * d.lanes) {
            const Vector element = LOADED(*(__global const Stored*)(matrix + k));
#pragma unroll
            for (int f = 0; f < VECTORS; ++f)
                total[f] =
                    fma(element, LOADED(*(__global const Stored*)(vectors + f * d.vectors.across + k)), total[f]);
        }
#pragma unroll
        for (int f = 0; f < VECTORS; ++f) sum[f] = (total[f].x + total[f].y) + (total[f].z + total[f].w);
#else
#pragma unroll 4
        for (long k = k_first + g.lane; k < k_end; k += d.lanes) {
            const REAL element = LOADED(matrix[k * d.matrix.along]);
#pragma unroll
            for (int f = 0; f < VECTORS; ++f)
                sum[f] = fma(element, LOADED(vectors[f * d.vectors.across + k * d.vectors.along]), sum[f]);
        }
#endif
    }
#pragma unroll
    for (int f = 0; f < VECTORS; ++f) {
        const REAL total = added(shared, g, sum[f]);
        const long position = z * d.out_matrix + line * d.out_line + f * d.out_vector;
        if (g.lane == 0 && line < d.lines)
            out_base[out_offset + position] =
                ROUNDED(with_epilogue(epilogue, total, d.lines_are_columns ? line : f, position));
    }
}
