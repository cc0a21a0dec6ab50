// Softmax cross-entropy with label smoothing, forward and backward:
//
//   loss[i] = (1 - e) (log s - (x[i, t] - m)) + e (log s - mean over c of (x[i, c] - m))
//     with t = label[i], m = max over c of x[i, c], s = sum over c of exp(x[i, c] - m), e the label smoothing
//   x_gradient[i, c] = g[i] (exp(x[i, c] - m - log s) - e / C - (1 - e) [c == t])
//
// x[i, c] with i in [0, N), c in [0, C), dense. An ignored label gives 0, a label outside [0, C) NaN. The array
// `statistics` (N, 2) saves m and log s for the backward kernel.
//
//   SIMD     simd style: a work-item takes `each` rows. global (row groups)
//   SIMT     simt style: several work-items per row. global (row groups * local size)
//            cross_entropy_total is one group (one work-item in SIMD)
//   REAL, T  float or double
//   LABEL    int or long
//   LANES    SIMD: elements per vector
#include "noinline.clh"
#include "math.clh"

#ifdef SIMD
#undef D_WIDTH
#define D_WIDTH LANES
#include "math.clh"
#include "row.clh"

#define VALUE_TERM(p, q, m) (p)
#define EXP_TERM(p, q, m) d_exp((p) - (m))
#define DIFFERENCE_TERM(p, q, m) ((p) - (m))
ROW_SUM(row_sum, VALUE_TERM)
ROW_SUM(row_sum_exp, EXP_TERM)
ROW_SUM(row_sum_differences, DIFFERENCE_TERM)
HORIZONTAL_ROWS(rows_max, T, LANES, LARGER)
HORIZONTAL_ROWS(rows_sum, T, LANES, ADDED)
#define MAX_CLASSES (4 * LANES)  // of rows that are processed LANES at a time
#else
#include "row_group.clh"

ROW_GROUP_COMBINE(group_max, REAL, LARGER)
ROW_GROUP_COMBINE(group_sum, REAL, ADDED)
#endif

// The label is compared in its own type (driver workaround): some drivers compare an int extended to long with a
// constant incorrectly (extended_constant_compare).
static inline bool is_class(const LABEL label, const long C) { return label >= 0 && label < C; }

static inline REAL loss_of(const REAL log_sum, const REAL label_score, const REAL mean, const REAL smoothing) {
    const REAL loss = log_sum - label_score;
    // Avoids 0 * infinity: without smoothing, a class of probability 0 must not contribute.
    return smoothing > 0 ? (1 - smoothing) * loss + smoothing * (log_sum - mean) : loss;
}

#define FORWARD_BUFFERS                                                                                    \
    __global const REAL *restrict x_base, const long x_offset, __global const LABEL *restrict labels_base, \
        const long labels_offset, __global REAL *restrict losses, const long losses_offset,                \
        __global REAL *restrict statistics_base, const long statistics_offset
#define FORWARD_ARGUMENTS \
    x_base, x_offset, labels_base, labels_offset, losses, losses_offset, statistics_base, statistics_offset
#define BACKWARD_BUFFERS                                                                                       \
    __global const REAL *restrict x_base, const long x_offset, __global const LABEL *restrict labels_base,     \
        const long labels_offset, __global const REAL *restrict statistics_base, const long statistics_offset, \
        __global const REAL *restrict g, const long g_offset, __global const REAL *restrict divisor,           \
        const long divisor_offset, __global REAL *restrict x_gradient_base, const long x_gradient_offset

#define BACKWARD_ARGUMENTS                                                                                  \
    x_base, x_offset, labels_base, labels_offset, statistics_base, statistics_offset, g, g_offset, divisor, \
        divisor_offset, x_gradient_base, x_gradient_offset

// Gradient of the loss of a row. per_row: each row has its own; otherwise there is one gradient and a divisor.
static inline REAL gradient_of_row(const long row, const int per_row, __global const REAL* g,
                                   __global const REAL* divisor) {
    return per_row ? g[row] : g[0] / divisor[0];
}

#ifdef SIMD

