// Layer 5. Matrix products.
#pragma once

#include <declivity/tensor/tensor.hpp>

namespace declivity {

/// @defgroup functions_matmul Matrix products
/// @ingroup functions
/// Matrix products and linear functions. More products are in @ref functions_products.
///
/// - Types: floating types, in matmul() also integers, modulo 2^bits; operands have one type, which is that of the
///   result. f16 and bf16 are accumulated in f32.
/// - Errors: ShapeError for operands without axes, and for sizes that do not match; TypeError for operands of different
///   types, or of types that a function does not support; DeviceError for operands on different devices; ValueError for
///   an undefined operand.
///
/// @{

/// Matrix product (..., M, K) x (..., K, N) -> (..., M, N); leading axes broadcast. A vector counts as a row on the
/// left and as a column on the right, and its axis is removed from the result.
/// Examples: for a = `[[1, 2], [3, 4]]` and v = `[10, 1]`, `matmul(a, a)` is `[[7, 10], [15, 22]]`; `matmul(a, v)` is
/// `[12, 34]`; `matmul(v, a)` is `[13, 24]`.
DECLIVITY_API Tensor matmul(const Tensor& a, const Tensor& b);
/// x W^T + bias: x (..., in), weight (out, in), bias (out) or undefined -> (..., out); for a weight (in) and a bias
/// without axes (...). If x is f32, weight and bias may be f16 or bf16: they are upcast to f32 within the product.
/// Example: for x = `[[1, 2]]`, weight = `[[3, 4], [5, 6], [7, 8]]` and bias = `[0, 0, 100]`, `linear(x, weight, bias)`
/// is `[[11, 17, 123]]`.
DECLIVITY_API Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = {});
/// y[..., k] = x1[...] weight[k] x2[...] + bias[k]: x1 (..., I), x2 (..., J) with the same leading axes, weight (O, I,
/// J), bias (O) or undefined -> (..., O).
/// Example: for x1 = `[[1, 2]]`, x2 = `[[3, 4]]` and weight = `[[[1, 0], [0, 1]], [[0, 1], [0, 0]]]`,
/// `bilinear(x1, x2, weight)` is `[[11, 4]]`.
DECLIVITY_API Tensor bilinear(const Tensor& x1, const Tensor& x2, const Tensor& weight, const Tensor& bias = {});

/// @}

}  // namespace declivity
