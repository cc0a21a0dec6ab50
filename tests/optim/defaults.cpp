// Defaults of optimizers, schedules, layers, losses and initialisers compared with PyTorch's documentation (torch 2).
#include <cmath>
#include <string>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/nn/nn.hpp>
#include <declivity/optim/adam.hpp>
#include <declivity/optim/schedule.hpp>
#include <declivity/optim/sgd.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>

#include <tests/support/values.hpp>
#include "tests/support/devices.hpp"

using namespace declivity;

namespace {

/// A parameter of 100 after a step with a gradient of 0.
template <class Optimizer, class Options>
double decayed(const Options& options) {
    Tensor p = full({3}, 100).set_requires_grad();
    Optimizer optimizer({p}, options);
    p.set_grad(zeros({3}));
    optimizer.step();
    return test::values(p)[1];
}

/// The parameter after a step with a gradient of 1 and default options.
template <class Optimizer>
double stepped() {
    Tensor p = full({3}, 1, {test::widest()}).set_requires_grad();
    Optimizer optimizer({p});
    p.set_grad(ones({3}, {test::widest()}));
    optimizer.step();
    return test::values(p)[1];
}

/// Checks that values are uniform in [-bound, bound]: none outside, the largest close to it, their mean square a third
/// of its square.
void check_uniform(const Tensor& tensor, double bound) {
    const auto values = test::values(tensor);
    REQUIRE(values.size() >= 1000);
    double lowest = values[0], highest = values[0], squares = 0;
    for (const double value : values) {
        lowest = std::min(lowest, value);
        highest = std::max(highest, value);
        squares += value * value;
    }
    CHECK(highest <= bound);
    CHECK(lowest >= -bound);
    CHECK(highest > 0.98 * bound);
    CHECK(lowest < -0.98 * bound);
    CHECK(squares / static_cast<double>(values.size()) / (bound * bound / 3) == doctest::Approx(1).epsilon(0.1));
}

}  // namespace

TEST_CASE("AdamW applies weight decay with any options, Adam and SGD do not") {
    CHECK(decayed<optim::AdamW>(optim::AdamWOptions{.lr = 0.1}) == doctest::Approx(99.9).epsilon(1e-6));
    CHECK(decayed<optim::AdamW>(optim::AdamWOptions{}) == doctest::Approx(100 * (1 - 1e-3 * 0.01)).epsilon(1e-7));
    CHECK(decayed<optim::Adam>(optim::AdamOptions{.lr = 0.1}) == 100);
    CHECK(decayed<optim::SGD>(optim::SGDOptions{.lr = 0.1}) == 100);
    // The parameter is added with its options, and in a separate group.
    Tensor p = full({3}, 100).set_requires_grad(), q = full({2}, 100).set_requires_grad(),
           r = full({2}, 100).set_requires_grad();
    optim::AdamW optimizer({p}, {.lr = 0.1});
    optimizer.add_group({q}, {.lr = 0.2});
    optimizer.add_group({r}, {.lr = 0.1, .weight_decay = 0});
    for (Tensor tensor : {p, q, r}) tensor.set_grad(zeros_like(tensor));
    optimizer.step();
    CHECK(test::values(p)[0] == doctest::Approx(99.9).epsilon(1e-6));
    CHECK(test::values(q)[0] == doctest::Approx(99.8).epsilon(1e-6));
    CHECK(test::values(r)[0] == 100);
    CHECK_THROWS_WITH_AS(
        optim::AdamW({zeros({1}).set_requires_grad()}, {.beta1 = 1}),
        "AdamW: expected betas in [0, 1), eps and weight decay of at least 0, got 1, 0.999, 1e-08, 0.01", ValueError);
}

TEST_CASE("defaults: optimizers match PyTorch") {
    // torch.optim.SGD(params, lr=1e-3, momentum=0, dampening=0, weight_decay=0, nesterov=False)
    const optim::SGDOptions sgd;
    CHECK(sgd.lr == 1e-3);
    CHECK(sgd.momentum == 0);
    CHECK(sgd.dampening == 0);
    CHECK(sgd.weight_decay == 0);
    CHECK_FALSE(sgd.nesterov);
    // torch.optim.Adam(params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0), AdamW with weight_decay=1e-2
    const optim::AdamOptions adam;
    const optim::AdamWOptions adamw;
    CHECK(adam.lr == 1e-3);
    CHECK(adam.beta1 == 0.9);
    CHECK(adam.beta2 == 0.999);
    CHECK(adam.eps == 1e-8);
    CHECK(adam.weight_decay == 0);
    CHECK(adamw.lr == 1e-3);
    CHECK(adamw.beta1 == 0.9);
    CHECK(adamw.beta2 == 0.999);
    CHECK(adamw.eps == 1e-8);
    CHECK(adamw.weight_decay == 0.01);
    // The optimizers use these values.
    const double exact = test::widest() == DType::f64 ? 1e-12 : 1e-6;
    CHECK(stepped<optim::SGD>() == doctest::Approx(1 - 1e-3).epsilon(exact));
    CHECK(stepped<optim::Adam>() == doctest::Approx(1 - 1e-3 / (1 + 1e-8)).epsilon(exact));
    CHECK(stepped<optim::AdamW>() == doctest::Approx((1 - 1e-5) - 1e-3 / (1 + 1e-8)).epsilon(exact));
}

