// Layer 4, private. Backward pass through the autograd graph, for Tensor::backward and grad().
#pragma once

#include <vector>

#include <declivity/tensor/tensor.hpp>

namespace declivity::detail {

struct BackwardRequest {
    std::vector<Tensor> outputs;
    std::vector<Tensor> gradients;  // of the outputs; may be shorter, or contain undefined tensors
    std::vector<Tensor> inputs;     // tensors whose gradients are returned
    bool retain_graph = false;
    bool create_graph = false;
    bool allow_unused = false;
    bool accumulate = true;       // accumulate into the leaves' grad
    bool stop_at_inputs = false;  // no input depends on another one, so their producers are not visited
};

std::vector<Tensor> run_backward(const BackwardRequest& request);

}  // namespace declivity::detail
