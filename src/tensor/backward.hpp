// Layer 3, private. The one way through the graph, for Tensor::backward and grad().
#pragma once

#include <vector>

#include <declivity/tensor/tensor.hpp>

namespace declivity::detail {

struct BackwardRequest {
    std::vector<Tensor> outputs;
    std::vector<Tensor> gradients;  // of the outputs; may be short or hold undefined ones
    std::vector<Tensor> inputs;     // whose gradients to return
    bool retain_graph = false;
    bool create_graph = false;
    bool allow_unused = false;
    bool accumulate = true;       // add to the leaves' grad
    bool stop_at_inputs = false;  // no input lies behind another one: what made them need not be looked at
};

std::vector<Tensor> run_backward(const BackwardRequest& request);

}  // namespace declivity::detail
