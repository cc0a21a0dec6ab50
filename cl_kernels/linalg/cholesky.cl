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
            const REAL left = a[(long)i * n + j] - row_product(own, other, j, 0, n);
            if (j < i) own[j] = left / other[j];
            else own[j] = left > 0 ? sqrt(left) : REAL_NAN;
            failed = (j == i) & (failed == 0) & !(left > 0) ? i + 1 : failed;
        }
        for (int j = i + 1; j < n; ++j) own[j] = 0;
    }
#else
    const int across = lane % ACROSS, down = lane / ACROSS;
    for (int i = down; i < n; i += DOWN)
        for (int j = across; j < n; j += ACROSS) l[(long)i * n + j] = j <= i ? a[(long)i * n + j] : (REAL)0;
    MEET();
    for (int k = 0; k < n; ++k) {
        const REAL left = l[(long)k * n + k];
        const REAL root = left > 0 ? sqrt(left) : REAL_NAN;
        failed = (failed == 0) & !(left > 0) ? k + 1 : failed;
        MEET();
        if (lane == 0) l[(long)k * n + k] = root;
        for (int i = k + 1 + lane; i < n; i += GROUP) l[(long)i * n + k] /= root;
        MEET();
        for (int i = k + 1 + down; i < n; i += DOWN) {
            const REAL f = l[(long)i * n + k];
            for (int j = k + 1 + across; j <= i; j += ACROSS) l[(long)i * n + j] -= f * l[(long)j * n + k];
        }
        MEET();
    }
#endif
    if (lane == 0) *info = failed;
}

__kernel void cholesky(const int n, __global const REAL* restrict a, const long a_offset, __global REAL* restrict out,
                       const long out_offset, __global int* restrict info, const long info_offset) {
    const long matrix = get_group_id(0), each = (long)n * n;
    factor(n, a + a_offset + matrix * each, out + out_offset + matrix * each, info + info_offset + matrix);
}
