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
#include "recurrent.clh"
#include "unaligned.clh"

#define VEC UNALIGNED_VECTOR(REAL, VW)
UNALIGNED(recurrent, REAL, VW)
#define VLOAD(p) recurrent_load(p)
#define VSTORE(v, p) recurrent_store(v, p)
DEFINE_CELL(recurrent_cell, VEC)

// Loads and stores the first `count` elements of a vector.
static inline VEC load_first(__global const REAL* from, const int count) {
    if (count == VW) return VLOAD(from);
    REAL all[VW];
    for (int i = 0; i < VW; ++i) all[i] = i < count ? from[i] : 0;
    return VLOAD(all);
}
static inline void store_first(const VEC v, __global REAL* to, const int count) {
    if (count == VW) {
        VSTORE(v, to);
        return;
    }
    REAL all[VW];
    VSTORE(v, all);
    for (int i = 0; i < count; ++i) to[i] = all[i];
}

// tile[row][vector][lane] = sum over k < depth of rows[row][k] panel[k][vector][lane]
#define PRODUCT(VECTORS, depth)                                                                              \
    {                                                                                                        \
        VEC sum[ROWS][VECTORS];                                                                              \
        _Pragma("unroll") for (int r = 0; r < ROWS; ++r) _Pragma("unroll") for (int v = 0; v < VECTORS; ++v) \
            sum[r][v] = (VEC)(0);                                                                            \
        for (int k = 0; k < (depth); ++k, panel += (VECTORS)*VW) {                                           \
            VEC w[VECTORS];                                                                                  \
            _Pragma("unroll") for (int v = 0; v < VECTORS; ++v) w[v] = VLOAD(panel + v * VW);                \
            _Pragma("unroll") for (int r = 0; r < ROWS; ++r) {                                               \
                const VEC x = (VEC)(rows[r][k]);                                                             \
                _Pragma("unroll") for (int v = 0; v < VECTORS; ++v) sum[r][v] = fma(x, w[v], sum[r][v]);     \
            }                                                                                                \
        }                                                                                                    \
        _Pragma("unroll") for (int r = 0; r < ROWS; ++r) _Pragma("unroll") for (int v = 0; v < VECTORS; ++v) \
            VSTORE(sum[r][v], tile + (r * (VECTORS) + v) * VW);                                              \
    }

NOINLINE void recurrent_forward_tile(const struct Recurrent s, const int step, const int row, const int end,
                                     const int block, __global const REAL* panel, RECURRENT_FORWARD_OPERANDS) {
    const int H = s.units, t = s.reverse ? s.steps - 1 - step : step;
    __global const REAL* rows[ROWS];
    REAL tile[ROWS * GATES * PANEL_VECTORS * VW];
#pragma unroll
    for (int r = 0; r < ROWS; ++r) rows[r] = PREVIOUS_STATE(t, min(row + r, end - 1));
    PRODUCT(GATES * PANEL_VECTORS, H)
    for (int r = 0; r < ROWS && row + r < end; ++r) {
        const int n = row + r;
        const bool active = t < LENGTH_OF(n), last = IS_LAST(t, n);
        __global const REAL *a_row = a + ((long)t * s.rows + n) * GATES * H, *h = PREVIOUS_STATE(t, n);
        for (int v = 0; v < PANEL_VECTORS; ++v) {
            const int u = (block * PANEL_VECTORS + v) * VW, count = min(VW, H - u);
            if (count <= 0) break;
            __global REAL* to = y + ((long)t * s.rows + n) * H + u;
            const long at = (long)n * H + u;
            if (!active) {
                store_first((VEC)(0), to, count);
                if (t == 0) {  // sequences of length 0
                    store_first(load_first(h0 + at, count), h_end + at, count);
#if CELL == LSTM
                    store_first(load_first(c0 + at, count), c_end + at, count);
#endif
                }
                continue;
            }
            VEC in[GATES], sums[GATES], values[SAVED_PER_UNIT], c = (VEC)(0), bias_values = (VEC)(0);
#pragma unroll
            for (int gate = 0; gate < GATES; ++gate) {
                in[gate] = load_first(a_row + gate * H + u, count);
                sums[gate] = VLOAD(tile + ((r * GATES + gate) * PANEL_VECTORS + v) * VW);
            }
#if CELL == LSTM
            c = load_first(PREVIOUS_CELL(t, n) + u, count);
#elif CELL == GRU
            bias_values = load_first(bias + u, count);
#endif
            const VEC next = recurrent_cell_forward(in, sums, bias_values, load_first(h + u, count), &c, values);
            store_first(next, to, count);
            if (last) store_first(next, h_end + at, count);
#if CELL == LSTM
            if (last) store_first(c, c_end + at, count);
#endif
#ifdef SAVES_VALUES
            __global REAL* saved_step = SAVED_AT(t, n) + u;
#pragma unroll
            for (int i = 0; i < SAVED_PER_UNIT; ++i)
                if (s.save || (CELL == LSTM && i == 4)) store_first(values[i], saved_step + i * (long)H, count);
#endif
        }
    }
}

