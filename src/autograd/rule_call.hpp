// Layer 4, private. One call of a backward rule: the state behind a GradientContext.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/ops/view.hpp>
#include <declivity/tensor/tensor.hpp>

#include "ops/engine/expression.hpp"

namespace declivity::detail {

struct GradNode;

/// Gradient of a part of an input.
struct GradientRegion {
    std::size_t input;
    Tensor gradient;
    std::function<ops::View(const ops::View&)> part;
};

struct RuleCall {
    std::shared_ptr<GradNode> node;  // node whose rule is called
    std::vector<Tensor> gradients;   // of the outputs
    std::vector<bool> needs;         // whether the gradient of each input is needed
    /// Nodes of inputs' activations that the rule may differentiate through; null for other inputs.
    std::vector<const std::shared_ptr<GradNode>*> activations;
    bool retain_graph = false;

    std::vector<bool> passed = std::vector<bool>(activations.size());  // true if differentiated through
    std::vector<GradientRegion> regions = {};                          // partial gradients returned by the rule
};

/// If an activation made this input and its gradient is not observed, a rule that selected some of its elements (a max
/// pool) may differentiate through the activation for these elements alone: given their gradient `g` and the elements,
/// returns the gradient for the activation's input, and the rule must return the gradient for that input. The tensors
/// saved for the activation's own rule are released if nothing else needs them. Empty if there is no such activation.
[[nodiscard]] ops::Expression through_activation(const GradientContext& context, std::size_t input,
                                                 const ops::Expression& g, const ops::Expression& elements);

}  // namespace declivity::detail
