// Triangular solve A X = B for triangular matrices a (batch, n, n), of which one triangle is read, and
// b, x (batch, n, k). The columns of X are independent: a work-item solves some of them by forward or backward
// substitution.
//
//   global      (blocks of columns, batch); a block is a vector if GROUP is 1, otherwise one column
//   UPPER               1: the upper triangle is read
//   TRANSPOSED          1: A is the transpose of the matrix that is read
//   UNIT_DIAGONAL       1: the diagonal is taken as 1 and not read
//   REAL, GROUP, LANES  matrix_group.clh; work-items do not cooperate
#include "matrix_group.clh"

// Rows are solved ROWS at a time: each row of X is read once for them, and their sums are independent.
#if GROUP == 1
#define ROWS 4
#else
#define ROWS 1
#endif

// The row that is solved at a position of the substitution, and an element of A.
static inline int row_at(const int n, const int position) { return UPPER == TRANSPOSED ? position : n - 1 - position; }
static inline REAL element(__global const REAL* a, const int n, const int i, const int j) {
    return TRANSPOSED ? a[(long)j * n + i] : a[(long)i * n + j];
}

// Defines NAME, which solves a column, or a vector of columns: x_i = (b_i - sum over solved rows j of a_ij x_j) / a_ii.
#define SOLVE(NAME, V, LOAD, STORE)                                                                                    \
    MATRIX_FN void NAME(const int n, const long k, __global const REAL* a, __global const REAL* b, __global REAL* x) { \
        int position = 0;                                                                                              \
        for (; position + ROWS <= n; position += ROWS) {                                                               \
            V rest[ROWS];                                                                                              \
            _Pragma("unroll") for (int r = 0; r < ROWS; ++r) rest[r] = LOAD(b + row_at(n, position + r) * k);          \
            for (int step = 0; step < position; ++step) {                                                              \
                const int j = row_at(n, step);                                                                         \
                const V solved = LOAD(x + j * k);                                                                      \
                _Pragma("unroll") for (int r = 0; r < ROWS; ++r) {                                                     \
                    const int i = row_at(n, position + r);                                                             \
                    rest[r] -= (V)(element(a, n, i, j)) * solved;                                                      \
                }                                                                                                      \
            }                                                                                                          \
            _Pragma("unroll") for (int r = 0; r < ROWS; ++r) {                                                         \
                const int i = row_at(n, position + r);                                                                 \
                _Pragma("unroll") for (int s = 0; s < ROWS; ++s) {                                                     \
                    const int j = row_at(n, position + s);                                                             \
                    if (s < r) rest[r] -= (V)(element(a, n, i, j)) * rest[s];                                          \
                }                                                                                                      \
                if (!UNIT_DIAGONAL) rest[r] /= (V)(element(a, n, i, i));                                               \
                STORE(rest[r], x + i * k);                                                                             \
            }                                                                                                          \
        }                                                                                                              \
        for (; position < n; ++position) {                                                                             \
            const int i = row_at(n, position);                                                                         \
            V rest = LOAD(b + i * k);                                                                                  \
            for (int step = 0; step < position; ++step) {                                                              \
                const int j = row_at(n, step);                                                                         \
                rest -= (V)(element(a, n, i, j)) * LOAD(x + j * k);                                                    \
            }                                                                                                          \
            STORE(UNIT_DIAGONAL ? rest : rest / (V)(element(a, n, i, i)), x + i * k);                                  \
        }                                                                                                              \
    }

#define LOAD_SCALAR(p) (*(p))
#define STORE_SCALAR(v, p) (*(p) = (v))
SOLVE(solve_column, REAL, LOAD_SCALAR, STORE_SCALAR)
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
