// PyTorch on the CPU, in a process beside this one, by turns with it: for suites of functions that no C library has.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <declivity/tensor/tensor.hpp>

#include "measure.hpp"

namespace declivity::bench {

/// Whether DECLIVITY_BENCH_PYTHON names a Python that has the package torch.
bool has_pytorch();

/// What PyTorch makes of a piece of Python over tensors x[0], x[1], ..., here the elements of `inputs`.
struct PytorchCase {
    std::string code;
    std::vector<Tensor> inputs;
    /// Above 0: the gradient of x[0], of those of the first so many inputs; that of the code's result is the last one.
    std::size_t leaves = 0;
};

struct Pytorch {
    Contender contender;
    std::vector<double> result;  ///< of a call, the first where there are several
};
/// @throws std::runtime_error with what Python says
Pytorch pytorch(const PytorchCase& one);

}  // namespace declivity::bench
