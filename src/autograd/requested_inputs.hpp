// Layer 4, private. Inputs of grad(): which nodes lead to them, and their gradients.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include <declivity/tensor/tensor.hpp>

#include "graph.hpp"

namespace declivity::detail {

class RequestedInputs {
  public:
    /// @throws ValueError for an input that requires no gradient
    explicit RequestedInputs(const std::vector<Tensor>& inputs);

    /// Finds the nodes on paths from `first` to the inputs: only these are visited.
    /// @param stop_at_inputs no input depends on another one, so their producers are not visited
    void find_paths(std::vector<GradNode*> first, bool stop_at_inputs);
    [[nodiscard]] bool leads_to_input(const Edge& edge) const;
    [[nodiscard]] bool leads_to_input(const GradNode& node) const { return on_path_.contains(&node); }

    /// Returns whether the output of a node is an input of grad().
    [[nodiscard]] bool contains(const GradNode& node, std::size_t output) const {
        return nodes_.contains({&node, output});
    }
    void record_gradient(const GradNode& node, std::size_t output, const Tensor& gradient);
    void record_gradient(const TensorState& leaf, const Tensor& gradient);

    /// Gradients of the inputs; undefined for those that were not reached.
    [[nodiscard]] const std::vector<Tensor>& gradients() const { return gradients_; }

  private:
    // Indices of the inputs; a tensor may be given several times.
    std::map<std::pair<const GradNode*, std::size_t>, std::vector<std::size_t>> nodes_;
    std::unordered_map<const TensorState*, std::vector<std::size_t>> leaves_;
    std::set<const GradNode*> on_path_;
    std::vector<Tensor> gradients_;
};

}  // namespace declivity::detail
