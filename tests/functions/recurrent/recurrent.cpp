// rnn, lstm, gru: layers over sequences. Sizes, lengths, both directions and kernel styles compared with their
// decompositions; the decompositions compared with plain C++ in double, and cells with layers.
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>
#include <tests/support/contract.hpp>
#include <tests/support/devices.hpp>
#include <tests/support/values.hpp>

#include "autograd/decomposition.hpp"
#include "ops/support/work_split.hpp"

using namespace declivity;
using namespace declivity::test;

namespace {

using Tensors = std::vector<Tensor>;
using Doubles = std::vector<double>;

enum class Network : std::uint8_t { tanh, relu, lstm, gru };
constexpr Network kAll[] = {Network::tanh, Network::relu, Network::lstm, Network::gru};

std::int64_t gates_of(Network network) { return network == Network::lstm ? 4 : network == Network::gru ? 3 : 1; }

struct NetworkSize {
    std::int64_t steps, rows, width, units;
};

/// x, hidden, cell, weights, biases.
Tensors inputs(Network network, const NetworkSize& size, DType dtype) {
    const std::int64_t rows = gates_of(network) * size.units;
    const std::vector<Shape> shapes{{size.steps, size.rows, size.width},
                                    {size.rows, size.units},
                                    {size.rows, size.units},
                                    {rows, size.width},
                                    {rows, size.units},
                                    {rows},
                                    {rows}};
    Tensors all;
    std::uint64_t seed = 40;
    for (const Shape& shape : shapes) {
        // Gate sums of about 1, whatever the size.
        const double scale = shape.rank() == 2 && all.size() > 2 ? 1.5 / std::sqrt(double(shape[1])) : 1;
        all.push_back((random_tensor(shape, ++seed, dtype) * scale).detach().set_requires_grad());
    }
    return all;
}

/// y, and the final states.
Tensors layer(Network network, const Tensors& in, const SequenceParameters& options) {
    if (network == Network::lstm) {
        const LstmSequence results = lstm(in[0], {in[1], in[2]}, in[3], in[4], in[5], in[6], {.sequence = options});
        return {results.y, results.state.hidden, results.state.cell};
    }
    const RecurrentSequence results =
        network == Network::gru
            ? gru(in[0], in[1], in[3], in[4], in[5], in[6], true, options)
            : rnn(in[0], in[1], in[3], in[4], in[5], in[6],
                  network == Network::relu ? RnnNonlinearity::relu : RnnNonlinearity::tanh, options);
    return {results.y, results.hidden};
}

/// Results, and gradients of all inputs.
std::vector<Doubles> results_and_gradients(Network network, const NetworkSize& size, DType dtype,
                                           const SequenceParameters& options) {
    const Tensors in = inputs(network, size, dtype);
    const Tensors out = layer(network, in, options);
    std::vector<Doubles> all;
    Tensor loss;
    for (std::size_t i = 0; i < out.size(); ++i) {
        all.push_back(values(out[i]));
        const Tensor part = sum(out[i] * random_tensor(out[i].shape(), 70 + i, dtype));
        loss = loss.defined() ? loss + part : part;
    }
    loss.backward();
    for (const Tensor& input : in)
        if (input.grad().defined()) all.push_back(values(input.grad()));
    return all;
}

Tensor lengths_of(const NetworkSize& size) {
    std::vector<std::int64_t> lengths;
    for (std::int64_t n = 0; n < size.rows; ++n) lengths.push_back((n * 5 + 2) % (size.steps + 1));  // some are 0
    return Tensor::from(lengths, {size.rows});
}

double logistic(double x) { return 1 / (1 + std::exp(-x)); }

/// The same in plain C++: y, the final hidden state, the final cell state.
std::vector<Doubles> expected_result(Network network, const NetworkSize& size, const Tensors& in,
                                     const std::vector<std::int64_t>& lengths, bool reverse) {
    std::vector<Doubles> v;
    for (const Tensor& input : in) v.push_back(values(input));
    const auto units = static_cast<std::size_t>(size.units), width = static_cast<std::size_t>(size.width),
               rows = static_cast<std::size_t>(size.rows);
    Doubles y(static_cast<std::size_t>(size.steps) * rows * units), last = v[1], cell = v[2];
    for (std::size_t n = 0; n < rows; ++n)
        for (std::int64_t i = 0; i < lengths[n]; ++i) {
            const auto t = static_cast<std::size_t>(reverse ? lengths[n] - 1 - i : i);
            const Doubles h(last.begin() + static_cast<std::ptrdiff_t>(n * units),
                            last.begin() + static_cast<std::ptrdiff_t>((n + 1) * units));
            const auto sum = [&](std::size_t gate, std::size_t u, bool recurrent) {
                const std::size_t row = gate * units + u;
                double all = recurrent ? v[6][row] : v[5][row];
                if (recurrent)
                    for (std::size_t k = 0; k < units; ++k) all += v[4][row * units + k] * h[k];
                else
                    for (std::size_t k = 0; k < width; ++k)
                        all += v[3][row * width + k] * v[0][(t * rows + n) * width + k];
                return all;
            };
            const auto both = [&](std::size_t gate, std::size_t u) { return sum(gate, u, false) + sum(gate, u, true); };
            for (std::size_t u = 0; u < units; ++u) {
                double next = 0;
                if (network == Network::lstm) {
                    double& c = cell[n * units + u];
                    c = logistic(both(1, u)) * c + logistic(both(0, u)) * std::tanh(both(2, u));
                    next = logistic(both(3, u)) * std::tanh(c);
                } else if (network == Network::gru) {
                    const double r = logistic(both(0, u)), z = logistic(both(1, u));
                    const double candidate = std::tanh(sum(2, u, false) + r * sum(2, u, true));
                    next = (1 - z) * candidate + z * h[u];
                } else {
                    next = network == Network::relu ? std::max(0.0, both(0, u)) : std::tanh(both(0, u));
                }
                last[n * units + u] = next;
                y[(t * rows + n) * units + u] = next;
            }
        }
    return {y, last, cell};
}

}  // namespace

