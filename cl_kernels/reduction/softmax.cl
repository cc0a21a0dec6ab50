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
//            With inner == 1 the forward kernel is written over row_program.clh and may be fused
//   LOG      1: log-softmax
//   INNER    SIMT: 1 if inner > 1
//   REAL, T  float or double
//   LANES    SIMD: elements per vector
//   COLUMNS  SIMD_COLUMNS: neighbouring k per work-item
#include "noinline.clh"
#include "math.clh"

#ifdef SIMD

#undef D_WIDTH
#define D_WIDTH LANES
#include "math.clh"
#include "row.clh"
#include "row_program.clh"
#define FIRST(v, w, m) (v)
#define PRODUCT(v, w, m) ((v) * (w))
ROW_SUM(row_sum, FIRST)
ROW_SUM(row_dot, PRODUCT)
#define EXPONENTIAL(v, w, m) d_exp((v) - (m))
ROW_SUM(row_sum_exp, EXPONENTIAL)

#define STORE(v, p) row_store(v, p)

// Code for each vector of a row, at c. The last `rest` elements are processed as a whole vector (WHOLE) if the elements
// past the row belong to this work-item's next rows, which are written later; as the first elements of a vector (REST)
// if LANES elements are readable; otherwise one by one (ONE).
#define OVER_ROW(VECTOR, WHOLE, REST, ONE)          \
    {                                               \
        long c = 0;                                 \
        for (; c + LANES <= n; c += LANES) {        \
            VECTOR;                                 \
        }                                           \
        const int rest = (int)(n - c);              \
        if (rest > 0 && c + LANES <= own) {         \
            WHOLE;                                  \
        } else if (rest > 0 && c + LANES <= room) { \
            REST;                                   \
        } else {                                    \
            for (; c < n; ++c) {                    \
                ONE;                                \
            }                                       \
        }                                           \
    }

NOINLINE void softmax_part(const size_t id0, ROW_PARAMETERS) {
    EACH_ROW {
        ROW_POINTERS
        const REAL m = row_max(x, n, room);
#if LOG
        const REAL log_sum = d_log(row_sum_exp(x, x, n, m, room));
#ifdef FUSED
        PUT_ROW(, (x[c] - m) - log_sum)
#else
        OVER_ROW(STORE((ROW_LOAD(x + c) - m) - log_sum, y + c), STORE((ROW_LOAD(x + c) - m) - log_sum, y + c),
                 row_store_rest((ROW_LOAD(x + c) - m) - log_sum, y + c, rest), y[c] = (x[c] - m) - log_sum)
#endif
#else
        __global REAL* powers = KERNEL_ROW;
        ROW_VEC sums = (ROW_VEC)(0);
        REAL sum = 0;
        OVER_ROW(const ROW_VEC e = d_exp(ROW_LOAD(x + c) - m); sums += e;
                 STORE(e, powers + c), const ROW_VEC e = d_exp(ROW_LOAD(x + c) - m); sums += ROW_FIRST(e, rest, 0);
                 STORE(e, powers + c), const ROW_VEC e = d_exp(ROW_LOAD(x + c) - m); sums += ROW_FIRST(e, rest, 0);
                 row_store_rest(e, powers + c, rest), const REAL e = d_exp(x[c] - m); sum += e; powers[c] = e)
        const REAL scale = 1 / (sum + row_sum_of(sums));
#ifdef FUSED
        PUT_ROW(, powers[c] * scale)
#else
        // The last elements are read one by one: they may have been stored in parts, and store forwarding to a vector
        // load would fail.
        long c = 0;
        for (; c < n && c + LANES <= own; c += LANES) STORE(ROW_LOAD(y + c) * scale, y + c);
        for (; c < n; ++c) y[c] *= scale;
#endif
#endif
        NEXT_ROW
    }
}

__kernel void softmax(const long inner, ROW_PARAMETERS) { softmax_part(get_global_id(0), ROW_ARGUMENTS); }

