#include <declivity/nn/lstm_cell.hpp>

#include <cmath>

#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

namespace declivity::nn {

LSTMCell::LSTMCell(std::int64_t input_size, std::int64_t hidden_size, const LSTMCellOptions& options)
    : hidden_size_(hidden_size) {
    if (input_size < 1 || hidden_size < 1)
        throw ValueError(fmt::format("LSTMCell: wants input_size and hidden_size of at least 1, got {} and {}",
                                     input_size, hidden_size));
    const double bound = 1 / std::sqrt(static_cast<double>(hidden_size));
    const auto drawn = [&](const Shape& shape) {
        return uniform(shape, -bound, bound, {options.dtype, options.device});
    };
    weight_ih_ = parameter("weight_ih", drawn({4 * hidden_size, input_size}));
    weight_hh_ = parameter("weight_hh", drawn({4 * hidden_size, hidden_size}));
    bias_ih_ = parameter("bias_ih", options.bias ? drawn({4 * hidden_size}) : Tensor());
    bias_hh_ = parameter("bias_hh", options.bias ? drawn({4 * hidden_size}) : Tensor());
}

LstmState LSTMCell::forward(Tensor x, LstmState state) {
    if (x.rank() != 2) throw ShapeError(fmt::format("LSTMCell: wants x (N, input_size), got {}", x.shape().str()));
    for (Tensor* part : {&state.hidden, &state.cell})
        if (!part->defined()) *part = zeros({x.size(0), hidden_size_}, {x.dtype(), x.device()});
    return lstm_cell(x, state, weight_ih_, weight_hh_, bias_ih_, bias_hh_);
}

std::int64_t LSTMCell::multiply_adds(const std::vector<Tensor>& inputs, const std::vector<Tensor>&) const {
    return inputs.at(0).size(0) * (weight_ih_.shape().numel() + weight_hh_.shape().numel());
}

}  // namespace declivity::nn
