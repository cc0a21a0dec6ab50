// Layer 2. Layers of recurrent networks over whole sequences: a kernel a step, or one for all steps.
#pragma once

#include <cstdint>

#include <declivity/ops/lazy_array.hpp>
#include <declivity/ops/view.hpp>

namespace declivity::ops {

/// Gates in PyTorch's order: one (rnn), i f u o (lstm), r z n (gru, whose reset gate follows the product).
enum class RecurrentCell : std::uint8_t { rnn_tanh, rnn_relu, lstm, gru };
/// Gates of a cell, and what is kept of a step for the gradient, in numbers for each unit.
constexpr std::int64_t gates_of(RecurrentCell cell) {
    return cell == RecurrentCell::lstm ? 4 : cell == RecurrentCell::gru ? 3 : 1;
}
constexpr std::int64_t kept_of(RecurrentCell cell) {
    return cell == RecurrentCell::lstm ? 5 : cell == RecurrentCell::gru ? 4 : 0;
}

/// What a layer of H units is computed from; all dense, of one type, f32, f64, f16 or bf16.
struct RecurrentOperands {
    View gates;         ///< (T, N, G H): products of the inputs with their weights, and biases
    View weight;        ///< (G H, H): recurrent
    View hidden;        ///< (N, H): before the first step
    View cell = {};     ///< (N, H): lstm
    View bias = {};     ///< (H): gru, of gate n's recurrent part
    View lengths = {};  ///< (N) i32, 0 to T: steps of each row; T if there are none
};

struct RecurrentResults {
    LazyArray y;       ///< (T, N, H): the states after each step; 0 behind a row's length
    LazyArray hidden;  ///< (N, H): after the last step of each row
    LazyArray kept;    ///< (T, N, kept_of, H), f32 or f64: for the gradient
    LazyArray cell;    ///< (N, H): lstm
};
/// @param reverse from the last step of each row to the first
/// @throws TypeError, ShapeError, DeviceError for operands that do not belong together, or without steps
DECLIVITY_API RecurrentResults recurrent(RecurrentCell cell, const RecurrentOperands& operands, bool reverse);

struct RecurrentGradients {
    LazyArray gates;   ///< (T, N, G H)
    LazyArray hidden;  ///< (N, H)
    LazyArray cell;    ///< (N, H): lstm
    /// (T, N, G H): of the recurrent products W h; that of `gates` but for gru. Of the weight it is their product with
    /// the states before.
    LazyArray products;
};
/// @param y,kept of recurrent()
/// @param of_y,of_hidden,of_cell gradients of the results
DECLIVITY_API RecurrentGradients recurrent_backward(RecurrentCell cell, const RecurrentOperands& operands, bool reverse,
                                                    const View& y, const View& kept, const View& of_y,
                                                    const View& of_hidden, const View& of_cell);

}  // namespace declivity::ops
