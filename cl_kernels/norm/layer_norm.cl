// Layer normalisation of rows x (rows, n): y = (x - mean) rstd weight + bias, with mean and variance over the row,
// computed in two passes, and rstd = 1 / sqrt(variance + epsilon). Gradients:
//
//   x_gradient = rstd (gw - mean of gw - h mean of gw h),  h = (x - mean) rstd,  gw = g weight, g the gradient of y
//   weight_gradient = sum over rows of g h,  bias_gradient = sum over rows of g
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

// Parameters of layer_norm_backward.
#define BACKWARD_PARAMETERS                                                                                \
    __global const REAL *restrict x_base, const long x_offset, __global const REAL *restrict g_base,       \
        const long g_offset, __global const REAL *restrict weight_base, const long weight_offset,          \
        __global const REAL *restrict means, const long means_offset, __global const REAL *restrict rstds, \
        const long rstds_offset, __global REAL *restrict x_gradient_base, const long x_gradient_offset
#define BACKWARD_ARGUMENTS                                                                                    \
    x_base, x_offset, g_base, g_offset, weight_base, weight_offset, means, means_offset, rstds, rstds_offset, \
        x_gradient_base, x_gradient_offset
// Parameters of layer_norm_columns: weight_gradients and bias_gradients are partial sums over blocks of rows.
#define COLUMNS_PARAMETERS                                                                                      \
    __global const REAL *restrict x_base, const long x_offset, __global const REAL *restrict g_base,            \
        const long g_offset, __global const REAL *restrict means, const long means_offset,                      \
        __global const REAL *restrict rstds, const long rstds_offset, __global REAL *restrict weight_gradients, \
        const long weight_gradients_offset, __global REAL *restrict bias_gradients, const long bias_gradients_offset
#define COLUMNS_ARGUMENTS                                                                           \
    x_base, x_offset, g_base, g_offset, means, means_offset, rstds, rstds_offset, weight_gradients, \
        weight_gradients_offset, bias_gradients, bias_gradients_offset

#ifdef SIMD

#include "row.clh"
struct RowState {
    REAL mean, rstd;
    __global const REAL *weight, *bias;
};
#define ROW_RESULT(READ, c) \
    BIASED(WEIGHTED((READ(row.x + (c)) - state.mean) * state.rstd, READ(state.weight + (c))), READ(state.bias + (c)))
#include "row_program.clh"

#define VALUE_TERM(p, q, m) (p)
#define SQUARED_DEVIATION(p, q, m) (((p) - (m)) * ((p) - (m)))
ROW_SUM(row_sum, VALUE_TERM)
ROW_SUM(row_squares, SQUARED_DEVIATION)

// Moments of a row.
static inline struct RowState row_moments(const struct Row row, const long n, OWN_PARAMETERS) {
#if RMS
    const REAL mean = 0;
#else
    const REAL mean = row_sum(row.x, row.x, n, 0, row.readable) / (REAL)n;
#endif
    const REAL rstd = 1 / sqrt(row_squares(row.x, row.x, n, mean, row.readable) / (REAL)n + epsilon);
    means[means_offset + row.number] = mean;
    rstds[rstds_offset + row.number] = rstd;
    const struct RowState state = {mean, rstd, weight + weight_offset, bias + bias_offset};
    return state;
}

NOINLINE void layer_norm_part(const size_t id0, OWN_PARAMETERS, ROW_PARAMETERS) {
    struct Row row = first_row(id0, ROW_ARGUMENTS);
    for (; row.number < row.end; row = following_row(row, ROW_ARGUMENTS)) {
        row = read_row(row, ROW_ARGUMENTS);
        // Weight and bias may end with the row.
        write_row(row, row_moments(row, n, OWN_ARGUMENTS), n, ROW_ARGUMENTS);
    }
}

__kernel void layer_norm(OWN_PARAMETERS, ROW_PARAMETERS) {
    layer_norm_part(get_global_id(0), OWN_ARGUMENTS, ROW_ARGUMENTS);
}

