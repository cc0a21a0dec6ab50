// User-defined optimizers: their formula, state, and errors; and properties of every optimizer.
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/capture/capture.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/nn/linear.hpp>
#include <declivity/nn/sequential.hpp>
#include <declivity/optim/adam.hpp>
#include <declivity/optim/sgd.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/runtime/profiler.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>

#include <tests/support/values.hpp>
#include "tests/support/devices.hpp"

using namespace declivity;
using test::values;

namespace {

/// Chen et al. 2023.
class Lion : public optim::Optimizer {
  public:
    struct Options {
        double lr = 1e-4, beta1 = 0.9, beta2 = 0.99, weight_decay = 0;
    };
    explicit Lion(const optim::Parameters& parameters, const Options& options) : Optimizer("Lion") {
        add_group(parameters, options);
    }
    void add_group(const optim::Parameters& parameters, const Options& options) {
        add(parameters, options.lr, {"m"});
        options_.push_back(options);
    }
    Options& options(std::size_t group) { return options_[group]; }

  protected:
    void update(std::size_t group, optim::Update& x) const override {
        const auto& [lr, beta1, beta2, decay] = options_[group];
        const Tensor interpolated = beta1 * x["m"] + (1 - beta1) * x.gradient;
        const Tensor sign = where(interpolated > 0, 1.0, where(interpolated < 0, -1.0, 0.0));
        x["m"] = beta2 * x["m"] + (1 - beta2) * x.gradient;
        x.parameter = x.parameter - x.lr * (sign + decay * x.parameter);
    }

  private:
    std::vector<Options> options_;
};

/// An optimizer given by a function.
struct FormulaOptimizer : optim::Optimizer {
    using Formula = std::function<void(optim::Update&)>;
    FormulaOptimizer(const optim::Parameters& parameters, Formula formula)
        : Optimizer("Given"), formula_(std::move(formula)) {
        add(parameters, 0.5, {"m", {"s", 3}});
    }
    void update(std::size_t, optim::Update& x) const override { formula_(x); }
    Formula formula_;
};

void lion_on_host(std::vector<double>& p, std::vector<double>& m, const std::vector<double>& g, double lr,
                  const Lion::Options& options) {
    for (std::size_t k = 0; k < p.size(); ++k) {
        const double interpolated = options.beta1 * m[k] + (1 - options.beta1) * g[k];
        p[k] -= lr * ((interpolated > 0 ? 1 : interpolated < 0 ? -1 : 0) + options.weight_decay * p[k]);
        m[k] = options.beta2 * m[k] + (1 - options.beta2) * g[k];
    }
}

}  // namespace

namespace {

std::vector<double> state_of(const optim::Optimizer& optimizer, const std::string& name) {
    for (const NamedTensor& item : optimizer.state_dict())
        if (item.name == name) return values(item.tensor);
    FAIL("no state of this name");
    return {};
}

}  // namespace

TEST_CASE("custom optimizer: groups with their own settings, one kernel each, and a changed setting") {
    const Device device = test::fresh_device();
    std::vector<Tensor> parameters;
    std::vector<std::vector<double>> expected, means;
    for (std::uint64_t i = 0; i < 5; ++i) {
        const Tensor initial = test::random_tensor({17 + static_cast<std::int64_t>(i) * 2000}, i).to(device).clone();
        parameters.push_back(Tensor(initial).set_requires_grad());
        expected.push_back(values(initial));
        means.emplace_back(expected.back().size(), 0.0);
    }
    const Lion::Options first{.lr = 0.01, .weight_decay = 0.1};
    Lion::Options second{.lr = 0.02, .beta1 = 0.5, .beta2 = 0.75};
    Lion optimizer({parameters[0], parameters[1], parameters[2]}, first);
    optimizer.add_group({parameters[3], parameters[4]}, second);
    for (std::uint64_t t = 1; t <= 4; ++t) {
        if (t == 3) {
            optimizer.set_learning_rate(0.03, 1);
            second.lr = 0.03;
            optimizer.options(1).beta1 = second.beta1 = 0.25;  // the formula is rebuilt
        }
        for (std::size_t i = 0; i < parameters.size(); ++i) {
            const Tensor g = test::random_tensor(parameters[i].shape(), 100 * t + i).to(device);
            parameters[i].set_grad(g);
            lion_on_host(expected[i], means[i], values(g), i < 3 ? first.lr : second.lr, i < 3 ? first : second);
        }
        device.synchronize();
        Profiler profiler(device);
        optimizer.step();
        profiler.stop();
        std::int64_t launches = 0;
        for (const auto& row : profiler.rows()) launches += row.name.starts_with("copy") ? 0 : row.calls;
        if (std::getenv("DECLIVITY_POOL") == nullptr) CHECK(launches == 4);  // and two that count steps
    }
    for (std::size_t i = 0; i < parameters.size(); ++i)
        CHECK(test::difference(parameters[i], expected[i], {2e-6, 2e-6}) == "");
}

