// Softmax and log-softmax:
//   y = exp(x - m) / s  or  log y = (x - m) - log(s),  m = max over c of x[c], s = sum over c of exp(x[c] - m),
// and their gradients  dx = y (g - sum of g y)  or  dx = g - exp(log y) sum of g.
//
// x[o, c, k] with o in [0, outer), c in [0, n) along the axis, k in [0, inner), dense; a row is one (o, k).
//
//   SIMD     simd style, inner == 1: a work-item takes `each` rows. global (row groups)
//   SIMD_COLUMNS  simd style, inner > 1: a work-item takes COLUMNS neighbouring k of `each` o. global (column blocks, o
//            groups)
//   SIMT     simt style: several work-items per row. global (row groups * local size)
//            Where inner == 1, the forward kernel is a row operator that may be fused (row_program.clh)
//   LOG      1: log-softmax
//   INNER    SIMT: 1 if inner > 1
//   REAL, T  float or double
//   LANES    SIMD: elements per vector
//   COLUMNS  SIMD_COLUMNS: neighbouring k per work-item
#include "noinline.clh"
#include "math.clh"

// dx[c] from the result y and the gradient g; `sum` is that of g y, or of g.
#if LOG
#define GRADIENT(g, y, sum) ((g)-d_exp(y) * (sum))
#else
#define GRADIENT(g, y, sum) ((y) * ((g) - (sum)))
#endif

#ifdef SIMD

#undef D_WIDTH
#define D_WIDTH LANES
#include "math.clh"
#include "row.clh"
#define FIRST(v, w, m) (v)
#define PRODUCT(v, w, m) ((v) * (w))
#define EXPONENTIAL(v, w, m) d_exp((v) - (m))
ROW_SUM(row_sum, FIRST)
ROW_SUM(row_dot, PRODUCT)
ROW_SUM(row_sum_exp, EXPONENTIAL)

#if LOG
struct RowState {
    REAL max, log_sum;
};
#define ROW_RESULT(READ, c) ((READ(row.x + (c)) - state.max) - state.log_sum)
#else
struct RowState {
    REAL scale;
};
#define ROW_RESULT(READ, c) (READ(row.scratch + (c)) * state.scale)  // scratch: exp(x - m)
#endif
#include "row_program.clh"

// Stores exp(x - m) in the row's scratch memory; returns the sum.
static inline REAL store_exponentials(const struct Row row, const long n, const REAL m) {
    __global const REAL* x = row.x;
    __global REAL* powers = row.scratch;
    ROW_VEC sums = (ROW_VEC)(0);
    REAL sum = 0;
    long c = 0;
    for (; c + LANES <= n; c += LANES) {
        const ROW_VEC e = d_exp(ROW_LOAD(x + c) - m);
        sums += e;
        row_store(e, powers + c);
    }
    if (c < n && c + LANES <= row.readable) {
        const ROW_VEC e = d_exp(ROW_LOAD(x + c) - m);
        sums += ROW_FIRST(e, (int)(n - c), 0);
        row_store_last(e, powers + c, (int)(n - c), row.writable - c);
        c = n;
    }
    for (; c < n; ++c) {
        const REAL e = d_exp(x[c] - m);
        sum += e;
        powers[c] = e;
    }
    return sum + row_sum_of(sums);
}

NOINLINE void softmax_part(const size_t id0, ROW_PARAMETERS) {
    struct Row row = first_row(id0, ROW_ARGUMENTS);
    for (; row.number < row.end; row = following_row(row, ROW_ARGUMENTS)) {
        row = read_row(row, ROW_ARGUMENTS);
        const REAL m = row_max(row.x, n, row.readable);
#if LOG
        const struct RowState state = {m, d_log(row_sum_exp(row.x, row.x, n, m, row.readable))};
        write_row(row, state, row.readable, ROW_ARGUMENTS);
#else
        const struct RowState state = {1 / store_exponentials(row, n, m)};
        // The last exponentials are read one by one if they were stored in parts: store forwarding to a vector load
        // would fail.
        write_row(row, state, row.writable, ROW_ARGUMENTS);
#endif
    }
}

__kernel void softmax(const long inner, ROW_PARAMETERS) { softmax_part(get_global_id(0), ROW_ARGUMENTS); }

