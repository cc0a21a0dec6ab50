// Layer normalisation of rows x (rows, n): y = (x - mean) rstd weight + bias, with mean and variance over the row,
// computed in two passes, and rstd = 1 / sqrt(variance + epsilon). Gradients:
//
//   dx = rstd (w - mean of w - h mean of w h),  h = (x - mean) rstd,  w = g weight
//   dweight = sum over rows of g h,  dbias = sum over rows of g
//
//   SIMD     simd style: a work-item takes `each` rows. global (row groups); layer_norm_columns: COLUMNS neighbouring
//            columns of `each` rows. global (column blocks, row groups)
//   SIMT     simt style: several work-items per row. global (row groups * local size); layer_norm_columns: one column
//            of `each` rows. global (n, row groups)
//            layer_norm itself is written over row_program.clh
//   RMS      1: RMS normalisation, without a mean (0 is used)
//   WEIGHT, BIAS  1 if there is one; otherwise the argument may be any buffer
//   REAL, T  float or double
//   LANES    SIMD: elements per vector
//   COLUMNS  SIMD: columns per work-item of layer_norm_columns
#include "noinline.clh"
#include "math.clh"

#if WEIGHT
#define WEIGHTED(g, weight) ((g) * (weight))
#else
#define WEIGHTED(g, weight) (g)
#endif
#if BIAS
#define BIASED(v, bias) ((v) + (bias))
#else
#define BIASED(v, bias) (v)
#endif

// Parameters of the forward kernel, before those of row_program.clh.
#define OWN_PARAMETERS                                                                             \
    const REAL epsilon, __global const REAL *restrict weight, const long weight_offset,            \
        __global const REAL *restrict bias, const long bias_offset, __global REAL *restrict means, \
        const long means_offset, __global REAL *restrict rstds, const long rstds_offset
#define OWN_ARGUMENTS epsilon, weight, weight_offset, bias, bias_offset, means, means_offset, rstds, rstds_offset

// Parameters of layer_norm_backward, and its pointers for one row.
#define BACKWARD_PARAMETERS                                                                                \
    __global const REAL *restrict x_base, const long x_offset, __global const REAL *restrict g_base,       \
        const long g_offset, __global const REAL *restrict weight_base, const long weight_offset,          \
        __global const REAL *restrict means, const long means_offset, __global const REAL *restrict rstds, \
        const long rstds_offset, __global REAL *restrict dx_base, const long dx_offset
#define BACKWARD_ARGUMENTS                                                                                             \
    x_base, x_offset, g_base, g_offset, weight_base, weight_offset, means, means_offset, rstds, rstds_offset, dx_base, \
        dx_offset
#define BACKWARD_ROW                                           \
    __global const REAL* x = x_base + x_offset + row * n;      \
    __global const REAL* g = g_base + g_offset + row * n;      \
    __global const REAL* weight = weight_base + weight_offset; \
    __global REAL* dx = dx_base + dx_offset + row * n;         \
    const REAL mean = means[means_offset + row], rstd = rstds[rstds_offset + row];
// Parameters of layer_norm_columns (dweight and dbias, partial sums over blocks of rows), and its pointers for one row.
#define COLUMNS_PARAMETERS                                                                             \
    __global const REAL *restrict x_base, const long x_offset, __global const REAL *restrict g_base,   \
        const long g_offset, __global const REAL *restrict means, const long means_offset,             \
        __global const REAL *restrict rstds, const long rstds_offset, __global REAL *restrict weights, \
        const long weights_offset, __global REAL *restrict biases, const long biases_offset
#define COLUMNS_ARGUMENTS                                                                                          \
    x_base, x_offset, g_base, g_offset, means, means_offset, rstds, rstds_offset, weights, weights_offset, biases, \
        biases_offset
#define COLUMNS_ROW                                       \
    __global const REAL* x = x_base + x_offset + row * n; \
    __global const REAL* g = g_base + g_offset + row * n; \
    const REAL mean = means[means_offset + row], rstd = rstds[rstds_offset + row];

#ifdef SIMD

#include "row.clh"
#include "row_program.clh"
#define FIRST(v, w, m) (v)
#define PRODUCT(v, w, m) ((v) * (w))
#define SQUARED_DEVIATION(v, w, m) (((v) - (m)) * ((v) - (m)))
ROW_SUM(row_sum, FIRST)
ROW_SUM(row_dot, PRODUCT)
ROW_SUM(row_squares, SQUARED_DEVIATION)

