// Recurrent layers and cells as cases of the catalogue.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <declivity/functions/functions.hpp>
#include <tests/functions/catalogue/case.hpp>
#include <tests/functions/catalogue/parts.hpp>

namespace declivity::test::catalogue {
namespace {

/// A plain, LSTM or GRU cell, with this number of gates.
enum class RecurrentKind : std::uint8_t { rnn = 1, gru = 3, lstm = 4 };

/// x (T, N, I), weights (G H, I) and (G H, H), hidden (N, H), the cell (N, H) of an LSTM, biases (G H), optional
/// lengths (N): y (T, N, H).
Values recurrent_reference(RecurrentKind kind, std::size_t steps, std::size_t rows, std::size_t inputs,
                           std::size_t units, const Columns& in, bool reverse) {
    const auto logistic_of = [](double x) { return 1 / (1 + std::exp(-x)); };
    const std::size_t first = kind == RecurrentKind::lstm ? 5 : 4;
    const Values &x = in[0], &wi = in[1], &wh = in[2], &bi = in[first], &bh = in[first + 1];
    Values y(steps * rows * units);
    for (std::size_t n = 0; n < rows; ++n) {
        const std::size_t count = in.size() > first + 2 ? static_cast<std::size_t>(in[first + 2][n]) : steps;
        Values h, c;
        for (std::size_t u = 0; u < units; ++u) {
            h.push_back(in[3][n * units + u]);
            if (kind == RecurrentKind::lstm) c.push_back(in[4][n * units + u]);
        }
        for (std::size_t i = 0; i < count; ++i) {
            const std::size_t t = reverse ? count - 1 - i : i;
            const auto from_x = [&](std::size_t gate, std::size_t u) {
                double sum = bi[gate * units + u];
                for (std::size_t k = 0; k < inputs; ++k)
                    sum += wi[(gate * units + u) * inputs + k] * x[(t * rows + n) * inputs + k];
                return sum;
            };
            const auto from_h = [&](std::size_t gate, std::size_t u) {
                double sum = bh[gate * units + u];
                for (std::size_t k = 0; k < units; ++k) sum += wh[(gate * units + u) * units + k] * h[k];
                return sum;
            };
            Values next(units);
            for (std::size_t u = 0; u < units; ++u) {
                const auto both = [&](std::size_t gate) { return from_x(gate, u) + from_h(gate, u); };
                if (kind == RecurrentKind::lstm) {
                    c[u] = logistic_of(both(1)) * c[u] + logistic_of(both(0)) * std::tanh(both(2));
                    next[u] = logistic_of(both(3)) * std::tanh(c[u]);
                } else if (kind == RecurrentKind::gru) {
                    const double z = logistic_of(both(1));
                    const double candidate = std::tanh(from_x(2, u) + logistic_of(both(0)) * from_h(2, u));
                    next[u] = (1 - z) * candidate + z * h[u];
                } else {
                    next[u] = std::tanh(both(0));
                }
            }
            h = next;
            std::copy(h.begin(), h.end(), y.begin() + static_cast<std::ptrdiff_t>((t * rows + n) * units));
        }
    }
    return y;
}

}  // namespace

std::vector<Case> recurrent_catalogue() {
    std::vector<Case> all;
    for (const RecurrentKind kind : {RecurrentKind::rnn, RecurrentKind::gru, RecurrentKind::lstm}) {
        const bool cell = kind == RecurrentKind::lstm;
        const auto gates = static_cast<std::int64_t>(kind);
        const std::size_t at = cell ? 5 : 4;  // index of the biases
        const auto inputs_of = [&](const Shape& x, std::int64_t units) {
            std::vector<Input> inputs{{x, -1, 1}};
            inputs.push_back({{gates * units, x[-1]}, -1, 1});
            inputs.push_back({{gates * units, units}, -1, 1});
            for (int i = 0; i < (cell ? 2 : 1); ++i) inputs.push_back({{x[-2], units}, -1, 1});
            for (int i = 0; i < 2; ++i) inputs.push_back({{gates * units}, -1, 1});
            return inputs;
        };
        const auto call = [kind, at](const Tensors& in, const SequenceParameters& options) {
            const Tensor &wi = in[1], &wh = in[2], &bi = in[at], &bh = in[at + 1];
            if (kind == RecurrentKind::lstm)
                return lstm(in[0], {in[3], in[4]}, wi, wh, bi, bh, {.sequence = options}).y;
            if (kind == RecurrentKind::gru) return gru(in[0], in[3], wi, wh, bi, bh, true, options).y;
            return rnn(in[0], in[3], wi, wh, bi, bh, RnnNonlinearity::tanh, options).y;
        };
        const char* name = cell ? "lstm" : kind == RecurrentKind::gru ? "gru" : "rnn";
        all.push_back(
            {.name = name,
             .inputs = inputs_of({3, 4, 3}, 5),
             .call = [call](const Tensors& in) { return call(in, {}); },
             .reference = [kind](const Columns& in, DType) { return recurrent_reference(kind, 3, 4, 3, 5, in, false); },
             .terms = 40,
             .gradient_tolerance = 1e-5,
             .first_optional = 3});
        std::vector<Input> with_lengths = inputs_of({4, 3, 2}, 3);
        with_lengths.push_back({{3}, 0, 5, Kind::label});
        all.push_back(
            {.name = name,
             .inputs = with_lengths,
             .call = [call, at](const Tensors& in) { return call(in, {.reverse = true, .lengths = in[at + 2]}); },
             .reference = [kind](const Columns& in, DType) { return recurrent_reference(kind, 4, 3, 2, 3, in, true); },
             .terms = 40,
             .gradient_tolerance = 1e-5,
             .first_optional = 3});
        if (cell) continue;
        all.push_back(
            {.name = kind == RecurrentKind::gru ? "gru_cell" : "rnn_cell",
             .inputs = inputs_of({4, 3}, 5),
             .call =
                 [kind](const Tensors& in) {
                     return kind == RecurrentKind::gru ? gru_cell(in[0], in[3], in[1], in[2], in[4], in[5])
                                                       : rnn_cell(in[0], in[3], in[1], in[2], in[4], in[5]);
                 },
             .reference = [kind](const Columns& in, DType) { return recurrent_reference(kind, 1, 4, 3, 5, in, false); },
             .terms = 12,
             .first_optional = 4});
    }
    return all;
}

}  // namespace declivity::test::catalogue
