// Layer 2. Matrix products.
#pragma once

#include <optional>

#include <declivity/ops/epilogue.hpp>
#include <declivity/ops/lazy_array.hpp>
#include <declivity/ops/view.hpp>

namespace declivity::ops {

/// out[b] = a[b] x b[b] for matrices a (batch, M, K), b (batch, K, N), out (batch, M, N, dense), all f32, f64, f16 or
/// bf16. The matrices may have any strides, so a transposed operand is a permuted view and a broadcast one has stride
/// 0.
///
/// Strategies for CPU-like devices: "blocked" (register tiles over blocks that a work-group copies for itself), "split"
/// (the same over parts of long sums, which are then added), "packed" (register tiles over operands that are copied as
/// a whole first) and "dot" (dot products in place, where the elements along K are neighbours in both); for GPU-like
/// ones: "tiled" (tiles in local memory) and "gemv" (a matrix and up to 4 vectors); for both "clblast" (the CLBlast
/// library) and "register_tiled" (register tiles in place, serves everything). "dot" and "clblast" serve no f16 and bf16, whose
/// products are added up in f32. DECLIVITY_MATMUL names one to use wherever it can serve.
///
/// Epilogues of the form activation(alpha * result + bias + beta * residual) are applied on the way by "blocked",
/// "dot", "tiled", "gemv" and "packed": bias is a number for each column, residual has the shape of the result,
/// activation is any elementwise function of one input, and each may be missing. All others run behind the product.
/// @param right whether b stays constant: then "packed" copies it once, and serves from a few rows of a on
/// @throws ShapeError, TypeError, DeviceError
DECLIVITY_API void matmul(const View& a, const View& b, const View& out, const Epilogue& epilogue = {},
                          OperandUse right = OperandUse::variable);

/// The same as a value, launched when it is needed: elementwise functions that follow become its epilogue.
/// @param shape of the result: (M, N) behind any axes that make up the batch
/// @param bias a number for each column (N)
DECLIVITY_API LazyArray matmul(const View& a, const View& b, const Shape& shape,
                               const std::optional<View>& bias = std::nullopt, OperandUse right = OperandUse::variable);

}  // namespace declivity::ops