TEST_CASE("recurrent layers: three steps of rnn with relu, backwards and with a length; two of gru") {
    // hidden' = relu(x + 10 hidden).
    const Tensor x = tensor({1, 2, 3}, {3, 1, 1}), w = tensor({1}, {1, 1}), u = tensor({10}, {1, 1});
    const auto run = [&](const SequenceParameters& options) {
        return rnn(x, {}, w, u, {}, {}, RnnNonlinearity::relu, options);
    };
    CHECK(values(run({}).y) == Doubles{1, 12, 123});
    CHECK(values(run({.reverse = true}).y) == Doubles{321, 32, 3});
    const RecurrentSequence shorter = run({.lengths = int64_tensor({2}, {1})});
    CHECK(values(shorter.y) == Doubles{1, 12, 0});
    CHECK(values(shorter.hidden) == Doubles{12});
    // Both gates are 0.5: 0.5 tanh(1), and half of that.
    const RecurrentSequence gated = gru(tensor({1, 0}, {2, 1, 1}), {}, tensor({0, 0, 1}, {3, 1}), zeros({3, 1}));
    CHECK(difference(gated.y, {0.380797, 0.190399}, {1e-5}) == "");
}

TEST_CASE("recurrent layers: values match plain C++ in double") {
    const NetworkSize size{5, 4, 3, 6};
    for (const Network network : kAll)
        for (const bool reverse : {false, true})
            for (const bool full_length : {false, true}) {
                CAPTURE(static_cast<int>(network));
                CAPTURE(reverse);
                CAPTURE(full_length);
                const Tensors in = inputs(network, size, DType::f32);
                std::vector<std::int64_t> lengths{5, 0, 3, 1};
                if (full_length) lengths.assign(4, 5);
                const SequenceParameters options{reverse, full_length ? Tensor() : Tensor::from(lengths, {4})};
                const std::vector<Doubles> expected = expected_result(network, size, in, lengths, reverse);
                for (const bool decomposed : {false, true}) {
                    Tensors out;
                    if (decomposed) {
                        const detail::DecompositionScope scope;
                        out = layer(network, in, options);
                    } else {
                        out = layer(network, in, options);
                    }
                    for (std::size_t i = 0; i < out.size(); ++i)
                        CHECK(difference(values(out[i]), expected[i], {1e-5, 1e-5}) == "");
                }
            }
}

