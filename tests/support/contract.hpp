// The contract of every function of tensors, built-in or user-defined: one check for all.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <declivity/tensor/tensor.hpp>

namespace declivity::test {

/// A function, and valid inputs.
struct Contract {
    std::string name;
    std::vector<Tensor> inputs;
    /// For each input: true if it is floating and may have any values; others are indices, conditions or statistics.
    std::vector<bool> arbitrary;
    std::function<std::vector<Tensor>(const std::vector<Tensor>& inputs)> call;
    bool differentiable = true;
    bool random = false;  ///< results depend on the position in a random stream
};

/// Checks a function and returns a sentence for each violation, none if all of this holds:
/// - fused consumers (an activation, a residual, a cast) see the result's own elements;
/// - a lazy result has the elements at the time of its call, even if its inputs are written afterwards;
/// - a gradient function whose saved tensors were overwritten throws, or does not need them;
/// - captured and replayed with other inputs, it matches an eager call bit for bit; likewise within checkpoint();
/// - computed into existing memory, it leaves the surrounding memory unchanged;
/// - the kernels of both styles agree, and so do decomposition and kernels, in values and gradients;
/// - an empty input, or one of another type, shape or rank, gives a result or an error that begins with a name;
/// - results that were dropped hold no memory.
std::vector<std::string> violations(const Contract& contract);

/// Compares second derivatives with central differences, in f64.
std::vector<std::string> second_order_violations(const Contract& contract);

}  // namespace declivity::test
