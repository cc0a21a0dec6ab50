// Layer 5, private. Batches of matrices (batch, m, n) of f32 or f64, and differentiable building blocks of the
// functions of linalg.hpp.
#pragma once

#include <utility>
#include <vector>

#include <declivity/ops/linalg.hpp>
#include <declivity/tensor/tensor.hpp>

namespace declivity::detail {

/// @throws TypeError unless of a floating-point type, ShapeError unless (..., m, n)
void require_matrices(const char* name, const char* what, const Tensor& x);
void require_square(const char* name, const char* what, const Tensor& x);
/// Sizes of the batch axes, those before the last `last` axes.
Shape batch_shape_of(const Tensor& x, int last = 2);

/// x (..., m, n) as (batch, m, n), with f16 and bf16 upcast to f32; `restore` reverts both for a result.
class Batch {
  public:
    Batch(const Tensor& x, int last = 2);
    [[nodiscard]] const Tensor& x() const { return x_; }
    /// y (batch, ...) with the original batch axes, in x's original type.
    [[nodiscard]] Tensor restore(const Tensor& y) const;

  private:
    DType dtype_;
    Shape batch_shape_;
    Tensor x_;
};

/// Two operands with broadcast batch axes: a (..., m, n) and b (..., k, l), expanded.
std::pair<Tensor, Tensor> broadcast_batches(const char* name, const Tensor& a, const Tensor& b);

Tensor identity_like(const Tensor& x, std::int64_t rows, std::int64_t columns);

// Functions of batches (batch, m, n). All are differentiable to any order.

/// The lower factor, and info.
std::pair<Tensor, Tensor> cholesky_factor(const Tensor& a);
Tensor solve_triangular(const Tensor& a, const Tensor& b, const ops::TriangularSolve& options);

struct LuParts {
    Tensor lu, pivots, permutation, info;
};
LuParts lu_parts(const Tensor& a);
/// Row indices from pivots: (batch, m).
Tensor rows_of_pivots(const Tensor& pivots, std::int64_t m);
/// Solution X of A X = B, or of A^T X = B.
Tensor solve_with_lu(const Tensor& lu, const Tensor& rows, const Tensor& b, bool adjoint);
Tensor solve(const char* name, const Tensor& a, const Tensor& b, Tensor* info);

/// q (batch, m, columns), r (batch, columns, n); without gradients if columns > n.
std::pair<Tensor, Tensor> qr_parts(const Tensor& a, std::int64_t columns);
Tensor qr_r(const Tensor& a);

std::pair<Tensor, Tensor> eigh_parts(const Tensor& a, bool upper);
Tensor eigh_values(const Tensor& a, bool upper);

struct SvdParts {
    Tensor u, s, vh;
};
SvdParts svd_parts(const Tensor& a, bool full);
Tensor svd_values(const Tensor& a);

}  // namespace declivity::detail