// Statistics of LANES rows with few classes: the horizontal reductions dominate, and for LANES rows at once they take
// hardly longer than for one. m and log s of row i are written to statistics[2 i] and [2 i + 1], the means of x - m to
// `means`.
NOINLINE void statistics_of_rows(__global const REAL* x, const int C, const REAL smoothing, __global REAL* statistics,
                                 REAL* means) {
    REAL rows[LANES * LANES], max_values[LANES], log_sums[LANES];
    const ROW_VEC minus_infinity = (ROW_VEC)(-INFINITY), zero = (ROW_VEC)(0);
    for (int r = 0; r < LANES; ++r) {
        ROW_VEC v = ROW_FIRST(ROW_LOAD(x + r * C), C, minus_infinity);
        for (int c = LANES; c < C; c += LANES) {
            const ROW_VEC next = ROW_FIRST(ROW_LOAD(x + r * C + c), C - c, minus_infinity);
            v = LARGER(v, next);
        }
        row_store(v, rows + r * LANES);
    }
    row_store(rows_max(rows), max_values);
    for (int r = 0; r < LANES; ++r) {
        ROW_VEC v = zero;
        for (int c = 0; c < C; c += LANES) {
            const ROW_VEC e = d_exp(ROW_LOAD(x + r * C + c) - max_values[r]);
            v += ROW_FIRST(e, C - c, zero);
        }
        row_store(v, rows + r * LANES);
    }
    row_store(d_log(rows_sum(rows)), log_sums);
    for (int r = 0; r < LANES; ++r) {
        statistics[2 * r] = max_values[r];
        statistics[2 * r + 1] = log_sums[r];
    }
    if (smoothing == 0) return;
    for (int r = 0; r < LANES; ++r) {
        ROW_VEC v = zero;
        for (int c = 0; c < C; c += LANES) v += ROW_FIRST(ROW_LOAD(x + r * C + c) - max_values[r], C - c, zero);
        row_store(v, rows + r * LANES);
    }
    row_store(rows_sum(rows) / (REAL)C, means);
}

NOINLINE void cross_entropy_part(const size_t id0, const long N, const long C, const long ignore, const REAL smoothing,
                                 const long each, FORWARD_BUFFERS) {
    const long last = min(N, ((long)id0 + 1) * each);
    long row = id0 * each;
    // LANES rows at a time, as long as whole vectors are readable.
    for (; C <= MAX_CLASSES && row + LANES <= last && (row + LANES - 1) * C + (C + LANES - 1) / LANES * LANES <= N * C;
         row += LANES) {
        __global const REAL* x = x_base + x_offset + row * C;
        __global const LABEL* labels = labels_base + labels_offset + row;
        __global REAL* statistics = statistics_base + statistics_offset + 2 * row;
        REAL means[LANES];
        statistics_of_rows(x, (int)C, smoothing, statistics, means);
        for (int r = 0; r < LANES; ++r) {
            const LABEL label = labels[r];
            const bool is_counted = label != ignore && is_class(label, C);
            const REAL loss = loss_of(statistics[2 * r + 1], x[r * C + (is_counted ? label : 0)] - statistics[2 * r],
                                      smoothing > 0 ? means[r] : 0, smoothing);
            losses[losses_offset + row + r] = is_counted ? loss : label == ignore ? 0 : NAN;
        }
    }
    for (; row < last; ++row) {
        __global const REAL* x = x_base + x_offset + row * C;
        __global REAL* statistics = statistics_base + statistics_offset + 2 * row;
        const LABEL label = labels_base[labels_offset + row];
        const long room = (N - row) * C;
        REAL loss = label == ignore ? 0 : NAN, m = 0, log_sum = 0;
        if (label != ignore && is_class(label, C)) {
            m = row_max(x, C, room);
            log_sum = d_log(row_sum_exp(x, x, C, m, room));
            const REAL mean = smoothing > 0 ? row_sum_differences(x, x, C, m, room) / (REAL)C : 0;
            loss = loss_of(log_sum, x[label] - m, mean, smoothing);
        }
        losses[losses_offset + row] = loss;
        statistics[0] = m;
        statistics[1] = log_sum;
    }
}

__kernel void cross_entropy(const long N, const long C, const long ignore, const REAL smoothing, const long each,
                            FORWARD_BUFFERS) {
    cross_entropy_part(get_global_id(0), N, C, ignore, smoothing, each, FORWARD_ARGUMENTS);
}

NOINLINE void cross_entropy_backward_part(const size_t id0, const long N, const long C, const long ignore,
                                          const REAL smoothing, const int per_row, const long each, BACKWARD_BUFFERS) {
    const long last = min(N, ((long)id0 + 1) * each);
    const REAL common = per_row ? 0 : g[g_offset] / divisor[divisor_offset], base = smoothing / (REAL)C;
    for (long row = id0 * each; row < last; ++row) {
        __global const REAL* x = x_base + x_offset + row * C;
        __global REAL* x_gradient = x_gradient_base + x_gradient_offset + row * C;
        const REAL m = statistics_base[statistics_offset + 2 * row],
                   log_sum = statistics_base[statistics_offset + 2 * row + 1];
        const LABEL label = labels_base[labels_offset + row];
        if (label == ignore || !is_class(label, C)) {
            const REAL value = label == ignore ? 0 : NAN;
            for (long c = 0; c < C; ++c) x_gradient[c] = value;
            continue;
        }
        const REAL scale = per_row ? g[g_offset + row] : common;
        long c = 0;
        // Elements written past the row belong to this work-item's next rows.
        for (; c < C && c + LANES <= (last - row) * C; c += LANES)
            row_store(scale * (d_exp((ROW_LOAD(x + c) - m) - log_sum) - base), x_gradient + c);
        if (c < C && c + LANES <= (N - row) * C) {
            row_store_rest(scale * (d_exp((ROW_LOAD(x + c) - m) - log_sum) - base), x_gradient + c, (int)(C - c));
            c = C;
        }
        for (; c < C; ++c) x_gradient[c] = scale * (d_exp((x[c] - m) - log_sum) - base);
        x_gradient[label] -= scale * (1 - smoothing);
    }
}

