#include <declivity/nn/init.hpp>

#include <cmath>

#include <declivity/ops/philox.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/runtime/scope.hpp>
#include <declivity/tensor/autograd.hpp>
#include <declivity/tensor/creation.hpp>
#include <fmt/format.h>

namespace declivity::nn {
namespace {

TensorOptions like(const Tensor& tensor) { return {tensor.dtype(), tensor.device()}; }

}  // namespace

Fan fan_of(const Shape& weight) {
    if (weight.rank() < 2)
        throw ShapeError(fmt::format("fan_of: wants a weight (out, in, window...), got {}", weight.str()));
    std::int64_t window = 1;
    for (int axis = 2; axis < weight.rank(); ++axis) window *= weight[axis];
    return {weight[1] * window, weight[0] * window};
}

Tensor uniform_(Tensor tensor, double low, double high) {
    const FunctionScope function("uniform_");
    const NoGrad no_grad;
    return tensor.copy_(uniform(tensor.shape(), low, high, like(tensor)));
}

Tensor normal_(Tensor tensor, double mean, double std) {
    const FunctionScope function("normal_");
    const NoGrad no_grad;
    return tensor.copy_(normal(tensor.shape(), mean, std, like(tensor)));
}

Tensor truncated_normal_(Tensor tensor, double mean, double std, double cut) {
    const FunctionScope function("truncated_normal_");
    if (!(cut > 0)) throw ValueError(fmt::format("truncated_normal_: wants a cut above 0, got {}", cut));
    const NoGrad no_grad;
    // Drawn on the host: how often a value is drawn again differs from element to element.
    const RandomState state = random_state(tensor.device());
    std::uint64_t block = 0;
    std::vector<double> values;
    values.reserve(static_cast<std::size_t>(tensor.numel()));
    while (values.size() < static_cast<std::size_t>(tensor.numel())) {
        const std::uint64_t counter = state.offset + block++;
        const auto words =
            philox4x32_10({static_cast<std::uint32_t>(counter), static_cast<std::uint32_t>(counter >> 32), 0, 0},
                          {static_cast<std::uint32_t>(state.seed), static_cast<std::uint32_t>(state.seed >> 32)});
        for (int pair = 0; pair < 2 && values.size() < static_cast<std::size_t>(tensor.numel()); ++pair) {
            const double u = (words[static_cast<std::size_t>(2 * pair)] + 0.5) * 0x1p-32;
            const double angle = 2 * 3.14159265358979323846 * words[static_cast<std::size_t>(2 * pair + 1)] * 0x1p-32;
            const double value = std::sqrt(-2 * std::log(u)) * std::cos(angle);  // Box, Muller 1958
            if (std::abs(value) <= cut) values.push_back(mean + std * value);
        }
    }
    set_random_state(tensor.device(), {state.seed, state.offset + block});
    if (tensor.dtype() == DType::f64) return tensor.copy_(Tensor::from(values, tensor.shape(), tensor.device()));
    return tensor.copy_(Tensor::from(std::vector<float>(values.begin(), values.end()), tensor.shape(), tensor.device())
                            .to(tensor.dtype()));
}

Tensor kaiming_uniform_(Tensor weight, double a) {
    const FunctionScope function("kaiming_uniform_");
    const double bound = std::sqrt(6 / ((1 + a * a) * static_cast<double>(fan_of(weight.shape()).in)));
    return uniform_(std::move(weight), -bound, bound);
}

Tensor kaiming_normal_(Tensor weight, double a) {
    const FunctionScope function("kaiming_normal_");
    const double std = std::sqrt(2 / ((1 + a * a) * static_cast<double>(fan_of(weight.shape()).in)));
    return normal_(std::move(weight), 0, std);
}

Tensor xavier_uniform_(Tensor weight, double gain) {
    const FunctionScope function("xavier_uniform_");
    const Fan fan = fan_of(weight.shape());
    const double bound = gain * std::sqrt(6 / static_cast<double>(fan.in + fan.out));
    return uniform_(std::move(weight), -bound, bound);
}

Tensor xavier_normal_(Tensor weight, double gain) {
    const FunctionScope function("xavier_normal_");
    const Fan fan = fan_of(weight.shape());
    return normal_(std::move(weight), 0, gain * std::sqrt(2 / static_cast<double>(fan.in + fan.out)));
}

}  // namespace declivity::nn
