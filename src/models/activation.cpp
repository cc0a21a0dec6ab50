#include "activation.hpp"

#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include <declivity/functions/functions.hpp>
#include <declivity/runtime/error.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace declivity::models {
namespace {

struct NamedActivation {
    std::string_view name;
    Activation function;
};

Tensor quick_gelu(Tensor x) { return x * sigmoid(1.702 * x); }

constexpr Activation kGelu = [](Tensor x) { return gelu(std::move(x)); };
constexpr Activation kGeluTanh = [](Tensor x) { return gelu_tanh(std::move(x)); };
constexpr Activation kSilu = [](Tensor x) { return silu(std::move(x)); };

constexpr std::array kActivations{NamedActivation{"gelu", kGelu},
                                  NamedActivation{"gelu_new", kGeluTanh},
                                  NamedActivation{"gelu_fast", kGeluTanh},
                                  NamedActivation{"gelu_pytorch_tanh", kGeluTanh},
                                  NamedActivation{"quick_gelu", quick_gelu},
                                  NamedActivation{"relu", [](Tensor x) { return relu(std::move(x)); }},
                                  NamedActivation{"sigmoid", [](Tensor x) { return sigmoid(std::move(x)); }},
                                  NamedActivation{"silu", kSilu},
                                  NamedActivation{"swish", kSilu},
                                  NamedActivation{"tanh", [](Tensor x) { return tanh(std::move(x)); }}};

}  // namespace

Activation find_activation(const std::string& name) {
    for (const NamedActivation& item : kActivations)
        if (item.name == name) return item.function;
    return nullptr;
}

Activation activation_of(const char* field, const std::string& name) {
    if (const Activation found = find_activation(name)) return found;
    std::vector<std::string_view> names;
    for (const NamedActivation& item : kActivations) names.push_back(item.name);
    throw ValueError(fmt::format("{}: expected one of {}, got '{}'", field, fmt::join(names, ", "), name));
}

}  // namespace declivity::models
