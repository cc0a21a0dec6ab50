#include "tests/support/gradient_check.hpp"

#include <algorithm>
#include <cmath>

#include <declivity/autograd/autograd.hpp>
#include <fmt/format.h>

#include <tests/support/values.hpp>

namespace declivity::test {

std::string gradient_difference(const std::function<Tensor(const std::vector<Tensor>&)>& function,
                                std::vector<Tensor> inputs, const GradientCheckOptions& options) {
    const auto skipped = [&](std::size_t i) {
        return std::ranges::find(options.skip, static_cast<int>(i)) != options.skip.end();
    };
    for (std::size_t i = 0; i < inputs.size(); ++i)
        if (!skipped(i)) inputs[i] = inputs[i].detach().set_requires_grad();
    const Tensor output = function(inputs);
    const auto weights = random_values(output.numel(), 12345);
    output.backward(tensor(weights, output.shape(), DType::f64));

    std::vector<Tensor> checked, gradients;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        if (skipped(i)) continue;
        if (!inputs[i].grad().defined()) return fmt::format("input {} got no gradient", i);
        if (!(inputs[i].grad().shape() == inputs[i].shape()))
            return fmt::format("input {} of shape {} got a gradient of shape {}", i, inputs[i].shape().str(),
                               inputs[i].grad().shape().str());
        // A copy: the test's tensors and their strides remain unchanged.
        const Tensor copy = inputs[i];
        checked.push_back(tensor(values(copy), copy.shape(), DType::f64));
        gradients.push_back(copy.grad());
    }
    const auto loss = [&] {
        const NoGrad no_grad;
        std::vector<Tensor> perturbed = inputs;
        for (std::size_t i = 0, loss_at = 0; i < inputs.size(); ++i)
            if (!skipped(i)) perturbed[i] = checked[loss_at++];
        const auto out = values(function(perturbed));
        double total = 0;
        for (std::size_t k = 0; k < out.size(); ++k) total += weights[k] * out[k];
        return total;
    };
    return numeric_difference(checked, gradients, loss, options);
}

std::string numeric_difference(const std::vector<Tensor>& inputs, const std::vector<Tensor>& gradients,
                               const std::function<double()>& value, const GradientCheckOptions& options) {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        std::vector<double> point = values(inputs[i]);
        const std::vector<double> gradient =
            gradients[i].defined() ? values(gradients[i]) : std::vector<double>(point.size());
        const std::size_t max_elements = static_cast<std::size_t>(small_cases() ? 2 : options.max_elements);
        const auto loss_at = [&](std::size_t element, double change) {
            std::vector<double> shifted = point;
            shifted[element] += change;
            {
                const NoGrad no_grad;
                Tensor(inputs[i]).copy_(tensor(shifted, inputs[i].shape(), DType::f64));
            }
            return change == 0 ? 0 : value();
        };
        for (std::size_t k = 0; k < point.size(); k += std::max<std::size_t>(1, point.size() / max_elements)) {
            const double loss_above = loss_at(k, options.step), loss_below = loss_at(k, -options.step);
            (void)loss_at(k, 0);
            const double numeric = (loss_above - loss_below) / (2 * options.step);
            if (!(std::abs(numeric - gradient[k]) <= options.tolerance * std::max(1.0, std::abs(numeric))))
                return fmt::format("input {}, element {}: gradient {}, numeric {}", i, k, gradient[k], numeric);
        }
    }
    return "";
}

}  // namespace declivity::test
