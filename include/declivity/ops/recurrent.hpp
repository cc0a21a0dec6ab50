// Layer 2. Recurrent layers over whole sequences: one kernel per step, or one for all steps.
#pragma once

#include <cstdint>

#include <declivity/ops/lazy_array.hpp>
#include <declivity/ops/view.hpp>

namespace declivity::ops {

/// @addtogroup ops
/// @{

/// Cell types. Gates in PyTorch's order: one (rnn), i f u o (lstm), r z n (gru, reset gate after the product).
enum class RecurrentCell : std::uint8_t { rnn_tanh, rnn_relu, lstm, gru };
/// Number of gates of a cell.
constexpr std::int64_t gates_of(RecurrentCell cell) {
    return cell == RecurrentCell::lstm ? 4 : cell == RecurrentCell::gru ? 3 : 1;
}
/// Numbers per unit and step that are saved for the gradient.
constexpr std::int64_t workspace_size(RecurrentCell cell) {
    return cell == RecurrentCell::lstm ? 5 : cell == RecurrentCell::gru ? 4 : 0;
}

/// Inputs of a layer of H units; all dense, of one type, f32, f64, f16 or bf16.
struct RecurrentOperands {
    View gates;         ///< (T, N, G H): input projections and biases
    View weight;        ///< (G H, H): recurrent
    View hidden;        ///< (N, H): initial state
    View cell = {};     ///< (N, H): lstm
    View bias = {};     ///< (H): gru, of the recurrent part of gate n
    View lengths = {};  ///< (N) i32, 0 to T: steps of each row; T if absent
};

struct RecurrentResults {
    LazyArray y;          ///< (T, N, H): hidden state after each step; 0 after a row's length
    LazyArray hidden;     ///< (N, H): after the last step of each row
    LazyArray workspace;  ///< (T, N, workspace_size, H), f32 or f64: for the gradient
    LazyArray cell;       ///< (N, H): lstm
};
/// Runs a layer over all steps.
/// @param reverse from the last step of each row to the first
/// @throws TypeError, ShapeError, DeviceError for operands that do not match, or T = 0
DECLIVITY_API RecurrentResults recurrent(RecurrentCell cell, const RecurrentOperands& operands, bool reverse);

struct RecurrentGradients {
    LazyArray gates;   ///< (T, N, G H)
    LazyArray hidden;  ///< (N, H)
    LazyArray cell;    ///< (N, H): lstm
    /// (T, N, G H): gradient of the recurrent products W h, equal to that of `gates` except for gru. Its product with
    /// the previous states is the gradient of the weight.
    LazyArray products;
};
/// Gradients of recurrent().
/// @param y,saved results y and workspace of recurrent()
/// @param y_gradient,hidden_gradient,cell_gradient gradients of the results
DECLIVITY_API RecurrentGradients recurrent_backward(RecurrentCell cell, const RecurrentOperands& operands, bool reverse,
                                                    const View& y, const View& saved, const View& y_gradient,
                                                    const View& hidden_gradient, const View& cell_gradient);

/// @}

}  // namespace declivity::ops
