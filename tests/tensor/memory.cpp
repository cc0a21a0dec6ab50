// no-oclgrind: it counts memory; its kernels are those of other tests
//
// Memory usage of training: what backward frees, and the scope that memory is attributed to.
#include <algorithm>
#include <memory>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/nn/nn.hpp>
#include <declivity/optim/adam.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>

#include <tests/support/values.hpp>
#include "ops/engine/lazy_array.hpp"
#include "runtime/access.hpp"

using namespace declivity;
using namespace declivity::test;

namespace {

/// Peak memory of a call beyond the memory in use before it.
template <class Call>
std::uint64_t peak_of(const Device& device, Call&& call) {
    const auto before = device.memory().in_use;
    device.reset_peak_memory();
    call();
    return device.memory().peak - before;
}

std::uint64_t in_scope(const Device& device, std::string_view scope) {
    const auto rows = device.memory_by_scope();
    const auto found = std::ranges::find(rows, scope, &ScopeMemory::scope);
    return found == rows.end() ? 0 : found->bytes;
}

}  // namespace

TEST_CASE("memory: backward through a chain needs two gradients at a time, not all") {
    const Tensor x = random_tensor({256, 256}, 1).set_requires_grad();
    constexpr std::uint64_t tensor_bytes = 256 * 256 * 4;
    Tensor y = x;
    for (int i = 0; i < 12; ++i) y = softmax(y);  // saves its result, and cannot be fused
    (void)y.view();                               // the last one is pending
    const auto before = x.device().memory().in_use;
    const auto peak = peak_of(x.device(), [&] { y.backward(ones_like(y)); });
    CHECK(peak <= 3 * tensor_bytes);
    y = Tensor();
    CHECK(x.device().memory().in_use == before - 11 * tensor_bytes);  // the results are freed, the gradient exists
}

TEST_CASE("memory: with max pooling after convolution and relu, the gradient reuses the memory of relu's result") {
    const Tensor x = random_tensor({8, 3, 128, 128}, 1), weight = random_tensor({16, 3, 3, 3}, 2).set_requires_grad();
    constexpr std::uint64_t plane = 8 * 16 * 128 * 128 * 4;
    const auto step = [&] {
        const Tensor loss = sum(max_pool2d(relu(conv2d(x, weight, {}, {.padding = 1}))));
        loss.backward();
    };
    step();
    // If the result of relu were kept, it would be 2.75: that, the gradient, and three of the pooled size.
    CHECK(peak_of(x.device(), step) <= 2 * plane + plane / 4);
}

TEST_CASE("memory: if relu's result is still referenced, its gradient is correct") {
    const Tensor x = random_tensor({2, 3, 8, 8}, 1).set_requires_grad();
    const auto gradient = [&](bool shared, bool two_uses) {
        const Tensor h = relu(x * 2.0);
        Tensor y = sum(max_pool2d(h)) * 3.0;
        if (two_uses) y = y + sum(h * h);
        const Tensor retained = shared ? h : Tensor();
        if (!shared && !two_uses) return grad({sum(max_pool2d(relu(x * 2.0))) * 3.0}, {x})[0].to_vector<float>();
        return grad({y}, {x})[0].to_vector<float>();
    };
    CHECK(gradient(true, false) == gradient(false, false));
    const auto in = values(x);
    const auto both = gradient(false, true), single_use = gradient(false, false);
    for (std::size_t i = 0; i < in.size(); ++i) {
        const double second_term = in[i] > 0 ? 8 * in[i] : 0;  // d(sum of (2x)^2)/dx
        CHECK(both[i] == doctest::Approx(single_use[i] + second_term).epsilon(1e-5));
    }
}

TEST_CASE("memory: with frozen weights conv2d, linear and matmul save no input, and the gradient is the same") {
    struct Case {
        const char* name;
        Shape x, weight;
        Tensor (*function)(const Tensor& x, const Tensor& weight);
    };
    const Case cases[] = {
        {"conv2d", {2, 3, 5, 5}, {4, 3, 3, 3}, [](const Tensor& x, const Tensor& w) { return conv2d(x, w); }},
        {"linear", {7, 5}, {3, 5}, [](const Tensor& x, const Tensor& w) { return linear(x, w); }},
        {"matmul", {2, 7, 5}, {2, 5, 3}, [](const Tensor& x, const Tensor& w) { return matmul(x, w); }}};
    for (const Case& test_case : cases) {
        CAPTURE(test_case.name);
        const auto keeps_input = [&](bool frozen, std::vector<double>* gradient) {
            const Tensor leaf = random_tensor(test_case.x, 1).set_requires_grad();
            const Tensor weight = random_tensor(test_case.weight, 2).set_requires_grad(!frozen);
            std::weak_ptr<detail::Block> memory;
            Tensor y;
            {
                const Tensor x = leaf * 2.0;
                memory = weak_of(x.view().buffer);
                y = test_case.function(x, weight);
                (void)y.view();
            }
            const bool retained = !memory.expired();
            *gradient = values(grad({sum(square(y))}, {leaf})[0]);
            return retained;
        };
        std::vector<double> frozen, learning;
        CHECK_FALSE(keeps_input(true, &frozen));
        CHECK(keeps_input(false, &learning));
        CHECK(frozen == learning);
    }
}

TEST_CASE("memory: shape checks do not evaluate pending values") {
    if (!ops::fuses()) return;
    const Tensor x = random_tensor({2, 3}, 1), target = exp(random_tensor({2, 3}, 2)),
                 misshapen = exp(random_tensor({3, 2}, 3));
    CHECK_THROWS_AS(mse_loss(x, misshapen), ShapeError);
    CHECK_THROWS_AS(bce_with_logits(x, misshapen), ShapeError);
    CHECK_THROWS_AS(global_avg_pool2d(misshapen), ShapeError);
    CHECK_FALSE(misshapen.value().computed());
    const Tensor losses = mse_loss(x, target, Reduction::none);
    CHECK_FALSE(target.value().computed());
    CHECK(values(losses).size() == 6);
}

TEST_CASE("memory: is attributed to the owning layer") {
    const Device device = default_device();
    const auto weights_before = in_scope(device, "Sequential/0");
    nn::Sequential net(nn::Linear(300, 200), nn::Tanh(), nn::Linear(200, 10));
    optim::Adam adam(net.parameters());
    const auto state = in_scope(device, "optimizer");
    CHECK(state >= 2 * 4 * (300 * 200 + 200 * 10));
    CHECK(in_scope(device, "Sequential/0") == weights_before);  // not called yet
    const Tensor x = random_tensor({50, 300}, 1);
    const Tensor loss = mean(square(net(x)));
    CHECK(in_scope(device, "Sequential/0") - weights_before >= 4 * (300 * 200 + 200));
    CHECK(in_scope(device, "Sequential/1") >= 4 * 50 * 200);  // saved for the gradient of tanh
    const auto without_gradients = in_scope(device, "Sequential/0");
    loss.backward();
    CHECK(in_scope(device, "Sequential/0") >= without_gradients + 4 * 300 * 200);
    CHECK(in_scope(device, "Sequential/1") == 0);
    net.to(DType::f16);
    (void)net(x.to(DType::f16));
    CHECK(in_scope(device, "Sequential/0") < without_gradients);
    CHECK(in_scope(device, "Sequential/0") >= 2 * 300 * 200);
}
