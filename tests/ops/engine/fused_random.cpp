// Random numbers and dropout fused into chains of functions: one kernel, and the same numbers as stored ones.
#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/runtime/profiler.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>
#include <tests/support/devices.hpp>
#include <tests/support/launches.hpp>
#include <tests/support/values.hpp>

#include "ops/engine/fusion.hpp"
#include "ops/support/work_split.hpp"

using namespace declivity;
using namespace declivity::test;
using ops::FusionScope;

namespace {

/// Restores the generator.
struct KeepRandom {
    RandomState before = random_state(default_device());
    KeepRandom() = default;
    ~KeepRandom() { set_random_state(default_device(), before); }
    KeepRandom(const KeepRandom&) = delete;
    KeepRandom& operator=(const KeepRandom&) = delete;
};

}  // namespace

TEST_CASE("fused random: a chain with random numbers is one kernel with the same numbers") {
    const KeepRandom keep;
    struct FusedChain {
        std::string name;
        std::function<Tensor(const Tensor&, const Tensor&)> call;
        bool exact;  // no product that a compiler may contract with a sum
        int kernels = 1;
    };
    const std::vector<FusedChain> chains{
        {"dropout", [](const Tensor& x, const Tensor&) { return dropout(relu(x), 0.3); }, true},
        {"dropout and more", [](const Tensor& x, const Tensor& b) { return dropout(relu(x * 0.5 + b), 0.3) + x; },
         false},
        {"dropout twice", [](const Tensor& x, const Tensor&) { return dropout(dropout(x, 0.5), 0.25); }, true},
        {"noise", [](const Tensor& x, const Tensor&) { return x + normal(x.shape()) * 0.1; }, false},
        {"a mask", [](const Tensor& x, const Tensor&) { return x * bernoulli(x.shape(), 0.5); }, true},
        {"where", [](const Tensor& x, const Tensor& b) { return where(less(uniform(x.shape()), b), x, -x); }, true},
        {"cast", [](const Tensor& x, const Tensor&) { return dropout(x.to(DType::f16), 0.5).to(DType::f32); }, true},
        {"reduced", [](const Tensor& x, const Tensor&) { return sum(dropout(x, 0.5), {1}); }, false,
         2},  // expensive, and the caller holds it
    };
    const std::int64_t columns = small_cases() ? 67 : 1203;
    const Tensor x = random_tensor({3, columns}, 1), b = random_tensor({columns}, 2);
    for (const auto& [name, call, exact, kernels] : chains) {
        CAPTURE(name);
        const FusionScope fusion_on(true);
        manual_seed(21);
        Tensor y;
        CHECK(launches([&] { materialize(y = call(x, b)); }) == kernels);
        std::vector<double> unfused;
        {
            const FusionScope fusion_off(false);
            manual_seed(21);
            unfused = values(call(x, b));
        }
        for (const KernelStyle style : kernel_styles()) {
            const ops::KernelStyleScope scope(style);
            manual_seed(21);
            const auto fused = values(call(x, b));
            CHECK(difference(fused, unfused, exact ? Tolerance{} : tolerance(DType::f32, 20)) == "");
        }
    }
}

TEST_CASE("fused random: a small broadcast tensor has each number once") {
    const KeepRandom keep;
    const Tensor x = random_tensor({4, 5, 6}, 1);
    for (const Shape& shape : {Shape{6}, Shape{5, 1}, Shape{4, 1, 1}, Shape{1}}) {
        CAPTURE(shape.str());
        manual_seed(3);
        const Tensor noise = uniform(shape, 1, 2);
        const auto got = values(x * noise), in = values(x), noise_values = values(noise);
        const std::int64_t columns = shape[shape.rank() - 1];
        for (std::size_t i = 0; i < in.size(); ++i) {
            const std::size_t at = shape.rank() == 3   ? i / 30
                                   : shape.rank() == 2 ? i / 6 % 5
                                   : columns == 1      ? 0
                                                       : i % 6;
            CHECK_UNARY(got[i] ==
                        static_cast<double>(static_cast<float>(in[i]) * static_cast<float>(noise_values[at])));
        }
    }
}

