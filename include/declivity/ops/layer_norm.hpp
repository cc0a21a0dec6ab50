// Layer 2. Layer normalisation (Ba, Kiros, Hinton 2016) and root mean square normalisation (Zhang, Sennrich 2019) of
// rows: the last axes of x.
//
// All views are dense, f32 or f64, of one type and device. A View without a buffer stands for "none" where a parameter
// says so. Where shapes are given as (n) or (rows), others of as many elements serve as well.
#pragma once

#include <cstdint>
#include <string_view>

#include <declivity/ops/lazy_array.hpp>
#include <declivity/ops/view.hpp>

namespace declivity::ops {

enum class RowNorm : bool {
    layer,  ///< (x - mean) / sqrt(variance + eps)
    rms,    ///< x / sqrt(mean of squares + eps)
};

struct LayerNormResults {
    LazyArray out;         ///< of x's shape
    LazyArray mean, rstd;  ///< (rows); rstd = 1 / sqrt(variance + eps), and the mean is 0 for RowNorm::rms
};

/// out = normalised x * weight + bias; weight and bias (n) may be none. An operation that waits.
/// @param x what waits is computed by the same kernel where it is made from; @param inner the first axis of a row
/// @throws ShapeError, TypeError, DeviceError naming the function
DECLIVITY_API LayerNormResults layer_norm(RowNorm kind, LazyArray x, int inner, const View& weight, const View& bias,
                                          double eps);

/// The gradient for x, from that of the result. Weight may be none. Rows are as many as means.
DECLIVITY_API LazyArray layer_norm_input_gradient(RowNorm kind, const View& x, const View& weight, const View& mean,
                                                  const View& rstd, const View& out_gradient);

struct LayerNormGradients {
    LazyArray weight, bias;  ///< (n)
};
/// The gradients for weight and bias; their sums over rows wait for company (deferred_batched).
DECLIVITY_API LayerNormGradients layer_norm_weight_gradients(const View& x, std::int64_t n, const View& mean,
                                                             const View& rstd, const View& out_gradient);

}  // namespace declivity::ops
