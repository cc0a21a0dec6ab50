// Activation layers: each computes its function and is capture-safe, and PReLU learns.
#include <functional>
#include <string>
#include <typeinfo>
#include <utility>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/capture/capture.hpp>
#include <declivity/nn/nn.hpp>
#include <declivity/optim/sgd.hpp>
#include <doctest/doctest.h>
#include <tests/support/values.hpp>

using namespace declivity;
using namespace declivity::test;

namespace {

template <class Layer>
void check(const std::string& name, Layer layer, const std::function<Tensor(const Tensor&)>& function,
           const Shape& shape = {3, 8, 5}) {
    CAPTURE(name);
    const Tensor x = random_tensor(shape, 5, DType::f32, -4, 4);
    CHECK(layer.type_name() == name);
    CHECK(layer.capture_safe() == typeid(Layer));
    CHECK(values(layer(x)) == values(function(x)));
}

}  // namespace

TEST_CASE("activation layers: each computes its function") {
    check("ELU", nn::ELU(0.5), [](const Tensor& x) { return elu(x, 0.5); });
    check("SELU", nn::SELU(), [](const Tensor& x) { return selu(x); });
    check("CELU", nn::CELU(0.5), [](const Tensor& x) { return celu(x, 0.5); });
    check("Softplus", nn::Softplus(2, 1), [](const Tensor& x) { return softplus(x, 2, 1); });
    check("LogSigmoid", nn::LogSigmoid(), [](const Tensor& x) { return logsigmoid(x); });
    check("Softsign", nn::Softsign(), [](const Tensor& x) { return softsign(x); });
    check("Hardswish", nn::Hardswish(), [](const Tensor& x) { return hardswish(x); });
    check("Hardsigmoid", nn::Hardsigmoid(), [](const Tensor& x) { return hardsigmoid(x); });
    check("Hardtanh", nn::Hardtanh(-2, 1), [](const Tensor& x) { return hardtanh(x, -2, 1); });
    check("ReLU6", nn::ReLU6(), [](const Tensor& x) { return relu6(x); });
    check("Mish", nn::Mish(), [](const Tensor& x) { return mish(x); });
    check("Threshold", nn::Threshold(0.5, -1), [](const Tensor& x) { return threshold(x, 0.5, -1); });
    check("Softshrink", nn::Softshrink(1), [](const Tensor& x) { return softshrink(x, 1); });
    check("Hardshrink", nn::Hardshrink(1), [](const Tensor& x) { return hardshrink(x, 1); });
    check("Tanhshrink", nn::Tanhshrink(), [](const Tensor& x) { return tanhshrink(x); });
    check("GLU", nn::GLU(1), [](const Tensor& x) { return glu(x, 1); });
    check("LogSoftmax", nn::LogSoftmax(1), [](const Tensor& x) { return log_softmax(x, 1); });
    check("PixelShuffle", nn::PixelShuffle(2), [](const Tensor& x) { return pixel_shuffle(x, 2); }, {8, 3, 5});
    check("PixelUnshuffle", nn::PixelUnshuffle(2), [](const Tensor& x) { return pixel_unshuffle(x, 2); }, {2, 6, 4});
}

TEST_CASE("activation layers: PReLU learns its slopes, with PyTorch's names") {
    nn::PReLU layer(4);
    CHECK(layer.state_dict().at(0).name == "weight");
    CHECK(values(layer.state_dict().at(0).tensor) == std::vector<double>(4, 0.25));
    const Tensor x = random_tensor({16, 4}, 3, DType::f32, -2, 2), slopes = tensor({0.5, -0.25, 1, 0}, {4});
    optim::SGD optimizer(layer.parameters(), {.lr = 0.5});
    for (int step = 0; step < 60; ++step) {
        optimizer.zero_grad();
        mse_loss(layer(x), prelu(x, slopes)).backward();
        optimizer.step();
    }
    CHECK(difference(layer.state_dict().at(0).tensor, values(slopes), {.absolute = 0.02}) == "");
}
