// Steps of a recurrent layer, forward and backward: the product with the recurrent weights and, in its epilogue, the
// cell (recurrent.clh). simd style. A work-item computes the steps [first, first + count) for `each` rows and
// `panels_each` panels. Several steps in one launch require all panels in one work-item, since a step reads all units
// of the previous step; rows are independent.
//
//   forward    sums of gates = h W^T, W in panels of PANEL_VECTORS vectors of units for each gate
//   backward   gradient of h += (gradient of the sums of the next step) W, W in panels of PANEL_VECTORS vectors of
//              units; steps from the last to the first, and one more, which computes the gradient of the initial state
//
// global (groups of rows, groups of panels).
//
//   REAL     float or double
//   VW       elements per vector
//   ROWS     rows of a register tile
//   PANEL_VECTORS  vectors of units per panel
#define D_WIDTH VW
#include "noinline.clh"
#include "unaligned.clh"

#define VEC UNALIGNED_VECTOR(REAL, VW)
UNALIGNED(recurrent, REAL, VW)
#define VLOAD(p) recurrent_load(p)
#define VSTORE(v, p) recurrent_store(v, p)

static inline VEC load_units(__global const REAL* from, const int count) {
    if (count == VW) return VLOAD(from);
    REAL all[VW];
    for (int i = 0; i < VW; ++i) all[i] = i < count ? from[i] : 0;
    return VLOAD(all);
}
static inline void store_units(const VEC v, __global REAL* to, const int count) {
    if (count == VW) {
        VSTORE(v, to);
        return;
    }
    REAL all[VW];
    VSTORE(v, all);
    for (int i = 0; i < count; ++i) to[i] = all[i];
}
#include "recurrent.clh"

// Defines NAME(rows, panel, depth, tile): tile[row][vector][lane] = sum over k < depth of rows[row][k]
// panel[k][vector][lane], for a panel of VECTORS vectors.
#define DEFINE_PRODUCT(NAME, VECTORS)                                                                               \
    static inline void NAME(__global const REAL* const rows[ROWS], __global const REAL* panel, const int depth,     \
                            REAL* tile) {                                                                           \
        VEC sum[ROWS][VECTORS];                                                                                     \
        _Pragma("unroll") for (int r = 0; r < ROWS; ++r) {                                                          \
            _Pragma("unroll") for (int v = 0; v < VECTORS; ++v) sum[r][v] = (VEC)(0);                               \
        }                                                                                                           \
        for (int k = 0; k < depth; ++k, panel += (VECTORS)*VW) {                                                    \
            VEC w[VECTORS];                                                                                         \
            _Pragma("unroll") for (int v = 0; v < VECTORS; ++v) w[v] = VLOAD(panel + v * VW);                       \
            _Pragma("unroll") for (int r = 0; r < ROWS; ++r) {                                                      \
                const VEC x = (VEC)(rows[r][k]);                                                                    \
                _Pragma("unroll") for (int v = 0; v < VECTORS; ++v) sum[r][v] = fma(x, w[v], sum[r][v]);            \
            }                                                                                                       \
        }                                                                                                           \
        _Pragma("unroll") for (int r = 0; r < ROWS; ++r) {                                                          \
            _Pragma("unroll") for (int v = 0; v < VECTORS; ++v) VSTORE(sum[r][v], tile + (r * (VECTORS) + v) * VW); \
        }                                                                                                           \
    }
DEFINE_PRODUCT(multiply_gates, GATES* PANEL_VECTORS)
DEFINE_PRODUCT(multiply_units, PANEL_VECTORS)

NOINLINE void recurrent_forward_tile(const struct Recurrent s, const int step, const int row, const int end,
                                     const int block, __global const REAL* panel, RECURRENT_FORWARD_OPERANDS) {
    const int t = s.reverse ? s.steps - 1 - step : step;
    __global const REAL* rows[ROWS];
    REAL tile[ROWS * GATES * PANEL_VECTORS * VW];
#pragma unroll
    for (int r = 0; r < ROWS; ++r) rows[r] = previous_state(s, t, min(row + r, end - 1), lengths, h0, y);
    multiply_gates(rows, panel, s.units, tile);
    for (int r = 0; r < ROWS && row + r < end; ++r) {
        const int n = row + r;
        const bool active = t < length_of(s, lengths, n);
#pragma unroll 1
        for (int v = 0; v < PANEL_VECTORS; ++v) {
            const int u = (block * PANEL_VECTORS + v) * VW;
            if (u >= s.units) break;
            if (active) {
                VEC sums[GATES];
#pragma unroll
                for (int gate = 0; gate < GATES; ++gate)
                    sums[gate] = VLOAD(tile + ((r * GATES + gate) * PANEL_VECTORS + v) * VW);
                forward_step(s, t, n, u, sums, a, bias, lengths, h0, c0, y, h_end, c_end, saved);
            } else {
                skip_forward_step(s, t, n, u, a, bias, lengths, h0, c0, y, h_end, c_end, saved);
            }
        }
    }
}

