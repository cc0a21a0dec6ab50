#include <declivity/nn/batch_norm.hpp>

#include <declivity/runtime/error.hpp>
#include <declivity/tensor/functions.hpp>
#include <fmt/format.h>

namespace declivity::nn {
namespace {

void require_axes(const char* layer, bool fits, const char* wants, const Tensor& x) {
    if (!fits) throw ShapeError(fmt::format("{}: wants x {}, got {}", layer, wants, x.shape().str()));
}

}  // namespace

BatchNorm::BatchNorm(std::int64_t channels, const BatchNormOptions& options)
    : momentum_(options.momentum), epsilon_(options.epsilon) {
    if (channels < 1) throw ValueError(fmt::format("BatchNorm: wants at least 1 channel, got {}", channels));
    weight_ = parameter("weight", options.affine ? ones({channels}, options.tensor) : Tensor());
    bias_ = parameter("bias", options.affine ? zeros({channels}, options.tensor) : Tensor());
    running_mean_ = buffer("running_mean", zeros({channels}, options.tensor));
    running_variance_ = buffer("running_variance", ones({channels}, options.tensor));
}

Tensor BatchNorm::forward(const Tensor& x) {
    return batch_norm(
        x, weight_, bias_, running_mean_, running_variance_,
        {.training = training(), .momentum = guarded(&BatchNorm::momentum_), .epsilon = guarded(&BatchNorm::epsilon_)});
}

Tensor BatchNorm1d::forward(const Tensor& x) {
    require_axes("BatchNorm1d", x.rank() == 2 || x.rank() == 3, "(N, C) or (N, C, L)", x);
    return BatchNorm::forward(x);
}

Tensor BatchNorm2d::forward(const Tensor& x) {
    require_axes("BatchNorm2d", x.rank() == 4, "(N, C, H, W)", x);
    return BatchNorm::forward(x);
}

Tensor BatchNorm3d::forward(const Tensor& x) {
    require_axes("BatchNorm3d", x.rank() == 5, "(N, C, D, H, W)", x);
    return BatchNorm::forward(x);
}

}  // namespace declivity::nn
