// Optimizers compared with plain references in double; schedules; clipping; state.
#include <declivity/optim/adam.hpp>
#include <declivity/optim/schedule.hpp>
#include <declivity/optim/sgd.hpp>

#include <cmath>
#include <memory>
#include <optional>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/runtime/profiler.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>

#include <tests/support/values.hpp>
#include "tests/support/devices.hpp"

using namespace declivity;

namespace {

/// Parameters of odd sizes, one longer than a chunk of the multi-tensor kernels.
const std::vector<Shape> kShapes{{7}, {3, 5}, {1}, {5003}};

struct Problem {
    std::vector<Tensor> parameters;
    std::vector<std::vector<double>> reference;
    DType dtype;

    explicit Problem(DType type) : dtype(type) {
        for (std::size_t i = 0; i < kShapes.size(); ++i) {
            parameters.push_back(test::random_tensor(kShapes[i], i + 1, dtype).set_requires_grad());
            reference.push_back(test::values(parameters.back()));
        }
    }
    /// Sets and returns the gradients of step t.
    std::vector<std::vector<double>> gradients(int t) {
        std::vector<std::vector<double>> out;
        for (std::size_t i = 0; i < parameters.size(); ++i) {
            const Tensor gradient = test::random_tensor(kShapes[i], 100 * static_cast<std::uint64_t>(t) + i, dtype);
            parameters[i].set_grad(gradient);
            out.push_back(test::values(gradient));
        }
        return out;
    }
    void check() const {
        const double unit = dtype == DType::f64 ? 1e-12 : 2e-6;
        for (std::size_t i = 0; i < parameters.size(); ++i)
            CHECK(test::difference(parameters[i], reference[i], {unit, unit}) == "");
    }
};

}  // namespace

TEST_CASE("SGD with momentum, dampening, nesterov and weight decay") {
    for (const DType dtype : test::floats())
        for (const optim::SGDOptions& options :
             {optim::SGDOptions{.lr = 0.1}, optim::SGDOptions{.lr = 0.05, .momentum = 0.9},
              optim::SGDOptions{.lr = 0.05, .momentum = 0.8, .dampening = 0.3, .weight_decay = 0.01},
              optim::SGDOptions{.lr = 0.02, .momentum = 0.9, .weight_decay = 0.1, .nesterov = true}}) {
            Problem problem(dtype);
            optim::SGD optimizer(problem.parameters, options);
            std::vector<std::vector<double>> mean(kShapes.size());
            for (int t = 1; t <= 4; ++t) {
                const auto gradients = problem.gradients(t);
                for (std::size_t i = 0; i < kShapes.size(); ++i) {
                    mean[i].resize(gradients[i].size());
                    for (std::size_t k = 0; k < gradients[i].size(); ++k) {
                        double& p = problem.reference[i][k];
                        double g = gradients[i][k] + options.weight_decay * p;
                        double& m = mean[i][k];
                        m = t == 1 ? g : options.momentum * m + (1 - options.dampening) * g;
                        if (options.momentum != 0) g = options.nesterov ? g + options.momentum * m : m;
                        p -= options.lr * g;
                    }
                }
                optimizer.step();
            }
            problem.check();
        }
}

