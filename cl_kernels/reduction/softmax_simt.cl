// Softmax and its gradient. simt style: several work-items per row. global (row groups * local size). The formulas are
// in softmax.clh. For inner == 1 the forward kernel is a row operator: its prologue and epilogue may be fused
// (row_program.clh).
//
//   INNER  1 if inner > 1
#include "softmax.clh"
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
                               __global REAL* restrict x_gradient_base, const long x_gradient_offset) {
    const struct RowGroup group = row_group(lanes, lane_stride);
    const long row = min(group.row, rows - 1);  // those past the last row take part in barriers and write nothing
    const long begin = row / inner * n * inner + row % inner;
    __global const REAL* y = y_base + y_offset + begin;
    __global const REAL* g = g_base + g_offset + begin;
    __global REAL* x_gradient = x_gradient_base + x_gradient_offset + begin;
    REAL total = 0;
    for (long c = group.lane; c < n; c += lanes) total += SUMMAND(g[c * inner], y[c * inner]);
    total = group_sum(shared, group, total);
    if (group.row >= rows) return;
    for (long c = group.lane; c < n; c += lanes) x_gradient[c * inner] = GRADIENT(g[c * inner], y[c * inner], total);
}
