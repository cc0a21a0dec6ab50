// LU decomposition P L U = A of matrices a (batch, m, n) with partial pivoting: the pivot of largest magnitude in each
// column, of equal ones the first (Golub, Van Loan, Matrix Computations, 3.4).
//
//   lu                L below the diagonal (its own diagonal is 1), and U
//   pivots[matrix][k] the row, counted from 1, that was exchanged with row k
//   rows[matrix][i]   index of the row of A that is row i of L U
//   info[matrix]      0, or the index, counted from 1, of the first pivot that is 0
//
// `lu_rows` computes rows from pivots, one work-item per matrix; pivots outside of the matrix are ignored.
//
//   global  (batch * GROUP)
//   GROUP, REAL, LANES   matrix_group.clh
#include "matrix_group.clh"

MATRIX_FN void factor(const int m, const int n, __global const REAL* a, __global REAL* lu, __global int* pivots,
                      __global int* rows, __global int* info, __local REAL* shared, __local int* places) {
    const int lane = get_local_id(0), steps = min(m, n);
    const int across = lane % ACROSS, down = lane / ACROSS;
    int failed = 0;
    for (long i = lane; i < (long)m * n; i += GROUP) lu[i] = a[i];
    for (int i = lane; i < m; i += GROUP) rows[i] = i;
    MEET();
    for (int k = 0; k < steps; ++k) {
        REAL largest = -1;
        int place = k;
        for (int i = k + lane; i < m; i += GROUP) {
            const REAL size = fabs(lu[(long)i * n + k]);
            place = size > largest ? i : place;
            largest = size > largest ? size : largest;
        }
#if GROUP > 1
        shared[lane] = largest;
        places[lane] = place;
        MEET();
        for (int reach = GROUP / 2; reach > 0; reach /= 2) {
            if (lane < reach) {
                const REAL other = shared[lane + reach];
                const int wins =
                    (other > shared[lane]) | ((other == shared[lane]) & (places[lane + reach] < places[lane]));
                if (wins) {
                    shared[lane] = other;
                    places[lane] = places[lane + reach];
                }
            }
            MEET();
        }
        place = places[0];
        MEET();
#endif
        if (place != k) {
            for (int j = lane; j < n; j += GROUP) {
                const REAL kept = lu[(long)k * n + j];
                lu[(long)k * n + j] = lu[(long)place * n + j];
                lu[(long)place * n + j] = kept;
            }
        }
        if (lane == 0) {
            const int kept = rows[k];
            rows[k] = rows[place];
            rows[place] = kept;
            pivots[k] = place + 1;
        }
        MEET();
        const REAL pivot = lu[(long)k * n + k];
        failed = (failed == 0) & (pivot == 0) ? k + 1 : failed;
        const REAL divisor = pivot == 0 ? (REAL)1 : pivot;
#if GROUP == 1
        for (int i = k + 1; i < m; ++i) {
            __global REAL* row = lu + (long)i * n;
            row[k] /= divisor;
            row_subtract(n - k - 1, row[k], lu + (long)k * n + k + 1, row + k + 1);
        }
#else
        for (int i = k + 1 + lane; i < m; i += GROUP) lu[(long)i * n + k] /= divisor;
        MEET();
        for (int i = k + 1 + down; i < m; i += DOWN) {
            const REAL f = lu[(long)i * n + k];
            for (int j = k + 1 + across; j < n; j += ACROSS) lu[(long)i * n + j] -= f * lu[(long)k * n + j];
        }
        MEET();
#endif
    }
    if (lane == 0) *info = failed;
}

__kernel void lu_factor(const int m, const int n, __local REAL* shared, __local int* places,
                        __global const REAL* restrict a, const long a_offset, __global REAL* restrict lu,
                        const long lu_offset, __global int* restrict pivots, const long pivots_offset,
                        __global int* restrict rows, const long rows_offset, __global int* restrict info,
                        const long info_offset) {
    const long matrix = get_group_id(0), each = (long)m * n;
    factor(m, n, a + a_offset + matrix * each, lu + lu_offset + matrix * each,
           pivots + pivots_offset + matrix * min(m, n), rows + rows_offset + matrix * m, info + info_offset + matrix,
           shared, places);
}

__kernel void lu_rows(const int m, const int count, __global const int* restrict pivots, const long pivots_offset,
                      __global int* restrict rows, const long rows_offset) {
    const long matrix = get_global_id(0);
    __global const int* moved = pivots + pivots_offset + matrix * count;
    __global int* own = rows + rows_offset + matrix * m;
    for (int i = 0; i < m; ++i) own[i] = i;
    for (int k = 0; k < count; ++k) {
        const int place = moved[k] - 1;
        if (place < 0 || place >= m) continue;
        const int kept = own[k];
        own[k] = own[place];
        own[place] = kept;
    }
}
