// Floor 4. Layers without parameters: activations, flatten, and any function as a layer.
#pragma once

#include <functional>
#include <string>

#include <declivity/nn/module.hpp>
#include <declivity/tensor/functions.hpp>

namespace declivity::nn {

/// Any function of one tensor as a layer: nn::Lambda([](const Tensor& x) { return x * 2.0; }).
class DECLIVITY_API Lambda : public Module {
  public:
    explicit Lambda(std::function<Tensor(const Tensor&)> function, std::string type_name = "Lambda")
        : function_(std::move(function)), type_name_(std::move(type_name)) {}
    [[nodiscard]] std::string type_name() const override { return type_name_; }

  protected:
    Tensor forward(const Tensor& x) override;

  private:
    std::function<Tensor(const Tensor&)> function_;
    std::string type_name_;
};

/// Gives x back.
struct Identity : Lambda {
    Identity() : Lambda([](const Tensor& x) { return x; }, "Identity") {}
    const std::type_info& replayable() const override { return typeid(Identity); }
};
struct ReLU : Lambda {
    ReLU() : Lambda([](const Tensor& x) { return relu(x); }, "ReLU") {}
    const std::type_info& replayable() const override { return typeid(ReLU); }
};
struct LeakyReLU : Lambda {
    explicit LeakyReLU(double negative_slope = 0.01)
        : Lambda([negative_slope](const Tensor& x) { return leaky_relu(x, negative_slope); }, "LeakyReLU") {}
    const std::type_info& replayable() const override { return typeid(LeakyReLU); }
};
struct GELU : Lambda {
    GELU() : Lambda([](const Tensor& x) { return gelu(x); }, "GELU") {}
    const std::type_info& replayable() const override { return typeid(GELU); }
};
struct SiLU : Lambda {
    SiLU() : Lambda([](const Tensor& x) { return silu(x); }, "SiLU") {}
    const std::type_info& replayable() const override { return typeid(SiLU); }
};
struct Tanh : Lambda {
    Tanh() : Lambda([](const Tensor& x) { return tanh(x); }, "Tanh") {}
    const std::type_info& replayable() const override { return typeid(Tanh); }
};
struct Sigmoid : Lambda {
    Sigmoid() : Lambda([](const Tensor& x) { return sigmoid(x); }, "Sigmoid") {}
    const std::type_info& replayable() const override { return typeid(Sigmoid); }
};
struct Softmax : Lambda {
    explicit Softmax(std::int64_t axis = -1)
        : Lambda([axis](const Tensor& x) { return softmax(x, axis); }, "Softmax") {}
    const std::type_info& replayable() const override { return typeid(Softmax); }
};
/// Joins the axes from `first` on.
struct Flatten : Lambda {
    explicit Flatten(std::int64_t first = 1)
        : Lambda([first](const Tensor& x) { return flatten(x, first); }, "Flatten") {}
    const std::type_info& replayable() const override { return typeid(Flatten); }
};

}  // namespace declivity::nn