TEST_CASE("defaults: schedules match PyTorch") {
    const auto step = optim::step_decay(3),
               cosine = optim::cosine(10);  // StepLR(gamma=0.1), CosineAnnealingLR(eta_min=0)
    CHECK(step(2) == 1);
    CHECK(step(3) == doctest::Approx(0.1));
    CHECK(step(7) == doctest::Approx(0.01));
    CHECK(cosine(10) == doctest::Approx(0));
}

TEST_CASE("defaults: losses match PyTorch") {
    // CrossEntropyLoss(ignore_index=-100, reduction='mean', label_smoothing=0), MSELoss(reduction='mean'),
    // BCEWithLogitsLoss(reduction='mean')
    const CrossEntropyOptions options;
    CHECK(options.ignore_index == -100);
    CHECK(options.reduction == Reduction::mean);
    CHECK(options.label_smoothing == 0);
    const Tensor logits = Tensor::from<float>({1, 2, 3, 4}, {2, 2}), labels = Tensor::from<std::int64_t>({1, 0}, {2}),
                 targets = Tensor::from<float>({0, 1, 1, 0}, {2, 2});
    const double per_row[] = {std::log(1 + std::exp(-1.0)), 1 + std::log(1 + std::exp(-1.0))};
    CHECK(nn::CrossEntropyLoss()(logits, labels).item<float>() == doctest::Approx((per_row[0] + per_row[1]) / 2));
    CHECK(cross_entropy(logits, Tensor::from<std::int64_t>({1, -100}, {2})).item<float>() ==
          doctest::Approx(per_row[0]));
    CHECK(nn::CrossEntropyLoss({.reduction = Reduction::sum})(logits, labels).item<float>() ==
          doctest::Approx(per_row[0] + per_row[1]));
    CHECK(nn::MSELoss()(logits, targets).item<float>() == doctest::Approx((1 + 1 + 4 + 16) / 4.0));
    CHECK(nn::MSELoss(Reduction::sum)(logits, targets).item<float>() == doctest::Approx(22));
    const auto softplus = [](double x) { return std::log(1 + std::exp(x)); };
    const double binary = softplus(1) + softplus(-2) + softplus(-3) + softplus(4);
    CHECK(nn::BCEWithLogitsLoss()(logits, targets).item<float>() == doctest::Approx(binary / 4));
    CHECK(nn::BCEWithLogitsLoss(Reduction::sum)(logits, targets).item<float>() == doctest::Approx(binary));
}

