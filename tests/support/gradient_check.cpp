#include "tests/support/gradient_check.hpp"

#include <algorithm>
#include <cmath>

#include <declivity/tensor/autograd.hpp>
#include <fmt/format.h>

#include "tests/support/values.hpp"

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

    const auto loss = [&](std::size_t input, const std::vector<double>& changed) {
        const NoGrad no_grad;
        std::vector<Tensor> with = inputs;
        with[input] = tensor(changed, inputs[input].shape(), DType::f64);
        const auto out = values(function(with));
        double total = 0;
        for (std::size_t k = 0; k < out.size(); ++k) total += weights[k] * out[k];
        return total;
    };
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        if (skipped(i)) continue;
        if (!inputs[i].grad().defined()) return fmt::format("input {} got no gradient", i);
        if (!(inputs[i].grad().shape() == inputs[i].shape()))
            return fmt::format("input {} of shape {} got a gradient of shape {}", i, inputs[i].shape().str(),
                               inputs[i].grad().shape().str());
        const auto gradient = values(inputs[i].grad());
        const auto point = values(inputs[i]);
        const std::size_t stride =
            std::max<std::size_t>(1, point.size() / static_cast<std::size_t>(small_cases() ? 1 : options.most));
        for (std::size_t k = 0; k < point.size(); k += stride) {
            auto changed = point;
            changed[k] = point[k] + options.step;
            const double above = loss(i, changed);
            changed[k] = point[k] - options.step;
            const double numeric = (above - loss(i, changed)) / (2 * options.step);
            if (!(std::abs(numeric - gradient[k]) <= options.tolerance * std::max(1.0, std::abs(numeric))))
                return fmt::format("input {}, element {}: gradient {}, numeric {}", i, k, gradient[k], numeric);
        }
    }
    return "";
}

}  // namespace declivity::test