#if WEIGHT
#define READ_WEIGHTED(READ, g, weight, c) (READ((g) + (c)) * READ((weight) + (c)))
#else
#define READ_WEIGHTED(READ, g, weight, c) READ((g) + (c))
#endif

// Defines REAL NAME(g, weight, x, n, m): the sum over a row of TERM(gw, x, m), with gw = g weight and the row's mean m.
#define ROW_SUM_WEIGHTED(NAME, TERM)                                                                                   \
    static inline REAL NAME(__global const REAL* g, __global const REAL* weight, __global const REAL* x, const long n, \
                            const REAL m) {                                                                            \
        ROW_VEC a = (ROW_VEC)(0), b = a;                                                                               \
        long i = 0;                                                                                                    \
        for (; i + 2 * LANES <= n; i += 2 * LANES) {                                                                   \
            a += TERM(READ_WEIGHTED(ROW_LOAD, g, weight, i), ROW_LOAD(x + i), m);                                      \
            b += TERM(READ_WEIGHTED(ROW_LOAD, g, weight, i + LANES), ROW_LOAD(x + i + LANES), m);                      \
        }                                                                                                              \
        REAL sum = row_sum_of(a + b);                                                                                  \
        for (; i < n; ++i) sum += TERM(READ_WEIGHTED(ROW_ELEMENT, g, weight, i), x[i], m);                             \
        return sum;                                                                                                    \
    }
#define GW_TERM(gw, x, m) (gw)
#define GW_CENTRED_TERM(gw, x, m) ((gw) * ((x) - (m)))
ROW_SUM_WEIGHTED(sum_gw, GW_TERM)
ROW_SUM_WEIGHTED(sum_gw_centred, GW_CENTRED_TERM)

NOINLINE void layer_norm_backward_part(const size_t id0, const long rows, const long n, const long each,
                                       BACKWARD_PARAMETERS) {
    const long last = min(rows, ((long)id0 + 1) * each);
    for (long row = id0 * each; row < last; ++row) {
        __global const REAL* x = x_base + x_offset + row * n;
        __global const REAL* g = g_base + g_offset + row * n;
        __global const REAL* weight = weight_base + weight_offset;
        __global REAL* x_gradient = x_gradient_base + x_gradient_offset + row * n;
        const REAL mean = means[means_offset + row], rstd = rstds[rstds_offset + row];
#if RMS
        const REAL mean_gw = 0;
#else
        const REAL mean_gw = sum_gw(g, weight, x, n, mean) / (REAL)n;
#endif
        const REAL mean_gwh = sum_gw_centred(g, weight, x, n, mean) * rstd / (REAL)n;
        long c = 0;
        for (; c + LANES <= n; c += LANES) {
            const ROW_VEC h = (ROW_LOAD(x + c) - mean) * rstd;
#if WEIGHT
            const ROW_VEC gw = ROW_LOAD(g + c) * ROW_LOAD(weight + c);
#else
            const ROW_VEC gw = ROW_LOAD(g + c);
#endif
            row_store(rstd * (gw - mean_gw - h * mean_gwh), x_gradient + c);
        }
        for (; c < n; ++c)
            x_gradient[c] = rstd * (WEIGHTED(g[c], weight[c]) - mean_gw - (x[c] - mean) * rstd * mean_gwh);
    }
}

__kernel void layer_norm_backward(const long rows, const long n, const long each, BACKWARD_PARAMETERS) {
    layer_norm_backward_part(get_global_id(0), rows, n, each, BACKWARD_ARGUMENTS);
}

