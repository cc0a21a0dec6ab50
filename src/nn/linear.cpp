#include <declivity/nn/linear.hpp>

#include <cmath>

#include <declivity/runtime/error.hpp>
#include <declivity/tensor/functions.hpp>
#include <fmt/format.h>

namespace declivity::nn {

Linear::Linear(std::int64_t in_features, std::int64_t out_features, const LinearOptions& options) {
    if (in_features < 1 || out_features < 1)
        throw ValueError(fmt::format("Linear: wants in_features and out_features of at least 1, got {} and {}",
                                     in_features, out_features));
    const TensorOptions tensor{options.dtype, options.device};
    const double bound = 1 / std::sqrt(static_cast<double>(in_features));
    weight_ = parameter("weight", uniform({out_features, in_features}, -bound, bound, tensor));
    bias_ = parameter("bias", options.bias ? uniform({out_features}, -bound, bound, tensor) : Tensor());
}

Tensor Linear::forward(Tensor x) { return linear(x, weight_, bias_); }

std::int64_t Linear::multiply_adds(const std::vector<Tensor>& inputs, const std::vector<Tensor>& outputs) const {
    return inputs.at(0).numel() * outputs.at(0).shape().back();
}

}  // namespace declivity::nn
