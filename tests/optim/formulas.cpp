// Each optimizer with each of its settings compared with its formula in double, over several steps; f16 and bf16
// parameters compared with the same formula on their rounded values.
#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <declivity/functions/functions.hpp>
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

using namespace declivity;
using test::values;

namespace {

using Slots = std::array<double, 3>;

/// An optimizer and its reference for one element: parameter, gradient, state, step number.
struct Case {
    std::string name;
    std::function<std::unique_ptr<optim::Optimizer>(const std::vector<Tensor>&)> make;
    std::function<void(double& p, double g, Slots& s, int t)> step;
    double initial = 0;  // initial value of the state
};

template <class Optimizer, class Options>
auto maker(const Options& options) {
    return [options](const std::vector<Tensor>& parameters) -> std::unique_ptr<optim::Optimizer> {
        return std::make_unique<Optimizer>(parameters, options);
    };
}

Case sgd(const optim::SGDOptions& w) {
    return {"SGD", maker<optim::SGD>(w), [w](double& p, double g, Slots& s, int t) {
                g = (w.maximize ? -g : g) + w.weight_decay * p;
                s[0] = t == 1 ? g : w.momentum * s[0] + (1 - w.dampening) * g;
                if (w.momentum != 0) g = w.nesterov ? g + w.momentum * s[0] : s[0];
                p -= w.lr * g;
            }};
}

void adam_step(const optim::AdamOptions& w, bool decoupled, double& p, double g, Slots& s, int t) {
    g = w.maximize ? -g : g;
    if (decoupled) p -= w.lr * w.weight_decay * p;
    else g += w.weight_decay * p;
    s[0] = w.beta1 * s[0] + (1 - w.beta1) * g;
    s[1] = w.beta2 * s[1] + (1 - w.beta2) * g * g;
    s[2] = std::max(s[2], s[1]);
    p -= w.lr * s[0] / (1 - std::pow(w.beta1, t)) /
         (std::sqrt((w.amsgrad ? s[2] : s[1]) / (1 - std::pow(w.beta2, t))) + w.eps);
}

Case adam(const optim::AdamOptions& w) {
    return {"Adam", maker<optim::Adam>(w),
            [w](double& p, double g, Slots& s, int t) { adam_step(w, false, p, g, s, t); }};
}

Case adamw(const optim::AdamWOptions& w) {
    return {"AdamW", maker<optim::AdamW>(w), [w](double& p, double g, Slots& s, int t) {
                adam_step({w.lr, w.beta1, w.beta2, w.eps, w.weight_decay, w.amsgrad, w.maximize}, true, p, g, s, t);
            }};
}

Case rmsprop(const optim::RMSpropOptions& w) {
    return {"RMSprop", maker<optim::RMSprop>(w), [w](double& p, double g, Slots& s, int) {
                g = (w.maximize ? -g : g) + w.weight_decay * p;
                s[0] = w.alpha * s[0] + (1 - w.alpha) * g * g;
                s[1] = w.alpha * s[1] + (1 - w.alpha) * g;
                const double u = g / (std::sqrt(w.centered ? s[0] - s[1] * s[1] : s[0]) + w.eps);
                s[2] = w.momentum * s[2] + u;
                p -= w.lr * s[2];
            }};
}

Case adagrad(const optim::AdagradOptions& w) {
    return {"Adagrad", maker<optim::Adagrad>(w),
            [w](double& p, double g, Slots& s, int t) {
                g = (w.maximize ? -g : g) + w.weight_decay * p;
                s[0] += g * g;
                p -= w.lr / (1 + (t - 1) * w.lr_decay) * g / (std::sqrt(s[0]) + w.eps);
            },
            w.initial_accumulator_value};
}

Case adadelta(const optim::AdadeltaOptions& w) {
    return {"Adadelta", maker<optim::Adadelta>(w), [w](double& p, double g, Slots& s, int) {
                g = (w.maximize ? -g : g) + w.weight_decay * p;
                s[0] = w.rho * s[0] + (1 - w.rho) * g * g;
                const double u = std::sqrt(s[1] + w.eps) / std::sqrt(s[0] + w.eps) * g;
                s[1] = w.rho * s[1] + (1 - w.rho) * u * u;
                p -= w.lr * u;
            }};
}

Case radam(const optim::RAdamOptions& w) {
    return {"RAdam", maker<optim::RAdam>(w), [w](double& p, double g, Slots& s, int t) {
                g = w.maximize ? -g : g;
                if (w.decoupled_weight_decay) p -= w.lr * w.weight_decay * p;
                else g += w.weight_decay * p;
                s[0] = w.beta1 * s[0] + (1 - w.beta1) * g;
                s[1] = w.beta2 * s[1] + (1 - w.beta2) * g * g;
                const double left = 1 - std::pow(w.beta2, t), r = 2 / (1 - w.beta2) - 1;
                const double rt = r - 2 * t * std::pow(w.beta2, t) / left;
                double u = s[0] / (1 - std::pow(w.beta1, t));
                if (rt > 5)
                    u *= std::sqrt((rt - 4) * (rt - 2) * r / ((r - 4) * (r - 2) * rt)) * std::sqrt(left) /
                         (std::sqrt(s[1]) + w.eps);
                p -= w.lr * u;
            }};
}

std::vector<Case> cases() {
    return {
        sgd({.lr = 0.1}),
        sgd({.lr = 0.05, .momentum = 0.9, .maximize = true}),
        sgd({.lr = 0.05, .momentum = 0.8, .dampening = 0.3, .weight_decay = 0.01}),
        sgd({.lr = 0.02, .momentum = 0.9, .weight_decay = 0.1, .nesterov = true}),
        adam({}),
        adam({.lr = 0.01, .beta1 = 0.8, .beta2 = 0.95, .eps = 1e-6, .weight_decay = 0.1, .amsgrad = true}),
        adam({.lr = 0.01, .beta1 = 0, .beta2 = 0, .eps = 0.1, .maximize = true}),
        adamw({.lr = 0.01, .weight_decay = 0.1}),
        adamw({.lr = 0.02, .beta2 = 0.9, .amsgrad = true, .maximize = true}),
        rmsprop({}),
        rmsprop({.alpha = 0.9, .eps = 1e-3, .weight_decay = 0.1, .momentum = 0.8, .centered = true}),
        rmsprop({.lr = 0.02, .centered = true, .maximize = true}),
        adagrad({}),
        adagrad({.lr = 0.1, .lr_decay = 0.2, .weight_decay = 0.05, .initial_accumulator_value = 0.3, .maximize = true}),
        adadelta({}),
        adadelta({.lr = 0.5, .rho = 0.8, .eps = 1e-3, .weight_decay = 0.1, .maximize = true}),
        radam({}),
        radam({.lr = 0.01, .beta1 = 0.8, .beta2 = 0.9, .weight_decay = 0.1, .decoupled_weight_decay = true}),
        radam({.lr = 0.01, .beta2 = 0.95, .eps = 1e-3, .weight_decay = 0.1, .maximize = true}),
    };
}

const std::vector<Shape>& shapes() {
    static const std::vector<Shape> small{{7}, {1}, {3, 11}}, all{{7}, {3, 5}, {1}, {0}, {5003}, {}};
    return test::small_cases() ? small : all;
}

}  // namespace

