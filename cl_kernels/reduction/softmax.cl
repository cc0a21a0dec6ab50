// Softmax and its gradient along rows of contiguous elements (inner == 1). simd style: a work-item takes `each` rows.
// global (row groups). The formulas are in softmax.clh. The forward kernel is a row operator: its prologue and epilogue
// may be fused (row_program.clh).
//
//   LANES  elements per vector
#include "softmax.clh"
// Adds the functions of vectors to those of scalars.
#undef D_WIDTH
#define D_WIDTH LANES
#include "math.clh"
#include "row.clh"
#define EXP_TERM(p, q, m) d_exp((p) - (m))
#define GRADIENT_TERM(p, q, m) SUMMAND(p, q)
ROW_SUM(row_sum_exp, EXP_TERM)
ROW_SUM(row_total, GRADIENT_TERM)

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
#define SIMD  // the form of row_program.clh
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
                                    __global REAL* restrict x_gradient_base, const long x_gradient_offset) {
    const long end = min(outer, ((long)id0 + 1) * each);
    for (long row = id0 * each; row < end; ++row) {
        __global const REAL* y = y_base + y_offset + row * n;
        __global const REAL* g = g_base + g_offset + row * n;
        __global REAL* x_gradient = x_gradient_base + x_gradient_offset + row * n;
        const long readable = (outer - row) * n, writable = (end - row) * n;
        const REAL total = row_total(g, y, n, 0, readable);
        long c = 0;
        for (; c + LANES <= n; c += LANES) row_store(GRADIENT(ROW_LOAD(g + c), ROW_LOAD(y + c), total), x_gradient + c);
        if (c < n && c + LANES <= readable) {
            row_store_last(GRADIENT(ROW_LOAD(g + c), ROW_LOAD(y + c), total), x_gradient + c, (int)(n - c),
                           writable - c);
            c = n;
        }
        for (; c < n; ++c) x_gradient[c] = GRADIENT(g[c], y[c], total);
    }
}

__kernel void softmax_backward(const long inner, const long outer, const long n, const long each,
                               __global const REAL* restrict y_base, const long y_offset,
                               __global const REAL* restrict g_base, const long g_offset,
                               __global REAL* restrict x_gradient_base, const long x_gradient_offset) {
    softmax_backward_part(get_global_id(0), inner, outer, n, each, y_base, y_offset, g_base, g_offset, x_gradient_base,
                          x_gradient_offset);
}