NOINLINE void softmax_backward_part(const size_t id0, const long inner, const long outer, const long n, const long each,
                                    __global const REAL* restrict y_base, const long y_offset,
                                    __global const REAL* restrict g_base, const long g_offset,
                                    __global REAL* restrict dx_base, const long dx_offset) {
    const long end = min(outer, ((long)id0 + 1) * each);
    for (long row = id0 * each; row < end; ++row) {
        __global const REAL* y = y_base + y_offset + row * n;
        __global const REAL* g = g_base + g_offset + row * n;
        __global REAL* dx = dx_base + dx_offset + row * n;
        const long readable = (outer - row) * n, writable = (end - row) * n;
#if LOG
        const REAL sum = row_sum(g, g, n, 0, readable);
#else
        const REAL sum = row_dot(g, y, n, 0, readable);
#endif
        long c = 0;
        for (; c + LANES <= n; c += LANES) row_store(GRADIENT(ROW_LOAD(g + c), ROW_LOAD(y + c), sum), dx + c);
        if (c < n && c + LANES <= readable) {
            row_store_last(GRADIENT(ROW_LOAD(g + c), ROW_LOAD(y + c), sum), dx + c, (int)(n - c), writable - c);
            c = n;
        }
        for (; c < n; ++c) dx[c] = GRADIENT(g[c], y[c], sum);
    }
}

__kernel void softmax_backward(const long inner, const long outer, const long n, const long each,
                               __global const REAL* restrict y_base, const long y_offset,
                               __global const REAL* restrict g_base, const long g_offset,
                               __global REAL* restrict dx_base, const long dx_offset) {
    softmax_backward_part(get_global_id(0), inner, outer, n, each, y_base, y_offset, g_base, g_offset, dx_base,
                          dx_offset);
}

#elif defined(SIMD_COLUMNS)

#include "combine.clh"

NOINLINE void softmax_part(const size_t id0, const size_t id1, const long inner, const long outer, const long n,
                           const long each, __global const REAL* restrict x_base, const long x_offset,
                           __global REAL* restrict y_base, const long y_offset) {
    REAL m[COLUMNS], sum[COLUMNS];
    const long first = id0 * (long)COLUMNS;
    const int count = (int)min((long)COLUMNS, inner - first);
    const long last = min(outer, ((long)id1 + 1) * each);
    for (long o = id1 * each; o < last; ++o) {
        __global const REAL* x = x_base + x_offset + o * n * inner + first;
        __global REAL* y = y_base + y_offset + o * n * inner + first;
        for (int k = 0; k < count; ++k) {
            m[k] = x[k];
            sum[k] = 0;
        }
        for (long c = 1; c < n; ++c)
            for (int k = 0; k < count; ++k) m[k] = LARGER(m[k], x[c * inner + k]);
        for (long c = 0; c < n; ++c)
            for (int k = 0; k < count; ++k) {
                const REAL e = d_exp(x[c * inner + k] - m[k]);
                sum[k] += e;
#if !LOG
                y[c * inner + k] = e;
#endif
            }
#if LOG
        for (int k = 0; k < count; ++k) sum[k] = d_log(sum[k]);
        for (long c = 0; c < n; ++c)
            for (int k = 0; k < count; ++k) y[c * inner + k] = (x[c * inner + k] - m[k]) - sum[k];
#else
        for (int k = 0; k < count; ++k) sum[k] = 1 / sum[k];
        for (long c = 0; c < n; ++c)
            for (int k = 0; k < count; ++k) y[c * inner + k] *= sum[k];
#endif
    }
}

__kernel void softmax(const long inner, const long outer, const long n, const long each,
                      __global const REAL* restrict x_base, const long x_offset, __global REAL* restrict y_base,
                      const long y_offset) {
    softmax_part(get_global_id(0), get_global_id(1), inner, outer, n, each, x_base, x_offset, y_base, y_offset);
}

