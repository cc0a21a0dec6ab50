// Layer 2. Batch normalisation (Ioffe, Szegedy 2015) of x (N, C, ...) per channel.
//
// x, out and their gradients are dense and of one type and shape; all other views are dense, (C), of x's type, or f32
// if x is f16 or bf16. A View without a buffer stands for "none" where a parameter allows it.
#pragma once

#include <declivity/ops/lazy_array.hpp>
#include <declivity/ops/view.hpp>

namespace declivity::ops {

/// @addtogroup ops
/// @{

/// Running statistics, updated in place: running = (1 - momentum) * running + momentum * batch, where the variance of
/// the batch has Bessel's correction. Each may be none.
struct BatchNormRunning {
    View mean, variance;
    double momentum = 0.1;
    View batches = {};     ///< num_batches_tracked, one i64: incremented by this call
    bool average = false;  ///< cumulative average: momentum = 1 / batches; `batches` already includes this one
};

/// Computes the mean of each channel and scale = 1 / sqrt(variance + eps), from partial means and squared deviations
/// (Chan, Golub, LeVeque 1983), so that a mean far from 0 costs no accuracy.
/// @throws ShapeError when a channel has fewer than two elements
DECLIVITY_API void batch_norm_statistics(const View& x, double eps, const BatchNormRunning& running, const View& mean,
                                         const View& scale);

/// scale = 1 / sqrt(variance + eps).
DECLIVITY_API void batch_norm_scale(const View& variance, double eps, const View& scale);

/// Batch normalisation in evaluation as one multiply-add per element: x * factor + offset.
struct BatchNormFold {
    View factor, offset;  ///< (C)
};
/// Folds running statistics, weight and bias; weight and bias may be none. With OperandUse::constant the result is
/// cached with the buffer of the variance until one of the four buffers is written.
DECLIVITY_API BatchNormFold batch_norm_fold(const View& mean, const View& variance, const View& weight,
                                            const View& bias, double eps, OperandUse use);
/// x * factor + offset as an expression, which a preceding convolution fuses as its epilogue.
DECLIVITY_API LazyArray batch_norm(const LazyArray& x, const BatchNormFold& fold);

/// out = (x - mean) * scale * weight + bias; weight and bias may be none.
DECLIVITY_API void batch_norm(const View& x, const View& mean, const View& scale, const View& weight, const View& bias,
                              const View& out);

/// Deferred variant, which fuses with the elementwise functions that follow.
DECLIVITY_API LazyArray batch_norm(const View& x, const View& mean, const View& scale, const View& weight,
                                   const View& bias);

/// Results of batch_norm_training().
struct BatchNormResults {
    LazyArray out;
    LazyArray mean, scale;  ///< of the batch, (C), see batch_norm_statistics()
};
/// Batch normalisation with the statistics of x itself. Where a work-item or work-group processes whole channels,
/// statistics, normalisation and the epilogue are one kernel, deferred until a result or the running statistics are
/// read; `out` is not computed if it is unused. Otherwise the statistics are launched immediately and the normalisation
/// is deferred.
/// @throws as batch_norm_statistics
DECLIVITY_API BatchNormResults batch_norm_training(const View& x, const View& weight, const View& bias, double eps,
                                                   const BatchNormRunning& running);

/// Gradients of batch_norm: weight_gradient = sum of g (x - mean) scale, bias_gradient = sum of g. In `training`,
/// mean and scale were computed from x, and x_gradient includes their gradients. `weight` and `x_gradient` may be none.
DECLIVITY_API void batch_norm_backward(const View& x, const View& mean, const View& scale, const View& weight,
                                       bool training, const View& result_gradient, const View& x_gradient,
                                       const View& weight_gradient, const View& bias_gradient);

// ---- deprecated names of version 0.1

using BatchNormTrained [[deprecated("ops::BatchNormResults")]] = BatchNormResults;

/// @}

}  // namespace declivity::ops