NOINLINE void softmax_backward_part(const size_t id0, const long inner, const long outer, const long n, const long each,
                                    __global const REAL* restrict y_base, const long y_offset,
                                    __global const REAL* restrict g_base, const long g_offset,
                                    __global REAL* restrict dx_base, const long dx_offset) {
    const long last = min(outer, ((long)id0 + 1) * each);
    for (long row = id0 * each; row < last; ++row) {
        __global const REAL* y = y_base + y_offset + row * n;
        __global const REAL* g = g_base + g_offset + row * n;
        __global REAL* dx = dx_base + dx_offset + row * n;
        const long room = (outer - row) * n, own = (last - row) * n;
#if LOG
        const REAL sum = row_sum(g, g, n, 0, room);
#define GRADIENT ROW_LOAD(g + c) - d_exp(ROW_LOAD(y + c)) * sum
        OVER_ROW(STORE(GRADIENT, dx + c), STORE(GRADIENT, dx + c), row_store_rest(GRADIENT, dx + c, rest),
                 dx[c] = g[c] - d_exp(y[c]) * sum)
#else
        const REAL sum = row_dot(g, y, n, 0, room);
#define GRADIENT ROW_LOAD(y + c) * (ROW_LOAD(g + c) - sum)
        OVER_ROW(STORE(GRADIENT, dx + c), STORE(GRADIENT, dx + c), row_store_rest(GRADIENT, dx + c, rest),
                 dx[c] = y[c] * (g[c] - sum))
#endif
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

// Work-items past the last row use its data, take part in all barriers, and write nothing.
#define START(g, rows, inner) ((min((g).row, (rows)-1) / (inner)) * n * (inner) + min((g).row, (rows)-1) % (inner))

#if INNER  // not fused, strided rows

__kernel void softmax(const long inner, const long outer, const long n, const int lanes, const int lane_stride,
                      __local REAL* shared, __global const REAL* restrict x_base, const long x_offset,
                      __global REAL* restrict y_base, const long y_offset) {
    const struct RowGroup group = row_group(lanes, lane_stride);
    const long rows = outer * inner, start = START(group, rows, inner);
    __global const REAL* x = x_base + x_offset + start;
    __global REAL* y = y_base + y_offset + start;
#undef ELEMENT
#undef FIRST_ELEMENT
#undef PUT_ELEMENT
#define ELEMENT(v, c) const REAL v = x[(c)*inner];
#define FIRST_ELEMENT(v, c) ELEMENT(v, c)
#define PUT_ELEMENT(v, c) y[(c)*inner] = v;
#else
__kernel void softmax(const long inner, ROW_PARAMETERS) {
    ROW_POINTERS
#endif
    REAL m = -INFINITY;
    for (long c = group.lane; c < n; c += lanes) {
        FIRST_ELEMENT(v, c)
        m = LARGER(m, v);
    }
    m = group_max(shared, group, m);
    REAL sum = 0;
    for (long c = group.lane; c < n; c += lanes) {
        ELEMENT(v, c)
        sum += d_exp(v - m);
    }
    sum = group_sum(shared, group, sum);
    if (group.row >= rows) return;
#if LOG
    const REAL log_sum = d_log(sum);
#define RESULT_OF(v) ((v)-m) - log_sum
#else
    const REAL scale = 1 / sum;
#define RESULT_OF(v) d_exp((v)-m) * scale
#endif
    for (long c = group.lane; c < n; c += lanes) {
        ELEMENT(v, c)
        PUT_ELEMENT(RESULT_OF(v), c)
    }
}

__kernel void softmax_backward(const long inner, const long outer, const long n, const int lanes, const int lane_stride,
                               __local REAL* shared, __global const REAL* restrict y_base, const long y_offset,
                               __global const REAL* restrict g_base, const long g_offset,
                               __global REAL* restrict dx_base, const long dx_offset) {
    const struct RowGroup group = row_group(lanes, lane_stride);
    const long rows = outer * inner, start = START(group, rows, inner);
    __global const REAL* y = y_base + y_offset + start;
    __global const REAL* g = g_base + g_offset + start;
    __global REAL* dx = dx_base + dx_offset + start;
    REAL sum = 0;
#if LOG
    for (long c = group.lane; c < n; c += lanes) sum += g[c * inner];
    sum = group_sum(shared, group, sum);
    if (group.row >= rows) return;
    for (long c = group.lane; c < n; c += lanes) dx[c * inner] = g[c * inner] - d_exp(y[c * inner]) * sum;
#else
    for (long c = group.lane; c < n; c += lanes) sum += g[c * inner] * y[c * inner];
    sum = group_sum(shared, group, sum);
    if (group.row >= rows) return;
    for (long c = group.lane; c < n; c += lanes) dx[c * inner] = y[c * inner] * (g[c * inner] - sum);
#endif
}

#endif