NOINLINE void layer_norm_columns_part(const size_t id0, const size_t id1, const long rows, const long n,
                                      const long each, COLUMNS_PARAMETERS) {
    REAL weight_sum[COLUMNS], bias_sum[COLUMNS];
    const long first = id0 * (long)COLUMNS, last = min(rows, ((long)id1 + 1) * each);
    const int count = (int)min((long)COLUMNS, n - first);
    for (int k = 0; k < count; ++k) weight_sum[k] = bias_sum[k] = 0;
    for (long row = id1 * each; row < last; ++row) {
        __global const REAL* x = x_base + x_offset + row * n;
        __global const REAL* g = g_base + g_offset + row * n;
        const REAL mean = means[means_offset + row], rstd = rstds[rstds_offset + row];
        for (int k = 0; k < count; ++k) {
            weight_sum[k] += g[first + k] * ((x[first + k] - mean) * rstd);
            bias_sum[k] += g[first + k];
        }
    }
    for (int k = 0; k < count; ++k) {
        weight_gradients[weight_gradients_offset + id1 * n + first + k] = weight_sum[k];
        bias_gradients[bias_gradients_offset + id1 * n + first + k] = bias_sum[k];
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
    const struct Row row = row_of(row_group(lanes, lane_stride), 1, ROW_ARGUMENTS);
    const int first = row.group.lane;
    REAL mean = 0, squares = 0;
#if RMS
    for (long c = first; c < n; c += lanes) {
        const REAL x = first_read(row, c, ROW_ARGUMENTS);
        squares += x * x;
    }
#else
    for (long c = first; c < n; c += lanes) mean += first_read(row, c, ROW_ARGUMENTS);
    mean = group_sum(shared, row.group, mean) / (REAL)n;
    for (long c = first; c < n; c += lanes) {
        const REAL x = read_again(row, c, ROW_ARGUMENTS);
        squares += (x - mean) * (x - mean);
    }
#endif
    const REAL rstd = 1 / sqrt(group_sum(shared, row.group, squares) / (REAL)n + epsilon);
    if (row.group.row >= rows) return;
    if (first == 0) {
        means[means_offset + row.number] = mean;
        rstds[rstds_offset + row.number] = rstd;
    }
    for (long c = first; c < n; c += lanes) {
        const REAL h = (read_again(row, c, ROW_ARGUMENTS) - mean) * rstd;
        write_result(row, c, BIASED(WEIGHTED(h, weight[weight_offset + c]), bias[bias_offset + c]), ROW_ARGUMENTS);
    }
}

__kernel void layer_norm_backward(const long rows, const long n, const int lanes, const int lane_stride,
                                  __local REAL* shared, BACKWARD_PARAMETERS) {
    const struct RowGroup group = row_group(lanes, lane_stride);
    const long row = min(group.row, rows - 1);
    __global const REAL* x = x_base + x_offset + row * n;
    __global const REAL* g = g_base + g_offset + row * n;
    __global const REAL* weight = weight_base + weight_offset;
    __global REAL* x_gradient = x_gradient_base + x_gradient_offset + row * n;
    const REAL mean = means[means_offset + row], rstd = rstds[rstds_offset + row];
    REAL mean_gw = 0, mean_gwh = 0;
    for (long c = group.lane; c < n; c += lanes) {
        const REAL gw = WEIGHTED(g[c], weight[c]);
        mean_gw += gw;
        mean_gwh += gw * ((x[c] - mean) * rstd);
    }
#if RMS
    mean_gw = 0;
#else
    mean_gw = group_sum(shared, group, mean_gw) / (REAL)n;
#endif
    mean_gwh = group_sum(shared, group, mean_gwh) / (REAL)n;
    if (group.row >= rows) return;
    for (long c = group.lane; c < n; c += lanes)
        x_gradient[c] = rstd * (WEIGHTED(g[c], weight[c]) - mean_gw - (x[c] - mean) * rstd * mean_gwh);
}

__kernel void layer_norm_columns(const long rows, const long n, const long each, COLUMNS_PARAMETERS) {
    const long column = get_global_id(0), block = get_global_id(1);
    if (column >= n) return;
    const long last = min(rows, (block + 1) * each);
    REAL weight_sum = 0, bias_sum = 0;
    for (long row = block * each; row < last; ++row) {
        __global const REAL* x = x_base + x_offset + row * n;
        __global const REAL* g = g_base + g_offset + row * n;
        const REAL mean = means[means_offset + row], rstd = rstds[rstds_offset + row];
        weight_sum += g[column] * ((x[column] - mean) * rstd);
        bias_sum += g[column];
    }
    weight_gradients[weight_gradients_offset + block * n + column] = weight_sum;
    bias_gradients[bias_gradients_offset + block * n + column] = bias_sum;
}

#endif