TEST_CASE("custom optimizer: assigned roles are read back in the same step; a number to the power of the step") {
    Tensor parameter = test::random_tensor({7}, 1).set_requires_grad();
    FormulaOptimizer optimizer({parameter}, [](optim::Update& x) {
        x["m"] = 0.9 * x["m"] + x.gradient;
        x.parameter = x.parameter - x.lr * x["m"] / (1 - pow(0.9, x.step));
    });
    std::vector<double> expected = values(parameter), m(7, 0.0);
    for (std::uint64_t t = 1; t <= 3; ++t) {
        const Tensor gradient = test::random_tensor({7}, 10 + t);
        parameter.set_grad(gradient);
        optimizer.step();
        for (std::size_t k = 0; k < 7; ++k) {
            m[k] = 0.9 * m[k] + values(gradient)[k];
            expected[k] -= 0.5 * m[k] / (1 - std::pow(0.9, static_cast<double>(t)));
        }
    }
    CHECK(test::difference(parameter, expected, {1e-5, 1e-5}) == "");
}

TEST_CASE("custom optimizer: parameters without a gradient and their state are unchanged") {
    Tensor a = test::random_tensor({5}, 1).set_requires_grad(), b = test::random_tensor({4099}, 2).set_requires_grad(),
           c = test::random_tensor({3}, 3).set_requires_grad();
    Lion optimizer({a, b, c}, {.lr = 0.1});
    for (Tensor parameter : {a, b, c}) parameter.set_grad(ones_like(parameter));
    optimizer.step();
    const auto before = values(b), mean = state_of(optimizer, "state.1.m");
    b.zero_grad();
    optimizer.step();
    b.set_requires_grad(false);  // frozen
    optimizer.step();
    CHECK(values(b) == before);
    CHECK(state_of(optimizer, "state.1.m") == mean);
    CHECK(state_of(optimizer, "state.0.m")[0] == doctest::Approx(1 - std::pow(0.99, 3)));
    CHECK(state_of(optimizer, "state.0.step") == std::vector<double>{3});
    CHECK(state_of(optimizer, "state.1.step") == std::vector<double>{1});
    CHECK(state_of(optimizer, "state.2.step") == std::vector<double>{3});
}

