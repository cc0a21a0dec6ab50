// One step of a recurrent layer, forward and backward: the product with the recurrent weights by tiles in local memory
// and, in its epilogue, the cell (recurrent.clh). simt style, the steps of recurrent.cl with one launch each.
//
// A work-item computes ROWS_PER_ITEM rows of one unit; a group LANES units of LINES * ROWS_PER_ITEM rows. global
// (units, rows / ROWS_PER_ITEM), local (LANES, LINES). Groups cover whole tiles: past the edges the last row or unit is
// computed again and not stored.
//
//   REAL           float or double
//   LANES, LINES   work-items per group
//   ROWS_PER_ITEM  rows per work-item
//   CHUNK          terms of the sum staged in local memory at a time, a multiple of 4; rows are CHUNK + 4 apart, so
//                  that vectors read at the same time are in different banks
//   shared local memory of (LINES ROWS_PER_ITEM + GATES LANES) (CHUNK + 4) elements forward, (LINES ROWS_PER_ITEM +
//          LANES) (CHUNK + 4) backward
#include "recurrent.clh"

DEFINE_CELL(recurrent_cell, REAL)

#define GROUP (LANES * LINES)
#define TILE_ROWS (LINES * ROWS_PER_ITEM)
#define CHUNK_ROW (CHUNK + 4)
#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)
#define REAL4 PASTE(REAL, 4)
#define VECTOR_AT(from, at) (*(__local const REAL4*)((from) + (at)))

static inline REAL add_product(const REAL sum, const REAL4 x, const REAL4 w) {
    return fma(x.w, w.w, fma(x.z, w.z, fma(x.y, w.y, fma(x.x, w.x, sum))));
}