TEST_CASE("recurrent layers: values and gradients match the decompositions") {
    // Rows of one tile and of several, partial vectors of units, one work-item and several.
    const std::vector<NetworkSize> sizes{{3, 2, 4, 5}, {4, 13, 3, 17}, {2, 1, 6, 70}, {2, 21, 2, 130}, {2, 1, 4, 600}};
    for (const KernelStyle style : kernel_styles())
        for (const DType dtype : floats())
            for (const NetworkSize& size : sizes)
                for (const Network network : kAll) {
                    // Each program takes a second to compile.
                    if (small_cases() && (size.units > 40 || network == Network::relu)) continue;
                    if (size.units > 40 && (dtype != DType::f32 || network == Network::relu)) continue;
                    if (size.units > 200 && network != Network::lstm) continue;
                    // A simulated device takes a minute for each.
                    if (on_oclgrind() && dtype != DType::f32) continue;
                    const ops::KernelStyleScope scope(style);
                    for (const bool reverse : {false, true})
                        for (const bool full_length : {true, false}) {
                            if (size.units > 40 && !full_length) continue;
                            if (on_oclgrind() && (full_length || reverse != (size.units == 17))) continue;
                            CAPTURE(static_cast<int>(style));
                            CAPTURE(name_of(dtype));
                            CAPTURE(size.rows);
                            CAPTURE(size.units);
                            CAPTURE(static_cast<int>(network));
                            CAPTURE(reverse);
                            CAPTURE(full_length);
                            const SequenceParameters options{reverse, full_length ? Tensor() : lengths_of(size)};
                            const auto got = results_and_gradients(network, size, dtype, options);
                            const detail::DecompositionScope decomposed;
                            const auto expected = results_and_gradients(network, size, dtype, options);
                            REQUIRE(got.size() == expected.size());
                            for (std::size_t i = 0; i < got.size(); ++i) {
                                CAPTURE(i);
                                CHECK(difference(got[i], expected[i], tolerance(dtype, 200, 4)) == "");
                            }
                        }
                }
}

TEST_CASE("recurrent layers: the function contract") {
    const NetworkSize size{3, 4, 3, 5};
    const Tensor lengths = Tensor::from(std::vector<std::int64_t>{3, 1, 2, 3}, {4});
    for (const Network network : kAll)
        for (const bool with_lengths : {false, true}) {
            if (on_oclgrind() && (network != Network::gru || !with_lengths)) continue;
            Tensors in;
            for (const Tensor& input : inputs(network, size, DType::f32)) in.push_back(input.detach());
            if (network != Network::lstm) in.erase(in.begin() + 2);  // the cell state
            if (with_lengths) in.push_back(lengths);
            const bool cell = network == Network::lstm;
            const Contract contract{.name = cell                      ? "lstm"
                                            : network == Network::gru ? "gru"
                                                                      : "rnn",
                                    .inputs = in,
                                    .arbitrary =
                                        [&] {
                                            std::vector<bool> arbitrary(in.size(), true);
                                            if (with_lengths) arbitrary.back() = false;
                                            return arbitrary;
                                        }(),
                                    .call =
                                        [network, cell, with_lengths](const Tensors& inputs_of_call) {
                                            Tensors all = inputs_of_call;
                                            SequenceParameters options{.reverse = with_lengths};
                                            if (with_lengths) {
                                                options.lengths = all.back();
                                                all.pop_back();
                                            }
                                            if (!cell) all.insert(all.begin() + 2, Tensor());
                                            return layer(network, all, options);
                                        }};
            std::string all;
            for (const std::string& violation : violations(contract)) all += violation + "\n";
            CHECK(all == "");
        }
}

