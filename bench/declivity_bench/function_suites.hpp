// Suites of functions compared with PyTorch: a case is a call of Declivity and the equivalent Python code.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include <declivity/tensor/tensor.hpp>

#include "report.hpp"

namespace declivity::bench {

struct FunctionCase {
    std::string name;
    std::vector<Tensor> inputs;  ///< x[0], x[1], ... in Python
    std::function<Tensor(const std::vector<Tensor>&)> call;
    std::string python;
    double bytes = 0, flops = 0;  ///< minimum memory traffic and arithmetic of a call
    bool backward = false;        ///< forward and backward to the first inputs; the last input is the output gradient
    std::size_t leaves = 1;       ///< number of inputs that require gradients; the gradient of x[0] is compared
    double tolerance = 1e-4;      ///< relative to the largest element; below 0: not compared
    std::function<std::vector<Contender>()> more_peers = nullptr;  ///< in addition to PyTorch
};

/// Times each case and compares the results with PyTorch, if it is available.
void time_functions(Report& report, const std::string& suite, const std::function<std::vector<FunctionCase>()>& cases);

}  // namespace declivity::bench
