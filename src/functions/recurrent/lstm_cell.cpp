#include <declivity/ops/lstm_cell.hpp>

#include <array>
#include <utility>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/runtime/scope.hpp>
#include <declivity/tensor/function_call.hpp>
#include <fmt/format.h>

#include "autograd/decomposition.hpp"
#include "tensor/tensor_state.hpp"

namespace declivity {
namespace {

/// Gates a + b (N, 4 H) and c (N, H).
std::vector<Tensor> decomposed_gates(const std::vector<Tensor>& in) {
    const std::int64_t n = in[2].size(1);
    const Tensor gates = in[0] + in[1];
    const auto gate = [&](std::int64_t i) { return slice(gates, 1, i * n, (i + 1) * n); };
    const Tensor cell = sigmoid(gate(1)) * in[2] + sigmoid(gate(0)) * tanh(gate(2));
    return {sigmoid(gate(3)) * tanh(cell), cell};
}

std::vector<Tensor> apply_gates(const Tensor& a, const Tensor& b, const Tensor& c) {
    if (detail::by_decomposition()) return detail::decomposed_in_f32(decomposed_gates, {a, b, c});
    const auto forward = ops::lstm_cell(a.dense_view(), b.dense_view(), c.dense_view());
    return attach_backward(
        "lstm_cell", {a, b, c}, {forward.hidden, forward.cell},
        [a = Saved(a), b = Saved(b), c = Saved(c)](const GradientContext& context) {
            const auto saved_view = [](const Saved& saved) { return saved.get("lstm_cell").dense_view(); };
            const auto [gates, cell] =
                ops::lstm_cell_backward(saved_view(a), saved_view(b), saved_view(c), context.gradient(0).dense_view(),
                                        context.gradient(1).dense_view());
            const Tensor grad_gates(gates);
            return std::vector{grad_gates, grad_gates, context.needs(2) ? Tensor(cell) : Tensor()};
        },
        decomposed_gates);
}

}  // namespace

LstmState lstm_cell(const Tensor& x, const LstmState& state, const Tensor& weight_ih, const Tensor& weight_hh,
                    const Tensor& bias_ih, const Tensor& bias_hh) {
    constexpr auto* name = "lstm_cell";
    const FunctionCall call(name, {{"x", x},
                                   {"hidden", state.hidden},
                                   {"cell", state.cell},
                                   {"weight_ih", weight_ih},
                                   {"weight_hh", weight_hh},
                                   {"bias_ih", bias_ih},
                                   {"bias_hh", bias_hh}});
    call.require_defined({"x", "hidden", "cell", "weight_ih", "weight_hh"});
    const Tensor &h = state.hidden, &c = state.cell;
    ops::require_rank(name, "x", x.shape(), 2, "N, inputs");
    ops::require_rank(name, "the hidden state", h.shape(), 2, "N, H");
    const std::int64_t rows = x.size(0), units = h.size(1);
    ops::require_shape(name, "the hidden state", h.shape(), {rows, units});
    ops::require_shape(name, "the cell", c.shape(), {rows, units});
    ops::require_shape(name, "the weight of x", weight_ih.shape(), {4 * units, x.size(1)});
    ops::require_shape(name, "the weight of the hidden state", weight_hh.shape(), {4 * units, units});
    for (const auto& [what, bias] :
         {std::pair{"the bias of x", &bias_ih}, std::pair{"the bias of the hidden state", &bias_hh}})
        if (bias->defined()) ops::require_shape(name, what, bias->shape(), {4 * units});
    const std::array<std::pair<const char*, const Tensor*>, 6> others{{{"the hidden state", &h},
                                                                       {"the cell", &c},
                                                                       {"the weight of x", &weight_ih},
                                                                       {"the weight of the hidden state", &weight_hh},
                                                                       {"the bias of x", &bias_ih},
                                                                       {"the bias of the hidden state", &bias_hh}}};
    for (const auto& [what, tensor] : others)
        if (tensor->defined())
            ops::require_alike(name, "x", x.dtype(), x.device(), what, tensor->dtype(), tensor->device());
    const std::vector<Tensor> next_state = detail::decomposed_in_f32(
        [](const std::vector<Tensor>& in) {
            return apply_gates(linear(in[0], in[3], in[5]), linear(in[1], in[4], in[6]), in[2]);
        },
        {x, h, c, weight_ih, weight_hh, bias_ih, bias_hh});
    LstmState next{next_state[0], next_state[1]};
    call.results({next.hidden, next.cell});
    return next;
}

}  // namespace declivity
