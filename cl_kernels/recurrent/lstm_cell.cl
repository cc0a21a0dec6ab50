// Pointwise part of an LSTM cell (Hochreiter, Schmidhuber 1997; forget gate: Gers et al. 2000) for a batch (N, H). The
// gates (N, 4 H) are sums of two matrix products, a + b, in the order input, forget, cell, output:
//
//   i = sigmoid, f = sigmoid, u = tanh, o = sigmoid of the gates;  c' = f c + i u,  h' = o tanh(c')
//
// The backward kernel computes gate_gradients, those of the gates' sums, and c_gradient from g_h and g_c, the gradients
// of h' and c'.
//
//   SIMD     simd style: a work-item takes `each` rows. global (row groups)
//   SIMT     simt style: one element each. global (N * H)
//   REAL, T  float or double
//   LANES    SIMD: elements per vector
#include "noinline.clh"
#include "math.clh"

// Parameters of the kernels, and of the functions that compute elements.
#define STATE_PARAMETERS                                                                             \
    __global const REAL *restrict a_base, const long a_offset, __global const REAL *restrict b_base, \
        const long b_offset, __global const REAL *restrict c_base, const long c_offset
#define STATE_ARGUMENTS a_base, a_offset, b_base, b_offset, c_base, c_offset
#define FORWARD_PARAMETERS                                                                                      \
    STATE_PARAMETERS, __global REAL *restrict h_base, const long h_offset, __global REAL *restrict c_next_base, \
        const long c_next_offset
#define FORWARD_ARGUMENTS STATE_ARGUMENTS, h_base, h_offset, c_next_base, c_next_offset
#define BACKWARD_PARAMETERS                                                                                         \
    STATE_PARAMETERS, __global const REAL *restrict g_h_base, const long g_h_offset,                                \
        __global const REAL *restrict g_c_base, const long g_c_offset, __global REAL *restrict gate_gradients_base, \
        const long gate_gradients_offset, __global REAL *restrict c_gradient_base, const long c_gradient_offset
#define BACKWARD_ARGUMENTS                                                                                   \
    STATE_ARGUMENTS, g_h_base, g_h_offset, g_c_base, g_c_offset, gate_gradients_base, gate_gradients_offset, \
        c_gradient_base, c_gradient_offset

// Defines functions of elements of type V, loaded by LOAD(p) and stored by STORE(v, p), at columns from k of a row.
#define DEFINE_FORWARD(NAME, V, LOAD, STORE)                                                  \
    static inline void NAME(const long row, const long k, const long H, FORWARD_PARAMETERS) { \
        __global const REAL* a = a_base + a_offset + row * 4 * H + k;                         \
        __global const REAL* b = b_base + b_offset + row * 4 * H + k;                         \
        const long at = row * H + k;                                                          \
        const V i = d_sigmoid(LOAD(a) + LOAD(b));                                             \
        const V f = d_sigmoid(LOAD(a + H) + LOAD(b + H));                                     \
        const V u = d_tanh(LOAD(a + 2 * H) + LOAD(b + 2 * H));                                \
        const V o = d_sigmoid(LOAD(a + 3 * H) + LOAD(b + 3 * H));                             \
        const V next = f * LOAD(c_base + c_offset + at) + i * u;                              \
        STORE(o* d_tanh(next), h_base + h_offset + at);                                       \
        STORE(next, c_next_base + c_next_offset + at);                                        \
    }