TEST_CASE("recurrent layers: a layer matches its cell step by step") {
    const NetworkSize size{4, 3, 5, 7};
    for (const Network network : kAll) {
        const Tensors in = inputs(network, size, DType::f32);
        const Tensors sequence = layer(network, in, {});
        LstmState state{in[1], in[2]};
        for (std::int64_t t = 0; t < size.steps; ++t) {
            const Tensor x = select(in[0], 0, t);
            if (network == Network::lstm) state = lstm_cell(x, state, in[3], in[4], in[5], in[6]);
            else if (network == Network::gru) state.hidden = gru_cell(x, state.hidden, in[3], in[4], in[5], in[6]);
            else
                state.hidden = rnn_cell(x, state.hidden, in[3], in[4], in[5], in[6],
                                        network == Network::relu ? RnnNonlinearity::relu : RnnNonlinearity::tanh);
            CHECK(difference(select(sequence[0], 0, t), values(state.hidden), {1e-5, 1e-5}) == "");
        }
        CHECK(difference(sequence[1], values(state.hidden), {1e-5, 1e-5}) == "");
        if (network == Network::lstm) CHECK(difference(sequence[2], values(state.cell), {1e-5, 1e-5}) == "");
    }
}

TEST_CASE("gru: reset gate before the product") {
    const NetworkSize size{3, 2, 4, 5};
    const Tensors in = inputs(Network::gru, size, DType::f32);
    Tensor h = in[1];
    for (std::int64_t t = 0; t < 3; ++t) h = gru_cell(select(in[0], 0, t), h, in[3], in[4], in[5], in[6], false);
    const RecurrentSequence got = gru(in[0], in[1], in[3], in[4], in[5], in[6], false);
    CHECK(difference(got.hidden, values(h), {1e-5, 1e-5}) == "");
    CHECK(difference(got.hidden, values(gru(in[0], in[1], in[3], in[4], in[5], in[6]).hidden), {1e-3, 1e-3}) != "");
    // In plain C++, one step of row 0 and unit 0.
    const Tensor step = gru_cell(select(in[0], 0, 0), in[1], in[3], in[4], in[5], in[6], false);
    const Doubles x = values(in[0]), state = values(in[1]), wi = values(in[3]), wh = values(in[4]), bi = values(in[5]),
                  bh = values(in[6]);
    const auto from_x = [&](std::size_t row) {
        double sum = bi[row];
        for (std::size_t k = 0; k < 4; ++k) sum += wi[row * 4 + k] * x[k];
        return sum;
    };
    const auto from_h = [&](std::size_t row, const Doubles& with) {
        double sum = bh[row];
        for (std::size_t k = 0; k < 5; ++k) sum += wh[row * 5 + k] * with[k];
        return sum;
    };
    Doubles reset;
    for (std::size_t k = 0; k < 5; ++k) reset.push_back(logistic(from_x(k) + from_h(k, state)) * state[k]);
    const double z = logistic(from_x(5) + from_h(5, state)), n = std::tanh(from_x(10) + from_h(10, reset));
    CHECK(values(step)[0] == doctest::Approx((1 - z) * n + z * state[0]).epsilon(1e-5));
}

