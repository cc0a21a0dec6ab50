// Layer 6. Activation layers in addition to those of functional.hpp. Names and defaults are PyTorch's.
#pragma once

#include <utility>

#include <declivity/nn/functional.hpp>
#include <declivity/nn/parameter.hpp>
#include <declivity/tensor/creation.hpp>

namespace declivity::nn {

/// @addtogroup nn_activation
/// @{

/// Base of layers without parameters and state, which are capture-safe.
template <class Self>
struct Activation : Lambda {
    using Lambda::Lambda;
    const std::type_info& capture_safe() const override { return typeid(Self); }
};

struct ELU : Activation<ELU> {
    explicit ELU(double alpha = 1) : Activation([alpha](Tensor x) { return elu(std::move(x), alpha); }, "ELU") {}
};
struct SELU : Activation<SELU> {
    SELU() : Activation([](const Tensor& x) { return selu(x); }, "SELU") {}
};
struct CELU : Activation<CELU> {
    explicit CELU(double alpha = 1) : Activation([alpha](const Tensor& x) { return celu(x, alpha); }, "CELU") {}
};
struct Softplus : Activation<Softplus> {
    explicit Softplus(double beta = 1, double threshold = 20)
        : Activation([=](Tensor x) { return softplus(std::move(x), beta, threshold); }, "Softplus") {}
};
struct LogSigmoid : Activation<LogSigmoid> {
    LogSigmoid() : Activation([](Tensor x) { return logsigmoid(std::move(x)); }, "LogSigmoid") {}
};
struct Softsign : Activation<Softsign> {
    Softsign() : Activation([](Tensor x) { return softsign(std::move(x)); }, "Softsign") {}
};
struct Hardswish : Activation<Hardswish> {
    Hardswish() : Activation([](Tensor x) { return hardswish(std::move(x)); }, "Hardswish") {}
};
struct Hardsigmoid : Activation<Hardsigmoid> {
    Hardsigmoid() : Activation([](Tensor x) { return hardsigmoid(std::move(x)); }, "Hardsigmoid") {}
};
struct Hardtanh : Activation<Hardtanh> {
    explicit Hardtanh(double min_val = -1, double max_val = 1)
        : Activation([=](Tensor x) { return hardtanh(std::move(x), min_val, max_val); }, "Hardtanh") {}
};
struct ReLU6 : Activation<ReLU6> {
    ReLU6() : Activation([](Tensor x) { return relu6(std::move(x)); }, "ReLU6") {}
};
struct Mish : Activation<Mish> {
    Mish() : Activation([](Tensor x) { return mish(std::move(x)); }, "Mish") {}
};
struct Threshold : Activation<Threshold> {
    Threshold(double threshold, double value)
        : Activation([=](Tensor x) { return declivity::threshold(std::move(x), threshold, value); }, "Threshold") {}
};
struct Softshrink : Activation<Softshrink> {
    explicit Softshrink(double lambda = 0.5)
        : Activation([lambda](Tensor x) { return softshrink(std::move(x), lambda); }, "Softshrink") {}
};
struct Hardshrink : Activation<Hardshrink> {
    explicit Hardshrink(double lambda = 0.5)
        : Activation([lambda](Tensor x) { return hardshrink(std::move(x), lambda); }, "Hardshrink") {}
};
struct Tanhshrink : Activation<Tanhshrink> {
    Tanhshrink() : Activation([](const Tensor& x) { return tanhshrink(x); }, "Tanhshrink") {}
};
struct GLU : Activation<GLU> {
    explicit GLU(std::int64_t axis = -1) : Activation([axis](const Tensor& x) { return glu(x, axis); }, "GLU") {}
};
struct LogSoftmax : Activation<LogSoftmax> {
    explicit LogSoftmax(std::int64_t axis = -1)
        : Activation([axis](Tensor x) { return log_softmax(std::move(x), axis); }, "LogSoftmax") {}
};
struct PixelShuffle : Activation<PixelShuffle> {
    explicit PixelShuffle(std::int64_t upscale_factor)
        : Activation([=](const Tensor& x) { return pixel_shuffle(x, upscale_factor); }, "PixelShuffle") {}
};
struct PixelUnshuffle : Activation<PixelUnshuffle> {
    explicit PixelUnshuffle(std::int64_t downscale_factor)
        : Activation([=](const Tensor& x) { return pixel_unshuffle(x, downscale_factor); }, "PixelUnshuffle") {}
};

/// x where it is positive, weight x otherwise (parametric ReLU). The weight is learned, a single number or one per
/// channel, with initial value 0.25.
class PReLU : public Layer {
  public:
    explicit PReLU(std::int64_t num_parameters = 1, double init = 0.25)
        : weight_(parameter("weight", full({num_parameters}, init))) {}
    [[nodiscard]] std::string type_name() const override { return "PReLU"; }

  protected:
    Tensor forward(Tensor x) override { return prelu(x, weight_); }

  private:
    Parameter weight_;
};

/// @}

}  // namespace declivity::nn
