// Layer 6. RNN, GRU and LSTM over whole sequences; RNN and GRU cells.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <declivity/functions/recurrent.hpp>
#include <declivity/nn/callable.hpp>

namespace declivity::nn {

namespace detail {

/// Common options of RNN, GRU and LSTM.
struct RecurrentOptions {
    std::int64_t num_layers;
    bool bias, batch_first;
    double dropout;
    bool bidirectional;
    DType dtype;
    std::optional<Device> device;
};

/// Weights of one layer in one direction.
struct RecurrentWeights {
    Parameter ih, hh, bias_ih, bias_hh, hr;
};

/// Common base of RNN, GRU and LSTM: parameters of all layers, and the loop over layers and directions.
template <class Result, class State>
class DECLIVITY_API RecurrentNetwork : public Callable<Result(Tensor, State, Tensor)> {
  public:
    [[nodiscard]] std::int64_t multiply_adds(const std::vector<Tensor>& inputs,
                                             const std::vector<Tensor>& outputs) const override;

  protected:
    struct Sizes {
        std::int64_t input, hidden, gates, projected = 0;
    };
    /// @param name of the module, for errors
    RecurrentNetwork(const char* name, const Sizes& sizes, const RecurrentOptions& options);
    Result forward(Tensor x, State state, Tensor lengths) override;
    /// Runs one layer in one direction: x (T, N, inputs), a state of (N, H).
    virtual Result run_layer(const Tensor& x, const State& state, const RecurrentWeights& weights,
                             const SequenceParameters& options) = 0;

  private:
    const char* name_;
    Sizes sizes_;
    RecurrentOptions options_;
    std::vector<RecurrentWeights> weights_;  // layer by layer, forward before backward
};

extern template class DECLIVITY_API RecurrentNetwork<RecurrentSequence, Tensor>;
extern template class DECLIVITY_API RecurrentNetwork<LstmSequence, LstmState>;

}  // namespace detail

/// @addtogroup nn_recurrent
/// @{

struct RNNOptions {
    std::int64_t num_layers = 1;  ///< stacked layers
    RnnNonlinearity nonlinearity = RnnNonlinearity::tanh;
    bool bias = true;
    bool batch_first = false;    ///< x and y are (N, T, ...) instead of (T, N, ...)
    double dropout = 0;          ///< dropout of the output of each layer but the last, in training mode
    bool bidirectional = false;  ///< each layer also runs from the last step to the first
    DType dtype = DType::f32;    ///< of the parameters
    std::optional<Device> device = std::nullopt;  ///< default_device() if none
};

/// Elman RNN, see declivity::rnn and rnn_cell: maps x (T, N, input_size), an optional hidden state (num_layers *
/// directions, N, hidden_size) and optional lengths (N) to y (T, N, directions * hidden_size) and the hidden state
/// after the last steps. The axis N is optional in all. Parameters are PyTorch's: weight_ih_l0 (hidden_size,
/// input_size), weight_hh_l0, bias_ih_l0, bias_hh_l0, ..., with the suffix "_reverse" for the reverse direction;
/// initialised uniformly in +-1 / sqrt(hidden_size).
///
///     nn::RNN rnn(8, 32, {.num_layers = 2});
///     const RecurrentSequence made = rnn(x);
class DECLIVITY_API RNN : public detail::RecurrentNetwork<RecurrentSequence, Tensor> {
  public:
    /// @throws ValueError for sizes below 1, or dropout outside of [0, 1]
    RNN(std::int64_t input_size, std::int64_t hidden_size, const RNNOptions& options = {});
    [[nodiscard]] std::string type_name() const override { return "RNN"; }
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(RNN); }

  protected:
    RecurrentSequence run_layer(const Tensor& x, const Tensor& state, const detail::RecurrentWeights& weights,
                                const SequenceParameters& options) override;

  private:
    RnnNonlinearity nonlinearity_;
};

struct GRUOptions {
    std::int64_t num_layers = 1;  ///< stacked layers
    bool bias = true;
    bool batch_first = false;    ///< x and y are (N, T, ...) instead of (T, N, ...)
    double dropout = 0;          ///< dropout of the output of each layer but the last, in training mode
    bool bidirectional = false;  ///< each layer also runs from the last step to the first
    bool reset_after = true;     ///< see gru_cell()
    DType dtype = DType::f32;    ///< of the parameters
    std::optional<Device> device = std::nullopt;  ///< default_device() if none
};

