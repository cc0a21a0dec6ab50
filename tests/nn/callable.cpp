// Modules of any signature: calls, optional arguments, observers, hooks, summaries, captured steps.
#include <declivity/nn/nn.hpp>

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/capture/capture.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/optim/sgd.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>

#include <tests/support/values.hpp>

#include "tensor/access.hpp"

using namespace declivity;
using namespace declivity::test;

namespace {

/// A user-defined struct, found by its namespace.
struct State {
    Tensor level, slope;
};
std::vector<Tensor> tensors_of(const State& state) { return {state.level, state.slope}; }

/// Two inputs, the second one optional, and a struct as the state.
struct Cell : nn::Callable<std::pair<Tensor, State>(Tensor, State, Tensor)> {
    nn::Linear& dense = add("dense", nn::Linear(3, 4));
    std::pair<Tensor, State> forward(Tensor x, State state, Tensor mask) override {
        const Tensor level = state.level.defined() ? state.level : zeros({x.size(0), 4});
        Tensor next = tanh(dense(x) + level);
        if (mask.defined()) next = next * mask;
        return {next, {next, next - level}};
    }
    std::string type_name() const override { return "Cell"; }
};

struct Two : nn::Callable<Tensor(Tensor, Tensor)> {
    Tensor forward(Tensor a, Tensor b) override { return b.defined() ? matmul(a, b) : a * 2; }
    std::string type_name() const override { return "Two"; }
};

/// No tensor among its arguments.
struct Steps : nn::Callable<std::vector<Tensor>(int, double)> {
    std::vector<Tensor> forward(int n, double factor) override {
        return std::vector<Tensor>(static_cast<std::size_t>(n), full({2}, factor));
    }
};

struct Source : nn::Callable<Tensor()> {
    Parameter value = parameter("value", ones({3}));
    Tensor forward() override { return value * 2; }
};

}  // namespace

TEST_CASE("modules: any arguments and any result") {
    Cell cell;
    const Tensor x = random_tensor({2, 3}, 1), mask = random_tensor({2, 4}, 2);
    const Tensor w = cell.dense.weight(), b = cell.dense.bias();
    const auto [out, state] = cell(x);
    CHECK(values(out) == values(tanh(linear(x, w, b) + zeros({2, 4}))));
    const auto [again, next] = cell(x, state);
    CHECK(values(again) == values(tanh(linear(x, w, b) + state.level)));
    CHECK(values(next.slope) == values(again - state.level));
    CHECK(values(cell(x, {state.level, {}}, mask).first) == values(again * mask));
    CHECK(values(cell(x, {}, mask).first) == values(out * mask));

    Two two;
    CHECK(values(two(x)) == values(x * 2));
    const Tensor other = random_tensor({3, 5}, 3);
    CHECK(values(two(x, other)) == values(matmul(x, other)));
    CHECK(Steps()(3, 0.5).size() == 3);
    CHECK(values(Steps()(1)[0]) == std::vector<double>{0, 0});
    CHECK(values(Source()()) == std::vector<double>{2, 2, 2});
    // Invalid calls do not compile.
    static_assert(std::is_invocable_r_v<Tensor, Two&, Tensor, Tensor>);
    static_assert(std::is_invocable_v<nn::Layer&, const Tensor&>);
    static_assert(!std::is_invocable_v<nn::Layer&>);
    static_assert(!std::is_invocable_v<Two&, Tensor, Tensor, Tensor>);
    static_assert(!std::is_invocable_v<Two&, int>);
    static_assert(!std::is_invocable_v<nn::Module&, Tensor>);
    static_assert(std::is_same_v<nn::Layer, nn::Callable<Tensor(Tensor)>>);
    // Any class with the right signature is accepted.
    const auto twice = [](nn::Callable<Tensor(Tensor, Tensor)>& function, const Tensor& in) {
        return function(function(in));
    };
    CHECK(values(twice(two, x)) == values(x * 4));
}

TEST_CASE("modules: the first tensor must be defined, others are optional") {
    Two two;
    CHECK_THROWS_WITH_AS(two(Tensor(), ones({2})), "Two: expected a tensor, got an undefined one (in Two)", ValueError);
    struct Holder : nn::Layer {
        Two& two = add("two", Two());
        Tensor forward(Tensor x) override { return two({}, x); }
        std::string type_name() const override { return "Holder"; }
    } holder;
    CHECK_THROWS_WITH_AS(holder(ones({2})), "Two: expected a tensor, got an undefined one (in Holder/two)", ValueError);
    Two moved(std::move(two));
    CHECK_THROWS_WITH_AS((void)two(ones({2})), "Two: expected a module, got one that was moved from", ValueError);
    CHECK(moved(ones({2})).defined());
}

