// Double backward of convolutions, products, pooling, normalisation, losses and shape functions: decompositions
// compared with the kernels of a plain backward, and with central differences.
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>
#include <tests/support/devices.hpp>
#include <tests/support/gradient_check.hpp>
#include <tests/support/skip.hpp>
#include <tests/support/values.hpp>

#include "ops/support/work_split.hpp"

using namespace declivity;
using namespace declivity::test;

namespace {

using Tensors = std::vector<Tensor>;

struct Case {
    std::string name;
    std::vector<Shape> inputs;
    std::function<Tensor(const Tensors&)> call;
    double curvature = 1;  // about as large as third derivatives are
};

Tensor labels(const std::vector<std::int64_t>& values) {
    return Tensor::from(values, {static_cast<std::int64_t>(values.size())});
}

/// A convolutional network with normalisation, pooling and a loss, with all parameters as inputs.
Tensor small_network(const Tensors& in) {
    Tensor h = conv2d(in[0], in[1], in[2], {.padding = 1});
    h = tanh(batch_norm(h, in[3], in[4], {}, {}, {.training = true}));
    h = avg_pool2d(h, {.kernel_size = 2});
    h = silu(conv2d(h, in[5], {}, {}));
    return cross_entropy(linear(flatten(h), in[6], in[7]), labels({2, 0, 1}));
}

std::vector<Case> cases() {
    const auto conv = [](Conv2dParameters options) {
        return [options](const Tensors& in) { return conv2d(in[0], in[1], in.size() > 2 ? in[2] : Tensor(), options); };
    };
    const auto entropy = [](CrossEntropyOptions options) {
        return [options](const Tensors& in) { return cross_entropy(in[0], labels({1, 3, 0, 2, 3}), options); };
    };
    const auto pool = [](Tensor (*function)(const Tensor&, const Pool2dParameters&), Pool2dParameters options) {
        return [=](const Tensors& in) { return function(in[0], options); };
    };
    const auto norm = [](bool training) {
        return [training](const Tensors& in) {
            const bool affine = in.size() > 1;
            const DType dtype = in[0].dtype();
            const Tensor none, mean = random_tensor({3}, 50, dtype), variance = full({3}, 0.7, {dtype});
            return batch_norm(in[0], affine ? in[1] : none, affine ? in[2] : none, training ? none : mean,
                              training ? none : variance, {.training = training});
        };
    };
    std::vector<Case> all{
        {"conv2d", {{2, 3, 5, 4}, {2, 3, 3, 2}, {2}}, conv({})},
        {"conv2d, strides", {{1, 2, 7, 6}, {3, 2, 3, 3}}, conv({.stride = {2, 3}, .padding = {1, 2}})},
        {"conv2d, groups, dilation", {{2, 4, 6, 5}, {6, 2, 2, 2}, {6}}, conv({.dilation = 2, .groups = 2})},
        {"conv2d, depthwise", {{1, 3, 5, 5}, {3, 1, 3, 3}}, conv({.padding = 1, .groups = 3})},
        {"matmul", {{2, 3, 4}, {4, 5}}, [](const Tensors& in) { return matmul(in[0], in[1]); }},
        {"matmul, batches", {{2, 3, 4}, {2, 4, 2}}, [](const Tensors& in) { return matmul(in[0], in[1]); }},
        {"linear", {{3, 4}, {5, 4}, {5}}, [](const Tensors& in) { return linear(in[0], in[1], in[2]); }},
        {"softmax", {{3, 5}}, [](const Tensors& in) { return softmax(in[0], 1); }},
        {"softmax, axis 0", {{4, 3}}, [](const Tensors& in) { return softmax(in[0], 0); }},
        {"log_softmax", {{3, 5}}, [](const Tensors& in) { return log_softmax(in[0], -1); }},
        {"cross_entropy", {{5, 4}}, entropy({})},
        {"cross_entropy, sum", {{5, 4}}, entropy({.reduction = Reduction::sum, .label_smoothing = 0.2})},
        {"cross_entropy, none", {{5, 4}}, entropy({.reduction = Reduction::none, .ignore_index = 3})},
        {"cross_entropy, ignored", {{5, 4}}, entropy({.label_smoothing = 0.1, .ignore_index = 3})},
        {"mse_loss", {{3, 4}, {3, 4}}, [](const Tensors& in) { return mse_loss(in[0], in[1]); }},
        {"bce_with_logits",
         {{3, 4}},
         [](const Tensors& in) {
             return bce_with_logits(in[0], random_tensor({3, 4}, 60, in[0].dtype(), 0, 1));
         }},
        {"max_pool2d", {{2, 2, 6, 5}}, pool(max_pool2d, {.kernel_size = 2})},
        {"max_pool2d, overlapping", {{1, 2, 7, 6}}, pool(max_pool2d, {.kernel_size = 3, .stride = 2, .padding = 1})},
        {"max_pool2d of an activation",
         {{1, 2, 6, 6}},
         [](const Tensors& in) { return max_pool2d(tanh(in[0]), {.kernel_size = 2}); }},
        {"avg_pool2d", {{2, 2, 6, 5}}, pool(avg_pool2d, {.kernel_size = 2})},
        {"avg_pool2d, overlapping",
         {{1, 2, 7, 6}},
         pool(avg_pool2d, {.kernel_size = 3, .stride = 2, .padding = 1, .count_include_pad = false})},
        {"global_avg_pool2d", {{2, 3, 4, 5}}, [](const Tensors& in) { return global_avg_pool2d(in[0]); }},
        {"batch_norm, training", {{4, 3, 2, 3}, {3}, {3}}, norm(true)},
        {"batch_norm, training, plain", {{5, 3}}, norm(true)},
        {"batch_norm, evaluation", {{2, 3, 4}, {3}, {3}}, norm(false)},
        {"max", {{3, 5}}, [](const Tensors& in) { return max(in[0], {1}); }},
        {"min", {{3, 5}}, [](const Tensors& in) { return min(in[0], {0}, true); }},
        {"sum", {{3, 5}}, [](const Tensors& in) { return sum(in[0], {0}); }},
        {"mean", {{3, 5}}, [](const Tensors& in) { return mean(in[0]); }},
        {"slice", {{5, 6}}, [](const Tensors& in) { return slice(slice(in[0], 0, 1, 4), 1, 0, 6, 2); }},
        {"concat",
         {{2, 3}, {2, 2}},
         [](const Tensors& in) {
             return concat({in[0], in[1], in[0]}, 1);
         }},
        {"pad",
         {{2, 3}},
         [](const Tensors& in) {
             return pad(in[0], {1, 0}, {0, 2}, 0.5);
         }},
        {"permute",
         {{2, 3, 4}},
         [](const Tensors& in) {
             return permute(in[0], {2, 0, 1});
         }},
        {"reshape, expand",
         {{2, 3}},
         [](const Tensors& in) {
             return expand(reshape(in[0], {6, 1}), {6, 4});
         }},
        {"clone, to", {{2, 3}}, [](const Tensors& in) { return in[0].clone().to(DType::f64); }},
    };
    Case network{
        "a small network", {{3, 2, 6, 6}, {3, 2, 3, 3}, {3}, {3}, {3}, {2, 3, 2, 2}, {3, 8}, {3}}, small_network, 10};
    all.push_back(network);
    return all;
}

Tensors inputs_of(const Case& test_case, DType dtype) {
    Tensors all;
    std::uint64_t seed = 1;
    for (const Shape& shape : test_case.inputs) all.push_back(random_tensor(shape, ++seed, dtype).set_requires_grad());
    return all;
}

/// Adds a square, so that a linear function has a second derivative.
Tensor curved(const Tensor& y) { return y + square(y) * 0.5; }

Tensors gradients(const Case& test_case, const Tensors& inputs, bool create_graph) {
    const Tensor y = curved(test_case.call(inputs));
    const Tensor weights = random_tensor(y.shape(), 3, y.dtype(), 0.5, 1.5);
    return grad({sum(y * weights)}, inputs, {.create_graph = create_graph});
}

/// A scalar to which each element of each gradient contributes.
Tensor weighted(const Tensors& tensors) {
    Tensor all;
    std::uint64_t seed = 20;
    for (const Tensor& tensor : tensors) {
        const Tensor part = sum(tensor * random_tensor(tensor.shape(), ++seed, tensor.dtype()));
        all = all.defined() ? all + part : part;
    }
    return all;
}

std::string difference_from_numeric(const Tensors& inputs, const Tensors& computed, double allowed,
                                    const std::function<double()>& loss_value) {
    return numeric_difference(inputs, computed, loss_value, {.step = 1e-5, .tolerance = allowed});
}

}  // namespace

