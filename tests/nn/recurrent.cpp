// RNN, GRU, LSTM modules: layers, directions, parameter names, states, lengths; a network learns to remember.
#include <cstdint>
#include <string>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/nn/nn.hpp>
#include <declivity/optim/adam.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>
#include <tests/support/devices.hpp>
#include <tests/support/values.hpp>

using namespace declivity;
using test::difference;
using test::random_tensor;
using test::values;

namespace {

Tensor parameter_of(nn::Module& module, const std::string& name) {
    for (const auto& [parameter_name, tensor] : module.named_parameters())
        if (parameter_name == name) return tensor;
    FAIL("no parameter " << name);
    return {};
}

}  // namespace

TEST_CASE("LSTM: two bidirectional layers match composed layers") {
    nn::LSTM model(3, 5, {.num_layers = 2, .bidirectional = true});
    std::vector<std::string> names;
    for (const auto& [name, tensor] : model.named_parameters()) names.push_back(name);
    CHECK(names == std::vector<std::string>{"weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0",
                                            "weight_ih_l0_reverse", "weight_hh_l0_reverse", "bias_ih_l0_reverse",
                                            "bias_hh_l0_reverse", "weight_ih_l1", "weight_hh_l1", "bias_ih_l1",
                                            "bias_hh_l1", "weight_ih_l1_reverse", "weight_hh_l1_reverse",
                                            "bias_ih_l1_reverse", "bias_hh_l1_reverse"});
    const Tensor x = random_tensor({4, 2, 3}, 1), h = random_tensor({4, 2, 5}, 2), c = random_tensor({4, 2, 5}, 3),
                 lengths = Tensor::from(std::vector<std::int64_t>{3, 4}, {2});
    const LstmSequence result = model(x, {h, c}, lengths);
    Tensor in = x;
    std::vector<Tensor> hidden, cells;
    for (int layer = 0; layer < 2; ++layer) {
        std::vector<Tensor> directions;
        for (int direction = 0; direction < 2; ++direction) {
            const std::string end = "_l" + std::to_string(layer) + (direction == 1 ? "_reverse" : "");
            const int part = 2 * layer + direction;
            const LstmSequence layer_output = lstm(
                in, {select(h, 0, part), select(c, 0, part)}, parameter_of(model, "weight_ih" + end),
                parameter_of(model, "weight_hh" + end), parameter_of(model, "bias_ih" + end),
                parameter_of(model, "bias_hh" + end), {.sequence = {.reverse = direction == 1, .lengths = lengths}});
            directions.push_back(layer_output.y);
            hidden.push_back(layer_output.state.hidden);
            cells.push_back(layer_output.state.cell);
        }
        in = concat(directions, -1);
    }
    CHECK(difference(result.y, values(in), {1e-6, 1e-6}) == "");
    CHECK(difference(result.state.hidden, values(stack(hidden, 0)), {1e-6, 1e-6}) == "");
    CHECK(difference(result.state.cell, values(stack(cells, 0)), {1e-6, 1e-6}) == "");
    // The default state is zeros, one sequence needs no axis N, and the batch may come first.
    const LstmSequence plain = model(x), zero = model(x, {zeros({4, 2, 5}), zeros({4, 2, 5})});
    CHECK(values(plain.y) == values(zero.y));
    const LstmSequence single = model(select(x, 1, 0), {select(h, 1, 0), select(c, 1, 0)});
    CHECK(single.y.shape() == Shape{4, 10});
    CHECK(single.state.cell.shape() == Shape{4, 5});
    CHECK(difference(single.y, values(select(model(x, {h, c}).y, 1, 0)), {1e-6, 1e-6}) == "");
}

