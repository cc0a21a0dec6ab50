// Layer 2. Batch normalisation (Ioffe, Szegedy 2015) of x (N, C, ...), channel by channel.
//
// x, out and their gradients are dense, of one type and shape; the rest is dense, (C), of x's type, or f32 beside f16
// and bf16, for which what is given is f32. A View without a buffer stands for "none" where a parameter says so.
#pragma once

#include <declivity/ops/lazy_array.hpp>
#include <declivity/ops/view.hpp>

namespace declivity::ops {

/// Running statistics, updated in place: running = (1 - momentum) * running + momentum * batch, where the variance of
/// the batch has Bessel's correction. Each may be none.
struct BatchNormRunning {
    View mean, variance;
    double momentum = 0.1;
    View batches = {};  ///< i64, one element: how many batches there were, and 1 is added for this one
    bool average =
        false;  ///< of all batches: momentum = 1 / batches, in which this one is counted already; none is added
};

/// Mean of each channel and 1 / sqrt(variance + eps), from partial means and squared deviations (Chan, Golub,
/// LeVeque 1983), so that a mean far from 0 costs no accuracy.
/// @throws ShapeError when a channel has fewer than two elements
DECLIVITY_API void batch_norm_statistics(const View& x, double eps, const BatchNormRunning& running, const View& mean,
                                         const View& scale);

/// scale = 1 / sqrt(variance + eps).
DECLIVITY_API void batch_norm_scale(const View& variance, double eps, const View& scale);

/// What evaluation does to each element of a channel: x * factor + offset.
struct BatchNormFold {
    View factor, offset;  ///< (C)
};
/// From running statistics; weight and bias may be none. With OperandUse::constant it is cached with the
/// memory of the variance until one of the four is marked as written.
DECLIVITY_API BatchNormFold batch_norm_fold(const View& mean, const View& variance, const View& weight,
                                            const View& bias, double eps, OperandUse use);
/// x * factor + offset, an expression that a convolution before it takes up.
DECLIVITY_API LazyArray batch_norm(const LazyArray& x, const BatchNormFold& fold);

/// out = (x - mean) * scale * weight + bias; weight and bias may be none.
DECLIVITY_API void batch_norm(const View& x, const View& mean, const View& scale, const View& weight, const View& bias,
                              const View& out);

/// The same as a value, launched when it is needed: with elementwise functions that follow it becomes one kernel.
DECLIVITY_API LazyArray batch_norm(const View& x, const View& mean, const View& scale, const View& weight,
                                   const View& bias);

/// What normalisation in training gives.
struct BatchNormTrained {
    LazyArray out;          ///< as x
    LazyArray mean, scale;  ///< of the batch, (C): as batch_norm_statistics
};
/// With the statistics of x itself. Where a work-item or group has whole channels in its hands, one kernel does all,
/// and what follows: it is launched when one of the results is needed, or when somebody looks at the running
/// statistics; out is not computed where nobody holds it. Otherwise statistics are launched at once, and the rest when
/// it is needed.
/// @throws as batch_norm_statistics
DECLIVITY_API BatchNormTrained batch_norm_training(const View& x, const View& weight, const View& bias, double eps,
                                                   const BatchNormRunning& running);

/// Gradients from that of the result. `of_batch`: mean and scale come from x itself, and its gradient goes through
/// them. `weight` and `x_gradient` may be none. weight_gradient = sum of g (x - mean) scale, bias_gradient = sum of g.
DECLIVITY_API void batch_norm_backward(const View& x, const View& mean, const View& scale, const View& weight,
                                       bool of_batch, const View& result_gradient, const View& x_gradient,
                                       const View& weight_gradient, const View& bias_gradient);

}  // namespace declivity::ops
