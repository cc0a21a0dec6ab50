// Recurrent layers over whole sequences.
#include <declivity/ops/recurrent.hpp>

#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <declivity/tensor/function_call.hpp>
#include <fmt/format.h>

#include "autograd/decomposition.hpp"
#include "tensor/tensor_state.hpp"

namespace declivity {
namespace {

using ops::RecurrentCell;

/// Attributes of a layer.
struct Kind {
    const char* name;
    RecurrentCell cell;
    bool reverse = false;
    bool reset_after = true;
};

/// Inputs of a layer: products of x (T, N, G H), the recurrent weight (G H, H), hidden and cell (N, H), the bias of
/// gate n (H), lengths (N) i32, weight_hr and peepholes. Inputs that a cell does not have are undefined.
enum Input : std::size_t { kGates, kWeight, kHidden, kCell, kBias, kLengths, kProjection, kPeephole };

/// One step of all rows, from the gate pre-activations a (N, G H); the cell is undefined except for an LSTM.
LstmState step(const Kind& kind, const Tensor& a, const LstmState& state, const std::vector<Tensor>& in) {
    const Tensor &weight = in[kWeight], &h = state.hidden, &c = state.cell;
    const auto gate_of = [](const Tensor& gates, std::int64_t i, std::int64_t count) {
        const std::int64_t n = gates.size(-1) / count;
        return slice(gates, -1, i * n, (i + 1) * n);
    };
    const auto product = [&](const Tensor& states, const Tensor& matrix) {
        return matmul(states, transpose(matrix, 0, 1));
    };
    if (kind.cell == RecurrentCell::gru) {
        const Tensor &bias = in[kBias], r_z = slice(weight, 0, 0, 2 * h.size(1)),
                     weight_n = slice(weight, 0, 2 * h.size(1), 3 * h.size(1)), s = product(h, r_z);
        const Tensor r = sigmoid(gate_of(a, 0, 3) + gate_of(s, 0, 2)), z = sigmoid(gate_of(a, 1, 3) + gate_of(s, 1, 2));
        const Tensor inner = kind.reset_after ? r * (product(h, weight_n) + bias) : product(r * h, weight_n) + bias;
        const Tensor n = tanh(gate_of(a, 2, 3) + inner);
        return {n + z * (h - n), {}};
    }
    const Tensor sums = a + product(h, weight);
    if (kind.cell != RecurrentCell::lstm) return {kind.cell == RecurrentCell::rnn_relu ? relu(sums) : tanh(sums), {}};
    const auto gate = [&](std::int64_t i) { return gate_of(sums, i, 4); };
    const auto peep = [&](const Tensor& sum, std::int64_t i, const Tensor& cell) {
        return in[kPeephole].defined() ? sum + gate_of(in[kPeephole], i, 3) * cell : sum;
    };
    const Tensor next = sigmoid(peep(gate(1), 1, c)) * c + sigmoid(peep(gate(0), 0, c)) * tanh(gate(2));
    const Tensor hidden = sigmoid(peep(gate(3), 2, next)) * tanh(next);
    return {in[kProjection].defined() ? product(hidden, in[kProjection]) : hidden, next};
}

/// Returns y, the hidden state, and the cell of an LSTM.
std::vector<Tensor> decomposed(const Kind& kind, const std::vector<Tensor>& in) {
    LstmState state{in[kHidden], in[kCell]};
    const std::int64_t steps = in[kGates].size(0);
    std::vector<Tensor> y(static_cast<std::size_t>(steps));
    for (std::int64_t i = 0; i < steps; ++i) {
        const std::int64_t t = kind.reverse ? steps - 1 - i : i;
        LstmState next = step(kind, select(in[kGates], 0, t), state, in);
        Tensor& out = y[static_cast<std::size_t>(t)];
        out = next.hidden;
        if (in[kLengths].defined()) {
            const Tensor active = unsqueeze(in[kLengths] > t, 1);
            out = where(active, next.hidden, 0);
            next.hidden = where(active, next.hidden, state.hidden);
            if (next.cell.defined()) next.cell = where(active, next.cell, state.cell);
        }
        state = next;
    }
    std::vector<Tensor> out{stack(y, 0), state.hidden};
    if (state.cell.defined()) out.push_back(state.cell);
    return out;
}

ops::RecurrentOperands operands_of(const std::vector<Tensor>& in) {
    return {.gates = in[kGates].dense_view(),
            .weight = in[kWeight].dense_view(),
            .hidden = in[kHidden].dense_view(),
            .cell = detail::dense_or_none(in[kCell]),
            .bias = detail::dense_or_none(in[kBias]),
            .lengths = detail::dense_or_none(in[kLengths])};
}

/// Gradient for the recurrent weight: gradients of the products (T, N, G H) times the states before each step.
Tensor weight_gradient(const Kind& kind, const std::vector<Tensor>& in, const Tensor& products, const Tensor& y) {
    const std::int64_t steps = y.size(0);
    const auto times = [](const Tensor& gradients, const Tensor& states) {
        return matmul(transpose(flatten(gradients, 0, -2), 0, 1), flatten(states, 0, -2));
    };
    const Tensor start = unsqueeze(in[kHidden], 0);
    const auto previous_states = [&](std::int64_t from, std::int64_t to) { return slice(y, 0, from, to); };
    if (!kind.reverse || !in[kLengths].defined())
        return times(products, kind.reverse ? concat({previous_states(1, steps), start}, 0)
                                            : concat({start, previous_states(0, steps - 1)}, 0));
    // Reversed sequences start at their own length.
    const Tensor last_step = reshape(clamp(in[kLengths] - 1, 0, steps - 1).to(DType::i64), {1, y.size(1), 1});
    const Tensor first = take_along_axis(products, broadcast_to(last_step, {1, y.size(1), products.size(2)}), 0);
    const Tensor first_gradient = times(first, start);
    if (steps == 1) return first_gradient;
    return times(slice(products, 0, 0, steps - 1), previous_states(1, steps)) + first_gradient;
}

std::vector<Tensor> fused_recurrent(const Kind& kind, const std::vector<Tensor>& in) {
    const bool lstm = kind.cell == RecurrentCell::lstm, gru = kind.cell == RecurrentCell::gru;
    const ops::RecurrentResults forward = ops::recurrent(kind.cell, operands_of(in), kind.reverse);
    std::vector<ops::LazyArray> results{forward.y, forward.hidden};
    if (lstm) results.push_back(forward.cell);
    std::vector<Saved> saved;
    const bool needs_backward = any_requires_grad(in);
    if (needs_backward) saved.assign(in.begin(), in.end());
    return attach_backward(
        kind.name, in, results,
        [kind, lstm, gru, saved = std::move(saved), y = Saved::result(forward.y),
         workspace = needs_backward ? forward.workspace : ops::LazyArray()](const GradientContext& context) {
            std::vector<Tensor> saved_inputs;
            for (const Saved& item : saved) saved_inputs.push_back(item.get(kind.name));
            const Tensor states = y.get(kind.name);
            const ops::RecurrentGradients kernel_gradients = ops::recurrent_backward(
                kind.cell, operands_of(saved_inputs), kind.reverse, states.dense_view(),
                workspace ? workspace.view() : ops::View(), context.gradient(0).dense_view(),
                context.gradient(1).dense_view(), lstm ? context.gradient(2).dense_view() : ops::View());
            const Tensor products(kernel_gradients.products);
            std::vector<Tensor> gradients(saved_inputs.size());
            gradients[kGates] = Tensor(kernel_gradients.gates);
            gradients[kHidden] = Tensor(kernel_gradients.hidden);
            if (lstm) gradients[kCell] = Tensor(kernel_gradients.cell);
            if (context.needs(kWeight)) gradients[kWeight] = weight_gradient(kind, saved_inputs, products, states);
            if (gru && context.needs(kBias)) {
                const std::int64_t units = states.size(2);
                gradients[kBias] = sum(slice(products, 2, 2 * units, 3 * units), {0, 1});
            }
            return gradients;
        },
        [kind](const std::vector<Tensor>& inputs) { return decomposed(kind, inputs); });
}

/// Arguments of a recurrent layer.
struct Layer {
    const Tensor &x, &weight_ih, &weight_hh, &bias_ih, &bias_hh;
    Tensor hidden, cell = {};
    const Tensor& lengths;
    Tensor weight_hr = {}, peephole = {};
};

void check(const Kind& kind, const Layer& layer) {
    const char* name = kind.name;
    const std::int64_t gates = ops::gates_of(kind.cell);
    const Tensor& x = layer.x;
    ops::require_real(name, "x", x.dtype());
    ops::require_rank(name, "x", x.shape(), 3, "T, N, inputs");
    if (x.size(0) == 0)
        throw ShapeError(fmt::format("{}: expected x of at least one step, got {}", name, x.shape().str()));
    ops::require_rank(name, "weight_ih", layer.weight_ih.shape(), 2, "gates H, inputs");
    const std::int64_t rows = x.size(1), units = layer.weight_ih.size(0) / gates;
    if (units == 0)
        throw ShapeError(
            fmt::format("{}: expected weight_ih ({} H, inputs), got {}", name, gates, layer.weight_ih.shape().str()));
    const std::int64_t width = layer.weight_hr.defined() ? layer.weight_hr.size(0) : units;
    const std::array<std::tuple<const char*, const Tensor*, Shape>, 8> operands{
        {{"weight_ih", &layer.weight_ih, {gates * units, x.size(2)}},
         {"weight_hh", &layer.weight_hh, {gates * units, width}},
         {"bias_ih", &layer.bias_ih, {gates * units}},
         {"bias_hh", &layer.bias_hh, {gates * units}},
         {"the hidden state", &layer.hidden, {rows, width}},
         {"the cell", &layer.cell, {rows, units}},
         {"weight_hr", &layer.weight_hr, {width, units}},
         {"peephole", &layer.peephole, {3 * units}}}};
    for (const auto& [what, tensor, shape] : operands) {
        if (!tensor->defined()) continue;
        ops::require_shape(name, what, tensor->shape(), shape);
        ops::require_alike(name, "x", x.dtype(), x.device(), what, tensor->dtype(), tensor->device());
    }
    if (const Tensor& lengths = layer.lengths; lengths.defined()) {
        ops::require_shape(name, "lengths", lengths.shape(), {rows});
        if (lengths.dtype() != DType::i32 && lengths.dtype() != DType::i64)
            throw TypeError(fmt::format("{}: expected lengths of i32 or i64, got {}", name, name_of(lengths.dtype())));
        if (!(lengths.device() == x.device()))
            throw DeviceError(fmt::format("{}: expected lengths on the device of x, '{}', got '{}'", name,
                                          x.device().name(), lengths.device().name()));
    }
}

/// Inputs of the steps, from x, weight_ih, bias_ih, bias_hh and the others in the order of Input.
std::vector<Tensor> steps_inputs(const Kind& kind, const std::vector<Tensor>& in) {
    const Tensor &x = in[0], &weight_ih = in[1], &weight_hh = in[2], &bias_ih = in[3], &bias_hh = in[4];
    const std::int64_t units = weight_ih.size(0) / ops::gates_of(kind.cell);
    // Both biases are added to the input product, except the part that the reset gate of a GRU multiplies.
    Tensor bias = bias_ih, bias_n;
    if (kind.cell == RecurrentCell::gru) {
        bias_n = bias_hh.defined() ? slice(bias_hh, 0, 2 * units, 3 * units) : zeros({units}, {x.dtype(), x.device()});
        if (bias_hh.defined()) {
            const Tensor rest = pad(slice(bias_hh, 0, 0, 2 * units), {0, units});
            bias = bias.defined() ? bias + rest : rest;
        }
    } else if (bias_hh.defined()) {
        bias = bias.defined() ? bias + bias_hh : bias_hh;
    }
    return {linear(x, weight_ih, bias), weight_hh, in[5], in[6], bias_n, in[7], in[8], in[9]};
}

std::vector<Tensor> run(const Kind& kind, Layer layer) {
    check(kind, layer);
    const Tensor& x = layer.x;
    const std::int64_t steps = x.size(0), rows = x.size(1), units = layer.weight_ih.size(0) / ops::gates_of(kind.cell);
    const bool gru = kind.cell == RecurrentCell::gru, lstm = kind.cell == RecurrentCell::lstm;
    const TensorOptions options{x.dtype(), x.device()};
    if (!layer.hidden.defined()) layer.hidden = zeros({rows, layer.weight_hh.size(1)}, options);
    if (lstm && !layer.cell.defined()) layer.cell = zeros({rows, units}, options);
    const Tensor lengths = layer.lengths.defined() ? clamp(layer.lengths, 0, steps).to(DType::i32) : Tensor();
    const bool kernels = !detail::by_decomposition() && rows > 0 && !layer.weight_hr.defined() &&
                         !layer.peephole.defined() && (!gru || kind.reset_after);
    // In f16 and bf16 the products of inputs and states are not rounded before they are added.
    return detail::decomposed_in_f32(
        [&](const std::vector<Tensor>& in) {
            const std::vector<Tensor> inputs = steps_inputs(kind, in);
            return kernels ? fused_recurrent(kind, inputs) : decomposed(kind, inputs);
        },
        {x, layer.weight_ih, layer.weight_hh, layer.bias_ih, layer.bias_hh, layer.hidden, layer.cell, lengths,
         layer.weight_hr, layer.peephole});
}

void check_step(const Kind& kind, const Tensor& x, const Tensor& hidden, const Tensor& weight_ih,
                const Tensor& weight_hh, const Tensor& bias_ih, const Tensor& bias_hh) {
    ops::require_rank(kind.name, "x", x.shape(), 2, "N, inputs");
    ops::require_rank(kind.name, "the hidden state", hidden.shape(), 2, "N, H");
    const Tensor sequence = unsqueeze(x, 0), none;
    check(kind, {.x = sequence,
                 .weight_ih = weight_ih,
                 .weight_hh = weight_hh,
                 .bias_ih = bias_ih,
                 .bias_hh = bias_hh,
                 .hidden = hidden,
                 .lengths = none});
}

/// One step of an RNN. @param in x, the hidden state, both weights, both biases
Tensor rnn_step(const std::vector<Tensor>& in, RnnNonlinearity nonlinearity) {
    const Tensor sum = linear(in[0], in[2], in[4]) + linear(in[1], in[3], in[5]);
    return nonlinearity == RnnNonlinearity::relu ? relu(sum) : tanh(sum);
}

/// One step of a GRU, with the same inputs.
Tensor gru_step(const std::vector<Tensor>& in, bool reset_after) {
    const Tensor &hidden = in[1], &weight_hh = in[3], &bias_hh = in[5];
    const Tensor a = linear(in[0], in[2], in[4]);
    const std::int64_t units = hidden.size(1);
    const auto part = [&](const Tensor& values, std::int64_t i, std::int64_t count = 1) {
        return values.defined() ? slice(values, -1, i * units, (i + count) * units) : Tensor();
    };
    const auto rows = [&](std::int64_t i, std::int64_t count) {
        return slice(weight_hh, 0, i * units, (i + count) * units);
    };
    Tensor inner, r, z;
    if (reset_after) {
        const Tensor s = linear(hidden, weight_hh, bias_hh);
        r = sigmoid(part(a, 0) + part(s, 0));
        z = sigmoid(part(a, 1) + part(s, 1));
        inner = r * part(s, 2);
    } else {
        const Tensor s = linear(hidden, rows(0, 2), part(bias_hh, 0, 2));
        r = sigmoid(part(a, 0) + part(s, 0));
        z = sigmoid(part(a, 1) + part(s, 1));
        inner = linear(r * hidden, rows(2, 1), part(bias_hh, 2));
    }
    const Tensor n = tanh(part(a, 2) + inner);
    return n + z * (hidden - n);
}

}  // namespace

Tensor rnn_cell(const Tensor& x, const Tensor& hidden, const Tensor& weight_ih, const Tensor& weight_hh,
                const Tensor& bias_ih, const Tensor& bias_hh, RnnNonlinearity nonlinearity) {
    const Kind kind{"rnn_cell", RecurrentCell::rnn_tanh};
    const FunctionCall call(kind.name,
                            {{"x", x},
                             {"hidden", hidden},
                             {"weight_ih", weight_ih},
                             {"weight_hh", weight_hh},
                             {"bias_ih", bias_ih},
                             {"bias_hh", bias_hh}},
                            {{"nonlinearity", nonlinearity}});
    call.require_defined({"x", "hidden", "weight_ih", "weight_hh"});
    check_step(kind, x, hidden, weight_ih, weight_hh, bias_ih, bias_hh);
    return call.result(detail::decomposed_in_f32(
        [nonlinearity](const std::vector<Tensor>& in) { return std::vector{rnn_step(in, nonlinearity)}; },
        {x, hidden, weight_ih, weight_hh, bias_ih, bias_hh})[0]);
}

Tensor gru_cell(const Tensor& x, const Tensor& hidden, const Tensor& weight_ih, const Tensor& weight_hh,
                const Tensor& bias_ih, const Tensor& bias_hh, bool reset_after) {
    const Kind kind{"gru_cell", RecurrentCell::gru};
    const FunctionCall call(kind.name,
                            {{"x", x},
                             {"hidden", hidden},
                             {"weight_ih", weight_ih},
                             {"weight_hh", weight_hh},
                             {"bias_ih", bias_ih},
                             {"bias_hh", bias_hh}},
                            {{"reset_after", reset_after}});
    call.require_defined({"x", "hidden", "weight_ih", "weight_hh"});
    check_step(kind, x, hidden, weight_ih, weight_hh, bias_ih, bias_hh);
    return call.result(detail::decomposed_in_f32(
        [reset_after](const std::vector<Tensor>& in) { return std::vector{gru_step(in, reset_after)}; },
        {x, hidden, weight_ih, weight_hh, bias_ih, bias_hh})[0]);
}

namespace {

/// rnn() and gru(), which differ by an attribute.
RecurrentSequence layer(const Kind& kind, const CallAttribute& attribute, const Tensor& x, const Tensor& hidden,
                        const Tensor& weight_ih, const Tensor& weight_hh, const Tensor& bias_ih, const Tensor& bias_hh,
                        const SequenceParameters& options) {
    const FunctionCall call(kind.name,
                            {{"x", x},
                             {"hidden", hidden},
                             {"weight_ih", weight_ih},
                             {"weight_hh", weight_hh},
                             {"bias_ih", bias_ih},
                             {"bias_hh", bias_hh},
                             {"lengths", options.lengths}},
                            {attribute, {"reverse", options.reverse}});
    call.require_defined({"x", "weight_ih", "weight_hh"});
    const std::vector<Tensor> results = run(kind, {.x = x,
                                                   .weight_ih = weight_ih,
                                                   .weight_hh = weight_hh,
                                                   .bias_ih = bias_ih,
                                                   .bias_hh = bias_hh,
                                                   .hidden = hidden,
                                                   .lengths = options.lengths});
    call.results(results);
    return {results[0], results[1]};
}

}  // namespace

RecurrentSequence rnn(const Tensor& x, const Tensor& hidden, const Tensor& weight_ih, const Tensor& weight_hh,
                      const Tensor& bias_ih, const Tensor& bias_hh, RnnNonlinearity nonlinearity,
                      const SequenceParameters& options) {
    const bool relu = nonlinearity == RnnNonlinearity::relu;
    return layer({"rnn", relu ? RecurrentCell::rnn_relu : RecurrentCell::rnn_tanh, options.reverse},
                 {"nonlinearity", nonlinearity}, x, hidden, weight_ih, weight_hh, bias_ih, bias_hh, options);
}

RecurrentSequence gru(const Tensor& x, const Tensor& hidden, const Tensor& weight_ih, const Tensor& weight_hh,
                      const Tensor& bias_ih, const Tensor& bias_hh, bool reset_after,
                      const SequenceParameters& options) {
    return layer({"gru", RecurrentCell::gru, options.reverse, reset_after}, {"reset_after", reset_after}, x, hidden,
                 weight_ih, weight_hh, bias_ih, bias_hh, options);
}

LstmSequence lstm(const Tensor& x, const LstmState& state, const Tensor& weight_ih, const Tensor& weight_hh,
                  const Tensor& bias_ih, const Tensor& bias_hh, const LstmParameters& options) {
    const bool reverse = options.sequence.reverse;
    const Kind kind{"lstm", RecurrentCell::lstm, reverse};
    const std::array<Tensor, 2> states{state.hidden, state.cell}, biases{bias_ih, bias_hh};
    const FunctionCall call(kind.name,
                            {{"x", x},
                             {"state", states},
                             {"weight_ih", weight_ih},
                             {"weight_hh", weight_hh},
                             {"bias", biases},
                             {"lengths", options.sequence.lengths},
                             {"weight_hr", options.weight_hr},
                             {"peephole", options.peephole}},
                            {{"reverse", reverse}});
    call.require_defined({"x", "weight_ih", "weight_hh"});
    if (options.weight_hr.defined()) ops::require_rank(kind.name, "weight_hr", options.weight_hr.shape(), 2, "P, H");
    const std::vector<Tensor> results = run(kind, {.x = x,
                                                   .weight_ih = weight_ih,
                                                   .weight_hh = weight_hh,
                                                   .bias_ih = bias_ih,
                                                   .bias_hh = bias_hh,
                                                   .hidden = state.hidden,
                                                   .cell = state.cell,
                                                   .lengths = options.sequence.lengths,
                                                   .weight_hr = options.weight_hr,
                                                   .peephole = options.peephole});
    call.results(results);
    return {results[0], {results[1], results[2]}};
}

}  // namespace declivity
