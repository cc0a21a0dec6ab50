// Layer 2. Matrix products (GEMM).
#pragma once

#include <optional>

#include <declivity/ops/epilogue.hpp>
#include <declivity/ops/lazy_array.hpp>
#include <declivity/ops/view.hpp>

namespace declivity::ops {

/// @addtogroup ops
/// @{

/// out[b] = a[b] x b[b] for matrices a (batch, M, K), b (batch, K, N), out (batch, M, N, dense), all f32, f64, f16 or
/// bf16. a and b may have any strides: a transposed operand is a permuted view, and a broadcast one has stride 0.
///
/// The strategies are listed in docs/internals/performance.md, with when each is used; DECLIVITY_MATMUL forces one
/// wherever it is applicable. Products of f16 and bf16 are accumulated in f32.
///
/// Most strategies fuse epilogues of the form activation(alpha * result + bias + beta * residual): bias is per column,
/// residual has the result's shape, activation is any elementwise function of one input, and each may be absent. All
/// others run after the product.
/// @param right constant if b does not change between calls: "packed" then caches packed weights, and is applicable
/// from a few rows of a on
/// @throws ShapeError, TypeError, DeviceError
DECLIVITY_API void matmul(const View& a, const View& b, const View& out, const Epilogue& epilogue = {},
                          OperandUse right = OperandUse::variable);

/// Deferred variant: the elementwise functions that follow are fused as its epilogue.
/// @param shape of the result: (M, N) after any batch axes
/// @param bias one number per column (N)
DECLIVITY_API LazyArray matmul(const View& a, const View& b, const Shape& shape,
                               const std::optional<View>& bias = std::nullopt, OperandUse right = OperandUse::variable);

/// @}

}  // namespace declivity::ops
