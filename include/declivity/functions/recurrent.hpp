// Layer 5. Recurrent networks: cells (single steps), and layers over whole sequences.
#pragma once

#include <cstdint>
#include <vector>

#include <declivity/tensor/tensor.hpp>

namespace declivity {

/// @defgroup functions_recurrent Recurrent networks
/// @ingroup functions
/// Cells, which compute one step, and unidirectional layers over whole sequences, with the weights of PyTorch's
/// modules. Operands have one floating type, which is that of the results.
///
/// Errors: ShapeError for operands of other shapes; TypeError for integers, and for operands of different types;
/// DeviceError for operands on different devices; ValueError for undefined operands that are not optional.
/// @{

struct DECLIVITY_API LstmState {
    Tensor hidden, cell;  ///< (N, H)
};
inline std::vector<Tensor> tensors_of(const LstmState& state) { return {state.hidden, state.cell}; }

/// LSTM cell, one step (Hochreiter, Schmidhuber 1997; forget gate: Gers et al. 2000): x (N, inputs), weights (4 H,
/// inputs) and (4 H, H), biases (4 H) or undefined, each with rows for the input, forget, cell and output gates, in
/// this order. cell' = f cell + i g, hidden' = o tanh(cell'); g = tanh of the cell gate, i, f and o by sigmoid.
/// Examples: for x = `[[1]]`, h = `[[0]]`, c = `[[1]]`, w = `[[0], [0], [1], [0]]` and u = `[[0], [0], [0], [0]]`,
/// `lstm_cell(x, {h, c}, w, u).cell` is `[[0.8808]]` (0.5 + 0.5 tanh 1); `lstm_cell(x, {h, c}, w, u).hidden` is
/// `[[0.3534]]`.
DECLIVITY_API LstmState lstm_cell(const Tensor& x, const LstmState& state, const Tensor& weight_ih,
                                  const Tensor& weight_hh, const Tensor& bias_ih = {}, const Tensor& bias_hh = {});

enum class RnnNonlinearity : std::uint8_t { tanh, relu };
constexpr const char* name_of(RnnNonlinearity which) { return which == RnnNonlinearity::relu ? "relu" : "tanh"; }

/// RNN cell, one step (J. L. Elman, 1990): hidden' = f(x weight_ih^T + bias_ih + hidden weight_hh^T + bias_hh). x (N,
/// inputs), hidden (N, H), weights (H, inputs) and (H, H), biases (H) or undefined.
/// Examples: for x = `[[1, 2]]`, h = `[[3]]`, w = `[[1, 1]]` and u = `[[-1]]`, `rnn_cell(x, h, w, u)` is `[[0]]`;
/// `rnn_cell(x, h, w, -u, {}, {}, RnnNonlinearity::relu)` is `[[6]]`.
DECLIVITY_API Tensor rnn_cell(const Tensor& x, const Tensor& hidden, const Tensor& weight_ih, const Tensor& weight_hh,
                              const Tensor& bias_ih = {}, const Tensor& bias_hh = {},
                              RnnNonlinearity nonlinearity = RnnNonlinearity::tanh);

/// GRU cell, one step (K. Cho et al., 2014): weights (3 H, inputs) and (3 H, H) with rows for the reset gate r, the
/// update gate z and n, in this order. n = tanh(x part + r (hidden part)), hidden' = (1 - z) n + z hidden.
/// Example: for x = `[[1]]`, h = `[[1]]`, w = `[[0], [0], [0.5]]` and u = `[[0], [0], [1]]`, `gru_cell(x, h, w, u)` is
/// `[[0.8808]]`.
/// @param reset_after true: as PyTorch and cuDNN; false: multiplies hidden by r before its product (the paper; ONNX's
/// linear_before_reset = 0)
DECLIVITY_API Tensor gru_cell(const Tensor& x, const Tensor& hidden, const Tensor& weight_ih, const Tensor& weight_hh,
                              const Tensor& bias_ih = {}, const Tensor& bias_hh = {}, bool reset_after = true);

/// Direction and lengths of the sequences of a layer.
struct SequenceParameters {
    bool reverse = false;  ///< from the last step of each row to the first
    /// (N), i32 or i64, 0 to T: steps of each row; T if undefined. After them y is 0, and the final state of a row is
    /// the one after its own last step, as for a packed sequence in PyTorch. Clamped to [0, T].
    Tensor lengths = {};
};

struct DECLIVITY_API RecurrentSequence {
    Tensor y;       ///< (T, N, H): hidden state after each step
    Tensor hidden;  ///< (N, H): after the last one
};
inline std::vector<Tensor> tensors_of(const RecurrentSequence& sequence) { return {sequence.y, sequence.hidden}; }

struct DECLIVITY_API LstmSequence {
    Tensor y;         ///< (T, N, H), or (T, N, P) with a projection
    LstmState state;  ///< after the last step
};
inline std::vector<Tensor> tensors_of(const LstmSequence& sequence) {
    return {sequence.y, sequence.state.hidden, sequence.state.cell};
}

/// Unidirectional layer of rnn_cell(): x (T, N, inputs), T >= 1, hidden (N, H) or undefined for zeros. One product for
/// the inputs of all steps, then one kernel per step, or one for all; the weights' gradients are products over all
/// steps. f32, f64, f16, bf16; f16 and bf16 are computed in f32.
/// Examples: for x = `[[[1]], [[2]], [[3]]]`, w = `[[1]]`, u = `[[10]]` and relu_of = `RnnNonlinearity::relu`,
/// `rnn(x, {}, w, u, {}, {}, relu_of).y` is `[[[1]], [[12]], [[123]]]`;
/// `rnn(x, {}, w, u, {}, {}, relu_of, {.reverse = true}).hidden` is `[[321]]`.
/// @throws ShapeError, TypeError, ValueError, DeviceError naming the argument
DECLIVITY_API RecurrentSequence rnn(const Tensor& x, const Tensor& hidden, const Tensor& weight_ih,
                                    const Tensor& weight_hh, const Tensor& bias_ih = {}, const Tensor& bias_hh = {},
                                    RnnNonlinearity nonlinearity = RnnNonlinearity::tanh,
                                    const SequenceParameters& options = {});

struct LstmParameters {
    SequenceParameters sequence = {};
    /// (P, H), projection: the hidden state is its product with o tanh(cell), and weight_hh is (4 H, P) (H. Sak et al.,
    /// 2014).
    Tensor weight_hr = {};
    /// (3 H), peephole weights of the cell for the gates i, f (before the step) and o (after it), in this order (F.
    /// Gers, J. Schmidhuber, 2000). ONNX's P has i, o, f.
    Tensor peephole = {};
};

/// Unidirectional layer of lstm_cell(), as rnn(). With a projection or peepholes it is composed of other functions.
/// Examples: for x = `[[[1]], [[0]]]`, w = `[[0], [0], [2], [0]]` and u = `[[0], [0], [0], [0]]`, `lstm(x, {}, w, u).y`
/// is `[[[0.2239]], [[0.1182]]]`; `lstm(x, {}, w, u).state.cell` is `[[0.241]]`.
DECLIVITY_API LstmSequence lstm(const Tensor& x, const LstmState& state, const Tensor& weight_ih,
                                const Tensor& weight_hh, const Tensor& bias_ih = {}, const Tensor& bias_hh = {},
                                const LstmParameters& options = {});

/// Unidirectional layer of gru_cell(), as rnn(). Without reset_after it is composed of other functions.
/// Examples: for x = `[[[1]], [[0]]]`, w = `[[0], [0], [1]]` and u = `[[0], [0], [0]]`, `gru(x, {}, w, u).y` is
/// `[[[0.3808]], [[0.1904]]]`; `gru(x, {}, w, u).hidden` is `[[0.1904]]`.
DECLIVITY_API RecurrentSequence gru(const Tensor& x, const Tensor& hidden, const Tensor& weight_ih,
                                    const Tensor& weight_hh, const Tensor& bias_ih = {}, const Tensor& bias_hh = {},
                                    bool reset_after = true, const SequenceParameters& options = {});

/// @}

}  // namespace declivity
