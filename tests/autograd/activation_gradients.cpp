// Gradients of an activation before a layer, fused into the backward kernels of the layer.
#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/runtime/profiler.hpp>
#include <doctest/doctest.h>
#include <tests/support/devices.hpp>
#include <tests/support/gradient_check.hpp>
#include <tests/support/values.hpp>

#include "ops/engine/lazy_array.hpp"

using namespace declivity;
using namespace declivity::test;

namespace {

using Activation = std::function<Tensor(const Tensor&)>;
using Layer = std::function<Tensor(const Tensor&)>;

struct Named {
    const char* name;
    Activation function;
};

std::vector<Named> activations() {
    std::vector<Named> all{{"relu", [](const Tensor& x) { return relu(x); }},
                           {"leaky_relu", [](const Tensor& x) { return leaky_relu(x, 0.2); }}};
    if (small_cases()) return all;
    all.push_back({"gelu", [](const Tensor& x) { return gelu(x); }});   // gradient from the input
    all.push_back({"tanh", [](const Tensor& x) { return tanh(x); }});   // gradient from the output
    all.push_back({"times", [](const Tensor& x) { return x * 1.5; }});  // from neither
    return all;
}

struct Case {
    const char* name;
    Shape shape;  // shape of x
    Layer layer;
};

std::vector<Case> layers(DType dtype) {
    const Tensor filter = random_tensor({4, 3, 3, 3}, 11, dtype), weight = random_tensor({5, 7}, 12, dtype),
                 bias = random_tensor({4}, 13, dtype);
    return {{"conv2d",
             {2, 3, 6, 7},
             [=](const Tensor& x) {
                 return conv2d(x, filter, bias, {.padding = {1, 1}});
             }},
            {"conv2d, strided",
             {2, 3, 7, 6},
             [=](const Tensor& x) {
                 return conv2d(x, filter, bias, {.stride = {2, 2}, .padding = {1, 0}});
             }},
            {"linear", {3, 7}, [=](const Tensor& x) { return linear(x, weight); }},
            {"max_pool2d",
             {2, 3, 6, 7},
             [](const Tensor& x) {
                 return max_pool2d(x, {.kernel_size = {2, 2}});
             }},
            {"max_pool2d, overlapping", {2, 2, 7, 7}, [](const Tensor& x) {
                 return max_pool2d(x, {.kernel_size = {3, 3}, .stride = {2, 2}, .padding = {1, 1}});
             }}};
}

/// Number of launches of kernels with that name during a call.
int launches_of(const std::string& kernel, const std::function<void()>& call) {
    Profiler profiler(default_device());
    call();
    int count = 0;
    for (const Profiler::Row& row : profiler.rows())
        if (row.name == kernel) count += static_cast<int>(row.calls);
    return count;
}

/// The gradient with respect to x of a weighted sum of layer(activation(x)).
/// @param with_hook a hook sees the gradient between the two
std::vector<double> gradient_of(const Tensor& x, const Activation& activation, const Layer& layer,
                                const Tensor& weights, bool with_hook, std::vector<double>* hook_result = nullptr) {
    Tensor leaf = x.clone();
    leaf.set_requires_grad();
    Tensor middle = activation(leaf);
    if (with_hook)
        middle.register_hook([hook_result](const Tensor& g) {
            const std::vector<double> hook_gradient = values(g);
            if (hook_result != nullptr) *hook_result = hook_gradient;
            return Tensor();
        });
    sum(layer(middle) * weights).backward();
    return values(leaf.grad());
}

}  // namespace

