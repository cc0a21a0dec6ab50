// Layer 6. LSTM cell.
#pragma once

#include <declivity/functions/recurrent.hpp>
#include <declivity/nn/callable.hpp>

namespace declivity::nn {

/// @addtogroup nn_recurrent
/// @{

struct LSTMCellOptions {
    bool bias = true;
    DType dtype = DType::f32;                     ///< of the parameters
    std::optional<Device> device = std::nullopt;  ///< default_device() if none
};

/// One LSTM step, see declivity::lstm_cell: maps x (N, input_size) and a state of (N, hidden_size), or both without the
/// axis N, to the next state. The state defaults to zeros. weight_ih (4 hidden_size, input_size), weight_hh (4
/// hidden_size, hidden_size), bias_ih and bias_hh (4 hidden_size) are initialised uniformly in +-1 / sqrt(hidden_size).
///
///     LstmState state;
///     for (const Tensor& x : steps) state = cell(x, state);
class DECLIVITY_API LSTMCell : public Callable<LstmState(Tensor, LstmState)> {
  public:
    LSTMCell(std::int64_t input_size, std::int64_t hidden_size, const LSTMCellOptions& options = {});
    [[nodiscard]] std::int64_t multiply_adds(const std::vector<Tensor>& inputs,
                                             const std::vector<Tensor>& outputs) const override;
    [[nodiscard]] std::string type_name() const override { return "LSTMCell"; }
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(LSTMCell); }

  protected:
    LstmState forward(Tensor x, LstmState state) override;

  private:
    std::int64_t hidden_size_;
    Parameter weight_ih_, weight_hh_, bias_ih_, bias_hh_;
};

/// @}

}  // namespace declivity::nn