TEST_CASE("gradients of layers: the decomposition matches the kernels") {
    for (const DType dtype : floats())
        for (const Case& test_case : cases()) {
            if (dtype != DType::f64 && test_case.name == "clone, to") continue;
            CAPTURE(test_case.name);
            const Tensors inputs = inputs_of(test_case, dtype);
            const Tensors plain = gradients(test_case, inputs, false), decomposed = gradients(test_case, inputs, true);
            const double exact = (dtype == DType::f64 ? 1e-11 : 1e-4) * test_case.curvature;
            for (std::size_t i = 0; i < inputs.size(); ++i)
                CHECK(difference(decomposed[i], values(plain[i]), {.absolute = exact, .relative = exact}) == "");
        }
}

TEST_CASE("gradients of layers: second derivatives match central differences") {
    if (!default_device().info().fp64) return skip("f64: the device has no double precision");
    int number = 0;
    for (const Case& test_case : cases()) {
        if (small_cases() && ++number % 6 != 1)
            continue;  // under slow checkers, the test above covers the gradients of all of them
        CAPTURE(test_case.name);
        const Tensors inputs = inputs_of(test_case, DType::f64);
        const Tensors second = grad({weighted(gradients(test_case, inputs, true))}, inputs, {.allow_unused = true});
        CHECK(difference_from_numeric(inputs, second, 1e-6, [&] {
                  return weighted(gradients(test_case, inputs, false)).item<double>();
              }) == "");
    }
}

