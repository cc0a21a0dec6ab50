// What every function of tensors promises, whoever wrote it: one check for all of them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <declivity/tensor/tensor.hpp>

namespace declivity::test {

/// A function, and inputs that it takes.
struct Contract {
    std::string name;
    std::vector<Tensor> inputs;
    /// Whether each input is of floating numbers that may be any: others are positions, conditions or statistics.
    std::vector<bool> free;
    std::function<std::vector<Tensor>(const std::vector<Tensor>& inputs)> call;
    bool differentiable = true;
    bool random = false;  ///< results depend on the place in a stream of random numbers
};

/// Sentences that say what is broken; none where all holds:
/// - what follows (an activation, a residual, a cast) sees the result's own elements;
/// - a value that waits has the elements of the time of its call, whoever writes its inputs meanwhile;
/// - a rule that needs what was overwritten refuses, or does not need it;
/// - recorded and replayed with other inputs, it gives the bits of a plain call; likewise within checkpoint();
/// - computed in a place that is there, it leaves what stands beside it;
/// - the kernels of both families agree, and so do its composition and its kernels, in values and gradients;
/// - an input that is empty, or of another type, shape or rank, gives a result or an error that begins with a name;
/// - what was computed and dropped holds no memory.
std::vector<std::string> violations(const Contract& contract);

/// Second derivatives against central differences, in f64.
std::vector<std::string> second_order_violations(const Contract& contract);

}  // namespace declivity::test
