// Compares gradients with numeric ones.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <declivity/tensor/tensor.hpp>

namespace declivity::test {

struct GradientCheckOptions {
    double step = 1e-6;          ///< central differences, in f64
    double tolerance = 1e-6;     ///< relative to max(1, |gradient|)
    int most = 60;               ///< elements tried per input, spread over it
    std::vector<int> skip = {};  ///< inputs without gradient (labels)
};

/// Checks d(sum(weights * function(inputs))) / d(inputs) with random weights against central differences. All inputs
/// that carry gradients must be f64. Empty when they agree, otherwise a sentence about the first that does not.
/// Use: CHECK(gradient_difference([](const auto& in) { return relu(in[0]); }, {x}) == "");
std::string gradient_difference(const std::function<Tensor(const std::vector<Tensor>&)>& function,
                                std::vector<Tensor> inputs, const GradientCheckOptions& options = {});

/// Checks gradients (undefined: zeros) of the number that `value` computes from the elements of `inputs`, f64, against
/// central differences. The elements are changed in place meanwhile. `options.skip` plays no part.
std::string numeric_difference(const std::vector<Tensor>& inputs, const std::vector<Tensor>& gradients,
                               const std::function<double()>& value, const GradientCheckOptions& options = {});

}  // namespace declivity::test
