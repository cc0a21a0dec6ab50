// out[z][m][n] = epilogue(sum over k of a[z][m][k] * b[z][k][n]) as dot products, with the epilogue of epilogue.clh,
// for operands that are both contiguous along k, as in a linear layer with a small batch: nothing is packed, and each
// weight is read from memory once. simd style.
//
// A work-item computes tiles of ROWS x COLUMNS dot products, each as a vector of VW partial sums. Its columns are
// multiplied with all of its rows for one block of k after the other, so that they stay in the L1 cache. Rows and
// columns past the edge are computed from the last valid ones, and not stored.
//
//   REAL, VW       element type and vector width (vectors.clh)
//   ROWS, COLUMNS  of a tile; ROWS * COLUMNS + COLUMNS + 1 vectors must fit in the registers
//                  (src/ops/matmul/matmul_dot.cpp)
#define GROUP 1
#include "noinline.clh"
#include "vectors.clh"
#include "epilogue.clh"

struct GemmShape {
    long M, N, K;
    long a_batch, a_row, b_batch, b_column;  // strides between matrices, rows and columns
    long k_block;                            // a multiple of VW
    int row_tiles_each;                      // per work-item
    int unused;                              // avoids padding of the struct
};

// Destination of a tile and its epilogue.
struct Tile {
    long pitch;
    int height, width;    // rows and columns of the tile inside the result
    int add, last_block;  // add to the sums of previous blocks of k; the last block of k
    long column, at;      // of the first element: its column, and its index in the result
};

NOINLINE void store_tile(const struct Tile t, const REAL* parts, __global REAL* out, const struct Epilogue epilogue) {
    long at = t.at;
    for (int i = 0; i < t.height; ++i, at += t.pitch, parts += COLUMNS * VW)
        for (int j = 0; j < t.width; ++j) {
            REAL total = vector_sum(VLOAD(parts + j * VW));
            if (t.add) total += out[at + j];
            out[at + j] = t.last_block ? with_epilogue(epilogue, total, t.column + j, at + j) : total;
        }
}

// Loads the last elements of a row, padded with zeros.
NOINLINE VEC load_part(__global const REAL* from, const int count) {
    REAL part[VW];
    for (int i = 0; i < VW; ++i) part[i] = i < count ? from[i] : (REAL)0;
    return VLOAD(part);
}

// The dot products of a tile over k in [k_first, k_end), each as a vector of partial sums: parts[i][j][lane]. a_at and
// b_at have the positions of the rows and columns.
static inline __attribute__((always_inline)) void multiply(__global const REAL* a, const long* a_at,
                                                           __global const REAL* b, const long* b_at, const long k_first,
                                                           const long k_end, REAL* parts) {
    VEC sum[ROWS][COLUMNS];
#pragma unroll
    for (int i = 0; i < ROWS; ++i)
#pragma unroll
        for (int j = 0; j < COLUMNS; ++j) sum[i][j] = (VEC)(0);
    long k = k_first;
    for (; k + VW <= k_end; k += VW) {
        VEC right[COLUMNS];
#pragma unroll
        for (int j = 0; j < COLUMNS; ++j) right[j] = VLOAD(b + b_at[j] + k);
#pragma unroll
        for (int i = 0; i < ROWS; ++i) {
            const VEC left = VLOAD(a + a_at[i] + k);
#pragma unroll
            for (int j = 0; j < COLUMNS; ++j) sum[i][j] = fma(left, right[j], sum[i][j]);
        }
    }
    if (k < k_end) {
        const int rest = (int)(k_end - k);
        VEC right[COLUMNS];
#pragma unroll
        for (int j = 0; j < COLUMNS; ++j) right[j] = load_part(b + b_at[j] + k, rest);
#pragma unroll
        for (int i = 0; i < ROWS; ++i) {
            const VEC left = load_part(a + a_at[i] + k, rest);
#pragma unroll
            for (int j = 0; j < COLUMNS; ++j) sum[i][j] = fma(left, right[j], sum[i][j]);
        }
    }
#pragma unroll
    for (int i = 0; i < ROWS; ++i)
#pragma unroll
        for (int j = 0; j < COLUMNS; ++j) VSTORE(sum[i][j], parts + (i * COLUMNS + j) * VW);
}

// global size (ceil(N / COLUMNS), ceil(M / (ROWS * row_tiles_each)), batch)
NOINLINE void matmul_dot_part(const size_t id0, const size_t id1, const size_t id2, const struct GemmShape product,
                              __global const REAL* restrict a, const long a_offset, __global const REAL* restrict b,
                              const long b_offset, __global REAL* restrict out_base, const long out_offset,
                              EPILOGUE_PARAMETERS) {
    const struct Epilogue epilogue = EPILOGUE_OF_PARAMETERS;
    const long z = id2, column = id0 * (long)COLUMNS;
    const long row_first = id1 * (long)product.row_tiles_each * ROWS;
    const long row_end = min(product.M, row_first + (long)product.row_tiles_each * ROWS);
    const int width = (int)min((long)COLUMNS, product.N - column);
    a += a_offset + z * product.a_batch;
    b += b_offset + z * product.b_batch + column * product.b_column;
    __global REAL* out = out_base + out_offset;
    long b_at[COLUMNS];
#pragma unroll
    for (int j = 0; j < COLUMNS; ++j) b_at[j] = min(j, width - 1) * product.b_column;

    for (long k_first = 0; k_first < product.K; k_first += product.k_block) {
        const long k_end = min(product.K, k_first + product.k_block);
        for (long row = row_first; row < row_end; row += ROWS) {
            const int height = (int)min((long)ROWS, row_end - row);
            long a_at[ROWS];
#pragma unroll
            for (int i = 0; i < ROWS; ++i) a_at[i] = (row + min(i, height - 1)) * product.a_row;
            REAL parts[ROWS * COLUMNS * VW];
            multiply(a, a_at, b, b_at, k_first, k_end, parts);
            const struct Tile tile = {product.N,
                                      height,
                                      width,
                                      k_first > 0,
                                      k_end == product.K,
                                      column,
                                      (z * product.M + row) * product.N + column};
            store_tile(tile, parts, out, epilogue);
        }
    }
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void matmul_dot(
    const struct GemmShape product, __global const REAL* restrict a, const long a_offset,
    __global const REAL* restrict b, const long b_offset, __global REAL* restrict out_base, const long out_offset,
    EPILOGUE_PARAMETERS) {
    matmul_dot_part(get_global_id(0), get_global_id(1), get_global_id(2), product, a, a_offset, b, b_offset, out_base,
                    out_offset, EPILOGUE_ARGUMENTS);
}
