// One step of a recurrent layer, forward and backward: the product with the recurrent weights by tiles in local memory
// and, in its epilogue, the cell (recurrent.clh). simt style, the steps of recurrent.cl with one launch each.
//
// A work-item computes EACH rows of one unit; a group LANES units of LINES * EACH rows. global (units, rows / EACH),
// local (LANES, LINES). Groups cover whole tiles: past the edges the last row or unit is computed again and not stored.
//
//   REAL   float or double
//   LANES, LINES  work-items per group
//   EACH   rows per work-item
//   CHUNK  terms of the sum staged in local memory at a time, a multiple of 4; rows are CHUNK + 4 apart, so that
//          vectors read at the same time are in different banks
//   shared local memory of (LINES EACH + GATES LANES) (CHUNK + 4) elements forward, (LINES EACH + LANES) (CHUNK + 4)
//          backward
#include "recurrent.clh"

DEFINE_CELL(recurrent_cell, REAL)

#define GROUP (LANES * LINES)
#define TILE_ROWS (LINES * EACH)
#define CHUNK_ROW (CHUNK + 4)
#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)
#define REAL4 PASTE(REAL, 4)
#define VECTOR_AT(from, at) (*(__local const REAL4*)((from) + (at)))

static inline REAL added_product(const REAL sum, const REAL4 x, const REAL4 w) {
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
    REAL sum[EACH][GATES];
#pragma unroll
    for (int r = 0; r < EACH; ++r)
#pragma unroll
        for (int gate = 0; gate < GATES; ++gate) sum[r][gate] = 0;
    for (int k0 = 0; k0 < H; k0 += CHUNK) {
        for (int i = item; i < TILE_ROWS * CHUNK; i += GROUP) {
            const int r = i / CHUNK, k = i % CHUNK, row = min(row0 + r, s.rows - 1);
            states[r * CHUNK_ROW + k] = k0 + k < H ? STATE_BEFORE(t, row)[k0 + k] : 0;
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
            for (int r = 0; r < EACH; ++r) {
                const REAL4 x = VECTOR_AT(states, (line * EACH + r) * CHUNK_ROW + k);
#pragma unroll
                for (int gate = 0; gate < GATES; ++gate) sum[r][gate] = added_product(sum[r][gate], x, w[gate]);
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    const int u = u0 + lane;
    if (u >= H) return;
#pragma unroll
    for (int r = 0; r < EACH; ++r) {
        const int n = row0 + line * EACH + r;
        if (n >= s.rows) return;
        const long at = (long)n * H + u, here = ((long)t * s.rows + n) * H + u;
        if (t >= LENGTH_OF(n)) {
            y[here] = 0;
            if (t == 0) {  // sequences of length 0
                h_end[at] = h0[at];
#if CELL == 2
                c_end[at] = c0[at];
#endif
            }
            continue;
        }
        REAL in[GATES], keep[KEPT], c = 0, more = 0;
#pragma unroll
        for (int gate = 0; gate < GATES; ++gate) in[gate] = a[(((long)t * s.rows + n) * GATES + gate) * H + u];
#if CELL == 2
        c = CELL_BEFORE(t, n)[u];
#elif CELL == 3
        more = bias[u];
#endif
        const REAL next = recurrent_cell_forward(in, sum[r], more, STATE_BEFORE(t, n)[u], &c, keep);
        y[here] = next;
        if (IS_LAST(t, n)) {
            h_end[at] = next;
#if CELL == 2
            c_end[at] = c;
#endif
        }
#if CELL > 1
#pragma unroll
        for (int i = 0; i < KEPT; ++i)
            if (s.keep || (CELL == 2 && i == 4)) KEPT_AT(t, n)[(long)i * H + u] = keep[i];
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
    __global const REAL* of_sums = CELL == 3 ? grad_s : grad_a;
    __local REAL *gradients = (__local REAL*)shared, *weights = gradients + TILE_ROWS * CHUNK_ROW;
    REAL sum[EACH];
#pragma unroll
    for (int r = 0; r < EACH; ++r) sum[r] = 0;
    for (int k0 = 0; k0 < (step == 0 ? 0 : GATES * H); k0 += CHUNK) {
        for (int i = item; i < TILE_ROWS * CHUNK; i += GROUP) {
            const int r = i / CHUNK, k = i % CHUNK, row = min(row0 + r, s.rows - 1);
            int from = BEHIND(t);
            // After the last step: the first step of the sequence.
            if (step == s.steps) from = s.reverse ? max(0, LENGTH_OF(row) - 1) : 0;
            gradients[r * CHUNK_ROW + k] =
                k0 + k < GATES * H ? of_sums[((long)from * s.rows + row) * GATES * H + k0 + k] : 0;
        }
        for (int i = item; i < LANES * CHUNK; i += GROUP) {
            const int k = i / LANES, u = min(u0 + i % LANES, H - 1);
            weights[i % LANES * CHUNK_ROW + k] = k0 + k < GATES * H ? weight[((long)k0 + k) * H + u] : 0;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int k = 0; k < CHUNK; k += 4) {
            const REAL4 w = VECTOR_AT(weights, lane * CHUNK_ROW + k);
#pragma unroll
            for (int r = 0; r < EACH; ++r)
                sum[r] = added_product(sum[r], VECTOR_AT(gradients, (line * EACH + r) * CHUNK_ROW + k), w);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    const int u = u0 + lane;
    if (u >= H) return;
#pragma unroll
    for (int r = 0; r < EACH; ++r) {
        const int n = row0 + line * EACH + r;
        if (n >= s.rows) return;
        const long at = (long)n * H + u, here = ((long)t * s.rows + n) * H + u,
                   gates = ((long)t * s.rows + n) * GATES * H + u;
        REAL of_state = sum[r] + grad_h[at];
        if (step == s.steps) {
            grad_h[at] = of_state;
            continue;
        }
        if (t >= LENGTH_OF(n)) {
#pragma unroll
            for (int gate = 0; gate < GATES; ++gate) {
                grad_a[gates + (long)gate * H] = 0;
#if CELL == 3
                grad_s[gates + (long)gate * H] = 0;
#endif
            }
            continue;
        }
        of_state += g[here];
        REAL keep[KEPT], of_in[GATES], of_sum[GATES], c = 0, of_cell = 0, h = 0, state = 0;
#if CELL > 1
#pragma unroll
        for (int i = 0; i < KEPT; ++i) keep[i] = KEPT_AT(t, n)[(long)i * H + u];
#endif
#if CELL == 2
        c = CELL_BEFORE(t, n)[u];
        of_cell = grad_c[at];
#elif CELL == 3
        h = STATE_BEFORE(t, n)[u];
#else
        state = y[here];
#endif
        grad_h[at] = recurrent_cell_backward(of_state, state, h, c, keep, of_in, of_sum, &of_cell);
#if CELL == 2
        grad_c[at] = of_cell;
#endif
#pragma unroll
        for (int gate = 0; gate < GATES; ++gate) {
            grad_a[gates + (long)gate * H] = of_in[gate];
#if CELL == 3
            grad_s[gates + (long)gate * H] = of_sum[gate];
#endif
        }
    }
}
