// Layer 5. Activation functions, in addition to those of elementwise.hpp.
#pragma once

#include <optional>

#include <declivity/functions/elementwise.hpp>
#include <declivity/tensor/generator.hpp>

namespace declivity {

/// @defgroup functions_activation Activation functions
/// @ingroup functions
/// In addition to relu(), leaky_relu(), gelu(), silu(), sigmoid() and tanh(). Names, defaults and values at kinks are
/// PyTorch's.
///
/// The result has the shape and type of x (glu(), swiglu() and geglu(): half of the elements along one axis). x is of a
/// floating type; hardtanh(), relu6() and threshold() keep integers, and all others that are elementwise compute
/// integers in f32, except that selu(), celu(), prelu() and rrelu() throw TypeError for them. Other errors are those
/// of @ref functions_elementwise.
/// @{

/// x if x > 0, otherwise alpha (exp(x) - 1) (Clevert et al. 2015).
/// Example: for x = `[-1, 2]`, `elu(x)` is `[-0.6321, 2]`.
inline Tensor elu(Tensor x, Scalar alpha = 1.0) { return elementwise(Function::elu, {std::move(x)}, {alpha}); }
/// scale elu(x, alpha), with the two constants that preserve mean 0 and variance 1, 1.0507 and 1.6733 (Klambauer et al.
/// 2017).
/// Example: for x = `[-1, 1]`, `selu(x)` is `[-1.111, 1.051]`.
DECLIVITY_API Tensor selu(const Tensor& x);
/// x if x > 0, otherwise alpha (exp(x / alpha) - 1) (Barron 2017).
/// Example: for x = `[-1, 2]`, `celu(x, 2)` is `[-0.7869, 2]`.
/// @throws ValueError for an alpha of 0
DECLIVITY_API Tensor celu(const Tensor& x, double alpha = 1);
/// log(1 + exp(beta x)) / beta, and x if beta x is above the threshold.
/// Example: for x = `[-1, 0, 30]`, `softplus(x)` is `[0.3133, 0.6931, 30]`.
inline Tensor softplus(Tensor x, Scalar beta = 1.0, Scalar threshold = 20.0) {
    return elementwise(Function::softplus, {std::move(x)}, {beta, threshold});
}
/// log(sigmoid(x)) = -log(1 + exp(-x)), without overflow.
/// Example: for x = `[-100, 0, 1]`, `logsigmoid(x)` is `[-100, -0.6931, -0.3133]`.
inline Tensor logsigmoid(Tensor x) { return elementwise(Function::logsigmoid, {std::move(x)}); }
/// x / (1 + |x|).
/// Example: for x = `[-1, 3]`, `softsign(x)` is `[-0.5, 0.75]`.
inline Tensor softsign(Tensor x) { return elementwise(Function::softsign, {std::move(x)}); }
/// x relu6(x + 3) / 6 (Howard et al. 2019).
/// Example: for x = `[-4, 1, 4]`, `hardswish(x)` is `[0, 0.6667, 4]`.
inline Tensor hardswish(Tensor x) { return elementwise(Function::hardswish, {std::move(x)}); }
/// relu6(x + 3) / 6.
/// Example: for x = `[-4, 0, 1.5]`, `hardsigmoid(x)` is `[0, 0.5, 0.75]`.
inline Tensor hardsigmoid(Tensor x) { return elementwise(Function::hardsigmoid, {std::move(x)}); }
/// clamp(x, min_val, max_val), with gradient 0 at the bounds.
/// Example: for x = `[-3, 0.5, 2]`, `hardtanh(x)` is `[-1, 0.5, 1]`.
inline Tensor hardtanh(Tensor x, Scalar min_val = -1, Scalar max_val = 1) {
    return elementwise(Function::hardtanh, {std::move(x)}, {min_val, max_val});
}
/// hardtanh(x, 0, 6), min(max(x, 0), 6).
/// Example: for x = `[-1, 3, 8]`, `relu6(x)` is `[0, 3, 6]`.
inline Tensor relu6(Tensor x) { return elementwise(Function::hardtanh, {std::move(x)}, {0, 6}, "relu6"); }
/// x tanh(softplus(x)) (Misra 2019).
/// Example: for x = `[-1, 0, 1]`, `mish(x)` is `[-0.3034, 0, 0.8651]`.
inline Tensor mish(Tensor x) { return elementwise(Function::mish, {std::move(x)}); }
/// Tanh approximation of gelu, 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))): PyTorch's approximate="tanh"
/// (Hendrycks, Gimpel 2016).
/// Example: for x = `[-1, 1]`, `gelu_tanh(x)` is `[-0.1588, 0.8412]`.
inline Tensor gelu_tanh(Tensor x) { return elementwise(Function::gelu_tanh, {std::move(x)}); }
/// x if x is above the threshold, otherwise `value`.
/// Example: for x = `[-1, 1, 2]`, `threshold(x, 1, 0)` is `[0, 0, 2]`.
inline Tensor threshold(Tensor x, Scalar threshold, Scalar value) {
    return elementwise(Function::threshold, {std::move(x)}, {threshold, value});
}
/// x - lambda above lambda, x + lambda below -lambda, otherwise 0.
/// Example: for x = `[-2, 0.3, 1]`, `softshrink(x)` is `[-1.5, 0, 0.5]`.
inline Tensor softshrink(Tensor x, Scalar lambda = 0.5) {
    return elementwise(Function::softshrink, {std::move(x)}, {lambda});
}
/// 0 in [-lambda, lambda], otherwise x.
/// Example: for x = `[-2, 0.3, 1]`, `hardshrink(x)` is `[-2, 0, 1]`.
inline Tensor hardshrink(Tensor x, Scalar lambda = 0.5) {
    return elementwise(Function::hardshrink, {std::move(x)}, {lambda});
}
/// x - tanh(x).
/// Example: for x = `[-1, 0, 2]`, `tanhshrink(x)` is `[-0.2384, 0, 1.036]`.
DECLIVITY_API Tensor tanhshrink(const Tensor& x);
/// x if x > 0, otherwise weight x (He et al. 2015).
/// Example: for x = `[[-2, 3], [-4, -4]]` and weight = `[0.5, 0.25]`, `prelu(x, weight)` is `[[-1, 3], [-2, -1]]`.
/// @param weight one number, or one for each channel (axis 1 of x)
/// @throws ShapeError for a weight of another number of elements, TypeError for one of another type than x
DECLIVITY_API Tensor prelu(const Tensor& x, const Tensor& weight);
/// x if x > 0, otherwise x times a slope: in training sampled uniformly from [lower, upper) for each element, otherwise
/// their mean (Xu et al. 2015).
/// Examples: for x = `[-1, 2]`, `rrelu(x, 0.1, 0.3)` is `[-0.2, 2]`; `rrelu(x, 0.2, 0.2, true)` is `[-0.2, 2]`.
/// @throws ValueError unless lower <= upper
DECLIVITY_API Tensor rrelu(const Tensor& x, double lower = 0.125, double upper = 1.0 / 3, bool training = false,
                           const std::optional<Generator>& generator = std::nullopt);

/// Gated linear unit: splits an axis of even size into equal parts a and b, and returns a sigmoid(b) (Dauphin et al.
/// 2016).
/// Example: for x = `[6, 8, 0, 100]`, `glu(x)` is `[3, 8]`.
/// @throws ShapeError for an axis out of range, or of odd size; TypeError for integers
DECLIVITY_API Tensor glu(const Tensor& x, std::int64_t axis = -1);
/// Gated linear unit silu(a) b of the two equal parts of an axis (Shazeer 2020).
/// Example: for x = `[1, -1, 2, 2]`, `swiglu(x)` is `[1.462, -0.5379]`.
/// @throws ShapeError, TypeError as glu()
DECLIVITY_API Tensor swiglu(const Tensor& x, std::int64_t axis = -1);
/// Gated linear unit gelu(a) b of the two equal parts of an axis (Shazeer 2020).
/// Example: for x = `[1, -1, 2, 2]`, `geglu(x)` is `[1.683, -0.3173]`.
/// @throws ShapeError, TypeError as glu()
DECLIVITY_API Tensor geglu(const Tensor& x, std::int64_t axis = -1);

/// @}

}  // namespace declivity
