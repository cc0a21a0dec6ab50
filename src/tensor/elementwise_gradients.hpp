// Floor 3, private. Gradients of elementwise functions that can be differentiated again (elementwise_gradients.def).
#pragma once

#include <declivity/ops/function.hpp>
#include <declivity/tensor/tensor.hpp>

namespace declivity::detail {

/// What a gradient is made of; undefined where the function's text does not mention it.
struct GradientOperands {
    Tensor g, a, b, c, y;
    double p = 0, q = 0;
};

/// Whether there is a composition for the gradient of each input that has one.
bool has_composed_gradients(ops::Function function);

/// The gradient for an input, before it is summed over what was stretched.
Tensor composed_gradient(ops::Function function, std::size_t input, const GradientOperands& operands);

}  // namespace declivity::detail
