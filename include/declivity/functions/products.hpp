// Layer 5. Tensor products in addition to matmul: einsum, batched products, vector products, and functions composed of
// them. For floating types and for integers (modulo 2^bits); both operands have one type.
#pragma once

#include <concepts>
#include <cstdint>
#include <string_view>
#include <vector>

#include <declivity/tensor/tensor.hpp>

namespace declivity {

/// Einstein summation: "bij,bjk->bik". One letter per axis of each operand; an index that is missing in the result is
/// summed, one that occurs twice in an operand takes its diagonal, and "..." stands for axes that broadcast. Without
/// "->" the result has "..." and the letters that occur once, A to Z before a to z. Axes of size 1 broadcast. Operands
/// are contracted from left to right, two at a time, by matmul.
DECLIVITY_API Tensor einsum(std::string_view equation, const std::vector<Tensor>& operands);
template <std::derived_from<Tensor>... Operands>
Tensor einsum(std::string_view equation, const Operands&... operands) {
    return einsum(equation, std::vector<Tensor>{operands...});
}

/// (M, K) x (K, N), (B, M, K) x (B, K, N), (M, K) x (K) and (N) x (N), without broadcasting.
DECLIVITY_API Tensor mm(const Tensor& a, const Tensor& b);
DECLIVITY_API Tensor bmm(const Tensor& a, const Tensor& b);
DECLIVITY_API Tensor mv(const Tensor& a, const Tensor& vector);
DECLIVITY_API Tensor dot(const Tensor& a, const Tensor& b);
/// dot, which is the same for real numbers.
DECLIVITY_API Tensor vdot(const Tensor& a, const Tensor& b);

/// Factors of the input and of the product. With beta = 0 the input is not read: its NaN do not propagate.
struct AddmmOptions {
    Scalar beta = 1;
    Scalar alpha = 1;
};
/// beta x + alpha a b; x broadcasts to the product. addmm: (M, K) x (K, N); baddbmm: (B, M, K) x (B, K, N); addbmm: the
/// same, summed over B; addmv: matrix times vector; addr: outer product of two vectors.
DECLIVITY_API Tensor addmm(const Tensor& x, const Tensor& a, const Tensor& b, const AddmmOptions& options = {});
DECLIVITY_API Tensor baddbmm(const Tensor& x, const Tensor& a, const Tensor& b, const AddmmOptions& options = {});
DECLIVITY_API Tensor addbmm(const Tensor& x, const Tensor& a, const Tensor& b, const AddmmOptions& options = {});
DECLIVITY_API Tensor addmv(const Tensor& x, const Tensor& a, const Tensor& vector, const AddmmOptions& options = {});
DECLIVITY_API Tensor addr(const Tensor& x, const Tensor& a, const Tensor& b, const AddmmOptions& options = {});

/// a[i] b[j] of two vectors.
DECLIVITY_API Tensor outer(const Tensor& a, const Tensor& b);
/// Sum over the last axis of both, for each pair of the other indices; if one has no axes, their product.
DECLIVITY_API Tensor inner(const Tensor& a, const Tensor& b);
/// Contraction of the last `axes` axes of a with the first ones of b; or of axes_a[i] of a with axes_b[i] of b, where
/// sizes of 1 broadcast. The remaining axes of a come before those of b.
DECLIVITY_API Tensor tensordot(const Tensor& a, const Tensor& b, std::int64_t axes = 2);
DECLIVITY_API Tensor tensordot(const Tensor& a, const Tensor& b, const Dims& axes_a, const Dims& axes_b);
/// Kronecker product: size i of the result is that of a times that of b; missing leading axes have size 1.
/// @throws ShapeError for more than 4 axes
DECLIVITY_API Tensor kron(const Tensor& a, const Tensor& b);
/// Sum of the diagonal of a matrix.
DECLIVITY_API Tensor trace(const Tensor& x);
/// Product of matrices (M, N), in the order with the fewest multiplications; the first and last may be vectors.
DECLIVITY_API Tensor chain_matmul(const std::vector<Tensor>& matrices);
/// Cross product along an axis of size 3.
DECLIVITY_API Tensor cross(const Tensor& a, const Tensor& b, std::int64_t axis = -1);
/// Sum of products along an axis; a and b broadcast.
DECLIVITY_API Tensor vecdot(const Tensor& a, const Tensor& b, std::int64_t axis = -1);
/// Vandermonde matrix: powers of the elements of x (..., N) along a new last axis: x^(columns-1), ..., x, 1, or
/// increasing.
/// @param columns -1: N
DECLIVITY_API Tensor vander(const Tensor& x, std::int64_t columns = -1, bool increasing = false);

}  // namespace declivity
