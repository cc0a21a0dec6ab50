// Pointwise part of an LSTM cell (Hochreiter, Schmidhuber 1997; forget gate: Gers et al. 2000) for a batch (N, H). The
// gates (N, 4 H) are sums of two matrix products, a + b, in the order input, forget, cell, output:
//
//   i = sigmoid, f = sigmoid, u = tanh, o = sigmoid of the gates;  c' = f c + i u,  h' = o tanh(c')
//
// The backward kernel computes the gradients of the gates' sums and of c from those of h' and c'.
//
//   SIMD     simd style: a work-item takes `each` rows. global (row groups)
//   SIMT     simt style: one element each. global (N * H)
//   REAL, T  float or double
//   LANES    SIMD: elements per vector
#include "noinline.clh"
#include "math.clh"

// Code for elements of type V, loaded by READ(p) and stored by STORE(v, p), at column k of H.
#define FORWARD(V, READ, STORE)                                       \
    const V i = d_sigmoid(READ(a + k) + READ(b + k));                 \
    const V f = d_sigmoid(READ(a + H + k) + READ(b + H + k));         \
    const V u = d_tanh(READ(a + 2 * H + k) + READ(b + 2 * H + k));    \
    const V o = d_sigmoid(READ(a + 3 * H + k) + READ(b + 3 * H + k)); \
    const V next = f * READ(c + k) + i * u;                           \
    STORE(o* d_tanh(next), h_next + k);                               \
    STORE(next, c_next + k);

#define BACKWARD(V, READ, STORE)                                           \
    const V i = d_sigmoid(READ(a + k) + READ(b + k));                      \
    const V f = d_sigmoid(READ(a + H + k) + READ(b + H + k));              \
    const V u = d_tanh(READ(a + 2 * H + k) + READ(b + 2 * H + k));         \
    const V o = d_sigmoid(READ(a + 3 * H + k) + READ(b + 3 * H + k));      \
    const V previous = READ(c + k), tanh_c = d_tanh(f * previous + i * u); \
    const V g = READ(g_h + k);                                             \
    const V grad_cell = READ(g_c + k) + g * o * (1 - tanh_c * tanh_c);     \
    STORE(grad_cell* u* i*(1 - i), gates + k);                             \
    STORE(grad_cell* previous* f*(1 - f), gates + H + k);                  \
    STORE(grad_cell* i*(1 - u * u), gates + 2 * H + k);                    \
    STORE(g* tanh_c* o*(1 - o), gates + 3 * H + k);                        \
    STORE(grad_cell* f, d_c + k);

#define READ_SCALAR(p) (*(p))
#define STORE_SCALAR(v, p) (*(p) = (v))

// Parameters of the kernels, and pointers for one row.
#define STATE_PARAMETERS                                                                             \
    __global const REAL *restrict a_base, const long a_offset, __global const REAL *restrict b_base, \
        const long b_offset, __global const REAL *restrict c_base, const long c_offset
#define STATE_ARGUMENTS a_base, a_offset, b_base, b_offset, c_base, c_offset
#define STATE_ROWS                                            \
    __global const REAL* a = a_base + a_offset + row * 4 * H; \
    __global const REAL* b = b_base + b_offset + row * 4 * H; \
    __global const REAL* c = c_base + c_offset + row * H;
#define FORWARD_PARAMETERS                                                                                      \
    STATE_PARAMETERS, __global REAL *restrict h_base, const long h_offset, __global REAL *restrict c_next_base, \
        const long c_next_offset
#define FORWARD_ARGUMENTS STATE_ARGUMENTS, h_base, h_offset, c_next_base, c_next_offset
#define FORWARD_ROWS                                     \
    STATE_ROWS                                           \
    __global REAL* h_next = h_base + h_offset + row * H; \
    __global REAL* c_next = c_next_base + c_next_offset + row * H;
#define BACKWARD_PARAMETERS                                                                                \
    STATE_PARAMETERS, __global const REAL *restrict g_h_base, const long g_h_offset,                       \
        __global const REAL *restrict g_c_base, const long g_c_offset, __global REAL *restrict gates_base, \
        const long gates_offset, __global REAL *restrict d_c_base, const long d_c_offset
#define BACKWARD_ARGUMENTS \
    STATE_ARGUMENTS, g_h_base, g_h_offset, g_c_base, g_c_offset, gates_base, gates_offset, d_c_base, d_c_offset
#define BACKWARD_ROWS                                               \
    STATE_ROWS                                                      \
    __global const REAL* g_h = g_h_base + g_h_offset + row * H;     \
    __global const REAL* g_c = g_c_base + g_c_offset + row * H;     \
    __global REAL* gates = gates_base + gates_offset + row * 4 * H; \
    __global REAL* d_c = d_c_base + d_c_offset + row * H;

#ifdef SIMD

#undef D_WIDTH
#define D_WIDTH LANES
#include "math.clh"
#include "row.clh"

NOINLINE void lstm_cell_part(const size_t id0, const long rows, const long H, const long each, FORWARD_PARAMETERS) {
    const long last = min(rows, ((long)id0 + 1) * each);
    for (long row = id0 * each; row < last; ++row) {
        FORWARD_ROWS
        long k = 0;
        for (; k + LANES <= H; k += LANES) {
            FORWARD(ROW_VEC, ROW_LOAD, row_store)
        }
        for (; k < H; ++k) {
            FORWARD(REAL, READ_SCALAR, STORE_SCALAR)
        }
    }
}

__kernel void lstm_cell(const long rows, const long H, const long each, FORWARD_PARAMETERS) {
    lstm_cell_part(get_global_id(0), rows, H, each, FORWARD_ARGUMENTS);
}

NOINLINE void lstm_cell_backward_part(const size_t id0, const long rows, const long H, const long each,
                                      BACKWARD_PARAMETERS) {
    const long last = min(rows, ((long)id0 + 1) * each);
    for (long row = id0 * each; row < last; ++row) {
        BACKWARD_ROWS
        long k = 0;
        for (; k + LANES <= H; k += LANES) {
            BACKWARD(ROW_VEC, ROW_LOAD, row_store)
        }
        for (; k < H; ++k) {
            BACKWARD(REAL, READ_SCALAR, STORE_SCALAR)
        }
    }
}

__kernel void lstm_cell_backward(const long rows, const long H, const long each, BACKWARD_PARAMETERS) {
    lstm_cell_backward_part(get_global_id(0), rows, H, each, BACKWARD_ARGUMENTS);
}

#else

__kernel void lstm_cell(const long rows, const long H, FORWARD_PARAMETERS) {
    const long id = get_global_id(0);
    const long row = id / H, k = id - row * H;
    if (row >= rows) return;
    FORWARD_ROWS
    FORWARD(REAL, READ_SCALAR, STORE_SCALAR)
}

__kernel void lstm_cell_backward(const long rows, const long H, BACKWARD_PARAMETERS) {
    const long id = get_global_id(0);
    const long row = id / H, k = id - row * H;
    if (row >= rows) return;
    BACKWARD_ROWS
    BACKWARD(REAL, READ_SCALAR, STORE_SCALAR)
}

#endif
