// Attaches functions to the graph: nodes and their edges.
#include <declivity/autograd/autograd.hpp>

#include <span>
#include <utility>
#include <vector>

#include <declivity/runtime/scope.hpp>

#include "graph.hpp"
#include "tensor/tensor_state.hpp"

namespace declivity {

using detail::GradNode;

bool any_requires_grad(const std::vector<Tensor>& inputs) {
    if (!grad_enabled()) return false;
    for (const Tensor& input : inputs)
        if (input.defined() && input.requires_grad()) return true;
    return false;
}

namespace {

/// Attaches results to the graph.
void attach_to_graph(std::string_view name, const std::vector<Tensor>& inputs, std::span<const Tensor> results,
                     GradientRule rule, RuleKind kind) {
    // A function may return one of its inputs.
    for (const Tensor& result : results)
        for (const Tensor& input : inputs)
            if (input.defined() && state_of(state_of(input)->value) == state_of(state_of(result)->value))
                detail::share_memory(input, result);
    if (!any_requires_grad(inputs)) return;
    auto node = std::make_shared<GradNode>();
    node->name = name;
    node->sequence = detail::next_sequence();
    node->kind = kind;
    node->rule = std::move(rule);
    node->scope = Scope::path();
    node->edges.reserve(inputs.size());
    for (const Tensor& input : inputs) node->edges.push_back(detail::edge_of(input));
    node->outputs.reserve(results.size());
    for (std::size_t i = 0; i < results.size(); ++i) {
        detail::TensorState& state = *state_of(results[i]);
        node->outputs.push_back({state.value.shape(), state.value.dtype(), state.value.device()});
        // Integer results (indices, labels) carry no gradient.
        if (!is_floating(state.value.dtype())) continue;
        state.node = node;
        state.output = i;
    }
}

}  // namespace

std::vector<Tensor> attach_backward(std::string_view name, const std::vector<Tensor>& inputs,
                                    const std::vector<ops::LazyArray>& results, GradientRule rule, RuleKind kind) {
    std::vector<Tensor> tensors;
    tensors.reserve(results.size());
    for (const ops::LazyArray& result : results) tensors.emplace_back(result);
    attach_to_graph(name, inputs, tensors, std::move(rule), kind);
    return tensors;
}

Tensor attach_backward(std::string_view name, const std::vector<Tensor>& inputs, const ops::LazyArray& result,
                       GradientRule rule, RuleKind kind) {
    Tensor tensor(result);
    attach_to_graph(name, inputs, {&tensor, 1}, std::move(rule), kind);
    return tensor;
}

}  // namespace declivity
