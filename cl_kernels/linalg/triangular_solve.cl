// A X = B for triangular matrices of a (batch, n, n), of which one triangle is read, and b, x (batch, n, k). The
// columns of X do not depend on each other: a work-item takes some of them, from the first row to the last or back.
//
//   global      (blocks of columns, batch); a block is a vector where GROUP is 1, one column elsewhere
//   UPPER       which triangle is read; TRANSPOSED  A is the transposed of what is read
//   UNIT        its diagonal counts as 1 and is not read
//   REAL, GROUP, LANES as matrix_group.clh has them; no work-items share anything
#include "matrix_group.clh"

#define ELEMENT(i, j) (TRANSPOSED ? a[(long)(j)*n + (i)] : a[(long)(i)*n + (j)])

#define SOLVE(NAME, V, LOAD, STORE)                                                                                    \
    MATRIX_FN void NAME(const int n, const long k, __global const REAL* a, __global const REAL* b, __global REAL* x) { \
        for (int turn = 0; turn < n; ++turn) {                                                                         \
            const int i = UPPER == TRANSPOSED ? turn : n - 1 - turn;                                                   \
            V left = LOAD(b + i * k);                                                                                  \
            for (int step = 0; step < turn; ++step) {                                                                  \
                const int j = UPPER == TRANSPOSED ? step : n - 1 - step;                                               \
                left -= (V)(ELEMENT(i, j)) * LOAD(x + j * k);                                                          \
            }                                                                                                          \
            STORE(UNIT ? left : left / (V)(ELEMENT(i, i)), x + i * k);                                                 \
        }                                                                                                              \
    }

#define LOAD_ONE(p) (*(p))
#define STORE_ONE(v, p) (*(p) = (v))
SOLVE(solve_column, REAL, LOAD_ONE, STORE_ONE)
#if GROUP == 1
SOLVE(solve_columns, ROW_VEC, row_load, row_store)
#endif

__kernel void triangular_solve(const int n, const long k, __global const REAL* restrict a, const long a_offset,
                               __global const REAL* restrict b, const long b_offset, __global REAL* restrict x,
                               const long x_offset) {
    const long matrix = get_global_id(1);
    __global const REAL* own = a + a_offset + matrix * n * n;
    const long at = matrix * n * k;
#if GROUP == 1
    const long first = (long)get_global_id(0) * LANES;
    if (first + LANES <= k) solve_columns(n, k, own, b + b_offset + at + first, x + x_offset + at + first);
    else
        for (long c = first; c < k; ++c) solve_column(n, k, own, b + b_offset + at + c, x + x_offset + at + c);
#else
    const long c = get_global_id(0);
    if (c < k) solve_column(n, k, own, b + b_offset + at + c, x + x_offset + at + c);
#endif
}
