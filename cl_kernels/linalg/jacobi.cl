// Eigenvalues of symmetric matrices, and singular values, by one-sided Jacobi rotations (Hestenes 1958; Golub, Van
// Loan, Matrix Computations, 8.5 and 8.6): rows v of an orthogonal matrix, and rows g = A v, are rotated in pairs until
// g_p v_q (SYMMETRIC), or g_p g_q, is negligible for all of them. Pairs that share no row are rotated in parallel:
// those of a round of a round-robin tournament, in which each pair occurs once per sweep.
//
//   SYMMETRIC 1: a (batch, n, n), of which the lower triangle is read (UPPER: the upper one). values: eigenvalues in
//             ascending order, v: eigenvectors as rows
//             0: a (batch, n, m), the columns of a matrix as rows, n <= m. values: singular values in descending order,
//             u (batch, n, m): left singular vectors as rows, 0 for a singular value of 0, v (batch, n, n): right ones
//             as rows
//   VECTORS             0: values only
//   ITEMS_PER_PAIR      work-items per pair
//   GROUP, REAL, LANES  matrix_group.clh
//   global    (batch * GROUP)
#include "matrix_group.clh"

#define PARALLEL_PAIRS (GROUP / ITEMS_PER_PAIR)
#define MAX_SWEEPS 40
#define INLINE static inline __attribute__((always_inline))

// Sums the values of a team, three at once. `shared` has three elements per work-item.
static inline void pair_sums(REAL* a, REAL* b, REAL* c, const int lane, const int item_of_pair, __local REAL* shared) {
#if ITEMS_PER_PAIR > 1
    shared[lane] = *a;
    shared[GROUP + lane] = *b;
    shared[2 * GROUP + lane] = *c;
    GROUP_BARRIER();
    for (int distance = ITEMS_PER_PAIR / 2; distance > 0; distance /= 2) {
        if (item_of_pair < distance) {
            shared[lane] += shared[lane + distance];
            shared[GROUP + lane] += shared[GROUP + lane + distance];
            shared[2 * GROUP + lane] += shared[2 * GROUP + lane + distance];
        }
        GROUP_BARRIER();
    }
    *a = shared[lane - item_of_pair];
    *b = shared[GROUP + lane - item_of_pair];
    *c = shared[2 * GROUP + lane - item_of_pair];
    GROUP_BARRIER();
#endif
}

// This work-item's part of the dot product of two rows.
static inline REAL product(const int n, __global const REAL* p, __global const REAL* q, const int item_of_pair) {
#if GROUP == 1
    return row_product(p, q, n, 0, n);
#else
    REAL sum = 0;
    for (int i = item_of_pair; i < n; i += ITEMS_PER_PAIR) sum += p[i] * q[i];
    return sum;
#endif
}

static inline void rotate_rows(const int n, const REAL s, const REAL t, __global REAL* p, __global REAL* q,
                               const int item_of_pair) {
#if GROUP == 1
    row_rotate(n, s, t, p, q);
#else
    for (int i = item_of_pair; i < n; i += ITEMS_PER_PAIR) {
        const REAL a = p[i], b = q[i];
        p[i] = a - s * (b + t * a);
        q[i] = b + s * (a - t * b);
    }
#endif
}

// Copies the rows of a to g, and returns their largest element in magnitude.
INLINE REAL load_matrix(const int m, const int n, __global const REAL* a, __global REAL* g, const int lane,
                        __local REAL* shared) {
    REAL largest = 0;
    for (int i = 0; i < n; ++i)
        for (int j = lane; j < m; j += GROUP) {
#if SYMMETRIC
            const REAL element = (UPPER ? j >= i : j <= i) ? a[(long)i * n + j] : a[(long)j * n + i];
#else
            const REAL element = a[(long)i * m + j];
#endif
            g[(long)i * m + j] = element;
            const REAL size = fabs(element);
            largest = LARGER(largest, size);
        }
    return group_largest(largest, lane, shared);
}

// Divides g by `scale`, and returns its Frobenius norm.
INLINE REAL scale_matrix(const int m, const int n, const REAL scale, __global REAL* g, const int lane,
                         __local REAL* shared) {
    REAL squares = 0;
    for (int i = 0; i < n; ++i)
        for (int j = lane; j < m; j += GROUP) {
            const REAL element = g[(long)i * m + j] / scale;
            g[(long)i * m + j] = element;
            squares += element * element;
        }
    return sqrt(group_sum(squares, lane, shared));
}

static inline void set_identity(const int n, __global REAL* v, const int lane) {
    for (int i = 0; i < n; ++i)
        for (int j = lane; j < n; j += GROUP) v[(long)i * n + j] = i == j ? 1 : 0;
}

// Rotates rows p and q, unless their product is negligible, or `active` is 0. Returns the product's size, relative to
// the rows unless SYMMETRIC; 0 without a rotation.
INLINE REAL rotate_pair(const int m, const int n, const int p, const int q, const int active, const REAL norm,
                        __global REAL* g, __global REAL* v, const int lane, const int item_of_pair,
                        __local REAL* shared) {
    REAL pp = 0, qq = 0, pq = 0;
    if (active) {
        __global const REAL* left = g + (long)p * m;
#if SYMMETRIC
        pp = product(n, left, v + (long)p * n, item_of_pair);
        qq = product(n, g + (long)q * m, v + (long)q * n, item_of_pair);
        pq = product(n, left, v + (long)q * n, item_of_pair);
#else
        pp = product(m, left, left, item_of_pair);
        qq = product(m, g + (long)q * m, g + (long)q * m, item_of_pair);
        pq = product(m, left, g + (long)q * m, item_of_pair);
#endif
    }
    pair_sums(&pp, &qq, &pq, lane, item_of_pair, shared);
#if SYMMETRIC
    const REAL size = fabs(pq);
    const int is_significant = size > REAL_EPSILON * REAL_EPSILON * norm;
#else
    const REAL both = sqrt(pp) * sqrt(qq);
    const REAL size = both > 0 ? fabs(pq) / both : (REAL)0;
    const int is_significant = size > (REAL)0.5 * REAL_EPSILON;
#endif
    if (!(active & is_significant)) return 0;
    const REAL zeta = (qq - pp) / (2 * pq);
    const REAL tangent = copysign((REAL)1, zeta) / (fabs(zeta) + sqrt(1 + zeta * zeta));
    const REAL c = 1 / sqrt(1 + tangent * tangent), s = c * tangent, t = s / (1 + c);
    rotate_rows(m, s, t, g + (long)p * m, g + (long)q * m, item_of_pair);
#if SYMMETRIC || VECTORS
    rotate_rows(n, s, t, v + (long)p * n, v + (long)q * n, item_of_pair);
#endif
    return size;
}

