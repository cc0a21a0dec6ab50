// Steps of a recurrent layer, forward and backward: the product with the recurrent weights and, in its epilogue, the
// cell (recurrent.clh). simd style. A work-item computes the steps [first, first + count) for `each` rows and
// `panels_each` panels. Several steps in one launch require all panels in one work-item, since a step reads all units
// of the previous step; rows are independent.
//
//   forward    sums of gates = h W^T, W in panels of STRETCH vectors of units for each gate
//   backward   gradient of h += (gradient of the sums of the next step) W, W in panels of STRETCH vectors of units;
//              steps from the last to the first, and one more, which computes the gradient of the initial state
//
// global (groups of rows, groups of panels).
//
//   REAL     float or double
//   VW       elements per vector
//   ROWS     rows of a register tile
//   STRETCH  vectors of units per panel
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
    REAL tile[ROWS * GATES * STRETCH * VW];
#pragma unroll
    for (int r = 0; r < ROWS; ++r) rows[r] = STATE_BEFORE(t, min(row + r, end - 1));
    PRODUCT(GATES * STRETCH, H)
    for (int r = 0; r < ROWS && row + r < end; ++r) {
        const int n = row + r;
        const bool active = t < LENGTH_OF(n), last = IS_LAST(t, n);
        __global const REAL *a_row = a + ((long)t * s.rows + n) * GATES * H, *h = STATE_BEFORE(t, n);
        for (int v = 0; v < STRETCH; ++v) {
            const int u = (block * STRETCH + v) * VW, count = min(VW, H - u);
            if (count <= 0) break;
            __global REAL* to = y + ((long)t * s.rows + n) * H + u;
            const long at = (long)n * H + u;
            if (!active) {
                store_first((VEC)(0), to, count);
                if (t == 0) {  // sequences of length 0
                    store_first(load_first(h0 + at, count), h_end + at, count);
#if CELL == 2
                    store_first(load_first(c0 + at, count), c_end + at, count);
#endif
                }
                continue;
            }
            VEC in[GATES], sums[GATES], keep[KEPT], c = (VEC)(0), more = (VEC)(0);
#pragma unroll
            for (int gate = 0; gate < GATES; ++gate) {
                in[gate] = load_first(a_row + gate * H + u, count);
                sums[gate] = VLOAD(tile + ((r * GATES + gate) * STRETCH + v) * VW);
            }
#if CELL == 2
            c = load_first(CELL_BEFORE(t, n) + u, count);
#elif CELL == 3
            more = load_first(bias + u, count);
#endif
            const VEC next = recurrent_cell_forward(in, sums, more, load_first(h + u, count), &c, keep);
            store_first(next, to, count);
            if (last) store_first(next, h_end + at, count);
#if CELL == 2
            if (last) store_first(c, c_end + at, count);
#endif
#if CELL > 1
            __global REAL* of_step = KEPT_AT(t, n) + u;
#pragma unroll
            for (int i = 0; i < KEPT; ++i)
                if (s.keep || (CELL == 2 && i == 4)) store_first(keep[i], of_step + i * (long)H, count);
#endif
        }
    }
}

NOINLINE void recurrent_backward_tile(const struct Recurrent s, const int step, const int row, const int end,
                                      const int block, __global const REAL* panel, RECURRENT_BACKWARD_OPERANDS) {
    const int H = s.units, t = s.reverse ? step : s.steps - 1 - step;
    __global const REAL* of_sums = CELL == 3 ? grad_s : grad_a;
    REAL tile[ROWS * STRETCH * VW];
    if (step == 0) {
        for (int i = 0; i < ROWS * STRETCH * VW; ++i) tile[i] = 0;
    } else {
        __global const REAL* rows[ROWS];
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            const int n = min(row + r, end - 1);
            int from = BEHIND(t);
            // After the last step: the first step of the sequence.
            if (step == s.steps) from = s.reverse ? max(0, LENGTH_OF(n) - 1) : 0;
            rows[r] = of_sums + ((long)from * s.rows + n) * GATES * H;
        }
        PRODUCT(STRETCH, GATES * H)
    }
    for (int r = 0; r < ROWS && row + r < end; ++r) {
        const int n = row + r;
        for (int v = 0; v < STRETCH; ++v) {
            const int u = (block * STRETCH + v) * VW, count = min(VW, H - u);
            if (count <= 0) break;
            const long at = (long)n * H + u, gates = ((long)t * s.rows + n) * GATES * H + u;
            VEC of_state = VLOAD(tile + (r * STRETCH + v) * VW) + load_first(grad_h + at, count);
            if (step == s.steps) {
                store_first(of_state, grad_h + at, count);
                continue;
            }
            if (t >= LENGTH_OF(n)) {
#pragma unroll
                for (int gate = 0; gate < GATES; ++gate) {
                    store_first((VEC)(0), grad_a + gates + gate * (long)H, count);
#if CELL == 3
                    store_first((VEC)(0), grad_s + gates + gate * (long)H, count);
#endif
                }
                continue;
            }
            const long here = ((long)t * s.rows + n) * H + u;
            of_state += load_first(g + here, count);
            VEC keep[KEPT], of_in[GATES], of_sum[GATES], c = (VEC)(0), of_cell = (VEC)(0), h = (VEC)(0),
                                                         state = (VEC)(0);
#if CELL > 1
            __global const REAL* of_step = KEPT_AT(t, n) + u;
#pragma unroll
            for (int i = 0; i < KEPT; ++i) keep[i] = load_first(of_step + i * (long)H, count);
#endif
#if CELL == 2
            c = load_first(CELL_BEFORE(t, n) + u, count);
            of_cell = load_first(grad_c + at, count);
#elif CELL == 3
            h = load_first(STATE_BEFORE(t, n) + u, count);
#else
            state = load_first(y + here, count);
#endif
            const VEC rest = recurrent_cell_backward(of_state, state, h, c, keep, of_in, of_sum, &of_cell);
            store_first(rest, grad_h + at, count);
#if CELL == 2
            store_first(of_cell, grad_c + at, count);
#endif
#pragma unroll
            for (int gate = 0; gate < GATES; ++gate) {
                store_first(of_in[gate], grad_a + gates + gate * (long)H, count);
#if CELL == 3
                store_first(of_sum[gate], grad_s + gates + gate * (long)H, count);
#endif
            }
        }
    }
}

// Calls TILE for the tiles of a work-item; panels have DEPTH elements per unit. Panels are the outer loop, so that each
// is read from memory once.
#define RECURRENT_STEPS(TILE, DEPTH)                                                                      \
    {                                                                                                     \
        const int begin = get_global_id(0) * each, end = min(s.rows, begin + each);                       \
        const int blocks = (s.units + STRETCH * VW - 1) / (STRETCH * VW);                                 \
        const int from = get_global_id(1) * panels_each, to = min(blocks, from + panels_each);            \
        for (int step = first; step < first + count; ++step)                                              \
            for (int block = from; block < to; ++block) {                                                 \
                __global const REAL* panel = panels + panels_offset + (long)block * STRETCH * VW * DEPTH; \
                for (int row = begin; row < end; row += ROWS) TILE;                                       \
            }                                                                                             \
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