TEST_CASE("custom optimizer: invalid formulas are refused by name, and nothing has changed") {
    Tensor p = test::random_tensor({7}, 1).set_requires_grad();
    p.set_grad(ones({7}));
    const auto before = values(p);
    const auto refuse = [&](const FormulaOptimizer::Formula& formula, const char* text) {
        CAPTURE(text);
        FormulaOptimizer optimizer({p}, formula);
        CHECK_THROWS_WITH_AS(optimizer.step(), doctest::Contains(text), ValueError);
        CHECK(values(p) == before);
        CHECK(state_of(optimizer, "state.0.step") == std::vector<double>{0});
    };
    const Tensor outside = ones({7});
    refuse([](optim::Update& x) { x.parameter = x.parameter - sum(x.gradient); },
           "Given: expected a formula of elementwise functions");
    refuse([](optim::Update& x) { x["m"].add_(x.gradient); }, "an in-place write");
    refuse([](optim::Update& x) { (void)x.step.item<float>(); }, "item()");
    refuse([](optim::Update& x) { x["moment"] = x.gradient; },
           "Given: expected the name of a state tensor (m, s), got 'moment'");
    refuse([](optim::Update& x) { x.parameter = x.lr; }, "Given: expected a new parameter of the parameter's shape");
    refuse([](optim::Update& x) { x["s"] = x.gradient > 0; }, "got one of bool");
    refuse([](optim::Update& x) { x["m"] = Tensor(); }, "Given: expected a new 'm'");
    refuse([](optim::Update&) {}, "Given: expected update() to assign a new parameter");
    refuse([](optim::Update& x) { x.parameter = x.parameter + slice(x.gradient, 0, 0, 1); },
           "Given: expected a formula");
    refuse([&](optim::Update& x) { x.parameter = x.parameter + sum(outside); }, "a tensor from outside");
    refuse([](optim::Update& x) { x.parameter = x.parameter + uniform({2}); }, "random numbers");
    for (const Shape& shape : {Shape{1}, Shape{7}, Shape{1, 2}, Shape{3}})
        for (const bool pending : {false, true}) {
            Tensor foreign = full(shape, 2);
            if (pending) foreign = foreign * 3.0;
            const std::string got = "got a tensor from outside of the formula, of shape " + shape.str();
            refuse([&](optim::Update& x) { x.parameter = x.parameter * foreign; },
                   ("Given: expected a formula of elementwise functions of its arguments and of numbers, got a tensor "
                    "from outside, of shape " +
                    shape.str() + ", in it")
                       .c_str());
            refuse([&](optim::Update& x) { x.parameter = foreign; }, got.c_str());
        }
    refuse([](optim::Update& x) { x.parameter = x.lr * x.step; },
           "got a scalar, which depends only on numbers, x.lr and x.step");
    refuse([](optim::Update& x) { x.parameter = reshape(x.parameter, {-1}); },
           "got one that needs elements or shapes (a sum, a matrix product, reshape");
    refuse([](optim::Update& x) { x.parameter = expand(x.lr, {2}); }, "got one that needs elements or shapes");
    refuse([](optim::Update&) {},
           "Given: expected update() to assign a new parameter (x.parameter = ...), computed by elementwise functions, "
           "got none");
    Tensor escaped;
    FormulaOptimizer leaking({p}, [&](optim::Update& x) {
        escaped = x.gradient * 2.0;
        x.parameter = x.parameter * 1.0;
    });
    leaking.step();
    CHECK_THROWS_WITH_AS(
        (void)escaped.to_vector<float>(),
        doctest::Contains("Optimizer::update: expected its arguments, and values computed from them, to be "
                          "used within it only"),
        ValueError);
    // The formula was the only problem.
    FormulaOptimizer good({p}, [](optim::Update& x) {
        x["m"] = x.gradient;
        x["s"] = x["s"] * 2.0;
        x.parameter = x.parameter - x.lr * x["s"] - x.step;
    });
    good.step();
    good.step();
    CHECK(values(p)[3] == doctest::Approx(before[3] - 0.5 * (6 + 12) - 3));
}

TEST_CASE("optimizers: replaced parameters are refused, in-place writes are not") {
    Tensor p = test::random_tensor({6}, 1).set_requires_grad(), q = p;
    optim::Adam optimizer({p}, {.lr = 0.5});
    const auto step = [&] {
        p.set_grad(ones_like(p));
        optimizer.step();
    };
    p.assign(full({6}, 4));  // another buffer, the same type and shape
    step();
    CHECK(values(q)[2] == doctest::Approx(3.5));
    {
        const NoGrad none;
        q.copy_(full({6}, 9));
    }
    step();
    CHECK(values(p)[2] == doctest::Approx(8.5));
    p.assign(full({5}, 4));
    CHECK_THROWS_WITH_AS(step(),
                         doctest::Contains("Adam: expected parameters unchanged since the optimizer was created, "
                                           "'0' of f32 [6]"),
                         ValueError);
    p.assign(full({6}, 4, {DType::f16}));
    CHECK_THROWS_AS(step(), ValueError);
    p.assign(transpose(full({2, 6}, 4), 0, 1).detach());
    CHECK_THROWS_AS(step(), Error);
    p.assign(ones({6}));
    p.set_grad(p.detach());  // the gradient shares the parameter's memory
    optim::SGD other({p}, {.lr = 0.25});
    other.step();
    CHECK(values(p)[4] == 0.75);
}

