#include <declivity/nn/lstm_cell.hpp>

#include <cmath>

#include <declivity/functions/functions.hpp>
#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

namespace declivity::nn {

LSTMCell::LSTMCell(std::int64_t input_size, std::int64_t hidden_size, const LSTMCellOptions& options)
    : hidden_size_(hidden_size) {
    if (input_size < 1 || hidden_size < 1)
        throw ValueError(fmt::format("LSTMCell: expected input_size and hidden_size of at least 1, got {} and {}",
                                     input_size, hidden_size));
    const double bound = 1 / std::sqrt(static_cast<double>(hidden_size));
    const auto initial = [&](const Shape& shape) {
        return uniform(shape, -bound, bound, {options.dtype, options.device});
    };
    weight_ih_ = parameter("weight_ih", initial({4 * hidden_size, input_size}));
    weight_hh_ = parameter("weight_hh", initial({4 * hidden_size, hidden_size}));
    bias_ih_ = parameter("bias_ih", options.bias ? initial({4 * hidden_size}) : Tensor());
    bias_hh_ = parameter("bias_hh", options.bias ? initial({4 * hidden_size}) : Tensor());
}

LstmState LSTMCell::forward(Tensor x, LstmState state) {
    const std::int64_t input_size = weight_ih_.shape()[1];
    if (x.rank() < 1 || x.rank() > 2 || x.size(-1) != input_size)
        throw ShapeError(
            fmt::format("LSTMCell: expected x of shape (N, {0}) or ({0}), got {1}", input_size, x.shape().str()));
    const bool unbatched = x.rank() == 1;
    if (unbatched) x = unsqueeze(x, 0);
    for (Tensor* part : {&state.hidden, &state.cell}) {
        if (!part->defined()) *part = zeros({x.size(0), hidden_size_}, {x.dtype(), x.device()});
        else if (unbatched && part->rank() == 1) *part = unsqueeze(*part, 0);
    }
    LstmState next = lstm_cell(x, state, weight_ih_, weight_hh_, bias_ih_, bias_hh_);
    if (unbatched) next = {squeeze(next.hidden, 0), squeeze(next.cell, 0)};
    return next;
}

std::int64_t LSTMCell::multiply_adds(const std::vector<Tensor>& inputs, const std::vector<Tensor>&) const {
    return inputs.at(0).numel() / weight_ih_.shape()[1] * (weight_ih_.shape().numel() + weight_hh_.shape().numel());
}

}  // namespace declivity::nn
