// out[z][m][n] = sum over k of a[z][m][k] * b[z][k][n], for CPU-like devices and products that are large enough to copy
// both operands first.
//
// matmul_pack copies an operand into panels, [z][panel][k][i]: of ROWS rows of a, of COLUMNS columns of b, with zeros
// behind the edges. The inner loop then reads both front to back, and has no branch: in each step it multiplies ROWS numbers
// of a with COLUMNS of b into ROWS x COLUMNS sums that stay in registers (K. Goto and R. van de Geijn, Anatomy of
// high-performance matrix multiplication, 2008).
//
//   REAL, VW     element type, elements of a vector (vectors.clh)
//   ROWS         rows of a register tile
//   COLUMNS      columns of a register tile, a multiple of VW. ROWS * COLUMNS / VW + COLUMNS / VW + 1 vectors must fit in
//                the registers (src/ops/matmul_packed.cpp chooses them)
//   PACK         width of the panels that matmul_pack makes: ROWS or COLUMNS
//   PACK_STEP    elements along k that a work-item of matmul_pack copies, of PACK_EACH panels
//   UNIT         which neighbours of the operand lie side by side in memory: 1 along the panel, 2 along k, 0 neither
#define GROUP 1
#include "vectors.clh"

#ifdef PACK
// global size (ceil(panels / PACK_EACH), ceil(K / PACK_STEP), batch); `count` rows or columns, `across` elements apart;
// `step` along k
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void matmul_pack(const long count, const long K, __global const REAL* restrict source, const long source_offset,
                 const long source_batch, const long across, const long step, __global REAL* restrict packed,
                 const long packed_offset) {
    const long panels = (count + PACK - 1) / PACK, k_first = get_global_id(1) * (long)PACK_STEP, z = get_global_id(2);
    const int steps = (int)min((long)PACK_STEP, K - k_first);
    // Panels that are neighbours lie in the same pages of the operand.
    for (long panel = get_global_id(0) * (long)PACK_EACH; panel < min(panels, (long)(get_global_id(0) + 1) * PACK_EACH); ++panel) {
        const int here = (int)min((long)PACK, count - panel * PACK);
        __global const REAL* from = source + source_offset + z * source_batch + panel * PACK * across + k_first * step;
        __global REAL* to = packed + packed_offset + ((z * panels + panel) * K + k_first) * PACK;
        int k = 0;
        if (here == PACK) {
#if UNIT == 1 && PACK % VW == 0
            for (; k < steps; ++k)
                #pragma unroll
                for (int i = 0; i < PACK; i += VW) VSTORE(VLOAD(from + k * step + i), to + k * PACK + i);
#elif UNIT == 1
            for (; k < steps; ++k)
                #pragma unroll
                for (int i = 0; i < PACK; ++i) to[k * PACK + i] = from[k * step + i];
#elif UNIT == 2 && PACK % 4 == 0
            // Squares of 4 x 4, four in a row, so that each cache line of the operand is read once.
            for (; k + 16 <= steps; k += 16)
                for (int i = 0; i < PACK; i += 4)
                    #pragma unroll
                    for (int kk = k; kk < k + 16; kk += 4) {
                        __global const REAL* square = from + i * across + kk;
                        const REAL4 r0 = vload4(0, square), r1 = vload4(0, square + across);
                        const REAL4 r2 = vload4(0, square + 2 * across), r3 = vload4(0, square + 3 * across);
                        __global REAL* corner = to + kk * PACK + i;
                        vstore4((REAL4)(r0.x, r1.x, r2.x, r3.x), 0, corner);
                        vstore4((REAL4)(r0.y, r1.y, r2.y, r3.y), 0, corner + PACK);
                        vstore4((REAL4)(r0.z, r1.z, r2.z, r3.z), 0, corner + 2 * PACK);
                        vstore4((REAL4)(r0.w, r1.w, r2.w, r3.w), 0, corner + 3 * PACK);
                    }
#endif
        }
        for (; k < steps; ++k)
            for (int i = 0; i < PACK; ++i) to[k * PACK + i] = i < here ? from[i * across + k * step] : (REAL)0;
    }
}
#else

#define VECTORS (COLUMNS / VW)

struct Product {
    long M, N, K;
    long a_batch, b_batch;             // elements of the panels of one matrix; 0 where all matrices of a batch are one
    int a_panels, b_panels;            // of the whole matrices
    int a_panels_each, b_panels_each;  // of a work-group
    int k_block;                       // k is cut into blocks, so that the panels of a work-group stay in the cache
};

// global size (ceil(b_panels / b_panels_each), ceil(a_panels / a_panels_each), batch)
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void matmul_packed(const struct Product product, __global const REAL* restrict a, const long a_offset,
                   __global const REAL* restrict b, const long b_offset, __global REAL* restrict out, const long out_offset) {
    const long z = get_global_id(2);
    const int a_first = (int)get_global_id(1) * product.a_panels_each, b_first = (int)get_global_id(0) * product.b_panels_each;
    const int a_end = min(a_first + product.a_panels_each, product.a_panels);
    const int b_end = min(b_first + product.b_panels_each, product.b_panels);
    a += a_offset + z * product.a_batch;
    b += b_offset + z * product.b_batch;
    out += out_offset + z * product.M * product.N;
    for (long k_first = 0; k_first < product.K; k_first += product.k_block) {
        const int steps = (int)min((long)product.k_block, product.K - k_first);
        for (int q = b_first; q < b_end; ++q)
            for (int p = a_first; p < a_end; ++p) {
                __global const REAL* left = a + (p * product.K + k_first) * ROWS;
                __global const REAL* right = b + (q * product.K + k_first) * COLUMNS;
                VEC sum[ROWS][VECTORS];
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
                const long row = (long)p * ROWS, column = (long)q * COLUMNS;
                __global REAL* to = out + row * product.N + column;
                if (row + ROWS <= product.M && column + COLUMNS <= product.N) {
                    #pragma unroll
                    for (int i = 0; i < ROWS; ++i)
                        #pragma unroll
                        for (int v = 0; v < VECTORS; ++v) {
                            __global REAL* at = to + i * product.N + v * VW;
                            VSTORE(k_first > 0 ? sum[i][v] + VLOAD(at) : sum[i][v], at);
                        }
                } else {
                    REAL rows[ROWS][COLUMNS];
                    #pragma unroll
                    for (int i = 0; i < ROWS; ++i)
                        #pragma unroll
                        for (int v = 0; v < VECTORS; ++v) VSTORE(sum[i][v], rows[i] + v * VW);
                    const int height = (int)min((long)ROWS, product.M - row), width = (int)min((long)COLUMNS, product.N - column);
                    for (int i = 0; i < height; ++i)
                        for (int j = 0; j < width; ++j) {
                            __global REAL* at = to + i * product.N + j;
                            *at = k_first > 0 ? *at + rows[i][j] : rows[i][j];
                        }
                }
            }
    }
}
#endif
