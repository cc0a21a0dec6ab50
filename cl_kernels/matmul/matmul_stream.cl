// out[z][m][n] = epilogue(sum over k of a[z][m][k] * b[z][k][n]) for few rows and operands that are both contiguous
// along k, as in a decoding step of a language model: each column of b (a row of a linear layer's weight) is read once,
// in sequence, so that the hardware prefetcher works (software prefetching was measured to be slower). simd style.
//
// A work-item processes some neighbouring columns, VW at a time: each dot product is a vector of partial sums, and VW
// of these become one vector of results.
//
//   REAL, VW   type of the arithmetic and vector width (vectors.clh)
//   STORED, OUTPUT  types in memory (storage.clh)
//   ROWS       M
//   CHAINS     independent accumulators per dot product
#define GROUP 1
#include "noinline.clh"
#include "vectors.clh"
#include "epilogue_vectors.clh"
#include "vector_rows.clh"

struct GemmShape {
    long N, K;
    long a_batch, a_row, b_batch, b_column;  // strides between matrices, rows and columns
    long columns_each;                       // per work-item, a multiple of VW
};

// Loads the last elements of a row, padded with zeros.
static inline VEC load_part(__global const STORED* from, const int count) {
    REAL part[VW];
    for (int i = 0; i < VW; ++i) part[i] = i < count ? LOADED(from[i]) : (REAL)0;
    return VLOAD(part);
}

// The dot products of all rows of a and a column of b, each as a vector of partial sums: parts[i * VW * VW + lane].
static inline __attribute__((always_inline)) void multiply(const struct GemmShape product, __global const STORED* a,
                                                           __global const STORED* column, REAL* parts) {
    const long K = product.K, K_chains = K / (CHAINS * VW) * (CHAINS * VW), K_whole = K / VW * VW;
    VEC sum[ROWS][CHAINS];
#pragma unroll
    for (int i = 0; i < ROWS; ++i)
#pragma unroll
        for (int c = 0; c < CHAINS; ++c) sum[i][c] = (VEC)(0);
    long k = 0;
    for (; k < K_chains; k += CHAINS * VW)
#pragma unroll
        for (int c = 0; c < CHAINS; ++c) {
            const VEC x = STORED_VLOAD(column + k + c * VW);
#pragma unroll
            for (int i = 0; i < ROWS; ++i)
                sum[i][c] = fma(STORED_VLOAD(a + i * product.a_row + k + c * VW), x, sum[i][c]);
        }
    for (; k < K_whole; k += VW) {
        const VEC x = STORED_VLOAD(column + k);
#pragma unroll
        for (int i = 0; i < ROWS; ++i) sum[i][0] = fma(STORED_VLOAD(a + i * product.a_row + k), x, sum[i][0]);
    }
    if (k < K) {
        const VEC x = load_part(column + k, (int)(K - k));
#pragma unroll
        for (int i = 0; i < ROWS; ++i)
            sum[i][0] = fma(load_part(a + i * product.a_row + k, (int)(K - k)), x, sum[i][0]);
    }
#pragma unroll
    for (int i = 0; i < ROWS; ++i) {
#pragma unroll
        for (int c = 1; c < CHAINS; ++c) sum[i][0] += sum[i][c];
        VSTORE(sum[i][0], parts + i * VW * VW);
    }
}

NOINLINE void matmul_stream_part(const long item, const long z, const struct GemmShape product,
                                 __global const STORED* restrict a, const long a_offset,
                                 __global const STORED* restrict b, const long b_offset,
                                 __global OUTPUT* restrict out_base, const long out_offset, EPILOGUE_PARAMETERS) {
    const struct Epilogue epilogue = EPILOGUE_OF_PARAMETERS;
    a += a_offset + z * product.a_batch;
    b += b_offset + z * product.b_batch;
    __global OUTPUT* out = out_base + out_offset;
    const long first = item * product.columns_each, end = min(product.N, first + product.columns_each);
    for (long column = first; column < end; column += VW) {
        const int count = (int)min((long)VW, end - column);
        REAL parts[ROWS * VW * VW];
        for (int j = 0; j < VW; ++j)
            multiply(product, a, b + (column + min(j, count - 1)) * product.b_column, parts + j * VW);
#pragma unroll
        for (int i = 0; i < ROWS; ++i) {
            const VEC total = rows_sum(parts + i * VW * VW);
            const long at = (z * ROWS + i) * product.N + column;
            if (count == VW) {
                OUTPUT_VSTORE(with_epilogue_vector(epilogue, total, column, at), out + at);
            } else {
                REAL each[VW];
                VSTORE(total, each);
                for (int j = 0; j < count; ++j)
                    out[at + j] = ROUNDED(with_epilogue(epilogue, each[j], column + j, at + j));
            }
        }
    }
}

// global size (ceil(N / columns_each), batch)
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void matmul_stream(
    const struct GemmShape product, __global const STORED* restrict a, const long a_offset,
    __global const STORED* restrict b, const long b_offset, __global OUTPUT* restrict out, const long out_offset,
    EPILOGUE_PARAMETERS) {
    matmul_stream_part(get_global_id(0), get_global_id(1), product, a, a_offset, b, b_offset, out, out_offset,
                       EPILOGUE_ARGUMENTS);
}
