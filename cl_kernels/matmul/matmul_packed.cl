// out[z][m][n] = epilogue(sum over k of a[z][m][k] * b[z][k][n]) for products large enough to pack both operands first,
// with the epilogue of epilogue_stored.clh. simd style.
//
// Both operands are packed into panels (panels.cl), [z][panel][k][i]: of ROWS rows of a, of COLUMNS columns of b,
// padded with zeros. The inner loop reads both sequentially and has no branch: each step multiplies ROWS elements of a
// with COLUMNS elements of b into ROWS x COLUMNS sums in registers (K. Goto and R. van de Geijn, Anatomy of
// high-performance matrix multiplication, 2008).
//
//   REAL, VW     element type and vector width (vectors.clh)
//   ROWS         rows of a register tile
//   COLUMNS      columns of a register tile, a multiple of VW. ROWS * COLUMNS / VW + COLUMNS / VW + 1 vectors must fit
//                in the registers (src/ops/matmul/matmul_packed.cpp chooses them)
#define GROUP 1
#include "vectors.clh"
#include "epilogue_stored.clh"

#define VECTORS (COLUMNS / VW)

struct GemmShape {
    long M, N, K;
    long a_batch, b_batch, out_batch;  // strides between matrices; 0 if an operand is shared by the batch
    int a_panels, b_panels;            // of the whole matrices
    int a_panels_each, b_panels_each;  // per work-group
    int k_block;                       // block of k: limits the panels of a work-group to the cache
    int unused;                        // avoids padding of the struct
};

// Computes the sums of a register tile over `steps` steps of k.
static inline __attribute__((always_inline)) void multiply(__global const REAL* left, __global const REAL* right,
                                                           const int steps, VEC (*sum)[VECTORS]) {
#pragma unroll
    for (int i = 0; i < ROWS; ++i)
#pragma unroll
        for (int v = 0; v < VECTORS; ++v) sum[i][v] = (VEC)(0);
    for (int k = 0; k < steps; ++k, left += ROWS, right += COLUMNS) {
        VEC values[VECTORS];
#pragma unroll
        for (int v = 0; v < VECTORS; ++v) values[v] = VLOAD(right + v * VW);
#pragma unroll
        for (int i = 0; i < ROWS; ++i)
#pragma unroll
            for (int v = 0; v < VECTORS; ++v) sum[i][v] = fma((VEC)(left[i]), values[v], sum[i][v]);
    }
}

// Stores `height` rows and `width` columns of a tile to `to`, whose rows are `pitch` elements apart, or adds them to
// the sums of previous blocks of k.
static inline __attribute__((always_inline)) void store_tile(VEC (*sum)[VECTORS], __global REAL* to, const long pitch,
                                                             const int height, const int width, const bool add) {
    if (height == ROWS && width == COLUMNS) {
#pragma unroll
        for (int i = 0; i < ROWS; ++i)
#pragma unroll
            for (int v = 0; v < VECTORS; ++v) {
                __global REAL* at = to + i * pitch + v * VW;
                VSTORE(add ? sum[i][v] + VLOAD(at) : sum[i][v], at);
            }
        return;
    }
    REAL rows[ROWS][COLUMNS];
#pragma unroll
    for (int i = 0; i < ROWS; ++i)
#pragma unroll
        for (int v = 0; v < VECTORS; ++v) VSTORE(sum[i][v], rows[i] + v * VW);
    for (int i = 0; i < height; ++i)
        for (int j = 0; j < width; ++j) {
            __global REAL* at = to + i * pitch + j;
            *at = add ? *at + rows[i][j] : rows[i][j];
        }
}

// global size (ceil(b_panels / b_panels_each), ceil(a_panels / a_panels_each), batch)
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void matmul_packed(
    const struct GemmShape product, __global const REAL* restrict a, const long a_offset,
    __global const REAL* restrict b, const long b_offset, __global REAL* restrict out,
    const long out_offset EPILOGUE_STORED_PARAMETERS) {
    const long z = get_global_id(2);
    const int a_first = (int)get_global_id(1) * product.a_panels_each,
              b_first = (int)get_global_id(0) * product.b_panels_each;
    const int a_end = min(a_first + product.a_panels_each, product.a_panels);
    const int b_end = min(b_first + product.b_panels_each, product.b_panels);
    a += a_offset + z * product.a_batch;
    b += b_offset + z * product.b_batch;
    out += out_offset + z * product.out_batch;
#ifdef EPILOGUE
    const struct Epilogue epilogue = EPILOGUE_OF_PARAMETERS;
#endif
    for (long k_first = 0; k_first < product.K; k_first += product.k_block) {
        const int steps = (int)min((long)product.k_block, product.K - k_first);
        for (int q = b_first; q < b_end; ++q)
            for (int p = a_first; p < a_end; ++p) {
                VEC sum[ROWS][VECTORS];
                multiply(a + (p * product.K + k_first) * ROWS, b + (q * product.K + k_first) * COLUMNS, steps, sum);
                const long row = (long)p * ROWS, column = (long)q * COLUMNS;
                const int height = (int)min((long)ROWS, product.M - row),
                          width = (int)min((long)COLUMNS, product.N - column);
                store_tile(sum, out + row * product.N + column, product.N, height, width, k_first > 0);
#ifdef EPILOGUE
                if (k_first + steps == product.K)
                    for (int i = 0; i < height; ++i)
                        epilogue_stored(epilogue, out - z * product.out_batch, column,
                                        z * product.out_batch + (row + i) * product.N + column, width);
#endif
            }
    }
}
