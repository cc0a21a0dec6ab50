// Optimizer states in the format of torch.optim, in both directions.
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include <declivity/functions/functions.hpp>
#include <declivity/io/state_dict.hpp>
#include <declivity/optim/adadelta.hpp>
#include <declivity/optim/adagrad.hpp>
#include <declivity/optim/adam.hpp>
#include <declivity/optim/radam.hpp>
#include <declivity/optim/rmsprop.hpp>
#include <declivity/optim/sgd.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>

#include <tests/support/values.hpp>
#include "tests/support/devices.hpp"
#include "tests/support/temp_folder.hpp"

using namespace declivity;
using test::values;

namespace {

std::vector<std::string> names_of(const StateDict& state) {
    std::vector<std::string> names;
    for (const NamedTensor& item : state) names.push_back(item.name);
    return names;
}

Tensor state_of(const StateDict& state, const std::string& name) {
    for (const NamedTensor& item : state)
        if (item.name == name) return item.tensor;
    FAIL("no state named " << name);
    return {};
}

struct Two {
    Tensor a = full({3}, 1).set_requires_grad(), b = full({2}, 1).set_requires_grad();
    [[nodiscard]] optim::Parameters named() const {
        return std::vector<NamedTensor>{{"layer.weight", a}, {"layer.bias", b}};
    }
};

}  // namespace

TEST_CASE("torch state: training continues from a state of PyTorch's Adam") {
    // The state of torch.optim.Adam, flattened: the gradients of the first parameter were 1, 2, 3, the second had none.
    const double beta1 = 0.9, beta2 = 0.999;
    double m = 0, v = 0, p = 1;
    const auto step = [&](double g, int t) {
        m = beta1 * m + (1 - beta1) * g;
        v = beta2 * v + (1 - beta2) * g * g;
        p -= 0.01 * (m / (1 - std::pow(beta1, t))) / (std::sqrt(v / (1 - std::pow(beta2, t))) + 1e-8);
    };
    for (int t = 1; t <= 3; ++t) step(t, t);
    for (const bool named_parameters : {false, true}) {
        CAPTURE(named_parameters);
        const std::string first = named_parameters ? "state.layer.weight." : "state.0.";
        const StateDict saved{{"param_groups.0.lr", full({}, 0.01)},
                              {"param_groups.0.initial_lr", full({1}, 0.5)},
                              {first + "step", full({}, 3)},
                              {first + "exp_avg", full({3}, m)},
                              {first + "exp_avg_sq", full({3}, v)}};
        const test::TempFolder folder;
        io::save(folder / "torch.safetensors", saved);
        Two groups;
        groups.a.assign(full({3}, p));
        groups.a.set_requires_grad();
        optim::Adam optimizer(groups.named(), {.lr = 0.25});
        groups.b.set_grad(ones({2}));
        optimizer.step();  // replaced by the loaded state
        optimizer.load_torch_state_dict(io::load(folder / "torch.safetensors"));
        CHECK(optimizer.learning_rate() == doctest::Approx(0.01));
        CHECK(optimizer.initial_learning_rate() == 0.5);
        groups.b.assign(full({2}, 1));
        groups.b.set_requires_grad();
        groups.a.set_grad(full({3}, 5));
        groups.b.set_grad(full({2}, 5));
        optimizer.step();
        const double m_before = m, v_before = v, p_before = p;
        step(5, 4);
        CHECK(values(groups.a)[2] == doctest::Approx(p).epsilon(1e-6));
        CHECK(values(groups.b)[1] == doctest::Approx(0.99).epsilon(1e-6));  // its first step
        m = m_before, v = v_before, p = p_before;
    }
}

TEST_CASE("torch state: the names are those of torch.optim") {
    const auto check = [](auto&& make, const std::vector<std::string>& expected) {
        Two groups;
        auto optimizer = make(groups.named());
        groups.b.set_grad(ones({2}));
        optimizer.step();
        std::vector<std::string> all{"param_groups.0.lr", "param_groups.0.initial_lr"};
        for (const std::string& name : expected) all.push_back("state.1." + name);
        CHECK(names_of(optimizer.torch_state_dict()) == all);
        // In the other direction the second parameter took no step, so it has no state.
        Two others;
        auto other = make(others.named());
        others.a.set_grad(ones({3}));
        other.step();
        other.load_torch_state_dict(optimizer.torch_state_dict());
        const StateDict saved = optimizer.state_dict(), restored = other.state_dict();
        CHECK(names_of(saved) == names_of(restored));
        for (std::size_t i = 0; i < saved.size(); ++i) {
            CAPTURE(saved[i].name);
            if (expected.empty() && saved[i].name.ends_with(".step")) continue;  // SGD without momentum has no state
            CHECK(values(saved[i].tensor) == values(restored[i].tensor));
        }
    };
    using P = optim::Parameters;
    check([](const P& p) { return optim::SGD(p, {.lr = 0.1}); }, {});
    check([](const P& p) { return optim::SGD(p, {.lr = 0.1, .momentum = 0.9}); }, {"momentum_buffer"});
    check([](const P& p) { return optim::Adam(p, {.lr = 0.1}); }, {"step", "exp_avg", "exp_avg_sq"});
    check([](const P& p) { return optim::AdamW(p, {.amsgrad = true}); },
          {"step", "exp_avg", "exp_avg_sq", "max_exp_avg_sq"});
    check([](const P& p) { return optim::RAdam(p); }, {"step", "exp_avg", "exp_avg_sq"});
    check([](const P& p) { return optim::RMSprop(p, {.momentum = 0.5, .centered = true}); },
          {"step", "square_avg", "grad_avg", "momentum_buffer"});
    check([](const P& p) { return optim::Adagrad(p, {.initial_accumulator_value = 0.5}); }, {"step", "sum"});
    check([](const P& p) { return optim::Adadelta(p); }, {"step", "square_avg", "acc_delta"});
}

