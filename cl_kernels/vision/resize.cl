// Resampling of an axis: for x (outer, n, inner), `indices` (m, K) and weights (m, K)
//
//   resize:           y[a][i][b] = sum over k of weights[i][k] x[a][indices[i][k]][b]
//   resize_backward:  x_gradient[a][j][b] = sum of weights[i][k] g[a][i][b] over i, k with indices[i][k] = j, in order
//   ..._line          the same for inner = 1, simd style only
//
// Indices ascend along both axes of `indices`, so that those equal to j are in neighbouring rows. A weight of 0
// contributes 0 even if the element is NaN or infinite.
//
//   SIMD     simd style: a work-item takes `each` rows: (a, i) or (a, j); ..._line: a. global (ceil(rows / each))
//   SIMT     simt style: one element of the result each. global (elements of a, rounded up to the local size, outer)
//   TAPS     K if known at compile time, otherwise 0
//   WEIGHTS  0: all weights are 1, and the argument may be any buffer
//   REAL, T  float or double
//   LANES    SIMD: elements per vector
#include "noinline.clh"
#include "math.clh"

struct Resize {
    long rows, each;
    int n, m, inner, taps;
};

// Weight `at`.
static inline REAL weight_at(__global const REAL* weights, const int at) {
#if WEIGHTS
    return weights[at];
#else
    return 1;
#endif
}

#define PARAMETERS                                                                                              \
    const struct Resize s, __global const REAL *restrict from_base, const long from_offset,                     \
        __global const int *restrict indices, const long indices_offset, __global const REAL *restrict weights, \
        const long weights_offset, __global REAL *restrict to_base, const long to_offset
#define ARGUMENTS s, from_base, from_offset, indices, indices_offset, weights, weights_offset, to_base, to_offset

// The first row of `indices` whose last index is at least j.
static inline int first_row(__global const int* indices, const int m, const int taps, const int j) {
    int low = 0, high = m;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (indices[middle * taps + taps - 1] < j) low = middle + 1;
        else high = middle;
    }
    return low;
}

#ifdef SIMD

#include "row.clh"

#define LOAD_ELEMENT(p) (*(p))

// Defines VALUE NAME(...): the sum for an element i of the result, over elements of x that LOAD reads from `from` on.
#define FORWARD_SUM(NAME, VALUE, LOAD)                                                                         \
    static inline VALUE NAME(const struct Resize s, __global const int* indices, __global const REAL* weights, \
                             __global const REAL* from, const int i) {                                         \
        const int K = TAPS ? TAPS : s.taps;                                                                    \
        VALUE sum = (VALUE)(0);                                                                                \
        for (int k = 0; k < K; ++k) {                                                                          \
            const REAL weight = weight_at(weights, i * K + k);                                                 \
            if (weight != 0) sum += weight * LOAD(from + (long)indices[i * K + k] * s.inner);                  \
        }                                                                                                      \
        return sum;                                                                                            \
    }
FORWARD_SUM(forward_sum, REAL, LOAD_ELEMENT)
FORWARD_SUM(forward_sum_vector, ROW_VEC, ROW_LOAD)

// The same for an element j of the gradient of x, from the row `first` of `indices` on.
#define BACKWARD_SUM(NAME, VALUE, LOAD)                                                                        \
    static inline VALUE NAME(const struct Resize s, __global const int* indices, __global const REAL* weights, \
                             __global const REAL* from, const int first, const int j) {                        \
        const int K = TAPS ? TAPS : s.taps;                                                                    \
        VALUE sum = (VALUE)(0);                                                                                \
        for (int i = first; i < s.m && indices[i * K] <= j; ++i)                                               \
            for (int k = 0; k < K; ++k) {                                                                      \
                const REAL weight = weight_at(weights, i * K + k);                                             \
                if (indices[i * K + k] == j && weight != 0) sum += weight * LOAD(from + (long)i * s.inner);    \
            }                                                                                                  \
        return sum;                                                                                            \
    }
BACKWARD_SUM(backward_sum, REAL, LOAD_ELEMENT)
BACKWARD_SUM(backward_sum_vector, ROW_VEC, ROW_LOAD)

NOINLINE void resize_part(const size_t id0, PARAMETERS) {
    from_base += from_offset;
    to_base += to_offset;
    indices += indices_offset;
    weights += weights_offset;
    const long last = min(s.rows, ((long)id0 + 1) * s.each);
    for (long row = id0 * s.each; row < last; ++row) {
        const long a = row / s.m;
        const int i = (int)(row - a * s.m);
        __global const REAL* from = from_base + a * s.n * s.inner;
        __global REAL* to = to_base + row * s.inner;
        int c = 0;
        for (; c + LANES <= s.inner; c += LANES)
            row_store(forward_sum_vector(s, indices, weights, from + c, i), to + c);
        for (; c < s.inner; ++c) to[c] = forward_sum(s, indices, weights, from + c, i);
    }
}

