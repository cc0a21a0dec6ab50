#include <declivity/nn/recurrent.hpp>

#include <cmath>
#include <type_traits>
#include <utility>

#include <declivity/functions/functions.hpp>
#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

namespace declivity::nn {
namespace {

void require_sizes(const char* name, std::int64_t input_size, std::int64_t hidden_size) {
    if (input_size < 1 || hidden_size < 1)
        throw ValueError(fmt::format("{}: expected input_size and hidden_size of at least 1, got {} and {}", name,
                                     input_size, hidden_size));
}

/// Calls step(x, hidden) with a batch axis N, which both may omit.
template <class Step>
Tensor with_batch_axis(const char* name, const Tensor& x, const Tensor& hidden, const Parameter& weight_ih,
                       std::int64_t hidden_size, Step step) {
    if (x.rank() < 1 || x.rank() > 2 || x.size(-1) != weight_ih.shape()[1])
        throw ShapeError(fmt::format("{0}: expected x of shape (N, {1}) or ({1}), got {2}", name, weight_ih.shape()[1],
                                     x.shape().str()));
    const auto batched = [&](const Tensor& tensor) {
        return x.rank() == 1 && tensor.rank() == 1 ? unsqueeze(tensor, 0) : tensor;
    };
    const Tensor rows = batched(x);
    const Tensor next =
        step(rows, hidden.defined() ? batched(hidden) : zeros({rows.size(0), hidden_size}, {x.dtype(), x.device()}));
    return x.rank() == 1 ? squeeze(next, 0) : next;
}

std::int64_t numel_of(const Parameter& weight) { return weight.defined() ? weight.shape().numel() : 0; }

/// Uniform initialisation of the parameters of a layer with so many hidden units.
auto uniform_for(std::int64_t hidden_size, DType dtype, const std::optional<Device>& device) {
    const double bound = 1 / std::sqrt(static_cast<double>(hidden_size));
    return [=](const Shape& shape) { return uniform(shape, -bound, bound, {dtype, device}); };
}

template <class Options>
detail::RecurrentOptions recurrent_options(const Options& o) {
    return {o.num_layers, o.bias, o.batch_first, o.dropout, o.bidirectional, o.dtype, o.device};
}

/// State of one layer and direction; undefined states remain undefined.
Tensor layer_state(const Tensor& state, std::int64_t i) { return state.defined() ? select(state, 0, i) : Tensor(); }
LstmState layer_state(const LstmState& state, std::int64_t i) {
    return {layer_state(state.hidden, i), layer_state(state.cell, i)};
}
Tensor stack_states(const std::vector<Tensor>& states) { return stack(states, 0); }
LstmState stack_states(const std::vector<LstmState>& states) {
    std::vector<Tensor> hidden, cell;
    for (const LstmState& lstm_state : states) {
        hidden.push_back(lstm_state.hidden);
        cell.push_back(lstm_state.cell);
    }
    return {stack(hidden, 0), stack(cell, 0)};
}
template <class State, class Function>
State map_state(const State& state, Function function) {
    if constexpr (std::is_same_v<State, Tensor>) return state.defined() ? function(state) : state;
    else return {map_state(state.hidden, function), map_state(state.cell, function)};
}
const Tensor& final_state(const RecurrentSequence& result) { return result.hidden; }
const LstmState& final_state(const LstmSequence& result) { return result.state; }

void require_state(const char* name, const Tensor& state, std::int64_t parts) {
    if (state.defined() && (state.rank() != 3 || state.size(0) != parts))
        throw ShapeError(
            fmt::format("{}: expected states of shape ({}, N, hidden_size), or ({}, hidden_size) without the axis N, "
                        "got {}",
                        name, parts, parts, state.shape().str()));
}
void require_state(const char* name, const LstmState& state, std::int64_t parts) {
    require_state(name, state.hidden, parts);
    require_state(name, state.cell, parts);
}

}  // namespace

namespace detail {

template <class Result, class State>
RecurrentNetwork<Result, State>::RecurrentNetwork(const char* name, const Sizes& sizes, const RecurrentOptions& options)
    : name_(name), sizes_(sizes), options_(options) {
    require_sizes(name, sizes.input, sizes.hidden);
    if (options.num_layers < 1)
        throw ValueError(fmt::format("{}: expected num_layers of at least 1, got {}", name, options.num_layers));
    if (!(options.dropout >= 0 && options.dropout <= 1))
        throw ValueError(fmt::format("{}: expected dropout in [0, 1], got {}", name, options.dropout));
    if (sizes.projected < 0 || sizes.projected >= sizes.hidden)
        throw ValueError(fmt::format("{}: expected proj_size in 0 .. {}, below hidden_size, got {}", name,
                                     sizes.hidden - 1, sizes.projected));
    const auto initialise = uniform_for(sizes.hidden, options.dtype, options.device);
    const std::int64_t rows = sizes.gates * sizes.hidden, state = sizes.projected > 0 ? sizes.projected : sizes.hidden,
                       directions = options.bidirectional ? 2 : 1;
    for (std::int64_t layer = 0; layer < options.num_layers; ++layer)
        for (std::int64_t direction = 0; direction < directions; ++direction) {
            const std::string end = fmt::format("_l{}{}", layer, direction == 1 ? "_reverse" : "");
            const std::int64_t input = layer == 0 ? sizes.input : directions * state;
            const Tensor none;
            RecurrentWeights weights;
            weights.ih = this->parameter("weight_ih" + end, initialise({rows, input}));
            weights.hh = this->parameter("weight_hh" + end, initialise({rows, state}));
            weights.bias_ih = this->parameter("bias_ih" + end, options.bias ? initialise({rows}) : none);
            weights.bias_hh = this->parameter("bias_hh" + end, options.bias ? initialise({rows}) : none);
            if (sizes.projected > 0)
                weights.hr = this->parameter("weight_hr" + end, initialise({sizes.projected, sizes.hidden}));
            weights_.push_back(weights);
        }
}

template <class Result, class State>
Result RecurrentNetwork<Result, State>::forward(Tensor x, State state, Tensor lengths) {
    const bool unbatched = x.rank() == 2;
    if (!unbatched && x.rank() != 3)
        throw ShapeError(fmt::format("{}: expected x of shape ({}, {}), or without the axis N, got {}", name_,
                                     options_.batch_first ? "N, T" : "T, N", sizes_.input, x.shape().str()));
    if (x.size(-1) != sizes_.input)
        throw ShapeError(
            fmt::format("{}: expected x of {} features (input_size), got {}", name_, sizes_.input, x.shape().str()));
    const std::int64_t directions = options_.bidirectional ? 2 : 1;
    if (unbatched) {
        x = unsqueeze(x, 1);
        state =
            map_state(state, [](const Tensor& tensor) { return tensor.rank() == 2 ? unsqueeze(tensor, 1) : tensor; });
    } else if (options_.batch_first) {
        x = transpose(x, 0, 1);
    }
    require_state(name_, state, options_.num_layers * directions);
    std::vector<std::decay_t<decltype(final_state(std::declval<Result>()))>> last;
    for (std::int64_t layer = 0; layer < options_.num_layers; ++layer) {
        std::vector<Tensor> direction_outputs;
        for (std::int64_t direction = 0; direction < directions; ++direction) {
            const std::int64_t i = layer * directions + direction;
            const Result result = run_layer(x, layer_state(state, i), weights_[static_cast<std::size_t>(i)],
                                            {.reverse = direction == 1, .lengths = lengths});
            direction_outputs.push_back(result.y);
            last.push_back(final_state(result));
        }
        x = directions == 1 ? direction_outputs[0] : concat(direction_outputs, -1);
        if (layer + 1 < options_.num_layers && options_.dropout > 0 && this->training())
            x = dropout(x, options_.dropout);
    }
    auto states = stack_states(last);
    if (unbatched) {
        x = squeeze(x, 1);
        states = map_state(states, [](const Tensor& tensor) { return squeeze(tensor, 1); });
    } else if (options_.batch_first) {
        x = transpose(x, 0, 1);
    }
    return {x, states};
}

template <class Result, class State>
std::int64_t RecurrentNetwork<Result, State>::multiply_adds(const std::vector<Tensor>& inputs,
                                                            const std::vector<Tensor>&) const {
    std::int64_t weight_count = 0;
    for (const RecurrentWeights& weight : weights_)
        weight_count += numel_of(weight.ih) + numel_of(weight.hh) + numel_of(weight.hr);
    return inputs.at(0).numel() / sizes_.input * weight_count;
}

template class RecurrentNetwork<RecurrentSequence, Tensor>;
template class RecurrentNetwork<LstmSequence, LstmState>;

}  // namespace detail

RNN::RNN(std::int64_t input_size, std::int64_t hidden_size, const RNNOptions& options)
    : RecurrentNetwork("RNN", {input_size, hidden_size, 1}, recurrent_options(options)),
      nonlinearity_(options.nonlinearity) {}

RecurrentSequence RNN::run_layer(const Tensor& x, const Tensor& state, const detail::RecurrentWeights& weights,
                                 const SequenceParameters& options) {
    return rnn(x, state, weights.ih, weights.hh, weights.bias_ih, weights.bias_hh, nonlinearity_, options);
}

GRU::GRU(std::int64_t input_size, std::int64_t hidden_size, const GRUOptions& options)
    : RecurrentNetwork("GRU", {input_size, hidden_size, 3}, recurrent_options(options)),
      reset_after_(options.reset_after) {}

RecurrentSequence GRU::run_layer(const Tensor& x, const Tensor& state, const detail::RecurrentWeights& weights,
                                 const SequenceParameters& options) {
    return gru(x, state, weights.ih, weights.hh, weights.bias_ih, weights.bias_hh, reset_after_, options);
}

LSTM::LSTM(std::int64_t input_size, std::int64_t hidden_size, const LSTMOptions& options)
    : RecurrentNetwork("LSTM", {input_size, hidden_size, 4, options.proj_size}, recurrent_options(options)) {}

LstmSequence LSTM::run_layer(const Tensor& x, const LstmState& state, const detail::RecurrentWeights& weights,
                             const SequenceParameters& options) {
    return lstm(x, state, weights.ih, weights.hh, weights.bias_ih, weights.bias_hh,
                {.sequence = options, .weight_hr = weights.hr});
}

RNNCell::RNNCell(std::int64_t input_size, std::int64_t hidden_size, const RNNCellOptions& options)
    : hidden_size_(hidden_size), nonlinearity_(options.nonlinearity) {
    require_sizes("RNNCell", input_size, hidden_size);
    const auto initialise = uniform_for(hidden_size, options.dtype, options.device);
    weights_.ih = parameter("weight_ih", initialise({hidden_size, input_size}));
    weights_.hh = parameter("weight_hh", initialise({hidden_size, hidden_size}));
    weights_.bias_ih = parameter("bias_ih", options.bias ? initialise({hidden_size}) : Tensor());
    weights_.bias_hh = parameter("bias_hh", options.bias ? initialise({hidden_size}) : Tensor());
}

Tensor RNNCell::forward(Tensor x, Tensor hidden) {
    return with_batch_axis("RNNCell", x, hidden, weights_.ih, hidden_size_,
                           [&](const Tensor& rows, const Tensor& previous) {
                               return rnn_cell(rows, previous, weights_.ih, weights_.hh, weights_.bias_ih,
                                               weights_.bias_hh, nonlinearity_);
                           });
}

std::int64_t RNNCell::multiply_adds(const std::vector<Tensor>& inputs, const std::vector<Tensor>&) const {
    return inputs.at(0).numel() / weights_.ih.shape()[1] * (numel_of(weights_.ih) + numel_of(weights_.hh));
}

GRUCell::GRUCell(std::int64_t input_size, std::int64_t hidden_size, const GRUCellOptions& options)
    : hidden_size_(hidden_size), reset_after_(options.reset_after) {
    require_sizes("GRUCell", input_size, hidden_size);
    const auto initialise = uniform_for(hidden_size, options.dtype, options.device);
    weights_.ih = parameter("weight_ih", initialise({3 * hidden_size, input_size}));
    weights_.hh = parameter("weight_hh", initialise({3 * hidden_size, hidden_size}));
    weights_.bias_ih = parameter("bias_ih", options.bias ? initialise({3 * hidden_size}) : Tensor());
    weights_.bias_hh = parameter("bias_hh", options.bias ? initialise({3 * hidden_size}) : Tensor());
}

Tensor GRUCell::forward(Tensor x, Tensor hidden) {
    return with_batch_axis(
        "GRUCell", x, hidden, weights_.ih, hidden_size_, [&](const Tensor& rows, const Tensor& previous) {
            return gru_cell(rows, previous, weights_.ih, weights_.hh, weights_.bias_ih, weights_.bias_hh, reset_after_);
        });
}

std::int64_t GRUCell::multiply_adds(const std::vector<Tensor>& inputs, const std::vector<Tensor>&) const {
    return inputs.at(0).numel() / weights_.ih.shape()[1] * (numel_of(weights_.ih) + numel_of(weights_.hh));
}

}  // namespace declivity::nn
