// PyTorch on the CPU in a child process, interleaved with our calls, for suites of functions that no C library has.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <declivity/tensor/tensor.hpp>

#include "measure.hpp"

namespace declivity::bench {

/// Returns whether DECLIVITY_BENCH_PYTHON is a Python interpreter with the package torch.
bool has_pytorch();

/// Evaluates Python code over tensors x[0], x[1], ..., the elements of `inputs`, in PyTorch.
struct PytorchCase {
    std::string code;
    std::vector<Tensor> inputs;
    /// If above 0: computes the gradient of x[0], with the first `leaves` inputs as leaves and the last input as the
    /// output gradient.
    std::size_t leaves = 0;
};

struct Pytorch {
    Contender contender;
    std::vector<double> result;  ///< result of a call, the first one of several
};
/// @throws std::runtime_error with the Python error
Pytorch pytorch(const PytorchCase& test_case);

}  // namespace declivity::bench