TEST_CASE("defaults: layers match PyTorch") {
    // Conv2d(in, out, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True)
    const nn::Conv2dOptions conv;
    CHECK(conv.stride == Size2(1));
    CHECK(conv.padding.numbers(2) == Dims{0, 0});
    CHECK(conv.dilation == Size2(1));
    CHECK(conv.groups == 1);
    CHECK(conv.bias);
    CHECK(conv.dtype == DType::f32);
    CHECK(nn::Conv2d(1, 2, 3)(zeros({1, 1, 5, 7})).shape() == Shape{1, 2, 3, 5});
    CHECK(nn::Conv2d(1, 2, 3).bias().defined());
    CHECK(nn::LinearOptions().bias);
    CHECK(nn::Linear(2, 3).bias().defined());
    // BatchNorm2d(num_features, eps=1e-5, momentum=0.1, affine=True): weight 1, bias 0, running mean 0, running
    // variance 1
    const nn::BatchNormOptions norm;
    CHECK(norm.eps == 1e-5);
    CHECK(norm.momentum == 0.1);
    CHECK(norm.affine);
    CHECK(BatchNormParameters().eps == 1e-5);
    CHECK(BatchNormParameters().momentum == 0.1);
    nn::BatchNorm1d layer(1);
    CHECK(test::values(layer.parameters()[0]) == std::vector<double>{1});
    CHECK(test::values(layer.parameters()[1]) == std::vector<double>{0});
    CHECK(test::values(layer.named_buffers()[0].tensor) == std::vector<double>{0});
    CHECK(test::values(layer.named_buffers()[1].tensor) == std::vector<double>{1});
    const Tensor normalized = layer(Tensor::from<float>({1, 3}, {2, 1}));
    CHECK(test::values(normalized)[1] == doctest::Approx(1 / std::sqrt(1 + 1e-5)).epsilon(1e-7));
    CHECK(test::values(layer.named_buffers()[0].tensor)[0] == doctest::Approx(0.1 * 2));
    CHECK(test::values(layer.named_buffers()[1].tensor)[0] == doctest::Approx(0.9 + 0.1 * 2));  // Bessel's correction
    // MaxPool2d(kernel_size, stride=kernel_size, padding=0), AvgPool2d(.., count_include_pad=True)
    const Tensor image = reshape(arange(0, 36), {1, 1, 6, 6});
    CHECK(nn::MaxPool2d(3)(image).shape() == Shape{1, 1, 2, 2});
    CHECK(nn::AvgPool2d(2)(image).shape() == Shape{1, 1, 3, 3});
    CHECK(test::values(nn::AvgPool2d(2, {.padding = 1})(ones({1, 1, 2, 2}))) ==
          std::vector<double>{0.25, 0.25, 0.25, 0.25});
    CHECK(test::values(avg_pool2d(ones({1, 1, 2, 2}), {.padding = 1}))[0] == 0.25);
    // LeakyReLU(negative_slope=0.01), GELU(approximate='none'), Flatten(start_dim=1), Softmax over the last axis
    CHECK(test::values(nn::LeakyReLU()(full({1}, -1)))[0] == doctest::Approx(-0.01));
    CHECK(test::values(leaky_relu(full({1}, -1)))[0] == doctest::Approx(-0.01));
    CHECK(test::values(nn::GELU()(ones({1})))[0] ==
          doctest::Approx(0.5 * (1 + std::erf(std::sqrt(0.5)))).epsilon(1e-6));
    CHECK(nn::Flatten()(zeros({2, 3, 4})).shape() == Shape{2, 12});
    CHECK(test::values(nn::Softmax()(zeros({2, 4})))[0] == doctest::Approx(0.25));
    // Dropout(p=0.5): half of the elements are dropped, the others are doubled
    double sum_of_kept = 0;
    manual_seed(3);
    for (const double value : test::values(nn::Dropout()(ones({10000})))) {
        CHECK_UNARY(value == 0 || value == 2);
        sum_of_kept += value;
    }
    CHECK(sum_of_kept / 20000 == doctest::Approx(0.5).epsilon(0.04));
}

TEST_CASE("defaults: initial weights and biases match PyTorch: kaiming_uniform_(a=sqrt(5)), and +-1 / sqrt(fan_in)") {
    manual_seed(5);
    const nn::Linear linear(37, 1500);
    check_uniform(linear.weight(), 1 / std::sqrt(37.0));
    check_uniform(linear.bias(), 1 / std::sqrt(37.0));
    const nn::Conv2d conv(6, 1500, {3, 2}, {.groups = 3});
    check_uniform(conv.weight(), 1 / std::sqrt(2 * 3 * 2.0));
    check_uniform(conv.bias(), 1 / std::sqrt(2 * 3 * 2.0));
    // torch.nn.init: kaiming with a=0, xavier with gain=1, uniform_(0, 1), normal_(0, 1), trunc_normal_(0, 1, -2, 2)
    check_uniform(nn::kaiming_uniform_(zeros({50, 40})), std::sqrt(6 / 40.0));
    check_uniform(nn::xavier_uniform_(zeros({50, 40})), std::sqrt(6 / 90.0));
    check_uniform(nn::uniform_(zeros({2000})) * 2.0 - 1.0, 1);
    const auto deviation = [](const Tensor& x) { return std::sqrt(mean(square(x)).item<float>()); };
    CHECK(deviation(nn::normal_(zeros({200, 100}))) == doctest::Approx(1).epsilon(0.03));
    CHECK(deviation(nn::kaiming_normal_(zeros({200, 100}))) == doctest::Approx(std::sqrt(2 / 100.0)).epsilon(0.03));
    CHECK(deviation(nn::xavier_normal_(zeros({200, 100}))) == doctest::Approx(std::sqrt(2 / 300.0)).epsilon(0.03));
    const Tensor truncated = nn::truncated_normal_(zeros({5000}));
    CHECK(max(abs(truncated)).item<float>() <= 2);
    CHECK(max(abs(truncated)).item<float>() > 1.9);
}
