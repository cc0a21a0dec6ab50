#include <declivity/nn/bilinear.hpp>

#include <cmath>

#include <declivity/functions/functions.hpp>
#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

namespace declivity::nn {

Bilinear::Bilinear(std::int64_t in1_features, std::int64_t in2_features, std::int64_t out_features,
                   const BilinearOptions& options) {
    if (in1_features < 1 || in2_features < 1 || out_features < 1)
        throw ValueError(fmt::format("Bilinear: expected at least 1 feature of each, got {}, {} and {}", in1_features,
                                     in2_features, out_features));
    const TensorOptions tensor{options.dtype, options.device};
    const double bound = 1 / std::sqrt(static_cast<double>(in1_features));
    weight_ = parameter("weight", uniform({out_features, in1_features, in2_features}, -bound, bound, tensor));
    bias_ = parameter("bias", options.bias ? uniform({out_features}, -bound, bound, tensor) : Tensor());
}

Tensor Bilinear::forward(Tensor x1, Tensor x2) { return bilinear(x1, x2, weight_, bias_); }

std::int64_t Bilinear::multiply_adds(const std::vector<Tensor>&, const std::vector<Tensor>& outputs) const {
    const Shape weight = weight_.shape();
    return outputs.at(0).numel() * (weight[1] + 1) * weight[2];
}

}  // namespace declivity::nn