NOINLINE void recurrent_backward_tile(const struct Recurrent s, const int step, const int row, const int end,
                                      const int block, __global const REAL* panel, RECURRENT_BACKWARD_OPERANDS) {
    const int H = s.units, t = s.reverse ? step : s.steps - 1 - step;
    __global const REAL* sum_gradients = CELL == GRU ? grad_s : grad_a;
    REAL tile[ROWS * PANEL_VECTORS * VW];
    if (step == 0) {
        for (int i = 0; i < ROWS * PANEL_VECTORS * VW; ++i) tile[i] = 0;
    } else {
        __global const REAL* rows[ROWS];
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            const int n = min(row + r, end - 1);
            int from = NEXT_STEP(t);
            // After the last step: the first step of the sequence.
            if (step == s.steps) from = s.reverse ? max(0, LENGTH_OF(n) - 1) : 0;
            rows[r] = sum_gradients + ((long)from * s.rows + n) * GATES * H;
        }
        PRODUCT(PANEL_VECTORS, GATES * H)
    }
    for (int r = 0; r < ROWS && row + r < end; ++r) {
        const int n = row + r;
        for (int v = 0; v < PANEL_VECTORS; ++v) {
            const int u = (block * PANEL_VECTORS + v) * VW, count = min(VW, H - u);
            if (count <= 0) break;
            const long at = (long)n * H + u, gates = ((long)t * s.rows + n) * GATES * H + u;
            VEC grad_state = VLOAD(tile + (r * PANEL_VECTORS + v) * VW) + load_first(grad_h + at, count);
            if (step == s.steps) {
                store_first(grad_state, grad_h + at, count);
                continue;
            }
            if (t >= LENGTH_OF(n)) {
#pragma unroll
                for (int gate = 0; gate < GATES; ++gate) {
                    store_first((VEC)(0), grad_a + gates + gate * (long)H, count);
#if CELL == GRU
                    store_first((VEC)(0), grad_s + gates + gate * (long)H, count);
#endif
                }
                continue;
            }
            const long at_step = ((long)t * s.rows + n) * H + u;
            grad_state += load_first(g + at_step, count);
            VEC values[SAVED_PER_UNIT], grad_in[GATES], grad_sum[GATES], c = (VEC)(0), grad_cell = (VEC)(0),
                                                                         h = (VEC)(0), state = (VEC)(0);
#ifdef SAVES_VALUES
            __global const REAL* saved_step = SAVED_AT(t, n) + u;
#pragma unroll
            for (int i = 0; i < SAVED_PER_UNIT; ++i) values[i] = load_first(saved_step + i * (long)H, count);
#endif
#if CELL == LSTM
            c = load_first(PREVIOUS_CELL(t, n) + u, count);
            grad_cell = load_first(grad_c + at, count);
#elif CELL == GRU
            h = load_first(PREVIOUS_STATE(t, n) + u, count);
#else
            state = load_first(y + at_step, count);
#endif
            const VEC direct_gradient =
                recurrent_cell_backward(grad_state, state, h, c, values, grad_in, grad_sum, &grad_cell);
            store_first(direct_gradient, grad_h + at, count);
#if CELL == LSTM
            store_first(grad_cell, grad_c + at, count);
#endif
#pragma unroll
            for (int gate = 0; gate < GATES; ++gate) {
                store_first(grad_in[gate], grad_a + gates + gate * (long)H, count);
#if CELL == GRU
                store_first(grad_sum[gate], grad_s + gates + gate * (long)H, count);
#endif
            }
        }
    }
}

// Calls TILE for the tiles of a work-item; panels have DEPTH elements per unit. Panels are the outer loop, so that each
// is read from memory once.
#define RECURRENT_STEPS(TILE, DEPTH)                                                                            \
    {                                                                                                           \
        const int begin = get_global_id(0) * each, end = min(s.rows, begin + each);                             \
        const int blocks = (s.units + PANEL_VECTORS * VW - 1) / (PANEL_VECTORS * VW);                           \
        const int from = get_global_id(1) * panels_each, to = min(blocks, from + panels_each);                  \
        for (int step = first; step < first + count; ++step)                                                    \
            for (int block = from; block < to; ++block) {                                                       \
                __global const REAL* panel = panels + panels_offset + (long)block * PANEL_VECTORS * VW * DEPTH; \
                for (int row = begin; row < end; row += ROWS) TILE;                                             \
            }                                                                                                   \
    }

#define RECURRENT_WORK                                                                                 \
    const struct Recurrent s, const int first, const int count, const int each, const int panels_each, \
        __global const REAL *panels, const long panels_offset

__kernel void recurrent_forward(RECURRENT_WORK, RECURRENT_FORWARD_PARAMETERS){RECURRENT_FORWARD_BEGIN RECURRENT_STEPS(
    recurrent_forward_tile(s, step, row, end, block, panel, RECURRENT_FORWARD_ARGUMENTS), GATES* s.units)}

__kernel void recurrent_backward(RECURRENT_WORK, RECURRENT_BACKWARD_PARAMETERS) {
    RECURRENT_BACKWARD_BEGIN
    RECURRENT_STEPS(recurrent_backward_tile(s, step, row, end, block, panel, RECURRENT_BACKWARD_ARGUMENTS),
                    GATES * s.units)
}