TEST_CASE("gradients of layers: third derivatives") {
    if (!default_device().info().fp64) return skip("f64: the device has no double precision");
    for (const Case& test_case : cases()) {
        if (small_cases() || test_case.name.find(',') != std::string::npos || test_case.name == "a small network")
            continue;
        CAPTURE(test_case.name);
        const Tensors inputs = inputs_of(test_case, DType::f64);
        const auto second = [&](bool create_graph) {
            Tensors all;
            for (const Tensor& gradient : grad({weighted(gradients(test_case, inputs, true))}, inputs,
                                               {.create_graph = create_graph, .allow_unused = true}))
                if (gradient.defined()) all.push_back(gradient);
            return weighted(all);
        };
        const Tensor number = second(true);
        if (!number.requires_grad()) continue;
        const Tensors third = grad({number}, inputs, {.allow_unused = true});
        CHECK(difference_from_numeric(inputs, third, 1e-5, [&] { return second(false).item<double>(); }) == "");
    }
}

TEST_CASE("gradients of layers: frozen weights, and gradients of one input only") {
    if (!default_device().info().fp64) return skip("f64: the device has no double precision");
    // A gradient penalty: the critic's weights are trained on the gradient of its input.
    const Tensor x = random_tensor({2, 2, 5, 5}, 1, DType::f64).set_requires_grad();
    const Tensor w = random_tensor({3, 2, 3, 3}, 2, DType::f64).set_requires_grad();
    const Tensor fixed = random_tensor({2, 3, 2, 2}, 3, DType::f64);
    const auto penalty = [&](bool create_graph) {
        const Tensor score = sum(conv2d(tanh(conv2d(x, w)), fixed));
        const Tensor gradient = grad({score}, {x}, {.create_graph = create_graph})[0];
        return sum(square(gradient));
    };
    const Tensor number = penalty(true);
    number.backward();
    CHECK(difference_from_numeric({w, x}, {w.grad(), x.grad()}, 1e-6, [&] { return penalty(false).item<double>(); }) ==
          "");
    CHECK_FALSE(fixed.grad().defined());
}

TEST_CASE("gradients of layers: non-finite values and omitted inputs, with create_graph") {
    const Tensor logits = random_tensor({3, 3}, 1).set_requires_grad();
    for (const Reduction reduction : {Reduction::mean, Reduction::sum}) {
        const auto gradient = [&](bool create_graph) {
            const Tensor loss = cross_entropy(logits, labels({1, 7, 2}), {.reduction = reduction, .ignore_index = 2});
            return values(grad({loss}, {logits}, {.create_graph = create_graph})[0]);
        };
        const auto plain = gradient(false), decomposed = gradient(true);
        for (std::size_t i = 0; i < 9; ++i) {
            CHECK(std::isnan(decomposed[i]) == std::isnan(plain[i]));
            if (!std::isnan(plain[i])) CHECK(decomposed[i] == doctest::Approx(plain[i]).epsilon(1e-5));
        }
        CHECK(std::isnan(plain[3]));
        CHECK(plain[6] == 0);
    }
    // Indices outside of a table do not contribute to its gradient.
    const Tensor weight = random_tensor({4, 2}, 1).set_requires_grad(), scale = random_tensor({3, 2}, 2);
    Tensor factor = scale.clone().set_requires_grad();
    const Tensor y = embedding(labels({1, -1, 3}), weight);
    const Tensor first = grad({y}, {weight}, {.output_gradients = {factor * 1.0}, .create_graph = true})[0];
    const auto second = values(grad({sum(first)}, {factor})[0]);
    CHECK(second == std::vector<double>{1, 1, 0, 0, 1, 1});
    CHECK_THROWS_WITH_AS(conv_transpose2d(random_tensor({1, 1, 3, 3}, 1), random_tensor({1, 1, 3, 3}, 2), {},
                                          {.output_padding = 2, .dilation = 2}),
                         "conv_transpose2d: expected an output padding of at least 0 that is less than the stride or "
                         "the dilation, got 2 "
                         "for stride 1 and dilation 2",
                         ValueError);
}