TEST_CASE("optimizers: a step that refuses one group updates none") {
    Tensor a = full({4}, 2).set_requires_grad(), b = full({3}, 5).set_requires_grad();
    optim::SGD optimizer({a}, {.lr = 0.5, .momentum = 0.5});
    optimizer.add_group({b}, {.lr = 0.25});
    const auto step = [&] {
        for (Tensor* const item : {&a, &b}) item->set_grad(ones_like(*item));
        optimizer.step();
    };
    b.assign(full({2}, 5));
    CHECK_THROWS_AS(step(), ValueError);
    CHECK(values(a) == std::vector<double>(4, 2));
    b.assign(full({3}, 5));
    step();
    CHECK(values(a) == std::vector<double>(4, 1.5));  // the first step: no momentum from a refused one
    CHECK(values(b) == std::vector<double>(3, 4.75));
}

TEST_CASE("optimizers: a captured step matches the eager one bit for bit, with schedules and missing gradients") {
    for (const int kind : {0, 1, 2})
        for (const DType dtype : {DType::f32, DType::f16}) {
            CAPTURE(kind);
            CAPTURE(name_of(dtype));
            std::vector<std::vector<double>> found[2];
            for (const bool captured : {false, true}) {
                nn::Sequential model(nn::Linear(5, 33), nn::Linear(33, 2));
                std::uint64_t seed = 0;
                for (Tensor parameter : model.parameters())
                    parameter.assign(test::random_tensor(parameter.shape(), ++seed, DType::f32, -0.5, 0.5).to(dtype));
                std::unique_ptr<optim::Optimizer> optimizer;
                if (kind == 0) optimizer = std::make_unique<optim::Adam>(model.named_parameters());
                if (kind == 1) optimizer = std::make_unique<Lion>(model.named_parameters(), Lion::Options{.lr = 0.01});
                if (kind == 2)
                    optimizer = std::make_unique<optim::SGD>(model.named_parameters(),
                                                             optim::SGDOptions{.lr = 1e-3, .momentum = 0.9});
                const auto step = [&](const std::vector<Tensor>& x) {
                    optimizer->zero_grad();
                    sum(square(model(x[0]).to(DType::f32))).backward();
                    optimizer->step();
                    return std::vector<Tensor>{};
                };
                auto replayed = capture(step);
                for (std::uint64_t t = 0; t < 6; ++t) {
                    if (t == 4) optimizer->set_learning_rate(0.003);
                    const std::vector<Tensor> x{test::random_tensor({7, 5}, 50 + t).to(dtype)};
                    if (captured) replayed(x);
                    else step(x);
                }
                if (captured) CHECK(replayed.replayed() == 5);
                for (const auto& item : model.state_dict()) found[captured].push_back(values(item.tensor));
                for (const auto& item : optimizer->state_dict()) found[captured].push_back(values(item.tensor));
            }
            CHECK(found[0] == found[1]);
        }
}

