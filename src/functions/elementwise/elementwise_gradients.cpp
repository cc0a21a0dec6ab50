#include "elementwise_gradients.hpp"

#include <array>
#include <cmath>
#include <string_view>
#include <vector>

#include <declivity/functions/functions.hpp>
#include <declivity/tensor/creation.hpp>

#include "ops/engine/expression.hpp"

namespace declivity::detail {
namespace {

using Function = ops::Function;
using Decomposition = Tensor (*)(const GradientOperands& operands);

constexpr double kInverseSqrtTwoPi = 0.39894228040143267794;

constexpr double kTwoOverSqrtPi = 1.1283791670955126;
constexpr double kLog2E = 1.4426950408889634, kLog10E = 0.4342944819032518;

/// x tanh(softplus(x))', arranged so that products of vanishing and growing factors stay finite.
Tensor mish_gradient(const Tensor& x) {
    const Tensor t = tanh(softplus(x));
    return t + clamp(x, -740, 740) * sigmoid(x) * (1.0 - square(t));
}

/// With u(x) = 2 sqrt(2 / pi) (x + 0.044715 x^3): (x sigmoid(u))'.
Tensor gelu_tanh_gradient(const Tensor& x) {
    constexpr double kLinear = 1.5957691216057308, kCubic = 0.07135481627260025;
    const Tensor z = clamp(x, -40, 40), s = sigmoid(z * (kLinear + kCubic * square(z)));
    return s * (1.0 + z * (1.0 - s) * (kLinear + 3 * kCubic * square(z)));
}

/// x / (a^2 + b^2), and 0 if both are 0.
Tensor atan2_slope(const Tensor& x, const Tensor& a, const Tensor& b) {
    const Tensor squares = square(a) + square(b), both_zero = logical_and(equal(a, 0), equal(b, 0));
    return where(both_zero, 0, x) / where(both_zero, 1, squares);
}

/// Integer quotient of a and b, without gradient; also exact where the remainder y is 0.
Tensor quotient_of_fmod(const Tensor& a, const Tensor& b, const Tensor& y) {
    return trunc(where(equal(y, y), (a - y) / b, a / b));
}

/// Returns whether x is strictly between the bounds; a NaN bound is ignored. False if x is NaN.
Tensor strictly_within(const Tensor& x, double low, double high) {
    Tensor inside = equal(x, x);
    if (!std::isnan(low)) inside = logical_and(inside, greater(x, low));
    if (!std::isnan(high)) inside = logical_and(inside, less(x, high));
    return inside;
}

struct Row {
    Function function;
    std::size_t input;
    Decomposition decomposition;
    std::string_view text;
};

constexpr auto kRows = std::to_array<Row>({
#define ZERO zeros({}, {g.dtype(), g.device()})
#define NOTHING expand(ZERO, g.shape())
#define GRADIENT(name, input, ...)                                      \
    {Function::name, input,                                             \
     [](const GradientOperands& operands) -> Tensor {                   \
         [[maybe_unused]] const auto& [g, a, b, c, y, p, q] = operands; \
         return __VA_ARGS__;                                            \
     },                                                                 \
     #__VA_ARGS__},
#include "elementwise_gradients.def"
#undef GRADIENT
#undef NOTHING
#undef ZERO
});

struct FunctionGradients {
    std::array<Decomposition, 3> decompositions{};
    GradientRules rules;
};

FunctionGradients make_gradients(Function function) {
    FunctionGradients gradients;
    std::array<std::string_view, 3> texts;
    for (const Row& row : kRows)
        if (row.function == function)
            gradients.decompositions[row.input] = row.decomposition, texts[row.input] = row.text;
    const ops::FunctionInfo& info = ops::info(function);
    for (std::size_t i = 0; i < 3; ++i) {
        GradientRules::Input& rule = gradients.rules.inputs[i];
        const bool by_text = info.gradient_info[i].form != ops::GradientForm::none;
        rule.exists = by_text || gradients.decompositions[i] != nullptr;
        rule.decomposition_only = rule.exists && !by_text;
        rule.needs_input = info.gradient_info[i].needs_input;
        rule.needs_result = by_text ? info.gradient_info[i].needs_result : ops::mentions(texts[i], 'y');
        for (std::size_t other = 0; rule.decomposition_only && other < 3; ++other)
            rule.needs_input[other] = ops::mentions(texts[i], static_cast<char>('a' + other));
        gradients.rules.any = gradients.rules.any || rule.exists;
        gradients.rules.decomposed =
            gradients.rules.decomposed && (!rule.exists || gradients.decompositions[i] != nullptr);
    }
    return gradients;
}

const FunctionGradients& gradients_of(Function function) {
    static const auto* table = [] {
        auto* gradients = new std::vector<FunctionGradients>;
        for (std::size_t i = 0; i < ops::kFunctionCount; ++i)
            gradients->push_back(make_gradients(static_cast<Function>(i)));
        return gradients;
    }();
    return (*table)[static_cast<std::size_t>(function)];
}

}  // namespace

const GradientRules& gradient_rules(Function function) { return gradients_of(function).rules; }

Tensor decomposed_gradient(Function function, std::size_t input, const GradientOperands& operands) {
    return gradients_of(function).decompositions[input](operands);
}

}  // namespace declivity::detail