NOINLINE void layer_norm_part(const size_t id0, OWN_PARAMETERS, ROW_PARAMETERS) {
    weight += weight_offset;
    bias += bias_offset;
    EACH_ROW {
        ROW_POINTERS
#if RMS
        const REAL mean = 0;
#else
        const REAL mean = row_sum(x, x, n, 0, room) / (REAL)n;
#endif
        const REAL rstd = 1 / sqrt(row_squares(x, x, n, mean, room) / (REAL)n + epsilon);
        means[means_offset + row] = mean;
        rstds[rstds_offset + row] = rstd;
        PUT_ROW(BIASED(WEIGHTED((ROW_LOAD(x + c) - mean) * rstd, ROW_LOAD(weight + c)), ROW_LOAD(bias + c)),
                BIASED(WEIGHTED((x[c] - mean) * rstd, weight[c]), bias[c]))
        NEXT_ROW
    }
}

__kernel void layer_norm(OWN_PARAMETERS, ROW_PARAMETERS) {
    layer_norm_part(get_global_id(0), OWN_ARGUMENTS, ROW_ARGUMENTS);
}

// Sums over a row of w and of w h (before the factor rstd); m is the row's mean.
#if WEIGHT
#define ROW_OF_SUMS(NAME, TERM)                                                                                        \
    static inline REAL NAME(__global const REAL* g, __global const REAL* weight, __global const REAL* x, const long n, \
                            const REAL m) {                                                                            \
        ROW_VEC a = (ROW_VEC)(0), b = a;                                                                               \
        long i = 0;                                                                                                    \
        for (; i + 2 * LANES <= n; i += 2 * LANES) {                                                                   \
            a += TERM(ROW_LOAD(g + i) * ROW_LOAD(weight + i), ROW_LOAD(x + i), m);                                     \
            b += TERM(ROW_LOAD(g + i + LANES) * ROW_LOAD(weight + i + LANES), ROW_LOAD(x + i + LANES), m);             \
        }                                                                                                              \
        REAL sum = row_sum_of(a + b);                                                                                  \
        for (; i < n; ++i) sum += TERM(g[i] * weight[i], x[i], m);                                                     \
        return sum;                                                                                                    \
    }
#else
#define ROW_OF_SUMS(NAME, TERM)                                                                                        \
    static inline REAL NAME(__global const REAL* g, __global const REAL* weight, __global const REAL* x, const long n, \
                            const REAL m) {                                                                            \
        ROW_VEC a = (ROW_VEC)(0), b = a;                                                                               \
        long i = 0;                                                                                                    \
        for (; i + 2 * LANES <= n; i += 2 * LANES) {                                                                   \
            a += TERM(ROW_LOAD(g + i), ROW_LOAD(x + i), m);                                                            \
            b += TERM(ROW_LOAD(g + i + LANES), ROW_LOAD(x + i + LANES), m);                                            \
        }                                                                                                              \
        REAL sum = row_sum_of(a + b);                                                                                  \
        for (; i < n; ++i) sum += TERM(g[i], x[i], m);                                                                 \
        return sum;                                                                                                    \
    }
#endif
#define ONLY_W(w, x, m) (w)
#define W_TIMES_CENTRED(w, x, m) ((w) * ((x) - (m)))
ROW_OF_SUMS(sum_of_w, ONLY_W)
ROW_OF_SUMS(sum_of_w_centred, W_TIMES_CENTRED)

NOINLINE void layer_norm_backward_part(const size_t id0, const long rows, const long n, const long each,
                                       BACKWARD_PARAMETERS) {
    const long last = min(rows, ((long)id0 + 1) * each);
    for (long row = id0 * each; row < last; ++row) {
        BACKWARD_ROW
#if RMS
        const REAL of_w = 0;
#else
        const REAL of_w = sum_of_w(g, weight, x, n, mean) / (REAL)n;
#endif
        const REAL of_wh = sum_of_w_centred(g, weight, x, n, mean) * rstd / (REAL)n;
        long c = 0;
        for (; c + LANES <= n; c += LANES) {
            const ROW_VEC h = (ROW_LOAD(x + c) - mean) * rstd;
#if WEIGHT
            const ROW_VEC w = ROW_LOAD(g + c) * ROW_LOAD(weight + c);
#else
            const ROW_VEC w = ROW_LOAD(g + c);
#endif
            row_store(rstd * (w - of_w - h * of_wh), dx + c);
        }
        for (; c < n; ++c) dx[c] = rstd * (WEIGHTED(g[c], weight[c]) - of_w - (x[c] - mean) * rstd * of_wh);
    }
}

