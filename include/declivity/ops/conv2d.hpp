// Layer 2. Two-dimensional convolution (cross-correlation) and its gradients.
//
//   out[n, o, p, q] = bias[o] + sum over c, r, s of
//                     x[n, c', p * stride[0] + r * dilation[0] - padding[0], q * stride[1] + s * dilation[1] -
//                       padding[1]]
//                     * weight[o, c, r, s]
//
// with c in [0, C / groups), c' = c + (o / (O / groups)) * C / groups, and 0 where the position lies outside of x.
// All views must be dense, of one floating type, and live on one device.
#pragma once

#include <cstdint>
#include <optional>

#include <declivity/ops/epilogue.hpp>
#include <declivity/ops/shape.hpp>
#include <declivity/ops/lazy_array.hpp>
#include <declivity/ops/view.hpp>

namespace declivity::ops {

/// How the filter moves. Pairs are vertical, horizontal.
struct Conv2dParameters {
    Size2 stride = 1;         ///< distance between neighbouring windows, at least 1
    Size2 padding = 0;        ///< zeros on both sides, at least 0
    Size2 dilation = 1;       ///< distance between neighbouring elements of the filter, at least 1
    std::int64_t groups = 1;  ///< input channel group i feeds output channel group i only
};

/// (N, O, P, Q) from x (N, C, H, W) and weight (O, C / groups, R, S), with
/// P = (H + 2 padding - dilation (R - 1) - 1) / stride + 1, rounded down, and Q likewise. N may be 0.
/// @throws ShapeError naming `function` when the shapes do not fit or the output would be empty, ValueError for
/// options out of range
DECLIVITY_API Shape conv2d_shape(std::string_view function, const Shape& x, const Shape& weight,
                                 const Conv2dParameters& options);

/// out = epilogue(conv2d(x, weight) + bias); bias (O).
/// @throws ShapeError, TypeError, DeviceError, ValueError before anything is launched
DECLIVITY_API void conv2d_forward(const View& x, const View& weight, const std::optional<View>& bias, const View& out,
                                  const Conv2dParameters& options, const Epilogue& epilogue = {},
                                  OperandUse weights = OperandUse::variable);

/// The same as a value, launched when it is needed: elementwise functions that follow become its epilogue.
DECLIVITY_API LazyArray conv2d(const View& x, const View& weight, const std::optional<View>& bias,
                               const Conv2dParameters& options, OperandUse weights = OperandUse::variable);

/// The gradient for x, from that of the output and the weights, changed by `epilogue`: so it may go on to what x was
/// made of by an activation (Expression::gradient of operator_result()). Overwrites `x_gradient`.
DECLIVITY_API void conv2d_backward_input(const View& out_gradient, const View& weight, const View& x_gradient,
                                         const Conv2dParameters& options, const Epilogue& epilogue = {});

/// The same as a value, of the shape of x.
DECLIVITY_API LazyArray conv2d_input_gradient(const View& out_gradient, const View& weight, const Shape& x,
                                              const Conv2dParameters& options);

/// The gradient for the weights, from x and that of the output, and with it that for the bias (O), if it is wanted: on
/// the way where the strategy can, otherwise as conv2d_backward_bias. Overwrites both. An infinity or NaN in x may
/// spread to every weight of its channel.
DECLIVITY_API void conv2d_backward_weights(const View& x, const View& out_gradient, const View& weight_gradient,
                                           const Conv2dParameters& options,
                                           const std::optional<View>& bias_gradient = std::nullopt);

struct Conv2dGradients {
    LazyArray weight, bias;
};
/// The same as values, of memory of their own; `bias` is none unless it is wanted. What is launched leaves partial
/// results, which are summed when one of the values is needed, and with them those of all others of this thread that
/// wait for it (deferred_batched).
DECLIVITY_API Conv2dGradients conv2d_weight_gradients(const View& x, const View& out_gradient, const Shape& weight,
                                                      const Conv2dParameters& options, bool with_bias);

/// The gradient for the bias: the sum of the output's over N, P and Q. Overwrites `bias_gradient` (O).
DECLIVITY_API void conv2d_backward_bias(const View& out_gradient, const View& bias_gradient);

}  // namespace declivity::ops
