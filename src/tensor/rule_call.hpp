// Layer 3, private. One call of a gradient rule: what a GradientContext stands for.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include <declivity/ops/view.hpp>
#include <declivity/tensor/autograd.hpp>
#include <declivity/tensor/tensor.hpp>

#include "ops/engine/expression.hpp"

namespace declivity::detail {

struct GradNode;

/// The gradient for a part of an input.
struct GradientRegion {
    std::size_t input;
    Tensor gradient;
    std::function<ops::View(const ops::View&)> part;
};

struct RuleCall {
    std::shared_ptr<GradNode> node;  // whose rule it is
    std::vector<Tensor> gradients;   // of the outputs
    std::vector<bool> needs;         // whether each input's is wanted
    /// Of inputs whose activation may be passed; null for others.
    std::vector<const std::shared_ptr<GradNode>*> activations;
    bool retain_graph = false;

    std::vector<bool> passed = std::vector<bool>(activations.size());  // whether the rule passed the activation
    std::vector<GradientRegion> regions = {};                          // what the rule gave of parts
};

/// Where an activation made this input and nobody watches it, a rule that took some elements of it (maxima) may go
/// on through the activation by these alone: from `g`, their gradient, and themselves this gives that for what went
/// into the activation there, and the rule must return the gradient for all that went in. What the activation had
/// kept for its own rule is let go, where no other way leads there. Empty where there is nothing to go through.
[[nodiscard]] ops::Expression through_activation(const GradientContext& context, std::size_t input,
                                                 const ops::Expression& g, const ops::Expression& elements);

}  // namespace declivity::detail
