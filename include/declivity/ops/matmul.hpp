// Floor 2. Matrix products.
#pragma once

#include <declivity/ops/expression.hpp>
#include <declivity/ops/view.hpp>

namespace declivity::ops {

/// out[b] = a[b] x b[b] for matrices a (batch, M, K), b (batch, K, N), out (batch, M, N, dense), f32 or f64. The
/// matrices may have any strides, so a transposed operand is a permuted view and a broadcast one has stride 0.
///
/// Strategies: "clblast" (the CLBlast library), "blocked" (register tiles over blocks that a work-group copies for itself, for
/// CPU-like devices), "split" (the same over parts of long sums, which are then added), "packed" (register tiles over operands
/// that are copied as a whole first), "dot" (dot products in place, where the elements along K are neighbours in both) and
/// "tiled" (register tiles in place, serves everything). DECLIVITY_MATMUL names one to use wherever it can serve. A bias for
/// each column and relu are applied on the way by "blocked" and "dot", other epilogues behind the product.
/// @throws ShapeError, TypeError, DeviceError
DECLIVITY_API void matmul(const View& a, const View& b, const View& out, const Epilogue& epilogue = {});

}  // namespace declivity::ops
