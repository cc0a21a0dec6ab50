#include "elementwise_gradients.hpp"

#include <array>

#include <declivity/tensor/creation.hpp>
#include <declivity/tensor/functions.hpp>

namespace declivity::detail {
namespace {

using Function = ops::Function;
using Composition = Tensor (*)(const GradientOperands& operands);

constexpr double kInverseSqrtTwoPi = 0.39894228040143267794;

/// Null where there is none.
Composition composition(Function function, std::size_t input) {
    struct Row {
        Function function;
        std::size_t input;
        Composition composition;
    };
    static constexpr auto kRows = std::to_array<Row>({
#define ZERO zeros({}, {g.dtype(), g.device()})
#define GRADIENT(name, input, body)                                          \
    {Function::name, input, [](const GradientOperands& operands) -> Tensor { \
         [[maybe_unused]] const auto& [g, a, b, c, y, p, q] = operands;      \
         return body;                                                        \
     }},
#include "elementwise_gradients.def"
#undef GRADIENT
#undef ZERO
    });
    for (const Row& row : kRows)
        if (row.function == function && row.input == input) return row.composition;
    return nullptr;
}

}  // namespace

bool has_composed_gradients(Function function) {
    const auto& gradients = ops::info(function).gradient;
    for (std::size_t i = 0; i < gradients.size(); ++i)
        if (!gradients[i].empty() && composition(function, i) == nullptr) return false;
    return true;
}

Tensor composed_gradient(Function function, std::size_t input, const GradientOperands& operands) {
    return composition(function, input)(operands);
}

}  // namespace declivity::detail