TEST_CASE("torch state: SGD's first step after loading is a first step only for parameters without a buffer") {
    Two groups;
    optim::SGD optimizer(groups.named(), {.lr = 1, .momentum = 0.5, .dampening = 0.5});
    optimizer.load_torch_state_dict({{"state.0.momentum_buffer", full({3}, 4)}});
    groups.a.set_grad(ones({3}));
    groups.b.set_grad(ones({2}));
    optimizer.step();
    CHECK(values(groups.a)[0] == 1 - (0.5 * 4 + 0.5));
    CHECK(values(groups.b)[0] == 0);
}

TEST_CASE("torch state: 16-bit parameters, and states of their type") {
    for (const DType dtype : {DType::f16, DType::bf16}) {
        CAPTURE(name_of(dtype));
        Tensor p = full({3}, 2, {dtype}).set_requires_grad();
        optim::Adam optimizer({p}, {.lr = 0.5});
        p.assign(full({3}, 7, {dtype}));
        p.set_requires_grad();
        optimizer.load_torch_state_dict({{"state.0.step", full({}, 2)},
                                         {"state.0.exp_avg", full({3}, 0.25, {dtype})},
                                         {"state.0.exp_avg_sq", full({3}, 0.5, {dtype})}});
        const StateDict state = optimizer.state_dict();
        CHECK(values(state_of(state, "state.0.m")) == std::vector<double>(3, 0.25));
        CHECK(state_of(state, "state.0.v").dtype() == DType::f32);
        CHECK(values(state_of(state, "state.0.master")) == std::vector<double>(3, 7));
        CHECK(names_of(optimizer.torch_state_dict()) ==
              std::vector<std::string>{"param_groups.0.lr", "param_groups.0.initial_lr", "state.0.step",
                                       "state.0.exp_avg", "state.0.exp_avg_sq"});
    }
}

TEST_CASE("torch state: indices run over all groups, and mismatches are refused by name") {
    Two groups;
    optim::Adam optimizer({groups.a}, {.lr = 0.5});
    optimizer.add_group({groups.b}, {.lr = 0.25});
    const StateDict good{{"param_groups.1.lr", full({}, 0.125)},
                         {"state.1.step", full({}, 4)},
                         {"state.1.exp_avg", full({2}, 3)},
                         {"state.1.exp_avg_sq", full({2}, 5)}};
    const auto refuse = [&](auto&& change, const std::string& text) {
        StateDict bad = good;
        change(bad);
        CHECK_THROWS_WITH(optimizer.load_torch_state_dict(bad), doctest::Contains(text.c_str()));
        CHECK(values(state_of(optimizer.state_dict(), "state.1.step")) == std::vector<double>{0});
        CHECK(optimizer.learning_rate(1) == 0.25);
    };
    refuse([](StateDict& bad) { bad.pop_back(); }, "missing: [state.1.v], unexpected: []");
    refuse([](StateDict& bad) { bad.erase(bad.begin() + 1); }, "missing: [state.1.step]");
    refuse([](StateDict& bad) { bad[2].name = "state.7.exp_avg"; }, "unexpected: [state.7.exp_avg]");
    refuse([](StateDict& bad) { bad[2].tensor = ones({3}); }, "of shape [2], got [3]");
    refuse([](StateDict& bad) { bad[2].tensor = Tensor(); }, "missing: [state.1.m]");
    refuse([](StateDict& bad) { bad[0].tensor = full({}, -1); }, "got -1");
    refuse([](StateDict& bad) { bad.push_back(bad[1]); }, "each name once");
    optimizer.load_torch_state_dict(good);
    CHECK(optimizer.learning_rate() == 0.5);
    CHECK(optimizer.learning_rate(1) == 0.125);
    CHECK(values(state_of(optimizer.state_dict(), "state.1.v")) == std::vector<double>(2, 5));
    CHECK(values(state_of(optimizer.state_dict(), "state.0.step")) == std::vector<double>{0});
}