TEST_CASE("activation gradients: fused into the layer's backward, the same as unfused") {
    for (const DType dtype : floats()) {
        if (dtype == DType::f64 && !default_device().info().fp64) continue;
        for (const Case& c : layers(dtype))
            for (const Named& activation : activations()) {
                CAPTURE(c.name);
                CAPTURE(activation.name);
                const Tensor x = random_tensor(c.shape, 1, dtype),
                             weights = random_tensor(c.layer(x).shape(), 2, dtype);
                std::vector<double> fused, apart;
                const int fewer = launches_of(
                    "elementwise", [&] { fused = gradient_of(x, activation.function, c.layer, weights, false); });
                const int separate_launches = launches_of(
                    "elementwise", [&] { apart = gradient_of(x, activation.function, c.layer, weights, true); });
                CHECK(difference(fused, apart, tolerance(dtype, 40)) == "");
                CHECK(std::ranges::any_of(fused, [](double v) { return v != 0; }));
                // Gradients of max pooling have fewer elements, and as many launches.
                const bool fuses_activation = std::string(c.name) == "conv2d" || std::string(c.name) == "linear";
                if (ops::fuses() && fuses_activation && activation.name != std::string("times"))
                    CHECK(fewer == separate_launches - 1);
                if (dtype == DType::f64 && activation.name != std::string("relu"))
                    CHECK(gradient_difference([&](const auto& in) { return c.layer(activation.function(in[0])); },
                                              {x}) == "");
            }
    }
}

TEST_CASE("activation gradients: a hook between them sees the gradient there") {
    const Tensor weight = random_tensor({5, 7}, 1), x = random_tensor({3, 7}, 2), weights = random_tensor({3, 5}, 3);
    std::vector<double> expected(21), w = values(weight), g = values(weights);
    for (std::size_t i = 0; i < 3; ++i)
        for (std::size_t k = 0; k < 7; ++k)
            for (std::size_t j = 0; j < 5; ++j) expected[i * 7 + k] += g[i * 5 + j] * w[j * 7 + k];
    std::vector<double> hook_result;
    gradient_of(
        x, [](const Tensor& t) { return relu(t); }, [&](const Tensor& t) { return linear(t, weight); }, weights, true,
        &hook_result);
    CHECK(difference(hook_result, expected, tolerance(DType::f32, 5)) == "");

    Tensor leaf = x.clone();
    leaf.set_requires_grad();
    const Tensor middle = relu(leaf);
    const auto both = grad({sum(linear(middle, weight) * weights)}, {middle, leaf});
    CHECK(difference(both[0], expected, tolerance(DType::f32, 5)) == "");
    const std::vector<double> activations = values(middle);
    for (std::size_t i = 0; i < expected.size(); ++i) expected[i] = activations[i] > 0 ? expected[i] : 0;
    CHECK(difference(both[1], expected, tolerance(DType::f32, 5)) == "");
}

TEST_CASE("activation gradients: of a value with several uses") {
    const Tensor weight = random_tensor({7, 7}, 1), x = random_tensor({3, 7}, 2);
    const auto gradient = [&](bool with_hook) {
        return gradient_of(
            x, [](const Tensor& t) { return tanh(t); },
            [&](const Tensor& t) { return linear(t, weight) + t * linear(t, weight); }, random_tensor({3, 7}, 3),
            with_hook);
    };
    CHECK(difference(gradient(false), gradient(true), tolerance(DType::f32, 40)) == "");
    const Tensor last = random_tensor({3, 7}, 4);
    const auto gradient_of_graph = [&](bool backward_twice) {
        Tensor leaf = x.clone();
        leaf.set_requires_grad();
        const Tensor y = sum(linear(relu(leaf), weight) * last);
        y.backward({}, backward_twice);
        if (backward_twice) y.backward();
        return values(leaf.grad());
    };
    std::vector<double> doubled = gradient_of_graph(false);
    for (double& v : doubled) v *= 2;
    CHECK(gradient_of_graph(true) == doubled);
}

TEST_CASE("activation gradients: overwritten maxima are not needed") {
    Tensor x = random_tensor({1, 2, 4, 4}, 1);
    const auto gradient = [&](bool overwritten) {
        Tensor leaf = x.clone();
        leaf.set_requires_grad();
        const Tensor pooled = max_pool2d(relu(leaf), {.kernel_size = {2, 2}});
        const Tensor y = sum(pooled);
        if (overwritten) {
            Tensor same = pooled.detach();
            same.fill_(-1);
        }
        y.backward();
        return values(leaf.grad());
    };
    CHECK(gradient(true) == gradient(false));
}