/// Gated recurrent units, see declivity::gru and gru_cell; otherwise as RNN. Rows of weights are ordered by gates r, z,
/// n.
class DECLIVITY_API GRU : public detail::RecurrentNetwork<RecurrentSequence, Tensor> {
  public:
    GRU(std::int64_t input_size, std::int64_t hidden_size, const GRUOptions& options = {});
    [[nodiscard]] std::string type_name() const override { return "GRU"; }
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(GRU); }

  protected:
    RecurrentSequence run_layer(const Tensor& x, const Tensor& state, const detail::RecurrentWeights& weights,
                                const SequenceParameters& options) override;

  private:
    bool reset_after_;
};

struct LSTMOptions {
    std::int64_t num_layers = 1;  ///< stacked layers
    bool bias = true;
    bool batch_first = false;    ///< x and y are (N, T, ...) instead of (T, N, ...)
    double dropout = 0;          ///< dropout of the output of each layer but the last, in training mode
    bool bidirectional = false;  ///< each layer also runs from the last step to the first
    std::int64_t proj_size = 0;  ///< size of a projection of the hidden state, below hidden_size; 0: none
    DType dtype = DType::f32;    ///< of the parameters
    std::optional<Device> device = std::nullopt;  ///< default_device() if none
};

/// Long short-term memory, see declivity::lstm and lstm_cell: as RNN, with a state of hidden and cell (num_layers *
/// directions, N, hidden_size). With proj_size, the hidden state has that size; its projection is weight_hr_l0
/// (proj_size, hidden_size). Rows of weights are ordered by gates i, f, cell, o.
///
///     nn::LSTM lstm(64, 128, {.num_layers = 2, .batch_first = true, .dropout = 0.1});
///     const LstmSequence made = lstm(x, {}, lengths);          // or lstm(x)
///     const Tensor logits = head(made.y);
class DECLIVITY_API LSTM : public detail::RecurrentNetwork<LstmSequence, LstmState> {
  public:
    LSTM(std::int64_t input_size, std::int64_t hidden_size, const LSTMOptions& options = {});
    [[nodiscard]] std::string type_name() const override { return "LSTM"; }
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(LSTM); }

  protected:
    LstmSequence run_layer(const Tensor& x, const LstmState& state, const detail::RecurrentWeights& weights,
                           const SequenceParameters& options) override;
};

struct RNNCellOptions {
    bool bias = true;
    RnnNonlinearity nonlinearity = RnnNonlinearity::tanh;
    DType dtype = DType::f32;                     ///< of the parameters
    std::optional<Device> device = std::nullopt;  ///< default_device() if none
};

/// One Elman RNN step, see rnn_cell(): maps x (N, input_size) and a hidden state (N, hidden_size), zeros by default, to
/// the next hidden state; both may lack the axis N. Parameters as in LSTMCell, with rows for one gate.
class DECLIVITY_API RNNCell : public Callable<Tensor(Tensor, Tensor)> {
  public:
    RNNCell(std::int64_t input_size, std::int64_t hidden_size, const RNNCellOptions& options = {});
    [[nodiscard]] std::int64_t multiply_adds(const std::vector<Tensor>& inputs,
                                             const std::vector<Tensor>& outputs) const override;
    [[nodiscard]] std::string type_name() const override { return "RNNCell"; }
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(RNNCell); }

  protected:
    Tensor forward(Tensor x, Tensor hidden) override;

  private:
    std::int64_t hidden_size_;
    RnnNonlinearity nonlinearity_;
    detail::RecurrentWeights weights_;
};

struct GRUCellOptions {
    bool bias = true;
    bool reset_after = true;                      ///< see gru_cell()
    DType dtype = DType::f32;                     ///< of the parameters
    std::optional<Device> device = std::nullopt;  ///< default_device() if none
};

/// One GRU step, see gru_cell(); otherwise as RNNCell, with rows for three gates.
class DECLIVITY_API GRUCell : public Callable<Tensor(Tensor, Tensor)> {
  public:
    GRUCell(std::int64_t input_size, std::int64_t hidden_size, const GRUCellOptions& options = {});
    [[nodiscard]] std::int64_t multiply_adds(const std::vector<Tensor>& inputs,
                                             const std::vector<Tensor>& outputs) const override;
    [[nodiscard]] std::string type_name() const override { return "GRUCell"; }
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(GRUCell); }

  protected:
    Tensor forward(Tensor x, Tensor hidden) override;

  private:
    std::int64_t hidden_size_;
    bool reset_after_;
    detail::RecurrentWeights weights_;
};

/// @}

}  // namespace declivity::nn
