// Floor 2. Batch normalisation (Ioffe, Szegedy 2015) of x (N, C, ...), channel by channel.
//
// x, out and their gradients are f32 or f64, dense and of one shape; everything else is dense, (C), and of x's type. A
// View without a buffer stands for "none" where a parameter says so.
#pragma once

#include <memory>

#include <declivity/ops/value.hpp>
#include <declivity/ops/view.hpp>

namespace declivity::ops {

/// Running statistics, updated in place: running = (1 - momentum) * running + momentum * batch, where the variance of
/// the batch has Bessel's correction. Either may be none.
struct BatchNormRunning {
    View mean, variance;
    double momentum = 0.1;
};

/// Mean of each channel and 1 / sqrt(variance + epsilon), from partial means and squared deviations (Chan, Golub,
/// LeVeque 1983), so that a mean far from 0 costs no accuracy.
/// @throws ShapeError when a channel has fewer than two elements
DECLIVITY_API void batch_norm_statistics(const View& x, double epsilon, const BatchNormRunning& running,
                                         const View& mean, const View& scale);

/// The same where they may wait: normalisation, when it is launched, computes them by the same kernel if that has a
/// whole channel in its hands. They do not wait any longer when somebody asks for them, or looks at the running
/// statistics. Shared handle, thread-safe.
class DECLIVITY_API BatchNormStatistics {
  public:
    /// Until they are launched nobody may write x without Buffer::launch_readers().
    /// @throws as batch_norm_statistics
    BatchNormStatistics(const View& x, double epsilon, const BatchNormRunning& running);
    [[nodiscard]] const View& mean() const;
    [[nodiscard]] const View& scale() const;

    struct State;
    [[nodiscard]] State& state() const noexcept { return *state_; }

  private:
    std::shared_ptr<State> state_;
};

/// scale = 1 / sqrt(variance + epsilon).
DECLIVITY_API void batch_norm_scale(const View& variance, double epsilon, const View& scale);

/// What evaluation does to each element of a channel: x * factor + offset.
struct BatchNormFold {
    View factor, offset;  ///< (C)
};
/// From running statistics; weight and bias may be none. With OperandUse::constant it is cached with the
/// memory of the variance until one of the four is marked as written.
DECLIVITY_API BatchNormFold batch_norm_fold(const View& mean, const View& variance, const View& weight,
                                            const View& bias, double epsilon, OperandUse use);
/// x * factor + offset, an expression that a convolution before it takes up.
DECLIVITY_API Value batch_norm(const Value& x, const BatchNormFold& fold);

/// out = (x - mean) * scale * weight + bias; weight and bias may be none.
DECLIVITY_API void batch_norm(const View& x, const View& mean, const View& scale, const View& weight, const View& bias,
                              const View& out);

/// The same as a value, launched when it is needed: with elementwise functions that follow it becomes one kernel.
DECLIVITY_API Value batch_norm(const View& x, const View& mean, const View& scale, const View& weight,
                               const View& bias);

/// With the statistics of x itself.
DECLIVITY_API Value batch_norm(const View& x, const BatchNormStatistics& statistics, const View& weight,
                               const View& bias);

/// Gradients from that of the result. `of_batch`: mean and scale come from x itself, and its gradient goes through
/// them. `weight` and `x_gradient` may be none. weight_gradient = sum of g (x - mean) scale, bias_gradient = sum of g.
DECLIVITY_API void batch_norm_backward(const View& x, const View& mean, const View& scale, const View& weight,
                                       bool of_batch, const View& result_gradient, const View& x_gradient,
                                       const View& weight_gradient, const View& bias_gradient);

}  // namespace declivity::ops