__kernel void resize(PARAMETERS) { resize_part(get_global_id(0), ARGUMENTS); }

NOINLINE void resize_line_part(const size_t id0, PARAMETERS) {
    const int K = TAPS ? TAPS : s.taps;
    from_base += from_offset;
    to_base += to_offset;
    indices += indices_offset;
    weights += weights_offset;
    const long last = min(s.rows, ((long)id0 + 1) * s.each);
    for (long row = id0 * s.each; row < last; ++row) {
        __global const REAL* from = from_base + row * s.n;
        __global REAL* to = to_base + row * s.m;
        for (int i = 0; i < s.m; ++i) {
            REAL sum = 0;
            for (int k = 0; k < K; ++k) {
                const REAL weight = weight_at(weights, i * K + k), v = from[indices[i * K + k]];
                sum += weight != 0 ? weight * v : 0;
            }
            to[i] = sum;
        }
    }
}

__kernel void resize_line(PARAMETERS) { resize_line_part(get_global_id(0), ARGUMENTS); }

NOINLINE void resize_backward_part(const size_t id0, PARAMETERS) {
    const int K = TAPS ? TAPS : s.taps;
    from_base += from_offset;
    to_base += to_offset;
    indices += indices_offset;
    weights += weights_offset;
    const long last = min(s.rows, ((long)id0 + 1) * s.each);
    for (long row = id0 * s.each; row < last; ++row) {
        const long a = row / s.n;
        const int j = (int)(row - a * s.n);
        __global const REAL* from = from_base + a * s.m * s.inner;
        __global REAL* to = to_base + row * s.inner;
        const int first = first_row(indices, s.m, K, j);
        int c = 0;
        for (; c + LANES <= s.inner; c += LANES)
            row_store(backward_sum_vector(s, indices, weights, from + c, first, j), to + c);
        for (; c < s.inner; ++c) to[c] = backward_sum(s, indices, weights, from + c, first, j);
    }
}

__kernel void resize_backward(PARAMETERS) { resize_backward_part(get_global_id(0), ARGUMENTS); }

// A work-item owns the whole line, so it scatters.
NOINLINE void resize_backward_line_part(const size_t id0, PARAMETERS) {
    const int K = TAPS ? TAPS : s.taps;
    from_base += from_offset;
    to_base += to_offset;
    indices += indices_offset;
    weights += weights_offset;
    const long last = min(s.rows, ((long)id0 + 1) * s.each);
    for (long row = id0 * s.each; row < last; ++row) {
        __global const REAL* from = from_base + row * s.m;
        __global REAL* to = to_base + row * s.n;
        for (int j = 0; j < s.n; ++j) to[j] = 0;
        for (int i = 0; i < s.m; ++i) {
            const REAL g = from[i];
            for (int k = 0; k < K; ++k) {
                const REAL weight = weight_at(weights, i * K + k);
                to[indices[i * K + k]] += weight != 0 ? weight * g : 0;
            }
        }
    }
}

__kernel void resize_backward_line(PARAMETERS) { resize_backward_line_part(get_global_id(0), ARGUMENTS); }

#else

__kernel void resize(PARAMETERS) {
    const int K = TAPS ? TAPS : s.taps;
    const int column = (int)get_global_id(0);
    const long a = get_global_id(1);
    if (column >= s.m * s.inner) return;
    from_base += from_offset;
    to_base += to_offset;
    indices += indices_offset;
    weights += weights_offset;
    const int i = column / s.inner, b = column - i * s.inner;
    __global const REAL* from = from_base + a * s.n * s.inner + b;
    REAL sum = 0;
    for (int k = 0; k < K; ++k) {
        const REAL weight = weight_at(weights, i * K + k);
        if (weight != 0) sum += weight * from[indices[i * K + k] * s.inner];
    }
    to_base[a * s.m * s.inner + column] = sum;
}

__kernel void resize_backward(PARAMETERS) {
    const int K = TAPS ? TAPS : s.taps;
    const int column = (int)get_global_id(0);
    const long a = get_global_id(1);
    if (column >= s.n * s.inner) return;
    from_base += from_offset;
    to_base += to_offset;
    indices += indices_offset;
    weights += weights_offset;
    const int j = column / s.inner, b = column - j * s.inner;
    __global const REAL* from = from_base + a * s.m * s.inner + b;
    REAL sum = 0;
    for (int i = first_row(indices, s.m, K, j); i < s.m && indices[i * K] <= j; ++i)
        for (int k = 0; k < K; ++k) {
            const REAL weight = weight_at(weights, i * K + k);
            if (indices[i * K + k] == j && weight != 0) sum += weight * from[i * s.inner];
        }
    to_base[a * s.n * s.inner + column] = sum;
}

#endif
