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
#define VW 1
#define VEC REAL
static inline REAL load_units(__global const REAL* from, const int count) { return *from; }
static inline void store_units(const REAL v, __global REAL* to, const int count) { *to = v; }
#include "recurrent.clh"

#define GROUP (LANES * LINES)
#define TILE_ROWS (LINES * ROWS_PER_ITEM)
#define CHUNK_ROW (CHUNK + 4)
#define INLINE static inline __attribute__((always_inline))
#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)
#define REAL4 PASTE(REAL, 4)
#define VECTOR_AT(from, at) (*(__local const REAL4*)((from) + (at)))

// A work-item's unit `u0 + lane`, and its rows from row0 + line ROWS_PER_ITEM.
struct Item {
    int lane, line, number;
    int u0, row0;
};

static inline struct Item own_item(void) {
    struct Item item;
    item.lane = (int)get_local_id(0);
    item.line = (int)get_local_id(1);
    item.number = item.line * LANES + item.lane;
    item.u0 = (int)get_group_id(0) * LANES;
    item.row0 = (int)get_group_id(1) * TILE_ROWS;
    return item;
}

static inline REAL add_product(const REAL sum, const REAL4 x, const REAL4 w) {
    return fma(x.w, w.w, fma(x.z, w.z, fma(x.y, w.y, fma(x.x, w.x, sum))));
}

// ---- forward

// Copies columns [k0, k0 + CHUNK) of the previous states of the group's rows; 0 past the last column.
static inline void stage_states(__local REAL* states, const struct Item item, const struct Recurrent s, const int t,
                                const int k0, __global const int* lengths, __global const REAL* h0,
                                __global const REAL* y) {
    for (int i = item.number; i < TILE_ROWS * CHUNK; i += GROUP) {
        const int r = i / CHUNK, k = i % CHUNK, row = min(item.row0 + r, s.rows - 1);
        states[r * CHUNK_ROW + k] = k0 + k < s.units ? previous_state(s, t, row, lengths, h0, y)[k0 + k] : 0;
    }
}

// Copies these columns of the weights of the group's units, those of a gate next to each other.
static inline void stage_weights(__local REAL* weights, const struct Item item, const int H, const int k0,
                                 __global const REAL* weight) {
    for (int i = item.number; i < GATES * LANES * CHUNK; i += GROUP) {
        const int j = i / CHUNK, k = i % CHUNK, gate = j / LANES, u = min(item.u0 + j % LANES, H - 1);
        weights[j * CHUNK_ROW + k] = k0 + k < H ? weight[((long)gate * H + u) * H + k0 + k] : 0;
    }
}

// sum[r][gate] += sum over a chunk of the row's state times the weights of the gate.
INLINE void multiply_gates(REAL sum[ROWS_PER_ITEM][GATES], __local const REAL* states, __local const REAL* weights,
                           const struct Item item) {
    for (int k = 0; k < CHUNK; k += 4) {
        REAL4 w[GATES];
#pragma unroll
        for (int gate = 0; gate < GATES; ++gate)
            w[gate] = VECTOR_AT(weights, (gate * LANES + item.lane) * CHUNK_ROW + k);
#pragma unroll
        for (int r = 0; r < ROWS_PER_ITEM; ++r) {
            const REAL4 x = VECTOR_AT(states, (item.line * ROWS_PER_ITEM + r) * CHUNK_ROW + k);
#pragma unroll
            for (int gate = 0; gate < GATES; ++gate) sum[r][gate] = add_product(sum[r][gate], x, w[gate]);
        }
    }
}

