// Compares gradients with numeric ones.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <declivity/tensor/tensor.hpp>

namespace declivity::test {

struct GradientCheckOptions {
    double step = 1e-6;          ///< step of the central differences, in f64
    double tolerance = 1e-6;     ///< relative to max(1, |gradient|)
    int max_elements = 60;       ///< max number of elements tried per input, spread over it
    std::vector<int> skip = {};  ///< indices of inputs without a gradient (labels)
};

/// Compares d(sum(weights * function(inputs))) / d(inputs) with random weights with central differences. All inputs
/// that require gradients must be f64. Returns an empty string if they agree, otherwise a sentence about the first
/// difference. Use: CHECK(gradient_difference([](const auto& in) { return relu(in[0]); }, {x}) == "");
std::string gradient_difference(const std::function<Tensor(const std::vector<Tensor>&)>& function,
                                std::vector<Tensor> inputs, const GradientCheckOptions& options = {});

/// Compares gradients (undefined: zeros) of the scalar that `value` computes from the f64 elements of `inputs` with
/// central differences. The elements are changed in place during the check. `options.skip` is ignored.
std::string numeric_difference(const std::vector<Tensor>& inputs, const std::vector<Tensor>& gradients,
                               const std::function<double()>& value, const GradientCheckOptions& options = {});

}  // namespace declivity::test