TEST_CASE("GRU and RNN: batch first, dropout, errors") {
    nn::GRU gru(3, 5, {.num_layers = 2, .batch_first = true, .dropout = 0.5});
    gru.eval();
    const Tensor x = random_tensor({2, 4, 3}, 1);
    const RecurrentSequence result = gru(x);
    CHECK(result.y.shape() == Shape{2, 4, 5});
    CHECK(result.hidden.shape() == Shape{2, 2, 5});
    CHECK(difference(select(result.y, 1, 3), values(select(result.hidden, 0, 1)), {1e-6, 1e-6}) == "");
    gru.train();
    CHECK(values(gru(x).y) != values(result.y));
    nn::RNN rnn(3, 5, {.nonlinearity = RnnNonlinearity::relu, .bias = false});
    CHECK(rnn.parameters().size() == 2);
    for (const double value : values(rnn(transpose(x, 0, 1)).y)) CHECK(value >= 0);
    nn::LSTM projected(3, 5, {.proj_size = 2});
    CHECK(projected(transpose(x, 0, 1)).y.shape() == Shape{4, 2, 2});
    CHECK(parameter_of(projected, "weight_hr_l0").shape() == Shape{2, 5});
    CHECK_THROWS_AS(nn::LSTM(3, 5, {.proj_size = 5}), ValueError);
    CHECK_THROWS_AS(nn::GRU(0, 5), ValueError);
    CHECK_THROWS_AS(nn::GRU(3, 5, {.num_layers = 0}), ValueError);
    CHECK_THROWS_AS(nn::GRU(3, 5, {.dropout = 2}), ValueError);
    CHECK_THROWS_AS(gru(random_tensor({3}, 1)), ShapeError);
    CHECK_THROWS_AS(gru(x, zeros({1, 2, 5})), ShapeError);
    nn::GRUCell gru_cell(3, 5);
    nn::RNNCell rnn_cell(3, 5, {.bias = false});
    CHECK(gru_cell(select(x, 1, 0)).shape() == Shape{2, 5});
    CHECK(values(gru_cell(select(x, 1, 0))) == values(gru_cell(select(x, 1, 0), zeros({2, 5}))));
    CHECK(rnn_cell(select(x, 1, 0), random_tensor({2, 5}, 3)).shape() == Shape{2, 5});
    // The axis N may be absent.
    const Tensor unbatched = select(select(x, 1, 0), 0, 1), before = random_tensor({2, 5}, 4);
    nn::LSTMCell lstm_cell(3, 5);
    CHECK(difference(rnn_cell(unbatched, select(before, 0, 1)), values(select(rnn_cell(select(x, 1, 0), before), 0, 1)),
                     {1e-6, 1e-6}) == "");
    CHECK(difference(gru_cell(unbatched), values(select(gru_cell(select(x, 1, 0)), 0, 1)), {1e-6, 1e-6}) == "");
    const LstmState single = lstm_cell(unbatched, {select(before, 0, 1), Tensor()}),
                    rows = lstm_cell(select(x, 1, 0), {before, Tensor()});
    CHECK(difference(single.hidden, values(select(rows.hidden, 0, 1)), {1e-6, 1e-6}) == "");
    CHECK(difference(single.cell, values(select(rows.cell, 0, 1)), {1e-6, 1e-6}) == "");
    CHECK_THROWS_AS(nn::RNNCell(3, 0), ValueError);
    CHECK_THROWS_AS(gru_cell(x), ShapeError);
}

TEST_CASE("LSTM: learns to output the first token") {
    manual_seed(3);
    struct Net : nn::Layer {
        nn::LSTM& lstm = add("lstm", nn::LSTM(4, 24));
        nn::Linear& head = add("head", nn::Linear(24, 4));
        Tensor forward(Tensor x) override { return head(select(lstm(x).y, 0, -1)); }
    } net;
    optim::Adam optimizer(net.parameters(), {.lr = 0.01});
    double loss = 0;
    for (int step = 0; step < 150; ++step) {
        const Tensor tokens = randint(0, 4, {8, 32});
        const Tensor step_loss = cross_entropy(net(one_hot(tokens, 4).to(DType::f32)), select(tokens, 0, 0));
        step_loss.backward();
        optimizer.step();
        optimizer.zero_grad();
        if (step == 149) loss = step_loss.item<float>();
    }
    CHECK(loss < 0.3);  // ln 4 = 1.39 without memory
}

TEST_CASE("recurrent layers: shape errors name x") {
    nn::LSTM lstm(3, 5, {.num_layers = 2});
    CHECK_THROWS_WITH_AS(lstm(ones({4, 2, 7})), "LSTM: expected x of 3 features (input_size), got [4, 2, 7] (in LSTM)",
                         ShapeError);
    nn::GRUCell cell(3, 5);
    CHECK_THROWS_WITH_AS(cell(ones({2, 7})), "GRUCell: expected x of shape (N, 3) or (3), got [2, 7] (in GRUCell)",
                         ShapeError);
}