__kernel void cross_entropy_backward(const long N, const long C, const long ignore, const REAL smoothing,
                                     const int per_row, const long each, BACKWARD_BUFFERS) {
    cross_entropy_backward_part(get_global_id(0), N, C, ignore, smoothing, per_row, each, BACKWARD_ARGUMENTS);
}

#else

__kernel void cross_entropy(const long N, const long C, const long ignore, const REAL smoothing, const int lanes,
                            const int lane_stride, __local REAL* shared, FORWARD_BUFFERS) {
    const struct RowGroup group = row_group(lanes, lane_stride);
    const long row = min(group.row, N - 1);
    __global const REAL* x = x_base + x_offset + row * C;
    const LABEL label = labels_base[labels_offset + row];
    REAL m = -INFINITY, sum = 0, mean = 0;
    for (long c = group.lane; c < C; c += lanes) m = LARGER(m, x[c]);
    m = group_max(shared, group, m);
    for (long c = group.lane; c < C; c += lanes) sum += d_exp(x[c] - m);
    sum = group_sum(shared, group, sum);
    if (smoothing > 0) {
        for (long c = group.lane; c < C; c += lanes) mean += x[c] - m;
        mean = group_sum(shared, group, mean) / (REAL)C;
    }
    if (group.lane != 0 || group.row >= N) return;
    const REAL log_sum = d_log(sum);
    REAL loss = label == ignore ? 0 : NAN;
    if (label != ignore && is_class(label, C)) loss = loss_of(log_sum, x[label] - m, mean, smoothing);
    losses[losses_offset + row] = loss;
    statistics_base[statistics_offset + 2 * row] = m;
    statistics_base[statistics_offset + 2 * row + 1] = log_sum;
}

__kernel void cross_entropy_backward(const long N, const long C, const long ignore, const REAL smoothing,
                                     const int per_row, const int lanes, const int lane_stride, __local REAL* shared,
                                     BACKWARD_BUFFERS) {
    const struct RowGroup group = row_group(lanes, lane_stride);
    const long row = group.row;
    if (row >= N) return;
    __global const REAL* x = x_base + x_offset + row * C;
    __global REAL* x_gradient = x_gradient_base + x_gradient_offset + row * C;
    const REAL m = statistics_base[statistics_offset + 2 * row],
               log_sum = statistics_base[statistics_offset + 2 * row + 1];
    const LABEL label = labels_base[labels_offset + row];
    const bool is_counted = label != ignore && is_class(label, C);
    const REAL scale = is_counted ? gradient_of_row(row, per_row, g + g_offset, divisor + divisor_offset) : 0,
               base = smoothing / (REAL)C;
    for (long c = group.lane; c < C; c += lanes) {
        const REAL target = base + (c == label ? 1 - smoothing : 0);
        const REAL value = scale * (d_exp((x[c] - m) - log_sum) - target);
        x_gradient[c] = is_counted ? value : label == ignore ? 0 : NAN;
    }
}

#endif

// total = sum of losses / divisor; divisor is the number of rows that are not ignored for a mean, otherwise 1.
__kernel void cross_entropy_total(const long N, const long ignore, const int mean, __local REAL* shared,
                                  __global const REAL* restrict losses_base, const long losses_offset,
                                  __global const LABEL* restrict labels_base, const long labels_offset,
                                  __global REAL* restrict total, const long total_offset,
                                  __global REAL* restrict divisor, const long divisor_offset) {
    __global const REAL* losses = losses_base + losses_offset;
    __global const LABEL* labels = labels_base + labels_offset;
    long counted = 0;
#ifdef SIMD
    for (long row = 0; row < N; ++row) counted += labels[row] != ignore;
    const REAL sum = row_sum(losses, losses, N, 0, N), rows = counted;
#else
    const int item = get_local_id(0), items = get_local_size(0);
    for (long row = item; row < N; row += items) counted += labels[row] != ignore;
    const struct RowGroup group = row_group(items, 1);
    REAL sum = 0;
    for (long row = item; row < N; row += items) sum += losses[row];
    sum = group_sum(shared, group, sum);
    const REAL rows = group_sum(shared, group, (REAL)counted);
    if (item > 0) return;
#endif
    const REAL divided_by = mean ? rows : 1;
    total[total_offset] = sum / divided_by;
    divisor[divisor_offset] = divided_by;
}