TEST_CASE("optimizers: every formula with every setting, in f32 and f64") {
    for (const Case& test_case : cases())
        for (const DType dtype : test::floats()) {
            CAPTURE(test_case.name);
            CAPTURE(name_of(dtype));
            std::vector<Tensor> parameters;
            std::vector<std::vector<double>> expected;
            std::vector<std::vector<Slots>> states;
            for (std::size_t i = 0; i < shapes().size(); ++i) {
                parameters.push_back(test::random_tensor(shapes()[i], i + 1, dtype).set_requires_grad());
                expected.push_back(values(parameters.back()));
                states.emplace_back(expected.back().size(), Slots{test_case.initial, 0, 0});
            }
            const auto optimizer = test_case.make(parameters);
            for (int t = 1; t <= 9; ++t) {  // RAdam begins to divide in the sixth step
                for (std::size_t i = 0; i < shapes().size(); ++i) {
                    const Tensor g = test::random_tensor(shapes()[i], 100 * static_cast<std::uint64_t>(t) + i, dtype);
                    parameters[i].set_grad(g);
                    const auto gradient = values(g);
                    for (std::size_t k = 0; k < gradient.size(); ++k)
                        test_case.step(expected[i][k], gradient[k], states[i][k], t);
                }
                optimizer->step();
            }
            const double unit = dtype == DType::f64 ? 1e-12 : 4e-6;
            for (std::size_t i = 0; i < shapes().size(); ++i)
                CHECK(test::difference(parameters[i], expected[i], {unit, unit}) == "");
        }
}