__kernel void recurrent_forward_tiles(const struct Recurrent s, const int step, __global const REAL* restrict weight,
                                      const long weight_offset, RECURRENT_FORWARD_PARAMETERS, __local REAL4* shared) {
    const int H = s.units, t = s.reverse ? s.steps - 1 - step : step;
    const struct Item item = own_item();
    __local REAL *states = (__local REAL*)shared, *weights = states + TILE_ROWS * CHUNK_ROW;
    REAL sum[ROWS_PER_ITEM][GATES];
#pragma unroll
    for (int r = 0; r < ROWS_PER_ITEM; ++r)
#pragma unroll
        for (int gate = 0; gate < GATES; ++gate) sum[r][gate] = 0;
    for (int k0 = 0; k0 < H; k0 += CHUNK) {
        stage_states(states, item, s, t, k0, lengths + lengths_offset, h0 + h0_offset, y + y_offset);
        stage_weights(weights, item, H, k0, weight + weight_offset);
        barrier(CLK_LOCAL_MEM_FENCE);
        multiply_gates(sum, states, weights, item);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    const int u = item.u0 + item.lane;
    if (u >= H) return;
#pragma unroll
    for (int r = 0; r < ROWS_PER_ITEM; ++r) {
        const int n = item.row0 + item.line * ROWS_PER_ITEM + r;
        if (n >= s.rows) return;
        if (t < length_of(s, lengths + lengths_offset, n))
            forward_step(s, t, n, u, sum[r], RECURRENT_FORWARD_ARGUMENTS);
        else skip_forward_step(s, t, n, u, RECURRENT_FORWARD_ARGUMENTS);
    }
}

// ---- backward

// Copies columns [k0, k0 + CHUNK) of the gradients of the sums of the next step, for the group's rows.
static inline void stage_gradients(__local REAL* gradients, const struct Item item, const struct Recurrent s,
                                   const int step, const int t, const int k0, __global const int* lengths,
                                   __global const REAL* a_gradient, __global const REAL* s_gradient) {
    for (int i = item.number; i < TILE_ROWS * CHUNK; i += GROUP) {
        const int r = i / CHUNK, k = i % CHUNK, row = min(item.row0 + r, s.rows - 1);
        gradients[r * CHUNK_ROW + k] =
            k0 + k < GATES * s.units ? next_sum_gradients(s, step, t, row, lengths, a_gradient, s_gradient)[k0 + k] : 0;
    }
}

// Copies rows [k0, k0 + CHUNK) of the weights of the group's units, transposed.
static inline void stage_weights_transposed(__local REAL* weights, const struct Item item, const int H, const int k0,
                                            __global const REAL* weight) {
    for (int i = item.number; i < LANES * CHUNK; i += GROUP) {
        const int k = i / LANES, u = min(item.u0 + i % LANES, H - 1);
        weights[i % LANES * CHUNK_ROW + k] = k0 + k < GATES * H ? weight[((long)k0 + k) * H + u] : 0;
    }
}

__kernel void recurrent_backward_tiles(const struct Recurrent s, const int step, __global const REAL* restrict weight,
                                       const long weight_offset, RECURRENT_BACKWARD_PARAMETERS, __local REAL4* shared) {
    const int H = s.units, t = s.reverse ? step : s.steps - 1 - step;
    const struct Item item = own_item();
    __local REAL *gradients = (__local REAL*)shared, *weights = gradients + TILE_ROWS * CHUNK_ROW;
    REAL sum[ROWS_PER_ITEM];
#pragma unroll
    for (int r = 0; r < ROWS_PER_ITEM; ++r) sum[r] = 0;
    for (int k0 = 0; k0 < (step == 0 ? 0 : GATES * H); k0 += CHUNK) {
        stage_gradients(gradients, item, s, step, t, k0, lengths + lengths_offset, a_gradient + a_gradient_offset,
                        s_gradient + s_gradient_offset);
        stage_weights_transposed(weights, item, H, k0, weight + weight_offset);
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int k = 0; k < CHUNK; k += 4) {
            const REAL4 w = VECTOR_AT(weights, item.lane * CHUNK_ROW + k);
#pragma unroll
            for (int r = 0; r < ROWS_PER_ITEM; ++r)
                sum[r] = add_product(sum[r], VECTOR_AT(gradients, (item.line * ROWS_PER_ITEM + r) * CHUNK_ROW + k), w);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    const int u = item.u0 + item.lane;
    if (u >= H) return;
#pragma unroll
    for (int r = 0; r < ROWS_PER_ITEM; ++r) {
        const int n = item.row0 + item.line * ROWS_PER_ITEM + r;
        if (n >= s.rows) return;
        __global REAL* next_gradient = h_gradient + h_gradient_offset + (long)n * H + u;
        const REAL state_gradient = sum[r] + *next_gradient;
        if (step == s.steps) *next_gradient = state_gradient;
        else if (t < length_of(s, lengths + lengths_offset, n))
            backward_step(s, t, n, u, state_gradient, RECURRENT_BACKWARD_ARGUMENTS);
        else skip_backward_step(s, t, n, u, RECURRENT_BACKWARD_ARGUMENTS);
    }
}
