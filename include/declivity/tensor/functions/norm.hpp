// Floor 3. Normalisation.
#pragma once

#include <cstdint>
#include <optional>

#include <declivity/tensor/tensor.hpp>

namespace declivity {

/// How batch_norm normalises.
struct BatchNormParameters {
    bool training = true;                  ///< by the batch, and the running statistics are updated; otherwise by these
    std::optional<double> momentum = 0.1;  ///< running = (1 - momentum) * running + momentum * batch; none: the average
                                           ///< of all batches, for which they are counted
    double eps = 1e-5;
};
/// Normalises each channel (axis 1) of x (N, C, ...) and applies weight and bias (C) (Ioffe, Szegedy 2015). The
/// running statistics (C), variance with Bessel's correction, are updated in place. num_batches_tracked, i64 without
/// axes, or undefined, counts the batches that they were made from.
DECLIVITY_API Tensor batch_norm(Tensor x, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
                                const Tensor& running_var, const BatchNormParameters& options = {},
                                const Tensor& num_batches_tracked = {});
/// (x - mean) / sqrt(variance + eps) * weight + bias over the last axes of x, whose sizes are `normalized_shape`
/// (Ba, Kiros, Hinton 2016). Weight and bias of that shape, or undefined.
DECLIVITY_API Tensor layer_norm(Tensor x, const Shape& normalized_shape, const Tensor& weight = {},
                                const Tensor& bias = {}, double eps = 1e-5);
/// x / sqrt(mean of squares + eps) * weight over the last axes of x (Zhang, Sennrich 2019).
DECLIVITY_API Tensor rms_norm(Tensor x, const Shape& normalized_shape, const Tensor& weight = {}, double eps = 1e-6);

}  // namespace declivity
