// Layer 3, private. Gradients of elementwise functions that can be differentiated again (elementwise_gradients.def).
#pragma once

#include <array>

#include <declivity/ops/function.hpp>
#include <declivity/tensor/tensor.hpp>

namespace declivity::detail {

/// What a gradient is made of; undefined where the function's text does not mention it.
struct GradientOperands {
    Tensor g, a, b, c, y;
    double p = 0, q = 0;
};

/// What is there of a function's gradients, by text or by composition.
struct GradientRules {
    struct Input {
        bool exists = false;
        bool decomposed_alone = false;  ///< the table has no text for it
        std::array<bool, 3> needs_input{};
        bool needs_result = false;
    };
    std::array<Input, 3> of;
    bool any = false;
    bool decomposed = true;  ///< there is a composition for each that exists
};
const GradientRules& gradient_rules(ops::Function function);

/// The gradient for an input, before it is summed over what was stretched.
Tensor composed_gradient(ops::Function function, std::size_t input, const GradientOperands& operands);

}  // namespace declivity::detail
