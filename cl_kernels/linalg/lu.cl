// LU decomposition P L U = A of matrices a (batch, m, n) with partial pivoting: the pivot of largest magnitude in each
// column, of equal ones the first (Golub, Van Loan, Matrix Computations, 3.4).
//
//   lu                L below the diagonal (its own diagonal is 1), and U
//   pivots[matrix][k] the row, counted from 1, that was exchanged with row k
//   rows[matrix][i]   index of the row of A that is row i of L U
//   info[matrix]      0, or the index, counted from 1, of the first pivot that is 0
//
// `lu_permutation` computes rows from pivots, one work-item per matrix; pivots outside of the matrix are ignored.
//
//   global  (batch * GROUP)
//   GROUP, REAL, LANES   matrix_group.clh
#include "matrix_group.clh"

// Row of the pivot of column k: the largest element from the diagonal down, of equal ones the first. Every work-item
// gets it.
static inline __attribute__((always_inline)) int find_pivot(const int lane, const int m, const int n, const int k,
                                                            __global const REAL* lu, __local REAL* shared,
                                                            __local int* pivot_rows) {
    REAL largest = -1;
    int pivot_row = k;
    for (int i = k + lane; i < m; i += GROUP) {
        const REAL size = fabs(lu[(long)i * n + k]);
        pivot_row = size > largest ? i : pivot_row;
        largest = size > largest ? size : largest;
    }
#if GROUP > 1
    shared[lane] = largest;
    pivot_rows[lane] = pivot_row;
    GROUP_BARRIER();
    for (int distance = GROUP / 2; distance > 0; distance /= 2) {
        if (lane < distance) {
            const REAL other = shared[lane + distance];
            const int is_larger =
                (other > shared[lane]) | ((other == shared[lane]) & (pivot_rows[lane + distance] < pivot_rows[lane]));
            if (is_larger) {
                shared[lane] = other;
                pivot_rows[lane] = pivot_rows[lane + distance];
            }
        }
        GROUP_BARRIER();
    }
    pivot_row = pivot_rows[0];
    GROUP_BARRIER();
#endif
    return pivot_row;
}

// Exchanges rows a and b.
static inline void exchange_rows(const int lane, const int n, const int a, const int b, __global REAL* lu) {
    for (int j = lane; j < n; j += GROUP) {
        const REAL previous = lu[(long)a * n + j];
        lu[(long)a * n + j] = lu[(long)b * n + j];
        lu[(long)b * n + j] = previous;
    }
}

// Divides column k below the diagonal by the pivot, and subtracts its products with row k from the rest of the matrix:
// one row by one work-item, or all rows by the group.
#if GROUP == 1
static inline void eliminate_row(const int n, const int k, const REAL pivot, __global REAL* row, __global REAL* lu) {
    row[k] /= pivot;
    row_subtract(n - k - 1, row[k], lu + (long)k * n + k + 1, row + k + 1);
}
#else
static inline __attribute__((always_inline)) void eliminate_rows(const int lane, const int m, const int n, const int k,
                                                                 const REAL pivot, __global REAL* lu) {
    const int item_column = lane % ITEMS_PER_ROW, item_row = lane / ITEMS_PER_ROW;
    for (int i = k + 1 + lane; i < m; i += GROUP) lu[(long)i * n + k] /= pivot;
    GROUP_BARRIER();
    for (int i = k + 1 + item_row; i < m; i += ITEMS_PER_COLUMN) {
        const REAL f = lu[(long)i * n + k];
        for (int j = k + 1 + item_column; j < n; j += ITEMS_PER_ROW) lu[(long)i * n + j] -= f * lu[(long)k * n + j];
    }
    GROUP_BARRIER();
}
#endif

MATRIX_FN void factor(const int m, const int n, __global const REAL* a, __global REAL* lu, __global int* pivots,
                      __global int* rows, __global int* info, __local REAL* shared, __local int* pivot_rows) {
    const int lane = get_local_id(0), steps = min(m, n);
    int failed = 0;
    for (long i = lane; i < (long)m * n; i += GROUP) lu[i] = a[i];
    for (int i = lane; i < m; i += GROUP) rows[i] = i;
    GROUP_BARRIER();
    for (int k = 0; k < steps; ++k) {
        const int pivot_row = find_pivot(lane, m, n, k, lu, shared, pivot_rows);
        if (pivot_row != k) exchange_rows(lane, n, k, pivot_row, lu);
        if (lane == 0) {
            const int previous = rows[k];
            rows[k] = rows[pivot_row];
            rows[pivot_row] = previous;
            pivots[k] = pivot_row + 1;
        }
        GROUP_BARRIER();
        const REAL pivot = lu[(long)k * n + k];
        failed = (failed == 0) & (pivot == 0) ? k + 1 : failed;
        const REAL divisor = pivot == 0 ? (REAL)1 : pivot;
#if GROUP == 1
        for (int i = k + 1; i < m; ++i) eliminate_row(n, k, divisor, lu + (long)i * n, lu);
#else
        eliminate_rows(lane, m, n, k, divisor, lu);
#endif
    }
    if (lane == 0) *info = failed;
}

__kernel void lu_factor(const int m, const int n, __local REAL* shared, __local int* pivot_rows,
                        __global const REAL* restrict a, const long a_offset, __global REAL* restrict lu,
                        const long lu_offset, __global int* restrict pivots, const long pivots_offset,
                        __global int* restrict rows, const long rows_offset, __global int* restrict info,
                        const long info_offset) {
    const long matrix = get_group_id(0), each = (long)m * n;
    factor(m, n, a + a_offset + matrix * each, lu + lu_offset + matrix * each,
           pivots + pivots_offset + matrix * min(m, n), rows + rows_offset + matrix * m, info + info_offset + matrix,
           shared, pivot_rows);
}

__kernel void lu_permutation(const int m, const int count, __global const int* restrict pivots,
                             const long pivots_offset, __global int* restrict rows, const long rows_offset) {
    const long matrix = get_global_id(0);
    __global const int* row_pivots = pivots + pivots_offset + matrix * count;
    __global int* own = rows + rows_offset + matrix * m;
    for (int i = 0; i < m; ++i) own[i] = i;
    for (int k = 0; k < count; ++k) {
        const int pivot_row = row_pivots[k] - 1;
        if (pivot_row < 0 || pivot_row >= m) continue;
        const int previous = own[k];
        own[k] = own[pivot_row];
        own[pivot_row] = previous;
    }
}
