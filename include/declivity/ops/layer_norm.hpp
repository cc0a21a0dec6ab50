// Layer 2. Layer normalisation (Ba, Kiros, Hinton 2016) and root mean square normalisation (Zhang, Sennrich 2019) of
// rows: the last axes of x.
//
// All views are dense, on one device and of one floating type; mean and rstd are f32 if it is f16 or bf16. A View
// without a buffer stands for "none" where a parameter allows it. Other shapes with the same number of elements are
// accepted for (n) and (rows).
#pragma once

#include <cstdint>
#include <string_view>

#include <declivity/ops/lazy_array.hpp>
#include <declivity/ops/view.hpp>

namespace declivity::ops {

/// @addtogroup ops
/// @{

enum class RowNorm : bool {
    layer,  ///< (x - mean) / sqrt(variance + eps)
    rms,    ///< x / sqrt(mean of squares + eps)
};

struct LayerNormResults {
    LazyArray out;         ///< shape of x
    LazyArray mean, rstd;  ///< (rows); rstd = 1 / sqrt(variance + eps), and the mean is 0 for RowNorm::rms
};

/// out = normalised x * weight + bias; weight and bias (n) may be none. Deferred operation.
/// @param x a pending expression is fused as the prologue of the kernel; @param inner the first axis of a row
/// @throws ShapeError, TypeError, DeviceError naming the function
DECLIVITY_API LayerNormResults layer_norm(RowNorm kind, LazyArray x, int inner, const View& weight, const View& bias,
                                          double eps);

/// Gradient of x from that of the result. Weight may be none. The number of rows is that of the means.
DECLIVITY_API LazyArray layer_norm_input_gradient(RowNorm kind, const View& x, const View& weight, const View& mean,
                                                  const View& rstd, const View& out_gradient);

struct LayerNormGradients {
    LazyArray weight, bias;  ///< (n)
};
/// Gradients of weight and bias; their sums over rows are batched (deferred_batched).
DECLIVITY_API LayerNormGradients layer_norm_weight_gradients(const View& x, std::int64_t n, const View& mean,
                                                             const View& rstd, const View& out_gradient);

/// @}

}  // namespace declivity::ops