TEST_CASE("Adam and AdamW") {
    for (const DType dtype : test::floats())
        for (const bool decoupled : {false, true}) {
            Problem problem(dtype);
            const optim::AdamOptions options{.lr = 0.01, .beta1 = 0.8, .beta2 = 0.95, .eps = 1e-6, .weight_decay = 0.1};
            std::unique_ptr<optim::Optimizer> optimizer;
            if (decoupled)
                optimizer = std::make_unique<optim::AdamW>(
                    problem.parameters,
                    optim::AdamWOptions{.lr = 0.01, .beta1 = 0.8, .beta2 = 0.95, .eps = 1e-6, .weight_decay = 0.1});
            else optimizer = std::make_unique<optim::Adam>(problem.parameters, options);
            std::vector<std::vector<double>> m(kShapes.size()), v(kShapes.size());
            for (int t = 1; t <= 5; ++t) {
                const auto gradients = problem.gradients(t);
                for (std::size_t i = 0; i < kShapes.size(); ++i) {
                    m[i].resize(gradients[i].size());
                    v[i].resize(gradients[i].size());
                    for (std::size_t k = 0; k < gradients[i].size(); ++k) {
                        double& p = problem.reference[i][k];
                        double g = gradients[i][k];
                        if (decoupled) p -= options.lr * options.weight_decay * p;
                        else g += options.weight_decay * p;
                        m[i][k] = options.beta1 * m[i][k] + (1 - options.beta1) * g;
                        v[i][k] = options.beta2 * v[i][k] + (1 - options.beta2) * g * g;
                        p -= options.lr * m[i][k] / (1 - std::pow(options.beta1, t)) /
                             (std::sqrt(v[i][k] / (1 - std::pow(options.beta2, t))) + options.eps);
                    }
                }
                optimizer->step();
            }
            problem.check();
        }
}

TEST_CASE("optimizers: a step over two hundred tensors has at most three launches") {
    const test::Environment pool(
        "DECLIVITY_POOL",
        std::nullopt);  // with separate memory objects per tensor, a kernel cannot process two of them
    const Device device = test::fresh_device();
    std::vector<Tensor> parameters;
    for (int i = 0; i < 200; ++i)
        parameters.push_back(test::random_tensor({1 + i % 7, 3 + i % 11}, static_cast<std::uint64_t>(i))
                                 .to(device)
                                 .clone()
                                 .set_requires_grad());
    for (const bool adam : {true, false}) {
        std::unique_ptr<optim::Optimizer> optimizer;
        if (adam) optimizer = std::make_unique<optim::Adam>(parameters);
        else optimizer = std::make_unique<optim::SGD>(parameters, optim::SGDOptions{.lr = 0.1, .momentum = 0.9});
        const auto step = [&] {
            optimizer->zero_grad();
            for (const Tensor& parameter : parameters) Tensor(parameter).set_grad(ones_like(parameter));
            device.synchronize();
            Profiler profiler(device);
            optimizer->step();
            profiler.stop();
            std::int64_t launches = 0;
            for (const auto& row : profiler.rows()) launches += row.name.starts_with("copy") ? 0 : row.calls;
            return launches;
        };
        (void)step();
        const auto launches = step();
        CAPTURE(adam);
        CHECK(launches >= 2);
        CHECK(launches <= 3);
    }
}

TEST_CASE("optimizers: groups have their own settings; parameters without a gradient are unchanged") {
    Tensor a = ones({3}).set_requires_grad(), b = ones({3}).set_requires_grad(), c = ones({3}).set_requires_grad();
    optim::SGD optimizer({a, c}, {.lr = 0.5});
    optimizer.add_group({b}, {.lr = 0.25});
    a.set_grad(ones({3}));
    b.set_grad(ones({3}));
    optimizer.step();
    CHECK(test::values(a)[2] == 0.5);
    CHECK(test::values(b)[2] == 0.75);
    CHECK(test::values(c)[2] == 1.0);
    optimizer.set_learning_rate(1, 1);
    optimizer.step();
    CHECK(test::values(b)[0] == doctest::Approx(-0.25));
    optimizer.zero_grad();
    CHECK_FALSE(a.grad().defined());
    CHECK_THROWS_AS(optimizer.add_group({a}, {}), ValueError);
    CHECK_THROWS_AS(optimizer.add_group({}, {}), ValueError);
    CHECK_THROWS_AS(optimizer.add_group({a * 2.0}, {}), ValueError);
    CHECK_THROWS_AS(optim::SGD({zeros({2}).set_requires_grad()}, {.nesterov = true}), ValueError);
    CHECK_THROWS_AS(optim::Adam({zeros({2}).set_requires_grad()}, {.beta1 = 1}), ValueError);
    CHECK_THROWS_AS(optimizer.set_learning_rate(NAN), ValueError);
}