__kernel void recurrent_forward_tiles(const struct Recurrent s, const int step, __global const REAL* restrict weight,
                                      const long weight_offset, RECURRENT_FORWARD_PARAMETERS, __local REAL4* shared) {
    RECURRENT_FORWARD_BEGIN
    weight += weight_offset;
    const int H = s.units, t = s.reverse ? s.steps - 1 - step : step;
    const int lane = get_local_id(0), line = get_local_id(1), item = line * LANES + lane;
    const int u0 = get_group_id(0) * LANES, row0 = get_group_id(1) * TILE_ROWS;
    __local REAL *states = (__local REAL*)shared, *weights = states + TILE_ROWS * CHUNK_ROW;
    REAL sum[ROWS_PER_ITEM][GATES];
#pragma unroll
    for (int r = 0; r < ROWS_PER_ITEM; ++r)
#pragma unroll
        for (int gate = 0; gate < GATES; ++gate) sum[r][gate] = 0;
    for (int k0 = 0; k0 < H; k0 += CHUNK) {
        for (int i = item; i < TILE_ROWS * CHUNK; i += GROUP) {
            const int r = i / CHUNK, k = i % CHUNK, row = min(row0 + r, s.rows - 1);
            states[r * CHUNK_ROW + k] = k0 + k < H ? PREVIOUS_STATE(t, row)[k0 + k] : 0;
        }
        for (int i = item; i < GATES * LANES * CHUNK; i += GROUP) {
            const int j = i / CHUNK, k = i % CHUNK, gate = j / LANES, u = min(u0 + j % LANES, H - 1);
            weights[j * CHUNK_ROW + k] = k0 + k < H ? weight[((long)gate * H + u) * H + k0 + k] : 0;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int k = 0; k < CHUNK; k += 4) {
            REAL4 w[GATES];
#pragma unroll
            for (int gate = 0; gate < GATES; ++gate)
                w[gate] = VECTOR_AT(weights, (gate * LANES + lane) * CHUNK_ROW + k);
#pragma unroll
            for (int r = 0; r < ROWS_PER_ITEM; ++r) {
                const REAL4 x = VECTOR_AT(states, (line * ROWS_PER_ITEM + r) * CHUNK_ROW + k);
#pragma unroll
                for (int gate = 0; gate < GATES; ++gate) sum[r][gate] = add_product(sum[r][gate], x, w[gate]);
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    const int u = u0 + lane;
    if (u >= H) return;
#pragma unroll
    for (int r = 0; r < ROWS_PER_ITEM; ++r) {
        const int n = row0 + line * ROWS_PER_ITEM + r;
        if (n >= s.rows) return;
        const long at = (long)n * H + u, at_step = ((long)t * s.rows + n) * H + u;
        if (t >= LENGTH_OF(n)) {
            y[at_step] = 0;
            if (t == 0) {  // sequences of length 0
                h_end[at] = h0[at];
#if CELL == LSTM
                c_end[at] = c0[at];
#endif
            }
            continue;
        }
        REAL in[GATES], values[SAVED_PER_UNIT], c = 0, bias_values = 0;
#pragma unroll
        for (int gate = 0; gate < GATES; ++gate) in[gate] = a[(((long)t * s.rows + n) * GATES + gate) * H + u];
#if CELL == LSTM
        c = PREVIOUS_CELL(t, n)[u];
#elif CELL == GRU
        bias_values = bias[u];
#endif
        const REAL next = recurrent_cell_forward(in, sum[r], bias_values, PREVIOUS_STATE(t, n)[u], &c, values);
        y[at_step] = next;
        if (IS_LAST(t, n)) {
            h_end[at] = next;
#if CELL == LSTM
            c_end[at] = c;
#endif
        }
#ifdef SAVES_VALUES
#pragma unroll
        for (int i = 0; i < SAVED_PER_UNIT; ++i)
            if (s.save || (CELL == LSTM && i == 4)) SAVED_AT(t, n)[(long)i * H + u] = values[i];
#endif
    }
}

__kernel void recurrent_backward_tiles(const struct Recurrent s, const int step, __global const REAL* restrict weight,
                                       const long weight_offset, RECURRENT_BACKWARD_PARAMETERS, __local REAL4* shared) {
    RECURRENT_BACKWARD_BEGIN
    weight += weight_offset;
    const int H = s.units, t = s.reverse ? step : s.steps - 1 - step;
    const int lane = get_local_id(0), line = get_local_id(1), item = line * LANES + lane;
    const int u0 = get_group_id(0) * LANES, row0 = get_group_id(1) * TILE_ROWS;
    __global const REAL* sum_gradients = CELL == GRU ? grad_s : grad_a;
    __local REAL *gradients = (__local REAL*)shared, *weights = gradients + TILE_ROWS * CHUNK_ROW;
    REAL sum[ROWS_PER_ITEM];
#pragma unroll
    for (int r = 0; r < ROWS_PER_ITEM; ++r) sum[r] = 0;
    for (int k0 = 0; k0 < (step == 0 ? 0 : GATES * H); k0 += CHUNK) {
        for (int i = item; i < TILE_ROWS * CHUNK; i += GROUP) {
            const int r = i / CHUNK, k = i % CHUNK, row = min(row0 + r, s.rows - 1);
            int from = NEXT_STEP(t);
            // After the last step: the first step of the sequence.
            if (step == s.steps) from = s.reverse ? max(0, LENGTH_OF(row) - 1) : 0;
            gradients[r * CHUNK_ROW + k] =
                k0 + k < GATES * H ? sum_gradients[((long)from * s.rows + row) * GATES * H + k0 + k] : 0;
        }
        for (int i = item; i < LANES * CHUNK; i += GROUP) {
            const int k = i / LANES, u = min(u0 + i % LANES, H - 1);
            weights[i % LANES * CHUNK_ROW + k] = k0 + k < GATES * H ? weight[((long)k0 + k) * H + u] : 0;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int k = 0; k < CHUNK; k += 4) {
            const REAL4 w = VECTOR_AT(weights, lane * CHUNK_ROW + k);
#pragma unroll
            for (int r = 0; r < ROWS_PER_ITEM; ++r)
                sum[r] = add_product(sum[r], VECTOR_AT(gradients, (line * ROWS_PER_ITEM + r) * CHUNK_ROW + k), w);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    const int u = u0 + lane;
    if (u >= H) return;
#pragma unroll
    for (int r = 0; r < ROWS_PER_ITEM; ++r) {
        const int n = row0 + line * ROWS_PER_ITEM + r;
        if (n >= s.rows) return;
        const long at = (long)n * H + u, at_step = ((long)t * s.rows + n) * H + u,
                   gates = ((long)t * s.rows + n) * GATES * H + u;
        REAL grad_state = sum[r] + grad_h[at];
        if (step == s.steps) {
            grad_h[at] = grad_state;
            continue;
        }
        if (t >= LENGTH_OF(n)) {
#pragma unroll
            for (int gate = 0; gate < GATES; ++gate) {
                grad_a[gates + (long)gate * H] = 0;
#if CELL == GRU
                grad_s[gates + (long)gate * H] = 0;
#endif
            }
            continue;
        }
        grad_state += g[at_step];
        REAL values[SAVED_PER_UNIT], grad_in[GATES], grad_sum[GATES], c = 0, grad_cell = 0, h = 0, state = 0;
#ifdef SAVES_VALUES
#pragma unroll
        for (int i = 0; i < SAVED_PER_UNIT; ++i) values[i] = SAVED_AT(t, n)[(long)i * H + u];
#endif
#if CELL == LSTM
        c = PREVIOUS_CELL(t, n)[u];
        grad_cell = grad_c[at];
#elif CELL == GRU
        h = PREVIOUS_STATE(t, n)[u];
#else
        state = y[at_step];
#endif
        grad_h[at] = recurrent_cell_backward(grad_state, state, h, c, values, grad_in, grad_sum, &grad_cell);
#if CELL == LSTM
        grad_c[at] = grad_cell;
#endif
#pragma unroll
        for (int gate = 0; gate < GATES; ++gate) {
            grad_a[gates + (long)gate * H] = grad_in[gate];
#if CELL == GRU
            grad_s[gates + (long)gate * H] = grad_sum[gate];
#endif
        }
    }
}
