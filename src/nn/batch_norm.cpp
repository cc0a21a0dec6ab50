#include <declivity/nn/batch_norm.hpp>

#include <declivity/tensor/functions.hpp>

namespace declivity::nn {

BatchNorm::BatchNorm(std::int64_t channels, const BatchNormOptions& options) : momentum_(options.momentum), epsilon_(options.epsilon) {
    weight_ = parameter("weight", options.affine ? ones({channels}, options.tensor) : Tensor());
    bias_ = parameter("bias", options.affine ? zeros({channels}, options.tensor) : Tensor());
    running_mean_ = buffer("running_mean", zeros({channels}, options.tensor));
    running_variance_ = buffer("running_variance", ones({channels}, options.tensor));
}

Tensor BatchNorm::forward(const Tensor& x) {
    return batch_norm(x, weight_, bias_, running_mean_, running_variance_, {.training = training(), .momentum = guarded(&BatchNorm::momentum_), .epsilon = guarded(&BatchNorm::epsilon_)});
}

}  // namespace declivity::nn
