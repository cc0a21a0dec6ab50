// QR decomposition Q R = A of matrices a (batch, m, n) by Householder reflections I - tau v v^T with v = (1, ...)
// (Golub, Van Loan, Matrix Computations, 5.2), with LAPACK's signs. work: R, and v below the diagonal; `qr_form`
// computes q (batch, m, columns) from it, the first columns of the product of all reflections.
//
//   global  (batch * GROUP)
//   GROUP, REAL, LANES   matrix_group.clh
#include "matrix_group.clh"

// Applies the reflection v, tau to a column, or a vector of columns, of `count` rows of c (`width` elements per row).
#define REFLECT(NAME, V, LOAD, STORE)                                                                    \
    static inline void NAME(const int count, const REAL tau, __global const REAL* v, const int v_stride, \
                            __global REAL* c, const int width) {                                         \
        V w = LOAD(c);                                                                                   \
        for (int i = 1; i < count; ++i) w += (V)(v[(long)i * v_stride]) * LOAD(c + (long)i * width);     \
        w *= (V)(tau);                                                                                   \
        STORE(LOAD(c) - w, c);                                                                           \
        for (int i = 1; i < count; ++i)                                                                  \
            STORE(LOAD(c + (long)i * width) - (V)(v[(long)i * v_stride]) * w, c + (long)i * width);      \
    }
#define LOAD_SCALAR(p) (*(p))
#define STORE_SCALAR(v, p) (*(p) = (v))
REFLECT(reflect_column, REAL, LOAD_SCALAR, STORE_SCALAR)
#if GROUP == 1
REFLECT(reflect_columns, ROW_VEC, row_load, row_store)
#endif

// Applies a reflection to the columns of c from `first`, distributed over the work-items of the group.
static inline void reflect(const int lane, const int count, const REAL tau, __global const REAL* v, const int v_stride,
                           __global REAL* c, const int first, const int width) {
    int j = first + lane;
#if GROUP == 1
    for (; j + LANES <= width; j += LANES) reflect_columns(count, tau, v, v_stride, c + j, width);
#endif
    for (; j < width; j += GROUP) reflect_column(count, tau, v, v_stride, c + j, width);
}

MATRIX_FN void factor(const int m, const int n, __global const REAL* a, __global REAL* work, __global REAL* taus,
                      __local REAL* shared) {
    const int lane = get_local_id(0), steps = min(m, n);
    for (long i = lane; i < (long)m * n; i += GROUP) work[i] = a[i];
    GROUP_BARRIER();
    for (int k = 0; k < steps; ++k) {
        __global REAL* column = work + (long)k * n + k;
        const int count = m - k;
        const REAL alpha = column[0];
        REAL largest = 0;
        for (int i = 1 + lane; i < count; i += GROUP) {
            const REAL size = fabs(column[(long)i * n]);
            largest = LARGER(largest, size);
        }
        const REAL below = group_largest(largest, lane, shared);
        const REAL head = fabs(alpha);
        const REAL scale = LARGER(below, head);
        REAL squares = 0;
        for (int i = 1 + lane; i < count; i += GROUP) {
            const REAL part = column[(long)i * n] / scale;
            squares += part * part;
        }
        squares = group_sum(squares, lane, shared);
        // Zeros below the diagonal: no reflection, and no change of sign.
        const int none = below == 0;
        const REAL top = alpha / scale;
        const REAL beta = none ? alpha : -copysign(scale * sqrt(squares + top * top), alpha);
        const REAL tau = none ? (REAL)0 : (beta - alpha) / beta;
        const REAL divisor = none ? (REAL)1 : alpha - beta;
        for (int i = 1 + lane; i < count; i += GROUP) column[(long)i * n] /= divisor;
        GROUP_BARRIER();
        if (lane == 0) {
            column[0] = beta;
            taus[k] = tau;
        }
        reflect(lane, count, tau, column, n, work + (long)k * n, k + 1, n);
        GROUP_BARRIER();
    }
}

MATRIX_FN void form(const int m, const int n, const int columns, __global const REAL* work, __global const REAL* taus,
                    __global REAL* q) {
    const int lane = get_local_id(0);
    // Each work-item processes its own columns, so no barrier is needed.
    for (int i = 0; i < m; ++i)
        for (int j = lane; j < columns; j += GROUP) q[(long)i * columns + j] = i == j ? 1 : 0;
    for (int k = min(m, n) - 1; k >= 0; --k) {
        // Columns to the left are still those of the identity and are zero in these rows.
        const int first = k / GROUP * GROUP;
        reflect(lane, m - k, taus[k], work + (long)k * n + k, n, q + (long)k * columns, first, columns);
    }
}

__kernel void qr_factor(const int m, const int n, __local REAL* shared, __global const REAL* restrict a,
                        const long a_offset, __global REAL* restrict work, const long work_offset,
                        __global REAL* restrict taus, const long taus_offset) {
    const long matrix = get_group_id(0), each = (long)m * n;
    factor(m, n, a + a_offset + matrix * each, work + work_offset + matrix * each,
           taus + taus_offset + matrix * min(m, n), shared);
}

__kernel void qr_form(const int m, const int n, const int columns, __global const REAL* restrict work,
                      const long work_offset, __global const REAL* restrict taus, const long taus_offset,
                      __global REAL* restrict q, const long q_offset) {
    const long matrix = get_group_id(0);
    form(m, n, columns, work + work_offset + matrix * m * n, taus + taus_offset + matrix * min(m, n),
         q + q_offset + matrix * m * columns);
}
