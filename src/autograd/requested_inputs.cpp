#include "requested_inputs.hpp"

#include <cstdint>

#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

namespace declivity::detail {

RequestedInputs::RequestedInputs(const std::vector<Tensor>& inputs) : gradients_(inputs.size()) {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        const Edge edge = edge_of(inputs[i]);
        if (!edge)
            throw ValueError(
                fmt::format("grad: expected inputs that require gradients, got input {} that does not", i));
        if (edge.node) nodes_[{edge.node.get(), edge.output}].push_back(i);
        else leaves_[edge.leaf.get()].push_back(i);
    }
}

void RequestedInputs::find_paths(std::vector<GradNode*> first, bool stop_at_inputs) {
    std::map<std::uint64_t, GradNode*> reachable;  // ordered by sequence: a node's dependencies come before it
    while (!first.empty()) {
        GradNode* const node = first.back();
        first.pop_back();
        if (!reachable.emplace(node->sequence, node).second) continue;
        if (stop_at_inputs && contains(*node, 0)) continue;
        for (const Edge& edge : node->edges)
            if (edge.node) first.push_back(edge.node.get());
    }
    for (const auto& [sequence, node] : reachable)
        for (const Edge& edge : node->edges)
            if (leads_to_input(edge)) on_path_.insert(node);
}

bool RequestedInputs::leads_to_input(const Edge& edge) const {
    if (edge.leaf) return leaves_.contains(edge.leaf.get());
    return edge.node && (on_path_.contains(edge.node.get()) || contains(*edge.node, edge.output));
}

void RequestedInputs::record_gradient(const GradNode& node, std::size_t output, const Tensor& gradient) {
    if (const auto found = nodes_.find({&node, output}); found != nodes_.end())
        for (const std::size_t input : found->second) gradients_[input] = gradient;
}

void RequestedInputs::record_gradient(const TensorState& leaf, const Tensor& gradient) {
    if (const auto found = leaves_.find(&leaf); found != leaves_.end())
        for (const std::size_t input : found->second) gradients_[input] = gradient;
}

}  // namespace declivity::detail