TEST_CASE("fused random: the position in the stream is that of the call, whenever it is evaluated") {
    const KeepRandom keep;
    const auto draw = [](bool fused) {
        const FusionScope scope(fused);
        manual_seed(8);
        const Tensor a = uniform({9}), b = normal({7}), c = dropout(ones({10}), 0.5);
        const auto position = random_state(default_device()).offset;
        CHECK(position == 3 + 2 + 3);
        manual_seed(9);
        const Tensor d = uniform({9});
        const auto d_values = values(d), c_values = values(c), b_values = values(b), a_values = values(a);
        return std::vector{a_values, b_values, c_values, d_values};
    };
    const auto fused = draw(true);
    CHECK(fused == draw(false));
    CHECK(fused[0] != fused[3]);
    // A tensor that is referenced has the same numbers at each use.
    const FusionScope fusion_on(true);
    const Tensor noise = normal({700});
    const Tensor first = noise * 2, second = noise * 4;
    materialize(first);
    materialize(second);
    auto doubled = values(noise), quadrupled = doubled;
    for (double& v : doubled) v *= 2;
    for (double& v : quadrupled) v *= 4;
    CHECK(values(first) == doubled);
    CHECK(values(second) == quadrupled);
}

TEST_CASE("dropout: the gradient recomputes the mask in one kernel and stores nothing") {
    const KeepRandom keep;
    const FusionScope fusion_on(true);
    Tensor x = random_tensor({50, 31}, 1, DType::f32, 1, 2).set_requires_grad();
    const Tensor out_gradient = random_tensor({50, 31}, 2, DType::f32, 1, 2);
    materialize(x);
    const auto before = x.device().memory().in_use;
    Tensor y = dropout(x, 0.4);
    materialize(y);
    CHECK(x.device().memory().in_use - before <= 50 * 31 * 4 + std::max<std::size_t>(256, x.device().info().alignment));
    const auto out = values(y), in = values(x), factors = values(out_gradient);
    CHECK(launches([&] { y.backward(out_gradient); }) <= 2);  // it, and an unshared copy of the gradient
    const auto gradient = values(x.grad());
    int dropped = 0;
    std::vector<double> expected;
    for (std::size_t i = 0; i < in.size(); ++i) {
        dropped += out[i] == 0;
        expected.push_back(out[i] == 0 ? 0 : factors[i] / 0.6);
        CHECK_UNARY(out[i] == 0 || std::abs(out[i] - in[i] / 0.6) < 1e-6);
    }
    CHECK(difference(gradient, expected, tolerance(DType::f32, 2)) == "");
    CHECK(std::abs(dropped - 0.4 * 50 * 31) < 5 * std::sqrt(0.24 * 50 * 31));
    // The double backward as well, which passes only through the kept elements.
    const Tensor z = dropout(x * x, 0.4);
    const Tensor first = grad({sum(z)}, {x}, {.create_graph = true})[0];
    const Tensor second = grad({sum(first)}, {x})[0];
    const auto dropped_out = values(z), doubled = values(second);
    for (std::size_t i = 0; i < dropped_out.size(); ++i)
        CHECK_UNARY(std::abs(doubled[i] - (dropped_out[i] == 0 ? 0 : 2 / 0.6)) < 1e-5);
}

TEST_CASE("dropout and random numbers: invalid arguments are refused at the call") {
    const auto before = random_state(default_device()).offset;
    CHECK_THROWS_AS(dropout(random_tensor({3}, 1), 1.5), ValueError);
    CHECK_THROWS_AS(dropout(random_tensor({3}, 1), NAN), ValueError);
    CHECK_THROWS_AS(dropout(zeros({3}, {DType::i32}), 0.5), TypeError);
    CHECK_THROWS_AS(uniform({-3}), ShapeError);
    CHECK(random_state(default_device()).offset == before);
    CHECK(values(dropout(ones({0, 3}), 0.5)).empty());
    CHECK(values(dropout(ones({3}), 1)) == std::vector<double>{0, 0, 0});
    const auto offset_before = random_state(default_device()).offset;
    CHECK(values(dropout(ones({3}), 0)) == std::vector<double>{1, 1, 1});
    CHECK(random_state(default_device()).offset == offset_before);  // nothing is sampled for a probability of 0
}