#define DEFINE_BACKWARD(NAME, V, LOAD, STORE)                                                          \
    static inline void NAME(const long row, const long k, const long H, BACKWARD_PARAMETERS) {         \
        __global const REAL* a = a_base + a_offset + row * 4 * H + k;                                  \
        __global const REAL* b = b_base + b_offset + row * 4 * H + k;                                  \
        __global REAL* gate_gradients = gate_gradients_base + gate_gradients_offset + row * 4 * H + k; \
        const long at = row * H + k;                                                                   \
        const V i = d_sigmoid(LOAD(a) + LOAD(b));                                                      \
        const V f = d_sigmoid(LOAD(a + H) + LOAD(b + H));                                              \
        const V u = d_tanh(LOAD(a + 2 * H) + LOAD(b + 2 * H));                                         \
        const V o = d_sigmoid(LOAD(a + 3 * H) + LOAD(b + 3 * H));                                      \
        const V previous = LOAD(c_base + c_offset + at), tanh_c = d_tanh(f * previous + i * u);        \
        const V g = LOAD(g_h_base + g_h_offset + at);                                                  \
        const V cell_gradient = LOAD(g_c_base + g_c_offset + at) + g * o * (1 - tanh_c * tanh_c);      \
        STORE(cell_gradient* u* i*(1 - i), gate_gradients);                                            \
        STORE(cell_gradient* previous* f*(1 - f), gate_gradients + H);                                 \
        STORE(cell_gradient* i*(1 - u * u), gate_gradients + 2 * H);                                   \
        STORE(g* tanh_c* o*(1 - o), gate_gradients + 3 * H);                                           \
        STORE(cell_gradient* f, c_gradient_base + c_gradient_offset + at);                             \
    }

#define LOAD_SCALAR(p) (*(p))
#define STORE_SCALAR(v, p) (*(p) = (v))
DEFINE_FORWARD(forward, REAL, LOAD_SCALAR, STORE_SCALAR)
DEFINE_BACKWARD(backward, REAL, LOAD_SCALAR, STORE_SCALAR)

#ifdef SIMD

#undef D_WIDTH
#define D_WIDTH LANES
#include "math.clh"
#include "row.clh"
DEFINE_FORWARD(forward_vector, ROW_VEC, row_load, row_store)
DEFINE_BACKWARD(backward_vector, ROW_VEC, row_load, row_store)

NOINLINE void lstm_cell_part(const size_t id0, const long rows, const long H, const long each, FORWARD_PARAMETERS) {
    const long last = min(rows, ((long)id0 + 1) * each);
    for (long row = id0 * each; row < last; ++row) {
        long k = 0;
        for (; k + LANES <= H; k += LANES) forward_vector(row, k, H, FORWARD_ARGUMENTS);
        for (; k < H; ++k) forward(row, k, H, FORWARD_ARGUMENTS);
    }
}

__kernel void lstm_cell(const long rows, const long H, const long each, FORWARD_PARAMETERS) {
    lstm_cell_part(get_global_id(0), rows, H, each, FORWARD_ARGUMENTS);
}

NOINLINE void lstm_cell_backward_part(const size_t id0, const long rows, const long H, const long each,
                                      BACKWARD_PARAMETERS) {
    const long last = min(rows, ((long)id0 + 1) * each);
    for (long row = id0 * each; row < last; ++row) {
        long k = 0;
        for (; k + LANES <= H; k += LANES) backward_vector(row, k, H, BACKWARD_ARGUMENTS);
        for (; k < H; ++k) backward(row, k, H, BACKWARD_ARGUMENTS);
    }
}

__kernel void lstm_cell_backward(const long rows, const long H, const long each, BACKWARD_PARAMETERS) {
    lstm_cell_backward_part(get_global_id(0), rows, H, each, BACKWARD_ARGUMENTS);
}

#else

__kernel void lstm_cell(const long rows, const long H, FORWARD_PARAMETERS) {
    const long id = get_global_id(0);
    const long row = id / H, k = id - row * H;
    if (row < rows) forward(row, k, H, FORWARD_ARGUMENTS);
}

__kernel void lstm_cell_backward(const long rows, const long H, BACKWARD_PARAMETERS) {
    const long id = get_global_id(0);
    const long row = id / H, k = id - row * H;
    if (row < rows) backward(row, k, H, BACKWARD_ARGUMENTS);
}

#endif
