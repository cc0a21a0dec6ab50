// Layer 4, private. Gradients of leaves during a backward pass: their sums, their hooks, and accumulation into grad.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include <declivity/tensor/tensor.hpp>

#include "gradient_sum.hpp"
#include "graph.hpp"
#include "requested_inputs.hpp"

namespace declivity::detail {

/// Calls hooks with a gradient, which they may replace. By value, since a hook may add or remove hooks.
/// @throws what check_gradient() throws, for the gradient that a hook returns
void apply_hooks(Hooks hooks, Tensor& gradient);

class LeafGradients {
  public:
    /// @param accumulate into the leaves' grad
    /// @param create_graph their gradients are functions, and are not added in place
    /// @param inputs that receive the gradients of requested leaves
    LeafGradients(bool accumulate, bool create_graph, RequestedInputs& inputs)
        : accumulate_(accumulate), create_graph_(create_graph), inputs_(inputs) {}

    /// Sum of the contributions to a leaf's gradient.
    GradientSum& sum_of(const std::shared_ptr<TensorState>& leaf);

    /// Finds the last uses of leaves with hooks, whose gradients are passed on as early as possible.
    /// @param recomputed a checkpoint that has been recomputed, with these edges to its results: if it was the last to
    /// use a leaf, that is now a node within it. Null at the beginning
    /// @param after earlier nodes have already been searched
    /// @throws ValueError for a recomputed function that did something else
    void find_last_uses(const std::vector<Edge>& edges, std::uint64_t after, const GradNode* recomputed);
    /// Passes on the gradients of leaves with hooks, to which no node up to `next` (a sequence number) contributes.
    void release_completed(std::uint64_t next);
    /// Passes on all others.
    void release_all();

  private:
    /// The earliest node with an edge to a leaf, and that edge. Nodes are visited after all later ones, so a leaf's
    /// gradient is complete once only earlier nodes remain, whether or not the nodes between were visited. Ordered from
    /// later to earlier uses, and within a node by input.
    struct Use {
        std::uint64_t sequence;
        std::size_t edge;
        friend bool operator<(const Use& a, const Use& b) {
            return a.sequence != b.sequence ? a.sequence > b.sequence : a.edge < b.edge;
        }
    };

    /// Calls the hooks of a leaf with its gradient, if there is one, and accumulates it.
    void release(const std::shared_ptr<TensorState>& leaf);
    void accumulate(const std::shared_ptr<TensorState>& leaf, Tensor gradient) const;

    bool accumulate_, create_graph_;
    RequestedInputs& inputs_;
    std::unordered_map<TensorState*, GradientSum> sums_;
    std::vector<std::shared_ptr<TensorState>> order_;      // of the first contributions
    std::map<Use, std::shared_ptr<TensorState>> pending_;  // with hooks, not passed on yet
    std::unordered_map<const TensorState*, Use> last_uses_;
};

}  // namespace declivity::detail