TEST_CASE("lstm: projections and peepholes") {
    const std::int64_t steps = 3, rows = 2, width = 4, units = 6, projected = 3;
    const Tensor x = random_tensor({steps, rows, width}, 1), h = random_tensor({rows, projected}, 2),
                 c = random_tensor({rows, units}, 3), wi = random_tensor({4 * units, width}, 4),
                 wh = random_tensor({4 * units, projected}, 5), b = random_tensor({4 * units}, 6),
                 wr = random_tensor({projected, units}, 7).set_requires_grad(),
                 p = random_tensor({3 * units}, 8).set_requires_grad();
    const LstmSequence got = lstm(x, {h, c}, wi, wh, b, {}, {.weight_hr = wr, .peephole = p});
    CHECK(got.y.shape() == Shape{steps, rows, projected});
    const Doubles xs = values(x), wis = values(wi), whs = values(wh), bs = values(b), wrs = values(wr), ps = values(p);
    Doubles hs = values(h), cs = values(c);
    for (std::size_t t = 0; t < 3; ++t)
        for (std::size_t n = 0; n < 2; ++n) {
            Doubles raw;
            for (std::size_t u = 0; u < 6; ++u) {
                const auto gate = [&](std::size_t g) {
                    const std::size_t row = g * 6 + u;
                    double sum = bs[row];
                    for (std::size_t k = 0; k < 4; ++k) sum += wis[row * 4 + k] * xs[(t * 2 + n) * 4 + k];
                    for (std::size_t k = 0; k < 3; ++k) sum += whs[row * 3 + k] * hs[n * 3 + k];
                    return sum;
                };
                double& cell = cs[n * 6 + u];
                const double before = cell;
                cell = logistic(gate(1) + ps[6 + u] * before) * before +
                       logistic(gate(0) + ps[u] * before) * std::tanh(gate(2));
                raw.push_back(logistic(gate(3) + ps[12 + u] * cell) * std::tanh(cell));
            }
            for (std::size_t q = 0; q < 3; ++q) {
                double sum = 0;
                for (std::size_t u = 0; u < 6; ++u) sum += wrs[q * 6 + u] * raw[u];
                hs[n * 3 + q] = sum;
            }
        }
    CHECK(difference(got.state.hidden, hs, {1e-5, 1e-5}) == "");
    CHECK(difference(got.state.cell, cs, {1e-5, 1e-5}) == "");
    sum(got.y).backward();
    CHECK(wr.grad().defined());
    CHECK(p.grad().defined());
}

TEST_CASE("recurrent layers: without states and biases, without gradients, and errors") {
    const NetworkSize size{3, 2, 4, 5};
    for (const Network network : kAll) {
        Tensors in = inputs(network, size, DType::f32);
        Tensors zero = in;
        in[1] = in[2] = in[5] = in[6] = Tensor();
        zero[1] = zero[2] = zeros({2, 5});
        zero[5] = zero[6] = zeros({gates_of(network) * 5});
        const Tensors got = layer(network, in, {}), expected = layer(network, zero, {});
        for (std::size_t i = 0; i < got.size(); ++i) CHECK(difference(got[i], values(expected[i]), {1e-6, 1e-6}) == "");
        const NoGrad no_grad;  // nothing is saved for backward
        const Tensors plain = layer(network, in, {});
        for (std::size_t i = 0; i < got.size(); ++i) CHECK(values(plain[i]) == values(got[i]));
    }
    const Tensors in = inputs(Network::lstm, size, DType::f32);
    CHECK_THROWS_AS(lstm(in[0], {}, in[4], in[4]), ShapeError);
    CHECK_THROWS_AS(lstm(slice(in[0], 0, 0, 0), {}, in[3], in[4]), ShapeError);
    CHECK_THROWS_AS(lstm(in[0], {in[1], in[2].to(DType::bf16)}, in[3], in[4]), TypeError);
    CHECK_THROWS_AS(lstm(in[0], {}, in[3], Tensor()), ValueError);
    CHECK_THROWS_AS(lstm(in[0], {}, in[3], in[4], {}, {}, {.sequence = {.lengths = zeros({2})}}), TypeError);
    CHECK_THROWS_AS(lstm(in[0], {}, in[3], in[4], {}, {}, {.sequence = {.lengths = zeros({3}, {DType::i64})}}),
                    ShapeError);
    CHECK_THROWS_AS(gru(in[0], {}, in[3], in[4]), ShapeError);
    CHECK_THROWS_AS(rnn_cell(select(in[0], 0, 0), in[1], in[3], in[4]), ShapeError);
    const Tensors empty = inputs(Network::lstm, {3, 0, 4, 5}, DType::f32);
    CHECK(layer(Network::lstm, empty, {})[0].shape() == Shape{3, 0, 5});
}
