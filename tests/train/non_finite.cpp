// The search for the first non-finite value covers modules of every signature.
#include <declivity/train/trainer.hpp>

#include <cmath>
#include <utility>
#include <vector>

#include <declivity/data/synthetic_digits.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/nn/nn.hpp>
#include <declivity/optim/sgd.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>

using namespace declivity;

namespace {

struct State {
    Tensor level;
};
std::vector<Tensor> tensors_of(const State& state) { return {state.level}; }

/// Returns the logarithm of a negative number, only in its state and only after some steps.
struct Cell : nn::Callable<std::pair<Tensor, State>(Tensor, State)> {
    int calls = 0;
    std::pair<Tensor, State> forward(Tensor x, State) override { return {x, {++calls > 2 ? log(x - 10) : x}}; }
};

struct Net : nn::Layer {
    nn::Linear& dense = add("dense", nn::Linear(784, 10));
    nn::ModuleList<Cell>& cells = add("cells", nn::ModuleList<Cell>(Cell(), Cell()));
    Tensor forward(Tensor x) override {
        State state;
        x = flatten(x);
        for (Cell& cell : cells) {
            auto [out, next] = cell(x, state);
            x = out;
            state = next;
        }
        return dense(x) + sum(state.level);
    }
    std::string type_name() const override { return "Net"; }
};

}  // namespace

TEST_CASE("non-finite: the first non-finite value is found in a cell's result struct") {
    const data::SyntheticDigits digits(64, 1);
    Net net;
    net.cells[0].calls = -1000;
    optim::SGD optimizer(net.parameters(), {.lr = 1e-3});
    train::Trainer trainer(net, optimizer);
    CHECK_THROWS_WITH_AS(trainer.fit(digits, {.epochs = 3, .batch = 16, .quiet = true}),
                         doctest::Contains("the first non-finite value is in 'Net/cells.1'"), train::NonFiniteLoss);
}