NOINLINE void recurrent_backward_tile(const struct Recurrent s, const int step, const int row, const int end,
                                      const int block, __global const REAL* panel, RECURRENT_BACKWARD_OPERANDS) {
    const int H = s.units, t = s.reverse ? step : s.steps - 1 - step;
    REAL tile[ROWS * PANEL_VECTORS * VW];
    if (step == 0) {
        for (int i = 0; i < ROWS * PANEL_VECTORS * VW; ++i) tile[i] = 0;
    } else {
        __global const REAL* rows[ROWS];
#pragma unroll
        for (int r = 0; r < ROWS; ++r)
            rows[r] = next_sum_gradients(s, step, t, min(row + r, end - 1), lengths, a_gradient, s_gradient);
        multiply_units(rows, panel, GATES * H, tile);
    }
    for (int r = 0; r < ROWS && row + r < end; ++r) {
        const int n = row + r;
#pragma unroll 1
        for (int v = 0; v < PANEL_VECTORS; ++v) {
            const int u = (block * PANEL_VECTORS + v) * VW, count = min(VW, H - u);
            if (count <= 0) break;
            const long at = (long)n * H + u;
            const VEC next_gradient = VLOAD(tile + (r * PANEL_VECTORS + v) * VW) + load_units(h_gradient + at, count);
            if (step == s.steps) store_units(next_gradient, h_gradient + at, count);
            else if (t < length_of(s, lengths, n))
                backward_step(s, t, n, u, next_gradient, g, lengths, h0, c0, y, saved, a_gradient, s_gradient,
                              h_gradient, c_gradient);
            else
                skip_backward_step(s, t, n, u, g, lengths, h0, c0, y, saved, a_gradient, s_gradient, h_gradient,
                                   c_gradient);
        }
    }
}

// ---- kernels: the panels are the outer loop of a step, so that each is read from memory once

#define RECURRENT_WORK                                                                                 \
    const struct Recurrent s, const int first, const int count, const int each, const int panels_each, \
        __global const REAL *panels, const long panels_offset

// Number of panels, and first element of panel `block`.
static inline int panel_count(const struct Recurrent s) {
    return (s.units + PANEL_VECTORS * VW - 1) / (PANEL_VECTORS * VW);
}
static inline long panel_at(const struct Recurrent s, const int block) {
    return (long)block * PANEL_VECTORS * VW * GATES * s.units;
}

__kernel void recurrent_forward(RECURRENT_WORK, RECURRENT_FORWARD_PARAMETERS) {
    const int begin = get_global_id(0) * each, end = min(s.rows, begin + each);
    const int from = get_global_id(1) * panels_each, to = min(panel_count(s), from + panels_each);
    for (int step = first; step < first + count; ++step)
        for (int block = from; block < to; ++block)
            for (int row = begin; row < end; row += ROWS)
                recurrent_forward_tile(s, step, row, end, block, panels + panels_offset + panel_at(s, block),
                                       RECURRENT_FORWARD_ARGUMENTS);
}

__kernel void recurrent_backward(RECURRENT_WORK, RECURRENT_BACKWARD_PARAMETERS) {
    const int begin = get_global_id(0) * each, end = min(s.rows, begin + each);
    const int from = get_global_id(1) * panels_each, to = min(panel_count(s), from + panels_each);
    for (int step = first; step < first + count; ++step)
        for (int block = from; block < to; ++block)
            for (int row = begin; row < end; row += ROWS)
                recurrent_backward_tile(s, step, row, end, block, panels + panels_offset + panel_at(s, block),
                                        RECURRENT_BACKWARD_ARGUMENTS);
}
