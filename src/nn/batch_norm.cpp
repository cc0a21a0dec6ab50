#include <declivity/nn/batch_norm.hpp>

#include <declivity/functions/functions.hpp>
#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

namespace declivity::nn {
namespace {

void require_axes(const char* layer, bool fits, const char* expected, const Tensor& x) {
    if (!fits) throw ShapeError(fmt::format("{}: expected x of shape {}, got {}", layer, expected, x.shape().str()));
}

}  // namespace

BatchNorm::BatchNorm(std::int64_t num_features, const BatchNormOptions& options)
    : eps_(options.eps), momentum_(options.momentum) {
    if (num_features < 1)
        throw ValueError(fmt::format("BatchNorm: expected num_features of at least 1, got {}", num_features));
    const TensorOptions tensor{options.dtype, options.device};
    weight_ = parameter("weight", options.affine ? ones({num_features}, tensor) : Tensor());
    bias_ = parameter("bias", options.affine ? zeros({num_features}, tensor) : Tensor());
    if (!options.track_running_stats) return;
    running_mean_ = buffer("running_mean", zeros({num_features}, tensor));
    running_var_ = buffer("running_var", ones({num_features}, tensor));
    num_batches_tracked_ = buffer("num_batches_tracked", zeros({}, {DType::i64, options.device}));
}

Tensor BatchNorm::forward(Tensor x) {
    return batch_norm(std::move(x), weight_, bias_, running_mean_, running_var_,
                      {.training = training() || !running_mean_.defined(),
                       .momentum = guarded(&BatchNorm::momentum_),
                       .eps = guarded(&BatchNorm::eps_)},
                      num_batches_tracked_);
}

Tensor BatchNorm1d::forward(Tensor x) {
    require_axes("BatchNorm1d", x.rank() == 2 || x.rank() == 3, "(N, C) or (N, C, L)", x);
    return BatchNorm::forward(std::move(x));
}

Tensor BatchNorm2d::forward(Tensor x) {
    require_axes("BatchNorm2d", x.rank() == 4, "(N, C, H, W)", x);
    return BatchNorm::forward(std::move(x));
}

Tensor BatchNorm3d::forward(Tensor x) {
    require_axes("BatchNorm3d", x.rank() == 5, "(N, C, D, H, W)", x);
    return BatchNorm::forward(std::move(x));
}

}  // namespace declivity::nn
