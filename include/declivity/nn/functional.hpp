// Layer 6. Layers without parameters: activations, flatten, and arbitrary functions.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include <declivity/functions/functions.hpp>
#include <declivity/nn/callable.hpp>

namespace declivity::nn {

/// @addtogroup nn_activation
/// @{

/// Wraps a function of one tensor as a layer: nn::Lambda([](Tensor x) { return x * 2.0; }).
class DECLIVITY_API Lambda : public Layer {
  public:
    explicit Lambda(std::function<Tensor(Tensor)> function, std::string type_name = "Lambda")
        : function_(std::move(function)), type_name_(std::move(type_name)) {}
    [[nodiscard]] std::string type_name() const override { return type_name_; }

  protected:
    Tensor forward(Tensor x) override;

  private:
    std::function<Tensor(Tensor)> function_;
    std::string type_name_;
};

/// Returns x.
struct Identity : Lambda {
    Identity() : Lambda([](Tensor x) { return x; }, "Identity") {}
    const std::type_info& capture_safe() const override { return typeid(Identity); }
};
struct ReLU : Lambda {
    ReLU() : Lambda([](Tensor x) { return relu(std::move(x)); }, "ReLU") {}
    const std::type_info& capture_safe() const override { return typeid(ReLU); }
};
struct LeakyReLU : Lambda {
    explicit LeakyReLU(double negative_slope = 0.01)
        : Lambda([negative_slope](Tensor x) { return leaky_relu(std::move(x), negative_slope); }, "LeakyReLU") {}
    const std::type_info& capture_safe() const override { return typeid(LeakyReLU); }
};
struct GELU : Lambda {
    GELU() : Lambda([](Tensor x) { return gelu(std::move(x)); }, "GELU") {}
    const std::type_info& capture_safe() const override { return typeid(GELU); }
};
struct SiLU : Lambda {
    SiLU() : Lambda([](Tensor x) { return silu(std::move(x)); }, "SiLU") {}
    const std::type_info& capture_safe() const override { return typeid(SiLU); }
};
struct Tanh : Lambda {
    Tanh() : Lambda([](Tensor x) { return tanh(std::move(x)); }, "Tanh") {}
    const std::type_info& capture_safe() const override { return typeid(Tanh); }
};
struct Sigmoid : Lambda {
    Sigmoid() : Lambda([](Tensor x) { return sigmoid(std::move(x)); }, "Sigmoid") {}
    const std::type_info& capture_safe() const override { return typeid(Sigmoid); }
};
struct Softmax : Lambda {
    explicit Softmax(std::int64_t axis = -1)
        : Lambda([axis](Tensor x) { return softmax(std::move(x), axis); }, "Softmax") {}
    const std::type_info& capture_safe() const override { return typeid(Softmax); }
};
struct Softmin : Lambda {
    explicit Softmin(std::int64_t axis = -1)
        : Lambda([axis](const Tensor& x) { return softmin(x, axis); }, "Softmin") {}
    const std::type_info& capture_safe() const override { return typeid(Softmin); }
};
struct ChannelShuffle : Lambda {
    explicit ChannelShuffle(std::int64_t groups)
        : Lambda([groups](const Tensor& x) { return channel_shuffle(x, groups); }, "ChannelShuffle") {}
    const std::type_info& capture_safe() const override { return typeid(ChannelShuffle); }
};
/// Flattens the axes from `start_dim` on.
struct Flatten : Lambda {
    explicit Flatten(std::int64_t start_dim = 1)
        : Lambda([start_dim](const Tensor& x) { return flatten(x, start_dim); }, "Flatten") {}
    const std::type_info& capture_safe() const override { return typeid(Flatten); }
};

/// @}

}  // namespace declivity::nn
