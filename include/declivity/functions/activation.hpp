// Layer 5. Activation functions, in addition to relu, leaky_relu, gelu, silu, sigmoid and tanh of elementwise.hpp.
// Names, defaults and values at kinks are PyTorch's.
#pragma once

#include <optional>

#include <declivity/functions/elementwise.hpp>
#include <declivity/tensor/generator.hpp>

namespace declivity {

/// x if x > 0, otherwise alpha (exp(x) - 1) (Clevert et al. 2015).
inline Tensor elu(Tensor x, Scalar alpha = 1.0) { return elementwise(Function::elu, {std::move(x)}, {alpha}); }
/// scale elu(x, alpha), with the two constants that preserve mean 0 and variance 1 (Klambauer et al. 2017).
DECLIVITY_API Tensor selu(const Tensor& x);
/// x if x > 0, otherwise alpha (exp(x / alpha) - 1) (Barron 2017).
DECLIVITY_API Tensor celu(const Tensor& x, double alpha = 1);
/// log(1 + exp(beta x)) / beta, and x if beta x is above the threshold.
inline Tensor softplus(Tensor x, Scalar beta = 1.0, Scalar threshold = 20.0) {
    return elementwise(Function::softplus, {std::move(x)}, {beta, threshold});
}
/// log(sigmoid(x)).
inline Tensor logsigmoid(Tensor x) { return elementwise(Function::logsigmoid, {std::move(x)}); }
/// x / (1 + |x|).
inline Tensor softsign(Tensor x) { return elementwise(Function::softsign, {std::move(x)}); }
/// x relu6(x + 3) / 6 (Howard et al. 2019).
inline Tensor hardswish(Tensor x) { return elementwise(Function::hardswish, {std::move(x)}); }
/// relu6(x + 3) / 6.
inline Tensor hardsigmoid(Tensor x) { return elementwise(Function::hardsigmoid, {std::move(x)}); }
/// clamp(x, min_val, max_val), with gradient 0 at the bounds.
inline Tensor hardtanh(Tensor x, Scalar min_val = -1, Scalar max_val = 1) {
    return elementwise(Function::hardtanh, {std::move(x)}, {min_val, max_val});
}
/// hardtanh(x, 0, 6).
inline Tensor relu6(Tensor x) { return elementwise(Function::hardtanh, {std::move(x)}, {0, 6}, "relu6"); }
/// x tanh(softplus(x)) (Misra 2019).
inline Tensor mish(Tensor x) { return elementwise(Function::mish, {std::move(x)}); }
/// Tanh approximation of gelu, 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))): PyTorch's approximate="tanh"
/// (Hendrycks, Gimpel 2016).
inline Tensor gelu_tanh(Tensor x) { return elementwise(Function::gelu_tanh, {std::move(x)}); }
/// x if x is above the threshold, otherwise `value`.
inline Tensor threshold(Tensor x, Scalar threshold, Scalar value) {
    return elementwise(Function::threshold, {std::move(x)}, {threshold, value});
}
/// x - lambda above lambda, x + lambda below -lambda, otherwise 0.
inline Tensor softshrink(Tensor x, Scalar lambda = 0.5) {
    return elementwise(Function::softshrink, {std::move(x)}, {lambda});
}
/// 0 in [-lambda, lambda], otherwise x.
inline Tensor hardshrink(Tensor x, Scalar lambda = 0.5) {
    return elementwise(Function::hardshrink, {std::move(x)}, {lambda});
}
/// x - tanh(x).
DECLIVITY_API Tensor tanhshrink(const Tensor& x);
/// x if x > 0, otherwise weight x (He et al. 2015).
/// @param weight one number, or one for each channel (axis 1 of x)
DECLIVITY_API Tensor prelu(const Tensor& x, const Tensor& weight);
/// x if x > 0, otherwise x times a slope: in training sampled uniformly from [lower, upper) for each element, otherwise
/// their mean (Xu et al. 2015).
DECLIVITY_API Tensor rrelu(const Tensor& x, double lower = 0.125, double upper = 1.0 / 3, bool training = false,
                           const std::optional<Generator>& generator = std::nullopt);

/// Gated linear unit: splits an axis of even size into equal parts a and b, and returns a sigmoid(b) (Dauphin et al.
/// 2016).
DECLIVITY_API Tensor glu(const Tensor& x, std::int64_t axis = -1);
/// Gated linear units silu(a) b, and gelu(a) b (Shazeer 2020).
DECLIVITY_API Tensor swiglu(const Tensor& x, std::int64_t axis = -1);
DECLIVITY_API Tensor geglu(const Tensor& x, std::int64_t axis = -1);

}  // namespace declivity