NOINLINE void softmax_backward_part(const size_t id0, const size_t id1, const long inner, const long outer,
                                    const long n, const long each, __global const REAL* restrict y_base,
                                    const long y_offset, __global const REAL* restrict g_base, const long g_offset,
                                    __global REAL* restrict dx_base, const long dx_offset) {
    REAL sum[COLUMNS];
    const long first = id0 * (long)COLUMNS;
    const int count = (int)min((long)COLUMNS, inner - first);
    const long last = min(outer, ((long)id1 + 1) * each);
    for (long o = id1 * each; o < last; ++o) {
        const long at = o * n * inner + first;
        __global const REAL* y = y_base + y_offset + at;
        __global const REAL* g = g_base + g_offset + at;
        __global REAL* dx = dx_base + dx_offset + at;
        for (int k = 0; k < count; ++k) sum[k] = 0;
        for (long c = 0; c < n; ++c)
            for (int k = 0; k < count; ++k) {
#if LOG
                sum[k] += g[c * inner + k];
#else
                sum[k] += g[c * inner + k] * y[c * inner + k];
#endif
            }
        for (long c = 0; c < n; ++c)
            for (int k = 0; k < count; ++k) {
#if LOG
                dx[c * inner + k] = g[c * inner + k] - d_exp(y[c * inner + k]) * sum[k];
#else
                dx[c * inner + k] = y[c * inner + k] * (g[c * inner + k] - sum[k]);
#endif
            }
    }
}

__kernel void softmax_backward(const long inner, const long outer, const long n, const long each,
                               __global const REAL* restrict y_base, const long y_offset,
                               __global const REAL* restrict g_base, const long g_offset,
                               __global REAL* restrict dx_base, const long dx_offset) {
    softmax_backward_part(get_global_id(0), get_global_id(1), inner, outer, n, each, y_base, y_offset, g_base, g_offset,
                          dx_base, dx_offset);
}

#else

#include "row_group.clh"
#include "row_program.clh"
ROW_GROUP_COMBINE(group_max, REAL, LARGER)
ROW_GROUP_COMBINE(group_sum, REAL, ADDED)

__kernel void softmax(const long inner, ROW_PARAMETERS) {
#if INNER
    const struct Row row = row_of(row_group(lanes, lane_stride), inner, ROW_ARGUMENTS);
#else
    const struct Row row = row_of(row_group(lanes, lane_stride), 1, ROW_ARGUMENTS);
#endif
    const int first = row.group.lane;
    REAL m = -INFINITY;
    for (long c = first; c < n; c += lanes) {
        const REAL x = first_read(row, c, ROW_ARGUMENTS);
        m = LARGER(m, x);
    }
    m = group_max(shared, row.group, m);
    REAL sum = 0;
    for (long c = first; c < n; c += lanes) sum += d_exp(read_again(row, c, ROW_ARGUMENTS) - m);
    sum = group_sum(shared, row.group, sum);
    if (row.group.row >= rows) return;
#if LOG
    const REAL log_sum = d_log(sum);
    for (long c = first; c < n; c += lanes)
        write_result(row, c, (read_again(row, c, ROW_ARGUMENTS) - m) - log_sum, ROW_ARGUMENTS);
#else
    const REAL scale = 1 / sum;
    for (long c = first; c < n; c += lanes)
        write_result(row, c, d_exp(read_again(row, c, ROW_ARGUMENTS) - m) * scale, ROW_ARGUMENTS);
#endif
}

__kernel void softmax_backward(const long inner, const long rows, const long n, const int lanes, const int lane_stride,
                               __local REAL* shared, __global const REAL* restrict y_base, const long y_offset,
                               __global const REAL* restrict g_base, const long g_offset,
                               __global REAL* restrict dx_base, const long dx_offset) {
    const struct RowGroup group = row_group(lanes, lane_stride);
    const long row = min(group.row, rows - 1);  // those past the last row take part in barriers and write nothing
    const long begin = row / inner * n * inner + row % inner;
    __global const REAL* y = y_base + y_offset + begin;
    __global const REAL* g = g_base + g_offset + begin;
    __global REAL* dx = dx_base + dx_offset + begin;
    REAL sum = 0;
#if LOG
    for (long c = group.lane; c < n; c += lanes) sum += g[c * inner];
#else
    for (long c = group.lane; c < n; c += lanes) sum += g[c * inner] * y[c * inner];
#endif
    sum = group_sum(shared, group, sum);
    if (group.row >= rows) return;
    for (long c = group.lane; c < n; c += lanes) dx[c * inner] = GRADIENT(g[c * inner], y[c * inner], sum);
}

#endif