TEST_CASE("optimizers: training continues from a saved state") {
    Problem straight(DType::f32), broken(DType::f32);
    optim::Adam single_group(straight.parameters, {.lr = 0.01});
    std::unique_ptr<optim::Adam> other =
        std::make_unique<optim::Adam>(broken.parameters, optim::AdamOptions{.lr = 0.01});
    for (int t = 1; t <= 6; ++t) {
        straight.gradients(t);
        single_group.step();
        broken.gradients(t);
        other->step();
        if (t != 3) continue;
        auto fresh = std::make_unique<optim::Adam>(broken.parameters, optim::AdamOptions{.lr = 0.5});
        fresh->load_state_dict(other->state_dict());
        CHECK(fresh->learning_rate() == doctest::Approx(0.01));
        other = std::move(fresh);
    }
    for (std::size_t i = 0; i < kShapes.size(); ++i)
        CHECK(test::values(straight.parameters[i]) == test::values(broken.parameters[i]));
    auto state = single_group.state_dict();
    state.erase(state.begin() + 1);
    CHECK_THROWS_AS(single_group.load_state_dict(state), ValueError);
}

TEST_CASE("clip_grad_norm: scales all gradients by their global norm") {
    for (const double max_norm : {0.5, 1e6}) {
        Problem problem(test::widest());
        const double exact = test::widest() == DType::f64 ? 1e-12 : 1e-6;
        const auto gradients = problem.gradients(1);
        double square = 0;
        for (const auto& gradient : gradients)
            for (const double value : gradient) square += value * value;
        const double norm = std::sqrt(square), factor = std::min(1.0, max_norm / (norm + 1e-6));
        const Tensor reported = optim::clip_grad_norm(problem.parameters, max_norm);
        CHECK(test::values(reported)[0] == doctest::Approx(norm).epsilon(100 * exact));
        for (std::size_t i = 0; i < kShapes.size(); ++i) {
            auto expected = gradients[i];
            for (double& value : expected) value *= factor;
            CHECK(test::difference(problem.parameters[i].grad(), expected, {exact, exact}) == "");
        }
    }
    CHECK(optim::clip_grad_norm({zeros({2}).set_requires_grad()}, 1).item<float>() == 0);  // no gradients
    Tensor on_device = ones({2}).set_requires_grad(),
           on_other_device = ones({2}, {.device = test::fresh_device()}).set_requires_grad();
    on_device.set_grad(ones_like(on_device));
    on_other_device.set_grad(ones_like(on_other_device));
    CHECK_THROWS_WITH_AS(
        optim::clip_grad_norm({on_device, on_other_device}, 1),
        doctest::Contains("clip_grad_norm: expected the gradients of parameters on one device, got some "
                          "on '"),
        DeviceError);
}

TEST_CASE("schedules") {
    const auto decay = optim::step_decay(3, 0.1);
    CHECK(decay(2) == 1);
    CHECK(decay(3) == doctest::Approx(0.1));
    CHECK(decay(7) == doctest::Approx(0.01));
    const auto cosine = optim::cosine(10, 0.2);
    CHECK(cosine(0) == 1);
    CHECK(cosine(5) == doctest::Approx(0.6));
    CHECK(cosine(10) == doctest::Approx(0.2));
    CHECK(cosine(50) == doctest::Approx(0.2));
    const auto warm = optim::linear_warm_up(4, optim::step_decay(2, 0.5));
    CHECK(warm(0) == 0.25);
    CHECK(warm(3) == 1);
    CHECK(warm(4) == 1);
    CHECK(warm(6) == 0.5);
    CHECK_THROWS_AS(optim::cosine(0), ValueError);
    Tensor a = ones({1}).set_requires_grad();
    optim::SGD optimizer({a}, {.lr = 2});
    optim::apply(decay, 3, optimizer);
    CHECK(optimizer.learning_rate() == doctest::Approx(0.2));
    CHECK(optimizer.initial_learning_rate() == 2);
}
