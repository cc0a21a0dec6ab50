// Layer 5, private. Differentiable gradients of elementwise functions (elementwise_gradients.def).
#pragma once

#include <array>

#include <declivity/ops/function.hpp>
#include <declivity/tensor/tensor.hpp>

namespace declivity::detail {

/// Operands of a gradient expression; undefined where the expression does not use them.
struct GradientOperands {
    Tensor g, a, b, c, y;
    double p = 0, q = 0;
};

/// Available gradients of a function: kernel expressions and decompositions.
struct GradientRules {
    struct Input {
        bool exists = false;
        bool decomposition_only = false;  ///< the table has no kernel expression for it
        std::array<bool, 3> needs_input{};
        bool needs_result = false;
    };
    std::array<Input, 3> inputs;
    bool any = false;
    bool decomposed = true;  ///< every existing gradient has a decomposition
};
const GradientRules& gradient_rules(ops::Function function);

/// Gradient for an input, before the sum over broadcast axes.
Tensor decomposed_gradient(ops::Function function, std::size_t input, const GradientOperands& operands);

}  // namespace declivity::detail
