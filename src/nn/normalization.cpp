#include <declivity/nn/normalization.hpp>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

namespace declivity::nn {

GroupNorm::GroupNorm(std::int64_t num_groups, std::int64_t num_channels, const GroupNormOptions& options)
    : num_groups_(num_groups), eps_(options.eps) {
    if (num_groups < 1 || num_channels < 1 || num_channels % num_groups != 0)
        throw ValueError(fmt::format("GroupNorm: expected num_groups that divide num_channels, got {} and {}",
                                     num_groups, num_channels));
    if (!(eps_ >= 0)) throw ValueError(fmt::format("GroupNorm: expected eps of at least 0, got {}", eps_));
    const TensorOptions tensor{options.dtype, options.device};
    weight_ = parameter("weight", options.affine ? ones({num_channels}, tensor) : Tensor());
    bias_ = parameter("bias", options.affine ? zeros({num_channels}, tensor) : Tensor());
}

Tensor GroupNorm::forward(Tensor x) {
    return group_norm(x, guarded(&GroupNorm::num_groups_), weight_, bias_, guarded(&GroupNorm::eps_));
}

InstanceNorm::InstanceNorm(std::int64_t num_features, const InstanceNormOptions& options)
    : eps_(options.eps), momentum_(options.momentum) {
    if (num_features < 1)
        throw ValueError(fmt::format("InstanceNorm: expected num_features of at least 1, got {}", num_features));
    const TensorOptions tensor{options.dtype, options.device};
    weight_ = parameter("weight", options.affine ? ones({num_features}, tensor) : Tensor());
    bias_ = parameter("bias", options.affine ? zeros({num_features}, tensor) : Tensor());
    if (!options.track_running_stats) return;
    running_mean_ = buffer("running_mean", zeros({num_features}, tensor));
    running_var_ = buffer("running_var", ones({num_features}, tensor));
    num_batches_tracked_ = buffer("num_batches_tracked", zeros({}, {DType::i64, options.device}));
}

Tensor InstanceNorm::forward(Tensor x) {
    return instance_norm(x, weight_, bias_, running_mean_, running_var_,
                         {.use_input_stats = training() || !running_mean_.defined(),
                          .momentum = guarded(&InstanceNorm::momentum_),
                          .eps = guarded(&InstanceNorm::eps_)});
}

Tensor InstanceNorm::forward_of(const char* layer, const char* expected, int axes, Tensor x) {
    if (x.rank() == axes) return InstanceNorm::forward(std::move(x));
    if (x.rank() + 1 != axes)
        throw ShapeError(fmt::format("{}: expected x of shape {}, got {}", layer, expected, x.shape().str()));
    return squeeze(InstanceNorm::forward(unsqueeze(x, 0)), {0});
}

Tensor InstanceNorm1d::forward(Tensor x) {
    return forward_of("InstanceNorm1d", "(N, C, L) or (C, L)", 3, std::move(x));
}

Tensor InstanceNorm2d::forward(Tensor x) {
    return forward_of("InstanceNorm2d", "(N, C, H, W) or (C, H, W)", 4, std::move(x));
}

Tensor InstanceNorm3d::forward(Tensor x) {
    return forward_of("InstanceNorm3d", "(N, C, D, H, W) or (C, D, H, W)", 5, std::move(x));
}

LocalResponseNorm::LocalResponseNorm(std::int64_t size, double alpha, double beta, double k)
    : size_(size), alpha_(alpha), beta_(beta), k_(k) {
    if (size < 1) throw ValueError(fmt::format("LocalResponseNorm: expected a size of at least 1, got {}", size));
}

Tensor LocalResponseNorm::forward(Tensor x) {
    return local_response_norm(x, guarded(&LocalResponseNorm::size_), guarded(&LocalResponseNorm::alpha_),
                               guarded(&LocalResponseNorm::beta_), guarded(&LocalResponseNorm::k_));
}

}  // namespace declivity::nn
