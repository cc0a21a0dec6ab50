// Layer 3. Recurrent networks: single steps, and layers over whole sequences.
#pragma once

#include <cstdint>
#include <vector>

#include <declivity/tensor/tensor.hpp>

namespace declivity {

struct DECLIVITY_API LstmState {
    Tensor hidden, cell;  ///< (N, H)
};
inline std::vector<Tensor> tensors_of(const LstmState& state) { return {state.hidden, state.cell}; }

/// One step of a long short-term memory (Hochreiter, Schmidhuber 1997; forget gate: Gers et al. 2000): x (N, inputs),
/// weights (4 H, inputs) and (4 H, H), biases (4 H) or undefined, each with rows for the input, forget, cell and output
/// gates, in this order. cell' = f cell + i tanh(...), hidden' = o tanh(cell').
DECLIVITY_API LstmState lstm_cell(const Tensor& x, const LstmState& state, const Tensor& weight_ih,
                                  const Tensor& weight_hh, const Tensor& bias_ih = {}, const Tensor& bias_hh = {});

enum class RnnNonlinearity : std::uint8_t { tanh, relu };
constexpr const char* name_of(RnnNonlinearity which) { return which == RnnNonlinearity::relu ? "relu" : "tanh"; }

/// One step of a plain recurrent network (J. L. Elman, 1990): hidden' = f(x weight_ih^T + bias_ih + hidden weight_hh^T
/// + bias_hh). x (N, inputs), hidden (N, H), weights (H, inputs) and (H, H), biases (H) or undefined.
DECLIVITY_API Tensor rnn_cell(const Tensor& x, const Tensor& hidden, const Tensor& weight_ih, const Tensor& weight_hh,
                              const Tensor& bias_ih = {}, const Tensor& bias_hh = {},
                              RnnNonlinearity nonlinearity = RnnNonlinearity::tanh);

/// One step of a gated recurrent unit (K. Cho et al., 2014): weights (3 H, inputs) and (3 H, H) with rows for the reset
/// gate r, the update gate z and n, in this order. n = tanh(x part + r (hidden part)), hidden' = (1 - z) n + z hidden.
/// @param reset_after as PyTorch and cuDNN; false multiplies hidden by r before its product (the paper; ONNX's
/// linear_before_reset = 0)
DECLIVITY_API Tensor gru_cell(const Tensor& x, const Tensor& hidden, const Tensor& weight_ih, const Tensor& weight_hh,
                              const Tensor& bias_ih = {}, const Tensor& bias_hh = {}, bool reset_after = true);

/// How a layer goes over its sequences.
struct SequenceParameters {
    bool reverse = false;  ///< from the last step of each row to the first
    /// (N), i32 or i64, 0 to T: steps of each row; T if undefined. Behind them y is 0, and the state of a row is the
    /// one after its own last step, as of a packed sequence in PyTorch. Longer ones count as T, negative ones as 0.
    Tensor lengths = {};
};

struct DECLIVITY_API RecurrentSequence {
    Tensor y;       ///< (T, N, H): the hidden state after each step
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

/// A layer of rnn_cell() in one direction: x (T, N, inputs), T >= 1, hidden (N, H) or undefined for zeros. One product
/// for the inputs of all steps, then a kernel for each step, or one for all; the weights' gradients are products over
/// all steps. f32, f64, f16, bf16, halves computed in f32.
/// @throws ShapeError, TypeError, ValueError, DeviceError naming the argument
DECLIVITY_API RecurrentSequence rnn(const Tensor& x, const Tensor& hidden, const Tensor& weight_ih,
                                    const Tensor& weight_hh, const Tensor& bias_ih = {}, const Tensor& bias_hh = {},
                                    RnnNonlinearity nonlinearity = RnnNonlinearity::tanh,
                                    const SequenceParameters& options = {});

struct LstmParameters {
    SequenceParameters sequence = {};
    /// (P, H): the hidden state is its product with o tanh(cell), and weight_hh is (4 H, P) (H. Sak et al., 2014).
    Tensor weight_hr = {};
    /// (3 H): weights with which the cell takes part in the gates i, f (before the step) and o (after it), in this
    /// order (F. Gers, J. Schmidhuber, 2000). ONNX's P has i, o, f.
    Tensor peephole = {};
};

/// A layer of lstm_cell() in one direction, as rnn(). With a projection or peepholes it is a composition.
DECLIVITY_API LstmSequence lstm(const Tensor& x, const LstmState& state, const Tensor& weight_ih,
                                const Tensor& weight_hh, const Tensor& bias_ih = {}, const Tensor& bias_hh = {},
                                const LstmParameters& options = {});

/// A layer of gru_cell() in one direction, as rnn(). Without reset_after it is a composition.
DECLIVITY_API RecurrentSequence gru(const Tensor& x, const Tensor& hidden, const Tensor& weight_ih,
                                    const Tensor& weight_hh, const Tensor& bias_ih = {}, const Tensor& bias_hh = {},
                                    bool reset_after = true, const SequenceParameters& options = {});

}  // namespace declivity
