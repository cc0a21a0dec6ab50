// Floor 3. Normalisation.
#pragma once

#include <cstdint>

#include <declivity/tensor/tensor.hpp>

namespace declivity {

struct BatchNormOptions {
    bool training = true;   ///< normalise by the batch and update the running statistics; otherwise use these
    double momentum = 0.1;  ///< running = (1 - momentum) * running + momentum * batch
    double epsilon = 1e-5;
};
/// Normalises each channel (axis 1) of x (N, C, ...) and applies weight and bias (C) (Ioffe, Szegedy 2015). The
/// running statistics (C), variance with Bessel's correction, are updated in place.
DECLIVITY_API Tensor batch_norm(Tensor x, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
                                const Tensor& running_variance, const BatchNormOptions& options = {});
/// (x - mean) / sqrt(variance + epsilon) * weight + bias over the last axes of x, whose sizes are `normalized_shape`
/// (Ba, Kiros, Hinton 2016). Weight and bias of that shape, or undefined.
DECLIVITY_API Tensor layer_norm(Tensor x, const Shape& normalized_shape, const Tensor& weight = {},
                                const Tensor& bias = {}, double epsilon = 1e-5);
/// x / sqrt(mean of squares + epsilon) * weight over the last axes of x (Zhang, Sennrich 2019).
DECLIVITY_API Tensor rms_norm(Tensor x, const Shape& normalized_shape, const Tensor& weight = {},
                              double epsilon = 1e-6);

}  // namespace declivity
