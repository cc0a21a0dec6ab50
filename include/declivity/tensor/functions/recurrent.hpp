// Floor 3. Steps of recurrent networks.
#pragma once

#include <vector>

#include <declivity/tensor/tensor.hpp>

namespace declivity {

struct LstmState {
    Tensor hidden, cell;  ///< (N, H)
};
inline std::vector<Tensor> tensors_of(const LstmState& state) { return {state.hidden, state.cell}; }

/// One step of a long short-term memory (Hochreiter, Schmidhuber 1997; forget gate: Gers et al. 2000): x (N, inputs),
/// weights (4 H, inputs) and (4 H, H), biases (4 H) or undefined, each with rows for the input, forget, cell and output
/// gates, in this order. cell' = f cell + i tanh(...), hidden' = o tanh(cell').
DECLIVITY_API LstmState lstm_cell(const Tensor& x, const LstmState& state, const Tensor& weight_ih,
                                  const Tensor& weight_hh, const Tensor& bias_ih = {}, const Tensor& bias_hh = {});

}  // namespace declivity