TEST_CASE("optimizers: bias corrections are exact after many steps") {
    for (const int before : {99, 5000}) {
        CAPTURE(before);
        for (const Case& test_case : {adam({.lr = 1}), radam({.lr = 1})}) {
            CAPTURE(test_case.name);
            Tensor p = test::random_tensor({33}, 1).set_requires_grad();
            const auto optimizer = test_case.make({p});
            StateDict state = optimizer->state_dict();
            auto expected = values(p), m = values(test::random_tensor({33}, 2)), v = m;
            for (double& value : v) value = value * value + 0.25;
            for (auto& [name, tensor] : state) {
                if (name.ends_with(".step")) tensor = full({}, before);
                if (name.ends_with(".m")) tensor = test::random_tensor({33}, 2);
                if (name.ends_with(".v")) tensor = square(test::random_tensor({33}, 2)) + 0.25;
            }
            optimizer->load_state_dict(state);
            const Tensor g = test::random_tensor({33}, 3);
            p.set_grad(g);
            optimizer->step();
            const auto gradient = values(g);
            for (std::size_t k = 0; k < expected.size(); ++k) {
                Slots slots{m[k], v[k], 0};
                test_case.step(expected[k], gradient[k], slots, before + 1);
            }
            CHECK(test::difference(p, expected, {3e-6, 3e-6}) == "");
        }
    }
}

TEST_CASE("optimizers: f16 and bf16 parameters are rounded from f32, bit for bit") {
    for (const Case& test_case : cases())
        for (const DType dtype : {DType::f16, DType::bf16}) {
            CAPTURE(test_case.name);
            CAPTURE(name_of(dtype));
            Tensor reduced = test::random_tensor({1031}, 1).to(dtype).clone().set_requires_grad();
            Tensor upcast = reduced.detach().to(DType::f32).clone().set_requires_grad();
            const auto optimizer = test_case.make({reduced}), other = test_case.make({upcast});
            for (std::uint64_t t = 1; t <= 4; ++t) {
                const Tensor g = test::random_tensor({1031}, 10 + t).to(dtype);
                reduced.set_grad(g.clone());
                upcast.set_grad(g.to(DType::f32).clone());
                optimizer->step();
                other->step();
            }
            for (const auto& [name, tensor] : optimizer->state_dict())
                if (name.ends_with(".master")) CHECK(values(tensor) == values(upcast));
            CHECK(values(reduced) == values(upcast.detach().to(dtype)));
        }
}

TEST_CASE("optimizers: settings out of range are refused by name") {
    const std::vector<Tensor> p{ones({2}).set_requires_grad()};
    CHECK_THROWS_WITH_AS(optim::RMSprop(p, {.alpha = -0.1}),
                         "RMSprop: expected alpha in [0, 1], eps, weight decay and momentum of at least 0, got -0.1, "
                         "1e-08, 0, 0",
                         ValueError);
    CHECK_THROWS_WITH_AS(optim::Adagrad(p, {.lr_decay = -1}), doctest::Contains("Adagrad: expected lr_decay"),
                         ValueError);
    CHECK_THROWS_WITH_AS(optim::Adadelta(p, {.rho = 2}), doctest::Contains("Adadelta: expected rho in [0, 1]"),
                         ValueError);
    CHECK_THROWS_WITH_AS(optim::RAdam(p, {.beta2 = 1}), doctest::Contains("RAdam: expected betas in [0, 1)"),
                         ValueError);
    CHECK_THROWS_WITH_AS(optim::RAdam(p, {.lr = -1}), "RAdam: expected a learning rate of at least 0, got -1",
                         ValueError);
    CHECK_THROWS_AS(optim::SGD(p, {.momentum = NAN}), ValueError);
}