TEST_CASE("optimizers: the state has the parameters' names, and loads completely or not at all") {
    nn::Sequential model(nn::Linear(3, 2));
    optim::Adam optimizer(model.named_parameters(), {.lr = 0.25, .amsgrad = true});
    Tensor further = ones({2}, {DType::bf16}).set_requires_grad();
    optimizer.add_group({further}, {.lr = 0.5});
    std::vector<std::string> names;
    for (const auto& item : optimizer.state_dict()) names.push_back(item.name);
    CHECK(names == std::vector<std::string>{
                       "groups.0.learning_rate", "state.0.weight.step", "state.0.weight.m", "state.0.weight.v",
                       "state.0.weight.v_max", "state.0.bias.step", "state.0.bias.m", "state.0.bias.v",
                       "state.0.bias.v_max", "groups.1.learning_rate", "state.2.step", "state.2.m", "state.2.v",
                       "state.2.master", "groups.0.initial_learning_rate", "groups.1.initial_learning_rate"});
    CHECK_THROWS_WITH_AS(optimizer.add_group(std::vector<NamedTensor>{{"0.bias", ones({1}).set_requires_grad()}}, {}),
                         "Adam: expected unique parameter names, got '0.bias' twice", ValueError);
    const auto all = [&] {
        std::vector<std::vector<double>> out;
        for (const auto& item : optimizer.state_dict()) out.push_back(values(item.tensor));
        return out;
    };
    const auto before = all();
    StateDict good;
    for (const auto& [name, tensor] : optimizer.state_dict())
        good.push_back({name, full(tensor.shape(), 7, {tensor.dtype()})});
    const auto refuse = [&](auto&& change, const char* text) {
        StateDict bad = good;
        change(bad);
        CHECK_THROWS_WITH(optimizer.load_state_dict(bad), doctest::Contains(text));
        CHECK(all() == before);
        CHECK(optimizer.learning_rate(1) == 0.5);
    };
    refuse([](StateDict& bad) { bad.erase(bad.begin() + 13); },
           "load_state_dict: expected the names of this Adam; missing: [state.2.master], unexpected: []");
    refuse([](StateDict& bad) { bad.erase(bad.begin() + 5); }, "missing: [state.0.bias.step], unexpected: []");
    refuse([](StateDict& bad) { bad.erase(bad.begin()); }, "missing: [groups.0.learning_rate], unexpected: []");
    refuse([](StateDict& bad) { bad[2].name = "state.9.m"; }, "unexpected: [state.9.m]");
    refuse([](StateDict& bad) { bad.push_back(bad[2]); }, "each name once");
    refuse([](StateDict& bad) { bad[13].tensor = ones({3}); }, "expected 'state.2.master' of shape [2], got [3]");
    refuse([](StateDict& bad) { bad[13].tensor = ones({2}, {DType::bf16}); }, "of type f32, got bf16");
    refuse([](StateDict& bad) { bad[13].tensor = {}; }, "got an undefined one");
    refuse([](StateDict& bad) { bad[10].tensor = ones({2}); }, "expected one number for 'state.2.step', got shape [2]");
    refuse([](StateDict& bad) { bad[10].tensor = {}; }, "expected a tensor for 'state.2.step', got an undefined one");
    refuse([](StateDict& bad) { bad[9].tensor = full({}, -1); },
           "expected a finite rate of at least 0 as 'groups.1.learning_rate', got -1");
    refuse([](StateDict& bad) { bad[15].tensor = full({1}, NAN); }, "as 'groups.1.initial_learning_rate', got nan");
    optimizer.load_state_dict(good);
    CHECK(all()[6] == std::vector<double>{7, 7});
    CHECK(optimizer.learning_rate(1) == 21);  // of three parts
    good[9].tensor = full({}, 0.125);
    optimizer.load_state_dict(good);
    CHECK(optimizer.learning_rate(1) == 0.125);
}

TEST_CASE("optimizers: the state keeps learning rates in double") {
    for (const DType dtype : {DType::f32, test::widest(), DType::f16}) {
        CAPTURE(std::string(name_of(dtype)));
        const auto make = [&](double lr) { return optim::Adam({ones({2}, {dtype}).set_requires_grad()}, {.lr = lr}); };
        for (const double rate : {0.01, 1.0 / 3, 3e-7, 0.0, 12345.678901234567}) {
            const optim::Adam from = make(rate);
            optim::Adam to = make(0.5);
            to.load_state_dict(from.state_dict());
            CHECK(to.learning_rate() == rate);
        }
        optim::Adam to = make(0.5);
        StateDict state = make(0.01).state_dict();
        state.push_back(state.front());
        CHECK_THROWS_WITH_AS(to.load_state_dict(state),
                             "load_state_dict: expected each name once, got 'groups.0.learning_rate' again",
                             ValueError);
        state.pop_back();
        state.front().tensor = ones({2});
        CHECK_THROWS_WITH_AS(
            to.load_state_dict(state),
            "load_state_dict: expected 'groups.0.learning_rate' of f32 and shape [3], or one number, got f32 [2]",
            ShapeError);
        CHECK(to.learning_rate() == 0.5);
    }
}

TEST_CASE("optimizers: nothing is written while the guard is set, and no step is counted") {
    Tensor p = test::random_tensor({9}, 1).set_requires_grad();
    Lion optimizer({p}, {.lr = 0.1});
    const Tensor guard = Tensor::from<std::int32_t>({1, 1}, {2});
    optimizer.set_guard(guard);
    const auto before = values(p);
    p.set_grad(full({9}, NAN));
    optimizer.step();
    CHECK(values(p) == before);
    CHECK(state_of(optimizer, "state.0.step") == std::vector<double>{0});
    CHECK(state_of(optimizer, "state.0.m") == std::vector<double>(9, 0));
    Tensor(guard).fill_(0);
    p.set_grad(ones({9}));
    optimizer.step();
    CHECK(values(p)[0] == doctest::Approx(before[0] - 0.1));
}