// Rotates the pairs of a round. Returns the size of the largest product, or `largest`.
INLINE REAL rotate_round(const int round, REAL largest, const int m, const int n, const REAL norm, __global REAL* g,
                         __global REAL* v, const int lane, __local REAL* shared) {
    const int pair_of_item = lane / ITEMS_PER_PAIR, item_of_pair = lane % ITEMS_PER_PAIR;
    const int padded = n + n % 2, pairs = padded / 2, others = padded - 1;
    for (int first = 0; first < pairs; first += PARALLEL_PAIRS) {
        const int pair = first + pair_of_item;
        const int p = pair == 0 ? others : (round + pair) % others;
        const int q = pair == 0 ? round : (round - pair + others) % others;
        const int active = (pair < pairs) & (p < n) & (q < n);
        const REAL size = rotate_pair(m, n, p, q, active, norm, g, v, lane, item_of_pair, shared);
        largest = size > largest ? size : largest;
    }
    GROUP_BARRIER();
    return largest;
}

// Position of value i in the order of the results. NaN is last.
static inline int sorted_position(const int n, const int i, __global const REAL* unsorted) {
    const REAL own = unsorted[i];
    int position = 0;
    for (int j = 0; j < n; ++j) {
        const REAL other = unsorted[j];
        const int is_ahead = SYMMETRIC ? other < own : other > own;
        const int is_equal = !(SYMMETRIC ? other > own : other < own) & !is_ahead;
        const int before =
            own != own ? (other == other) | (j < i) : (other == other) & (is_ahead | (is_equal & (j < i)));
        position += before;
    }
    return position;
}

MATRIX_FN void diagonalise(const int m, const int n, __global const REAL* a, __global REAL* g, __global REAL* v,
                           __global REAL* unsorted, __global REAL* values, __global REAL* u_out, __global REAL* v_out,
                           __local REAL* shared) {
    const int lane = get_local_id(0);
    // Scaling by a power of two is exact; squares then neither overflow nor underflow.
    const REAL power = POWER_OF_TWO(load_matrix(m, n, a, g, lane, shared));
    const REAL scale = power >= REAL_MIN_NORMAL && power < 1 / REAL_MIN_NORMAL ? power : (REAL)1;
    const REAL norm = scale_matrix(m, n, scale, g, lane, shared);
#if SYMMETRIC || VECTORS
    set_identity(n, v, lane);
#endif
    GROUP_BARRIER();
    // About what rounding errors alone leave.
    const REAL tolerance = REAL_EPSILON * (SYMMETRIC ? norm : 4 + sqrt((REAL)m));
    const int rounds = n + n % 2 - 1;
    for (int sweep = 0; sweep < MAX_SWEEPS; ++sweep) {
        REAL largest = 0;
        for (int round = 0; round < rounds; ++round)
            largest = rotate_round(round, largest, m, n, norm, g, v, lane, shared);
        if (!(group_largest(largest, lane, shared) > tolerance)) break;
    }
    for (int i = lane; i < n; i += GROUP) {
        REAL sum = 0;
        for (int j = 0; j < m; ++j) sum += g[(long)i * m + j] * (SYMMETRIC ? v[(long)i * n + j] : g[(long)i * m + j]);
        unsorted[i] = SYMMETRIC ? sum : sqrt(sum);
    }
    GROUP_BARRIER();
    for (int i = 0; i < n; ++i) {
        const REAL value = unsorted[i];
        const long position = sorted_position(n, i, unsorted);
        if (lane == 0) values[position] = value * scale;
#if VECTORS
        for (int j = lane; j < n; j += GROUP) v_out[position * n + j] = v[(long)i * n + j];
#if !SYMMETRIC
        for (int j = lane; j < m; j += GROUP)
            u_out[position * m + j] = value == 0 ? (REAL)0 : g[(long)i * m + j] / value;
#endif
#endif
    }
}

__kernel void jacobi(const int m, const int n, __local REAL* shared, __global const REAL* restrict a,
                     const long a_offset, __global REAL* restrict g, const long g_offset, __global REAL* restrict v,
                     const long v_offset, __global REAL* restrict unsorted, const long unsorted_offset,
                     __global REAL* restrict values, const long values_offset, __global REAL* restrict u_out,
                     const long u_out_offset, __global REAL* restrict v_out, const long v_out_offset) {
    const long matrix = get_group_id(0), rows = (long)n * m, square = (long)n * n;
    diagonalise(m, n, a + a_offset + matrix * rows, g + g_offset + matrix * rows, v + v_offset + matrix * square,
                unsorted + unsorted_offset + matrix * n, values + values_offset + matrix * n,
                u_out + u_out_offset + matrix * rows, v_out + v_out_offset + matrix * square, shared);
}