TEST_CASE("modules: a moved argument is released before the call ends") {
    struct DonatingLayer : nn::Layer {
        std::weak_ptr<const void> input_state;
        bool released = false;
        Tensor forward(Tensor x) override {
            input_state = state_of(x);
            Tensor y = relu(std::move(x));
            released = input_state.expired();
            return y;
        }
    } module;
    (void)module(ones({3}) + 1);
    CHECK(module.released);
    const Tensor retained = ones({3});
    (void)module(retained);
    CHECK_FALSE(module.released);
}

TEST_CASE("tensors_of lists the tensors of a value") {
    const Tensor a = ones({1}), b = ones({2}), c = ones({3});
    const auto sizes = [](const auto& value) {
        std::vector<std::int64_t> out;
        for (const Tensor& tensor : tensors_of(value)) out.push_back(tensor.defined() ? tensor.numel() : 0);
        return out;
    };
    using Sizes = std::vector<std::int64_t>;
    CHECK(sizes(a) == Sizes{1});
    CHECK(sizes(std::vector{a, b}) == Sizes{1, 2});
    CHECK(sizes(std::array{c, b}) == Sizes{3, 2});
    CHECK(sizes(std::pair{State{a, {}}, 5}) == Sizes{1, 0});
    CHECK(sizes(std::tuple{1.5, std::vector{State{a, b}}, std::optional<Tensor>(c), std::string("x")}) ==
          Sizes{1, 2, 3});
    CHECK(sizes(std::optional<State>()) == Sizes{});
    CHECK(sizes(LstmState{b, c}) == Sizes{2, 3});
    CHECK(sizes(std::vector<std::vector<std::tuple<Tensor>>>{{a, b}, {c}}) == Sizes{1, 2, 3});
    struct Unknown {};
    static_assert(!HasTensors<Unknown>);
    static_assert(HasTensors<State> && HasTensors<int>);
}

TEST_CASE("modules: observers see every signature") {
    Cell cell;
    std::vector<std::string> observed;
    {
        const nn::ObserveCalls observe(
            [&](const std::string& path, const nn::Module& module, const auto& in, const auto& out) {
                observed.push_back(path + " " + module.type_name() + " " + std::to_string(in.size()) + " " +
                                   std::to_string(out.size()));
            });
        (void)cell(ones({2, 3}), {ones({2, 4}), {}});
    }
    CHECK(observed == std::vector<std::string>{"Cell/dense Linear 1 1", "Cell Cell 2 3"});
    (void)cell(ones({2, 3}));
    CHECK(observed.size() == 2);
}

TEST_CASE("summary: any inputs; preserves each module's mode") {
    Cell cell;
    const std::string table = nn::summary(cell, ones({2, 3}), State{ones({2, 4}), {}});
    CHECK(table.find("Cell/dense") != std::string::npos);
    CHECK(table.find("total for inputs of [2, 3], [2, 4]") != std::string::npos);
    CHECK(table.find(" 24\n") != std::string::npos);  // multiply-adds of 2 x 3 by 3 x 4
    CHECK(cell.summary({5, 3}).find("total for an input of [5, 3]") != std::string::npos);

    nn::Sequential model(nn::Linear(3, 4), nn::BatchNorm1d(4), nn::Dropout());
    model[1].eval();
    const auto before = values(model.named_buffers()[0].tensor);
    CHECK(model.summary({5, 3}) == nn::summary(model, ones({5, 3})));
    CHECK(values(model.named_buffers()[0].tensor) == before);
    CHECK(model.training());
    CHECK_FALSE(model[1].training());
    CHECK(model[2].training());
    CHECK_THROWS_AS((void)nn::summary(model, ones({5, 4})), ShapeError);
    CHECK(model.training());
    CHECK_FALSE(model[1].training());
}

TEST_CASE("hooks: see arguments and results, and may replace them") {
    Cell cell;
    const Tensor x = random_tensor({2, 3}, 4), plus = random_tensor({2, 4}, 5);
    const auto plain = cell(x, {plus, {}});
    std::vector<std::string> order;
    const int first = cell.register_forward_pre_hook([&](auto& module, auto& arguments) {
        order.push_back("pre of " + module.type_name());
        if (!std::get<1>(arguments).level.defined()) std::get<1>(arguments) = State{plus, {}};
    });
    const int second = cell.register_forward_hook([&](auto&, const auto& arguments, auto& result) {
        order.push_back("post");
        CHECK(state_of(std::get<1>(arguments).level) == state_of(plus));
        result.first = result.first * 3;
    });
    const int third = cell.register_forward_hook([&](auto&, const auto&, auto& result) {
        order.push_back("last");
        result.first = result.first + 1;
    });
    CHECK(first != second);
    CHECK(values(cell(x).first) == values(plain.first * 3 + 1));
    CHECK(order == std::vector<std::string>{"pre of Cell", "post", "last"});
    cell.remove_hook(second);
    cell.remove_hook(12345678);
    CHECK(values(cell(x).first) == values(plain.first + 1));
    Cell moved(std::move(cell));  // with its hooks
    CHECK(values(moved(x).first) == values(plain.first + 1));
    moved.remove_hook(first);
    moved.remove_hook(third);
    CHECK(values(moved(x).first) == values(tanh(linear(x, moved.dense.weight(), moved.dense.bias()) + zeros({2, 4}))));

    nn::Linear layer(3, 4);
    CHECK_THROWS_WITH_AS(layer.register_forward_hook(nullptr),
                         "register_forward_hook: expected a function, got an empty one", ValueError);
    CHECK_THROWS_WITH_AS(layer.register_forward_pre_hook({}),
                         "register_forward_pre_hook: expected a function, got an empty one", ValueError);
    layer.register_forward_pre_hook([](auto&, auto& arguments) { std::get<0>(arguments) = Tensor(); });
    CHECK_THROWS_WITH_AS(layer(x), "Linear: expected a tensor, got an undefined one (in Linear)", ValueError);
}

