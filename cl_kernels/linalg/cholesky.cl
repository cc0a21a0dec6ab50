// Cholesky decomposition L L^T = A of symmetric matrices a (batch, n, n), of which the lower triangle is read (Golub,
// Van Loan, Matrix Computations, 4.2). out: L, with zeros above the diagonal; info[matrix]: 0, or the order, counted
// from 1, of the first leading minor that is not positive. From there on L is NaN.
//
//   global  (batch * GROUP)
//   GROUP, REAL, LANES   matrix_group.clh
#include "matrix_group.clh"

MATRIX_FN void factor(const int n, __global const REAL* a, __global REAL* l, __global int* info) {
    const int lane = get_local_id(0);
    int failed = 0;
#if GROUP == 1
    // Row by row: l[i][j] = (a[i][j] - l[i][..j] l[j][..j]) / l[j][j].
    for (int i = 0; i < n; ++i) {
        __global REAL* own = l + (long)i * n;
        for (int j = 0; j <= i; ++j) {
            __global const REAL* other = l + (long)j * n;
            const REAL rest = a[(long)i * n + j] - row_product(own, other, j, 0, n);
            if (j < i) own[j] = rest / other[j];
            else own[j] = rest > 0 ? sqrt(rest) : REAL_NAN;
            failed = (j == i) & (failed == 0) & !(rest > 0) ? i + 1 : failed;
        }
        for (int j = i + 1; j < n; ++j) own[j] = 0;
    }
#else
    const int item_column = lane % ITEMS_PER_ROW, item_row = lane / ITEMS_PER_ROW;
    for (int i = item_row; i < n; i += ITEMS_PER_COLUMN)
        for (int j = item_column; j < n; j += ITEMS_PER_ROW) l[(long)i * n + j] = j <= i ? a[(long)i * n + j] : (REAL)0;
    GROUP_BARRIER();
    for (int k = 0; k < n; ++k) {
        const REAL rest = l[(long)k * n + k];
        const REAL root = rest > 0 ? sqrt(rest) : REAL_NAN;
        failed = (failed == 0) & !(rest > 0) ? k + 1 : failed;
        GROUP_BARRIER();
        if (lane == 0) l[(long)k * n + k] = root;
        for (int i = k + 1 + lane; i < n; i += GROUP) l[(long)i * n + k] /= root;
        GROUP_BARRIER();
        for (int i = k + 1 + item_row; i < n; i += ITEMS_PER_COLUMN) {
            const REAL f = l[(long)i * n + k];
            for (int j = k + 1 + item_column; j <= i; j += ITEMS_PER_ROW) l[(long)i * n + j] -= f * l[(long)j * n + k];
        }
        GROUP_BARRIER();
    }
#endif
    if (lane == 0) *info = failed;
}

__kernel void cholesky(const int n, __global const REAL* restrict a, const long a_offset, __global REAL* restrict out,
                       const long out_offset, __global int* restrict info, const long info_offset) {
    const long matrix = get_group_id(0), each = (long)n * n;
    factor(n, a + a_offset + matrix * each, out + out_offset + matrix * each, info + info_offset + matrix);
}
