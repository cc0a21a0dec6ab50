// Layer 2. Two-dimensional convolution (cross-correlation) and its gradients.
//
//    out[n, o, p, q] = bias[o] + sum over c, r, s of
//                      x[n, c', p * stride[0] + r * dilation[0] - padding[0], q * stride[1] + s * dilation[1] -
//                        padding[1]]
//                      * weight[o, c, r, s]
//
// with c in [0, C / groups), c' = c + (o / (O / groups)) * C / groups, and 0 for positions outside of x. All views must
// be dense, of one floating type, and on one device.
#pragma once

#include <cstdint>
#include <optional>

#include <declivity/ops/epilogue.hpp>
#include <declivity/ops/shape.hpp>
#include <declivity/ops/lazy_array.hpp>
#include <declivity/ops/view.hpp>

namespace declivity::ops {

/// @addtogroup ops
/// @{

/// Hyperparameters of a 2-D convolution. Pairs are vertical, horizontal.
struct Conv2dParameters {
    Size2 stride = 1;         ///< distance between adjacent windows, at least 1
    Size2 padding = 0;        ///< zeros on both sides, at least 0
    Size2 dilation = 1;       ///< distance between adjacent filter elements, at least 1
    std::int64_t groups = 1;  ///< input channel group i contributes to output channel group i only
};

/// Output shape (N, O, P, Q) from x (N, C, H, W) and weight (O, C / groups, R, S), with P = (H + 2 padding - dilation
/// (R - 1) - 1) / stride + 1, rounded down, and Q likewise. N may be 0.
/// @throws ShapeError naming `function` when the shapes do not match or the output would be empty, ValueError for
/// options out of range
DECLIVITY_API Shape conv2d_shape(std::string_view function, const Shape& x, const Shape& weight,
                                 const Conv2dParameters& options);

/// out = epilogue(conv2d(x, weight) + bias); bias (O).
/// @throws ShapeError, TypeError, DeviceError, ValueError before anything is launched
DECLIVITY_API void conv2d_forward(const View& x, const View& weight, const std::optional<View>& bias, const View& out,
                                  const Conv2dParameters& options, const Epilogue& epilogue = {},
                                  OperandUse weights = OperandUse::variable);

/// Deferred variant: the elementwise functions that follow are fused as its epilogue.
DECLIVITY_API LazyArray conv2d(const View& x, const View& weight, const std::optional<View>& bias,
                               const Conv2dParameters& options, OperandUse weights = OperandUse::variable);

/// Gradient of x from the gradient of the output and the weights; overwrites `x_gradient`. The epilogue may continue
/// the backward pass through the activation that produced x (Expression::gradient of operator_result()).
DECLIVITY_API void conv2d_backward_input(const View& out_gradient, const View& weight, const View& x_gradient,
                                         const Conv2dParameters& options, const Epilogue& epilogue = {});

/// Deferred variant; `x` is the shape of x.
DECLIVITY_API LazyArray conv2d_input_gradient(const View& out_gradient, const View& weight, const Shape& x,
                                              const Conv2dParameters& options);

/// Gradient of the weights from x and the gradient of the output, and optionally that of the bias (O): in the same
/// kernel if the strategy supports it, otherwise by conv2d_backward_bias. Overwrites both. An infinity or NaN in x may
/// propagate to every weight of its channel.
DECLIVITY_API void conv2d_backward_weights(const View& x, const View& out_gradient, const View& weight_gradient,
                                           const Conv2dParameters& options,
                                           const std::optional<View>& bias_gradient = std::nullopt);

struct Conv2dGradients {
    LazyArray weight, bias;
};
/// Deferred variant; `bias` is none unless `with_bias`. The kernels produce split-K partial sums, which are reduced
/// when one of the gradients is needed, batched with all other pending reductions of this thread (deferred_batched).
DECLIVITY_API Conv2dGradients conv2d_weight_gradients(const View& x, const View& out_gradient, const Shape& weight,
                                                      const Conv2dParameters& options, bool with_bias);

/// Gradient of the bias: sum of the gradient of the output over N, P and Q. Overwrites `bias_gradient` (O).
DECLIVITY_API void conv2d_backward_bias(const View& out_gradient, const View& bias_gradient);

/// @}

}  // namespace declivity::ops
