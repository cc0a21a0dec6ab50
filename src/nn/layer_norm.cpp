#include <declivity/nn/layer_norm.hpp>

#include <limits>

#include <declivity/functions/functions.hpp>
#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

namespace declivity::nn {
namespace {

void check(const char* layer, const Shape& normalized_shape, double eps) {
    bool fits = normalized_shape.rank() >= 1;
    for (const std::int64_t size : normalized_shape) fits = fits && size >= 1;
    if (!fits)
        throw ValueError(
            fmt::format("{}: expected sizes of at least 1 as normalized_shape, got {}", layer, normalized_shape.str()));
    if (!(eps >= 0)) throw ValueError(fmt::format("{}: expected eps of at least 0, got {}", layer, eps));
}

}  // namespace

LayerNorm::LayerNorm(const Shape& normalized_shape, const LayerNormOptions& options)
    : normalized_shape_(normalized_shape), eps_(options.eps) {
    check("LayerNorm", normalized_shape, eps_);
    const TensorOptions tensor{options.dtype, options.device};
    weight_ = parameter("weight", options.elementwise_affine ? ones(normalized_shape, tensor) : Tensor());
    bias_ = parameter("bias", options.elementwise_affine && options.bias ? zeros(normalized_shape, tensor) : Tensor());
}

Tensor LayerNorm::forward(Tensor x) {
    return layer_norm(std::move(x), normalized_shape_, weight_, bias_, guarded(&LayerNorm::eps_));
}

RMSNorm::RMSNorm(const Shape& normalized_shape, const RMSNormOptions& options)
    : normalized_shape_(normalized_shape), eps_(options.eps) {
    check("RMSNorm", normalized_shape, eps_.value_or(0));
    weight_ = parameter(
        "weight", options.elementwise_affine ? ones(normalized_shape, {options.dtype, options.device}) : Tensor());
}

Tensor RMSNorm::forward(Tensor x) {
    const double epsilon = x.dtype() == DType::f64 ? std::numeric_limits<double>::epsilon()
                                                   : double{std::numeric_limits<float>::epsilon()};
    return rms_norm(std::move(x), normalized_shape_, weight_, guarded(&RMSNorm::eps_).value_or(epsilon));
}

}  // namespace declivity::nn
