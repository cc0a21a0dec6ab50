// out[z][m][n] = sum over k of a[z][m][k] * b[z][k][n], for z in [0, batch), any strides for a and b, out dense.
//
// A work-item computes ROWS x COLUMNS elements in registers. In simd style the columns fill vectors, and the loop over
// them is vectorised; in simt style neighbouring work-items compute neighbouring columns and COLUMNS is 1. Rows and
// columns past the edge are computed from the last valid ones and not stored, so that the inner loops have no branch.
//
//   global size  (ceil(N / COLUMNS), ceil(M / ROWS), batch), rounded up to the local size
//   REAL            type of the arithmetic
//   STORED, OUTPUT  types in memory (storage.clh)
//   ROWS         rows per work-item (simd 6, simt 4)
//   COLUMNS      columns per work-item (simd 32 for f32, 16 for f64; simt 1)
//   B_STEP       distance of neighbouring columns of b: 1, or the argument b_column
#ifdef REAL_IS_DOUBLE
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
#include "storage.clh"

__kernel void matmul_register_tiled(const long M, const long N, const long K, __global const STORED* restrict a_base,
                                    const long a_offset, const long a_batch, const long a_row, const long a_column,
                                    __global const STORED* restrict b_base, const long b_offset, const long b_batch,
                                    const long b_row, const long b_column, __global OUTPUT* restrict out_base,
                                    const long out_offset) {
    const long column = get_global_id(0) * (long)COLUMNS;
    const long row = get_global_id(1) * (long)ROWS;
    const long z = get_global_id(2);
    if (column >= N || row >= M) return;
    __global const STORED* a = a_base + a_offset + z * a_batch;
    __global const STORED* b = b_base + b_offset + z * b_batch;
    __global OUTPUT* out = out_base + out_offset + z * M * N + row * N + column;

    long a_at[ROWS];
    for (int i = 0; i < ROWS; ++i) a_at[i] = min(row + i, M - 1) * a_row;
    REAL sum[ROWS][COLUMNS];
    for (int i = 0; i < ROWS; ++i)
        for (int j = 0; j < COLUMNS; ++j) sum[i][j] = 0;

    if (column + COLUMNS <= N) {
        b += column * b_column;
        for (long k = 0; k < K; ++k) {
            REAL right[COLUMNS];
            for (int j = 0; j < COLUMNS; ++j) right[j] = LOADED(b[k * b_row + j * B_STEP]);
#pragma unroll
            for (int i = 0; i < ROWS; ++i) {
                const REAL left = LOADED(a[a_at[i] + k * a_column]);
                for (int j = 0; j < COLUMNS; ++j) sum[i][j] = fma(left, right[j], sum[i][j]);
            }
        }
    } else {
        for (long k = 0; k < K; ++k)
            for (int i = 0; i < ROWS; ++i) {
                const REAL left = LOADED(a[a_at[i] + k * a_column]);
                for (int j = 0; j < COLUMNS; ++j)
                    sum[i][j] = fma(left, LOADED(b[k * b_row + min(column + j, N - 1) * b_column]), sum[i][j]);
            }
    }
    for (int i = 0; i < ROWS; ++i)
        for (int j = 0; j < COLUMNS; ++j)
            if (row + i < M && column + j < N) out[i * N + j] = ROUNDED(sum[i][j]);
}
