// Layer 5. Normalisation.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>

#include <declivity/tensor/tensor.hpp>

namespace declivity {

/// @defgroup functions_norm Normalisation
/// @ingroup functions
/// Normalisation of x of a floating type over a batch, channels, groups of channels or the last axes; the result has
/// the shape and type of x. f16 and bf16 are computed in f32 and rounded once.
///
/// Errors: ShapeError for x of fewer axes than a function describes, and for weights, biases and statistics of other
/// shapes; TypeError for integers and bool, and for weights of other types; DeviceError for operands on different
/// devices; ValueError for options out of range (a negative eps, a momentum outside of [0, 1]) and an undefined x.
/// @{

/// Hyperparameters of batch_norm.
struct BatchNormParameters {
    bool training = true;  ///< true: batch statistics, and updates the running statistics; false: running statistics
    std::optional<double> momentum = 0.1;  ///< weight of the batch in the running average; none: cumulative average
    double eps = 1e-5;
};
/// Normalises each channel (axis 1) of x (N, C, ...) and applies weight and bias (C) (Ioffe, Szegedy 2015). The running
/// statistics (C), contiguous, variance with Bessel's correction, are updated in place: running = (1 - momentum) *
/// running + momentum * batch. num_batches_tracked, i64 without axes, or undefined, counts their batches.
/// Examples: for x = `[[1], [3]]`, w = `[10]`, b = `[5]`, mean = `[0]` and var = `[1]`,
/// `batch_norm(x, w, b, mean, var)` is `[[-5], [15]]`; `batch_norm(x, w, b, mean, var, {.training = false})` is
/// `[[15], [35]]` (running statistics).
/// @throws ValueError unless eps > 0, for undefined running statistics without training, and for undefined
/// num_batches_tracked without a momentum
DECLIVITY_API Tensor batch_norm(Tensor x, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
                                const Tensor& running_var, const BatchNormParameters& options = {},
                                const Tensor& num_batches_tracked = {});
/// (x - mean) / sqrt(variance + eps) * weight + bias over the last axes of x, whose sizes are `normalized_shape` (Ba,
/// Kiros, Hinton 2016). Weight and bias of that shape, or undefined.
/// Example: for x = `[[1, 3], [5, 5]]`, `layer_norm(x, {2})` is `[[-1, 1], [0, 0]]`.
DECLIVITY_API Tensor layer_norm(Tensor x, const Shape& normalized_shape, const Tensor& weight = {},
                                const Tensor& bias = {}, double eps = 1e-5);
/// x / sqrt(mean of squares + eps) * weight over the last axes of x (Zhang, Sennrich 2019).
/// Example: for x = `[[1, 7], [5, 5]]`, `rms_norm(x, {2})` is `[[0.2, 1.4], [1, 1]]`.
DECLIVITY_API Tensor rms_norm(Tensor x, const Shape& normalized_shape, const Tensor& weight = {}, double eps = 1e-6);

/// Normalises x (N, C, ...) over `num_groups` groups of adjacent channels of equal size, by mean and variance of each
/// group of each sample, and applies weight and bias (C) or undefined (Wu, He 2018): layer_norm of rows (N num_groups,
/// C / num_groups ...).
/// Example: for x = `[[1, 3, 10, 30]]`, `group_norm(x, 2)` is `[[-1, 1, -1, 1]]`.
/// @throws ValueError unless num_groups divides C
DECLIVITY_API Tensor group_norm(const Tensor& x, std::int64_t num_groups, const Tensor& weight = {},
                                const Tensor& bias = {}, double eps = 1e-5);

/// Hyperparameters of instance_norm.
struct InstanceNormParameters {
    bool use_input_stats = true;  ///< true: statistics of each channel of each sample; false: running statistics
    double momentum = 0.1;        ///< running = (1 - momentum) * running + momentum * mean over the samples
    double eps = 1e-5;
};
/// Normalises each channel of each sample of x (N, C, ...), and applies weight and bias (C) or undefined (Ulyanov,
/// Vedaldi, Lempitsky 2016). Running statistics (C), variance with Bessel's correction, are updated in place if given
/// and use_input_stats is set, and read if it is not.
/// Example: for x = `[[[1, 3], [10, 30]]]`, `instance_norm(x)` is `[[[-1, 1], [-1, 1]]]`.
/// @throws ShapeError for fewer than two elements per channel, which have no variance
DECLIVITY_API Tensor instance_norm(const Tensor& x, const Tensor& weight = {}, const Tensor& bias = {},
                                   const Tensor& running_mean = {}, const Tensor& running_var = {},
                                   const InstanceNormParameters& options = {});

/// x / (k + alpha / size * sum of squares of `size` adjacent channels)^beta of x (N, C, ...): size / 2 channels before
/// each, (size - 1) / 2 after it, zeros around them (Krizhevsky, Sutskever, Hinton 2012). ONNX's LRN, whose bias is k,
/// is the same for odd sizes; for even ones it has the longer part after the channel.
/// Example: for x = `[[[1], [2], [3]]]`, `local_response_norm(x, 3, 3, 1)` is `[[[0.1667], [0.1333], [0.2143]]]`.
/// @throws ValueError for a size below 1
DECLIVITY_API Tensor local_response_norm(const Tensor& x, std::int64_t size, double alpha = 1e-4, double beta = 0.75,
                                         double k = 1);

/// x / max(|x|, eps) with the p-norm along one axis, see norm.
/// Examples: for x = `[[3, 4], [0, 2]]`, `normalize(x)` is `[[0.6, 0.8], [0, 1]]`; `normalize(x, 1, 0)` is
/// `[[1, 0.6667], [0, 0.3333]]`.
DECLIVITY_API Tensor normalize(const Tensor& x, double p = 2, std::int64_t axis = 1, double eps = 1e-12);
/// Deleted to require p before the axis: normalize(x, 2, 1).
Tensor normalize(const Tensor& x, std::initializer_list<std::int64_t> axes) = delete;

/// @}

}  // namespace declivity
