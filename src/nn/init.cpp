#include <declivity/nn/init.hpp>

#include <cmath>
#include <string_view>

#include <declivity/autograd/autograd.hpp>
#include <declivity/ops/philox.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/runtime/scope.hpp>
#include <declivity/tensor/creation.hpp>
#include <fmt/format.h>

namespace declivity::nn {
namespace {

TensorOptions like(const Tensor& tensor) { return {tensor.dtype(), tensor.device()}; }

Fan fan_for(std::string_view function, const Shape& weight) {
    if (weight.rank() < 2)
        throw ShapeError(fmt::format("{}: expected a weight (out, in, window...), got {}", function, weight.str()));
    std::int64_t window = 1;
    for (int axis = 2; axis < weight.rank(); ++axis) window *= weight[axis];
    return {weight[1] * window, weight[0] * window};
}

}  // namespace

Fan fan_of(const Shape& weight) { return fan_for("fan_of", weight); }

Tensor uniform_(Tensor tensor, double low, double high, const std::optional<Generator>& generator) {
    const FunctionScope function("uniform_");
    const NoGrad no_grad;
    return tensor.copy_(uniform(tensor.shape(), low, high, like(tensor), generator));
}

Tensor normal_(Tensor tensor, double mean, double std, const std::optional<Generator>& generator) {
    const FunctionScope function("normal_");
    const NoGrad no_grad;
    return tensor.copy_(normal(tensor.shape(), mean, std, like(tensor), generator));
}

Tensor truncated_normal_(Tensor tensor, double mean, double std, double cut,
                         const std::optional<Generator>& generator) {
    const FunctionScope function("truncated_normal_");
    if (!(cut > 0)) throw ValueError(fmt::format("truncated_normal_: expected a cut above 0, got {}", cut));
    const NoGrad no_grad;
    // Generated on the host: the number of rejections differs from element to element.
    if (generator) ops::require_same_device("truncated_normal_", tensor.device(), generator->device());
    const Generator source = generator ? *generator : Generator::default_of(tensor.device());
    const auto count = static_cast<std::size_t>(tensor.numel());
    std::vector<double> values;
    values.reserve(count);
    source.draw_on_host("truncated_normal_", [&](const ops::RandomPosition& position) {
        std::uint64_t block = 0;
        while (values.size() < count) {
            const auto words = philox_block(position.seed, position.offset + block++);
            for (std::size_t pair = 0; pair < 2 && values.size() < count; ++pair) {
                const double u = (words[2 * pair] + 0.5) * 0x1p-32;
                const double angle = 2 * 3.14159265358979323846 * words[2 * pair + 1] * 0x1p-32;
                const double value = std::sqrt(-2 * std::log(u)) * std::cos(angle);  // Box, Muller 1958
                if (std::abs(value) <= cut) values.push_back(mean + std * value);
            }
        }
        return block;
    });
    if (tensor.dtype() == DType::f64) return tensor.copy_(Tensor::from(values, tensor.shape(), tensor.device()));
    return tensor.copy_(Tensor::from(std::vector<float>(values.begin(), values.end()), tensor.shape(), tensor.device())
                            .to(tensor.dtype()));
}

Tensor kaiming_uniform_(Tensor weight, double a, const std::optional<Generator>& generator) {
    const FunctionScope function("kaiming_uniform_");
    const double bound =
        std::sqrt(6 / ((1 + a * a) * static_cast<double>(fan_for("kaiming_uniform_", weight.shape()).in)));
    return uniform_(std::move(weight), -bound, bound, generator);
}

Tensor kaiming_normal_(Tensor weight, double a, const std::optional<Generator>& generator) {
    const FunctionScope function("kaiming_normal_");
    const double std =
        std::sqrt(2 / ((1 + a * a) * static_cast<double>(fan_for("kaiming_normal_", weight.shape()).in)));
    return normal_(std::move(weight), 0, std, generator);
}

Tensor xavier_uniform_(Tensor weight, double gain, const std::optional<Generator>& generator) {
    const FunctionScope function("xavier_uniform_");
    const Fan fan = fan_for("xavier_uniform_", weight.shape());
    const double bound = gain * std::sqrt(6 / static_cast<double>(fan.in + fan.out));
    return uniform_(std::move(weight), -bound, bound, generator);
}

Tensor xavier_normal_(Tensor weight, double gain, const std::optional<Generator>& generator) {
    const FunctionScope function("xavier_normal_");
    const Fan fan = fan_for("xavier_normal_", weight.shape());
    return normal_(std::move(weight), 0, gain * std::sqrt(2 / static_cast<double>(fan.in + fan.out)), generator);
}

}  // namespace declivity::nn
