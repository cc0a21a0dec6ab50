// Layer 2. Gates of a long short-term memory cell (Hochreiter, Schmidhuber 1997; forget gate: Gers et al. 2000).
#pragma once

#include <declivity/ops/lazy_array.hpp>
#include <declivity/ops/view.hpp>

namespace declivity::ops {

/// @addtogroup ops
/// @{

struct LstmCellResults {
    LazyArray hidden, cell;  ///< (N, H)
};

/// i, f, o = sigmoid and u = tanh of the gates a + b (N, 4 H), in the order i, f, u, o; cell = f c + i u, hidden = o
/// tanh(cell). c (N, H); all dense, of one floating type and device. Deferred operation.
/// @throws ShapeError, TypeError, DeviceError naming lstm_cell
DECLIVITY_API LstmCellResults lstm_cell(const View& a, const View& b, const View& c);

struct LstmCellGradients {
    LazyArray gates;  ///< (N, 4 H): gradient of a and of b
    LazyArray cell;   ///< (N, H): gradient of c
};
/// Gradients from those of both results.
DECLIVITY_API LstmCellGradients lstm_cell_backward(const View& a, const View& b, const View& c,
                                                   const View& hidden_gradient, const View& cell_gradient);

/// @}

}  // namespace declivity::ops