__kernel void layer_norm_backward(const long rows, const long n, const long each, BACKWARD_PARAMETERS) {
    layer_norm_backward_part(get_global_id(0), rows, n, each, BACKWARD_ARGUMENTS);
}

NOINLINE void layer_norm_columns_part(const size_t id0, const size_t id1, const long rows, const long n,
                                      const long each, COLUMNS_PARAMETERS) {
    REAL of_weight[COLUMNS], of_bias[COLUMNS];
    const long first = id0 * (long)COLUMNS, last = min(rows, ((long)id1 + 1) * each);
    const int count = (int)min((long)COLUMNS, n - first);
    for (int k = 0; k < count; ++k) of_weight[k] = of_bias[k] = 0;
    for (long row = id1 * each; row < last; ++row) {
        COLUMNS_ROW
        for (int k = 0; k < count; ++k) {
            of_weight[k] += g[first + k] * ((x[first + k] - mean) * rstd);
            of_bias[k] += g[first + k];
        }
    }
    for (int k = 0; k < count; ++k) {
        weights[weights_offset + id1 * n + first + k] = of_weight[k];
        biases[biases_offset + id1 * n + first + k] = of_bias[k];
    }
}

__kernel void layer_norm_columns(const long rows, const long n, const long each, COLUMNS_PARAMETERS) {
    layer_norm_columns_part(get_global_id(0), get_global_id(1), rows, n, each, COLUMNS_ARGUMENTS);
}

#else

#include "row_group.clh"
#include "row_program.clh"
ROW_GROUP_COMBINE(group_sum, REAL, ADDED)

// Work-items past the last row take part in all barriers and write nothing.

__kernel void layer_norm(OWN_PARAMETERS, ROW_PARAMETERS) {
    ROW_POINTERS
    REAL mean = 0, squares = 0;
#if RMS
    for (long c = group.lane; c < n; c += lanes) {
        FIRST_ELEMENT(v, c)
        squares += v * v;
    }
#else
    for (long c = group.lane; c < n; c += lanes) {
        FIRST_ELEMENT(v, c)
        mean += v;
    }
    mean = group_sum(shared, group, mean) / (REAL)n;
    for (long c = group.lane; c < n; c += lanes) {
        ELEMENT(v, c)
        squares += (v - mean) * (v - mean);
    }
#endif
    const REAL rstd = 1 / sqrt(group_sum(shared, group, squares) / (REAL)n + epsilon);
    if (group.row >= rows) return;
    if (group.lane == 0) {
        means[means_offset + row] = mean;
        rstds[rstds_offset + row] = rstd;
    }
    for (long c = group.lane; c < n; c += lanes) {
        ELEMENT(v, c)
        PUT_ELEMENT(BIASED(WEIGHTED((v - mean) * rstd, weight[weight_offset + c]), bias[bias_offset + c]), c)
    }
}

__kernel void layer_norm_backward(const long rows, const long n, const int lanes, const int lane_stride,
                                  __local REAL* shared, BACKWARD_PARAMETERS) {
    const struct RowGroup group = row_group(lanes, lane_stride);
    const long row = min(group.row, rows - 1);
    BACKWARD_ROW
    REAL of_w = 0, of_wh = 0;
    for (long c = group.lane; c < n; c += lanes) {
        const REAL w = WEIGHTED(g[c], weight[c]);
        of_w += w;
        of_wh += w * ((x[c] - mean) * rstd);
    }
#if RMS
    of_w = 0;
#else
    of_w = group_sum(shared, group, of_w) / (REAL)n;
#endif
    of_wh = group_sum(shared, group, of_wh) / (REAL)n;
    if (group.row >= rows) return;
    for (long c = group.lane; c < n; c += lanes)
        dx[c] = rstd * (WEIGHTED(g[c], weight[c]) - of_w - (x[c] - mean) * rstd * of_wh);
}

__kernel void layer_norm_columns(const long rows, const long n, const long each, COLUMNS_PARAMETERS) {
    const long column = get_global_id(0), block = get_global_id(1);
    if (column >= n) return;
    const long last = min(rows, (block + 1) * each);
    REAL of_weight = 0, of_bias = 0;
    for (long row = block * each; row < last; ++row) {
        COLUMNS_ROW
        of_weight += g[column] * ((x[column] - mean) * rstd);
        of_bias += g[column];
    }
    weights[weights_offset + block * n + column] = of_weight;
    biases[biases_offset + block * n + column] = of_bias;
}

#endif
