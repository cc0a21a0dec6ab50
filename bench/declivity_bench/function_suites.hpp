// Suites of functions beside PyTorch: a case is a call of ours, and the same in Python.
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
    double bytes = 0, flops = 0;  ///< that a call must move, or compute, at least
    bool backward = false;        ///< forward and backward, to the first inputs; the last input is the gradient
    std::size_t leaves = 1;       ///< so many, of which the gradient of x[0] is compared
    double tolerance = 1e-4;      ///< relative to the largest element; below 0: not compared
    std::function<std::vector<Contender>()> more_peers = nullptr;  ///< beside PyTorch
};

/// Times each beside PyTorch where there is one, which also says what is right.
void time_functions(Report& report, const std::string& suite, const std::function<std::vector<FunctionCase>()>& cases);

}  // namespace declivity::bench
