// Recurrent layers over whole sequences, compared with PyTorch and oneDNN.
#include <string>
#include <vector>

#include <declivity/functions/functions.hpp>
#include <declivity/tensor/creation.hpp>
#include <fmt/format.h>

#include "function_suites.hpp"
#include "peers.hpp"

namespace declivity::bench {
namespace {

struct Layer {
    std::int64_t steps, rows, units;  ///< as many inputs as hidden units
};

/// x, initial hidden and cell state, weights, biases, and the output gradient.
std::vector<Tensor> inputs_of(const Layer& layer, std::int64_t gates, bool with_cell) {
    const auto random_weights = [&](const Shape& shape) { return uniform(shape, -0.05, 0.05); };
    std::vector<Tensor> inputs{normal({layer.steps, layer.rows, layer.units}),
                               random_weights({layer.rows, layer.units})};
    if (with_cell) inputs.push_back(random_weights({layer.rows, layer.units}));
    for (int i = 0; i < 2; ++i) inputs.push_back(random_weights({gates * layer.units, layer.units}));
    for (int i = 0; i < 2; ++i) inputs.push_back(random_weights({gates * layer.units}));
    inputs.push_back(normal({layer.steps, layer.rows, layer.units}));
    return inputs;
}

std::vector<FunctionCase> cases() {
    std::vector<FunctionCase> all;
    // Layers of public benchmarks (DeepBench: 25 steps, 32 rows, 1024 units), and small ones.
    const std::vector<Layer> layers{{35, 20, 512}, {25, 32, 1024}, {25, 16, 512}, {100, 64, 128}, {50, 1, 256}};
    for (const bool lstm_cells : {true, false})
        for (const bool backward : {false, true})
            for (const Layer& layer : layers) {
                const std::int64_t gates = lstm_cells ? 4 : 3;
                const double products = static_cast<double>(layer.steps * layer.rows * layer.units) *
                                        static_cast<double>(gates * layer.units);
                all.push_back(
                    {.name = fmt::format("{} {} x {} x {}{}", lstm_cells ? "LSTM" : "GRU", layer.units, layer.steps,
                                         layer.rows, backward ? " training" : ""),
                     .inputs = inputs_of(layer, gates, lstm_cells),
                     .call =
                         [lstm_cells](const std::vector<Tensor>& in) {
                             return lstm_cells ? lstm(in[0], {in[1], in[2]}, in[3], in[4], in[5], in[6]).y
                                               : gru(in[0], in[1], in[2], in[3], in[4], in[5]).y;
                         },
                     .python = fmt::format("torch._VF.{}, True, 1, 0.0, {}, False, False)",
                                           lstm_cells ? "lstm(x[0], (x[1][None], x[2][None]), (x[3], x[4], x[5], x[6])"
                                                      : "gru(x[0], x[1][None], (x[2], x[3], x[4], x[5])",
                                           backward ? "True" : "False"),
                     .flops = (backward ? 12 : 4) * products,
                     .backward = backward,
                     .leaves = lstm_cells ? std::size_t{7} : std::size_t{6},
                     .more_peers = [=]() -> std::vector<Contender> {
                         auto peer = onednn_rnn({lstm_cells, backward, layer.steps, layer.rows, layer.units});
                         return peer ? std::vector{std::move(*peer)} : std::vector<Contender>();
                     }});
            }
    return all;
}

const Suite recurrent("rnn", "recurrent layers (units x steps x rows), compared with PyTorch and oneDNN",
                      [](Report& report) { time_functions(report, "rnn", cases); });

}  // namespace
}  // namespace declivity::bench