TEST_CASE("hooks: gradients flow through replaced values, and a hook may remove itself") {
    nn::Linear layer(3, 2);
    const Tensor x = random_tensor({4, 3}, 6);
    layer.register_forward_pre_hook(
        [](auto&, auto& arguments) { std::get<0>(arguments) = square(std::get<0>(arguments)); });
    int calls = 0, number = 0;
    number = layer.register_forward_hook([&](nn::Layer& module, const auto&, Tensor& result) {
        ++calls;
        result = result * 2;
        module.remove_hook(number);
    });
    sum(layer(x)).backward();
    std::vector<double> expected(6, 0);
    const auto in = values(x);
    for (std::size_t row = 0; row < 4; ++row)
        for (std::size_t column = 0; column < 3; ++column) {
            expected[column] += 2 * in[row * 3 + column] * in[row * 3 + column];
            expected[column + 3] = expected[column];
        }
    CHECK(difference(layer.weight().grad(), expected, {1e-5, 1e-5}) == "");
    (void)layer(x);
    CHECK(calls == 1);
}

namespace {

/// Parameters after some steps of a network with a cell, eager or captured.
std::vector<std::vector<double>> trained(bool capture_it) {
    manual_seed(3);
    Cell cell;
    cell.register_forward_hook([](auto&, const auto&, auto& result) { result.first = result.first * 1.5; });
    optim::SGD optimizer(cell.parameters(), {.lr = 0.1, .momentum = 0.9});
    const auto step = [&](const std::vector<Tensor>& in) {
        optimizer.zero_grad();
        const auto [first, state] = cell(in[0]);
        const auto [out, next] = cell(in[0], state, in[1]);
        const Tensor loss = mean(square(out - in[1])) + mean(square(next.slope));
        loss.backward();
        optimizer.step();
        return std::vector{loss.detach()};
    };
    auto captured = capture(step);
    std::vector<std::vector<double>> out;
    for (std::uint64_t i = 0; i < 6; ++i) {
        const std::vector<Tensor> in{random_tensor({5, 3}, 10 + i), random_tensor({5, 4}, 20 + i)};
        out.push_back(values(capture_it ? captured(in)[0] : step(in)[0]));
    }
    if (capture_it) CHECK(captured.replayed() == 5);
    for (const Tensor& parameter : cell.parameters()) out.push_back(values(parameter));
    return out;
}

}  // namespace

TEST_CASE("modules of any signature with hooks: captured steps match eager calls bit for bit") {
    CHECK(trained(true) == trained(false));
}

TEST_CASE("hooks and captured steps") {
    nn::Linear layer(3, 2);
    layer.eval();
    const NoGrad no_grad;
    const Tensor x = random_tensor({4, 3}, 7);
    auto step = capture([&](const Tensor& in) { return layer(in); });
    const auto plain = values(step(x));
    (void)step(x);
    CHECK(step.replays());
    // Captured again when hooks are added or removed.
    const int number =
        layer.register_forward_hook([](nn::Layer&, const auto&, Tensor& result) { result = result * 2; });
    std::vector<double> doubled = plain;
    for (double& value : doubled) value *= 2;
    CHECK(values(step(x)) == doubled);
    CHECK(values(step(x)) == doubled);
    CHECK(step.replayed() == 2);
    layer.remove_hook(number);
    CHECK(values(step(x)) == plain);
    CHECK(values(step(x)) == plain);
    CHECK(step.replayed() == 3);
    // Hooks that are not declared as enqueue-only.
    auto fallback =
        capture([&](const Tensor& in) { return layer(in); }, {.when_refused = WhenRefused::run, .hooks = false});
    (void)fallback(x);
    CHECK(fallback.refused().empty());
    layer.register_forward_pre_hook([](auto&, auto&) {});
    (void)fallback(x);
    CHECK(fallback.refused().find("a hook of a module (remove it") != std::string::npos);
    auto failing = capture([&](const Tensor& in) { return layer(in); }, {.hooks = false});
    CHECK_THROWS_AS((void)failing(x), Unsupported);
}
