// Triangular solve A X = B for triangular matrices a (batch, n, n), of which one triangle is read, and
// b, x (batch, n, k). The columns of X are independent: a work-item solves some of them by forward or backward
// substitution.
//
//   global      (blocks of columns, batch); a block is a vector if GROUP is 1, otherwise one column
//   UPPER       1: the upper triangle is read
//   TRANSPOSED  1: A is the transpose of the matrix that is read
//   UNIT        1: the diagonal is taken as 1 and not read
//   REAL, GROUP, LANES   matrix_group.clh; work-items do not cooperate
#include "matrix_group.clh"

#define ELEMENT(i, j) (TRANSPOSED ? a[(long)(j)*n + (i)] : a[(long)(i)*n + (j)])

// ROWS rows are processed at a time: each row of X is read once for them, and their sums are independent.
#if GROUP == 1
#define ROWS 4
#else
#define ROWS 1
#endif
#define ROW_OF(turn) (UPPER == TRANSPOSED ? (turn) : n - 1 - (turn))

#define SOLVE(NAME, V, LOAD, STORE)                                                                                    \
    MATRIX_FN void NAME(const int n, const long k, __global const REAL* a, __global const REAL* b, __global REAL* x) { \
        int turn = 0;                                                                                                  \
        for (; turn + ROWS <= n; turn += ROWS) {                                                                       \
            V left[ROWS];                                                                                              \
            _Pragma("unroll") for (int r = 0; r < ROWS; ++r) left[r] = LOAD(b + ROW_OF(turn + r) * k);                 \
            for (int step = 0; step < turn; ++step) {                                                                  \
                const int j = ROW_OF(step);                                                                            \
                const V known = LOAD(x + j * k);                                                                       \
                _Pragma("unroll") for (int r = 0; r < ROWS; ++r) {                                                     \
                    const int i = ROW_OF(turn + r);                                                                    \
                    left[r] -= (V)(ELEMENT(i, j)) * known;                                                             \
                }                                                                                                      \
            }                                                                                                          \
            _Pragma("unroll") for (int r = 0; r < ROWS; ++r) {                                                         \
                const int i = ROW_OF(turn + r);                                                                        \
                _Pragma("unroll") for (int s = 0; s < ROWS; ++s) {                                                     \
                    const int j = ROW_OF(turn + s);                                                                    \
                    if (s < r) left[r] -= (V)(ELEMENT(i, j)) * left[s];                                                \
                }                                                                                                      \
                if (!UNIT) left[r] /= (V)(ELEMENT(i, i));                                                              \
                STORE(left[r], x + i * k);                                                                             \
            }                                                                                                          \
        }                                                                                                              \
        for (; turn < n; ++turn) {                                                                                     \
            const int i = ROW_OF(turn);                                                                                \
            V left = LOAD(b + i * k);                                                                                  \
            for (int step = 0; step < turn; ++step) {                                                                  \
                const int j = ROW_OF(step);                                                                            \
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
