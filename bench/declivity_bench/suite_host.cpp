// Host overhead per call; bench/peers/pytorch_host.py has the same cases.
#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/runtime/launch.hpp>
#include <declivity/tensor/creation.hpp>

#include "report.hpp"

namespace declivity::bench {
namespace {

using Clock = std::chrono::steady_clock;

/// Time in us of one of the `calls` calls in `work`: median of the rounds. The synchronisation is not timed.
double us_each(int calls, const std::function<void()>& work, int rounds = 41) {
    std::vector<double> times;
    for (int round = 0; round <= rounds; ++round) {
        const auto begin = Clock::now();
        work();
        const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
        default_device().synchronize();
        if (round > 0) times.push_back(seconds * 1e6 / calls);
    }
    return median(times);
}

/// Backward pass through a graph of `nodes` functions of one element; us per node.
double backward_node(int nodes) {
    std::vector<double> times;
    Tensor x = ones({16});
    x.set_requires_grad();
    for (int round = 0; round <= 41; ++round) {
        Tensor y = x;
        for (int i = 0; i < nodes; ++i) y = y + 1.0;
        const Tensor seed = ones({16});
        default_device().synchronize();
        const auto begin = Clock::now();
        y.backward(seed);
        const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
        x.zero_grad();
        default_device().synchronize();
        if (round > 0) times.push_back(seconds * 1e6 / nodes);
    }
    return median(times);
}

struct Lstm {
    static constexpr std::int64_t steps = 20, batch = 32, inputs = 64, units = 128;
    std::vector<Tensor> x;
    Tensor weight_input = randn({4 * units, inputs}) * 0.1, weight_hidden = randn({4 * units, units}) * 0.1,
           bias = zeros({4 * units});
    Lstm() {
        for (std::int64_t t = 0; t < steps; ++t) x.push_back(randn({batch, inputs}));
        for (Tensor* tensor : {&weight_input, &weight_hidden, &bias}) {
            *tensor = tensor->clone();
            tensor->set_requires_grad();
        }
    }
    void step(bool manual) {
        LstmState state{zeros({batch, units}), zeros({batch, units})};
        for (const Tensor& in : x) {
            if (!manual) {
                state = lstm_cell(in, state, weight_input, weight_hidden, bias);
                continue;
            }
            const Tensor gates = linear(in, weight_input, bias) + linear(state.hidden, weight_hidden);
            const auto gate = [&](std::int64_t i) { return slice(gates, 1, i * units, (i + 1) * units); };
            state.cell = sigmoid(gate(1)) * state.cell + sigmoid(gate(0)) * tanh(gate(2));
            state.hidden = sigmoid(gate(3)) * tanh(state.cell);
        }
        sum(state.hidden).backward();
        for (Tensor* tensor : {&weight_input, &weight_hidden, &bias}) tensor->zero_grad();
    }
};

void run(Report& report) {
    report.begin("host");
    const Tensor a = randn({16}), b = randn({16});
    Tensor w = randn({16});
    w.set_requires_grad();
    constexpr int calls = 200;
    const auto repeated = [&](const std::function<void()>& call) {
        return us_each(calls, [&] {
            for (int i = 0; i < calls; ++i) call();
        });
    };
    const auto note_selected = [&](const std::string& name, const std::function<double()>& measured,
                                   const std::string& unit) {
        if (report.is_selected(name)) report.note(name, measured(), unit);
    };
    note_selected(
        "deferred call, a + b of 16", [&] { return repeated([&] { (void)(a + b); }); }, "us");
    note_selected(
        "deferred call with a graph, a + w", [&] { return repeated([&] { (void)(a + w); }); }, "us");
    note_selected(
        "launched call, a + b of 16", [&] { return repeated([&] { (void)(a + b).view(); }); }, "us");
    const Tensor rows = randn({16, 16});
    note_selected(
        "launched call, matmul of 16 x 16", [&] { return repeated([&] { (void)matmul(rows, rows).view(); }); }, "us");
    note_selected(
        "launched call, the driver's enqueue alone", [&] { return report.ceilings().launch * 1e6; }, "us");
    note_selected(
        "backward node, x + 1", [] { return backward_node(1000); }, "us");
    Lstm lstm;
    const auto loop_time = [&](bool manual) {
        std::vector<double> times;
        for (int round = 0; round < 15; ++round) {
            const auto begin = Clock::now();
            lstm.step(manual);
            default_device().synchronize();
            times.push_back(std::chrono::duration<double>(Clock::now() - begin).count() * 1e3);
        }
        return median(times);
    };
    note_selected(
        "LSTM by hand, 20 steps, forward and backward", [&] { return loop_time(true); }, "ms");
    note_selected(
        "LSTM by lstm_cell, 20 steps, forward and backward", [&] { return loop_time(false); }, "ms");
    report.end();
}

const Suite suite("host", "host overhead per call: deferred, launched, a backward node, an LSTM", run);

}  // namespace
}  // namespace declivity::bench
