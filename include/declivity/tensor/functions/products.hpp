// Layer 3. Products of tensors beside matmul: sums over shared indices, of batches of matrices, vectors, and what is
// made of them. Of floating numbers and of integers, which count modulo 2^bits; both operands of one type.
#pragma once

#include <concepts>
#include <cstdint>
#include <string_view>
#include <vector>

#include <declivity/tensor/tensor.hpp>

namespace declivity {

/// Sums of products by Einstein's convention: "bij,bjk->bik". A letter for each axis of each operand; an index that the
/// result lacks is summed, one that an operand has twice means its diagonal, and "..." stands for axes that broadcast.
/// Without "->" the result has "..." and the letters that stand once, A to Z before a to z. Axes of size 1 stretch.
/// Operands are joined from left to right, two at a time, by matmul.
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
/// dot, which for real numbers is the same.
DECLIVITY_API Tensor vdot(const Tensor& a, const Tensor& b);

/// Factors of the input and of the product that is added to it. With beta = 0 the input is not read: what is NaN there
/// does not count.
struct AddmmOptions {
    Scalar beta = 1;
    Scalar alpha = 1;
};
/// beta x + alpha a b; x stretches to the product: (M, K) x (K, N); (B, M, K) x (B, K, N); the same, summed over B; a
/// matrix times a vector; and the outer product of two vectors.
DECLIVITY_API Tensor addmm(const Tensor& x, const Tensor& a, const Tensor& b, const AddmmOptions& options = {});
DECLIVITY_API Tensor baddbmm(const Tensor& x, const Tensor& a, const Tensor& b, const AddmmOptions& options = {});
DECLIVITY_API Tensor addbmm(const Tensor& x, const Tensor& a, const Tensor& b, const AddmmOptions& options = {});
DECLIVITY_API Tensor addmv(const Tensor& x, const Tensor& a, const Tensor& vector, const AddmmOptions& options = {});
DECLIVITY_API Tensor addr(const Tensor& x, const Tensor& a, const Tensor& b, const AddmmOptions& options = {});

/// a[i] b[j] of two vectors.
DECLIVITY_API Tensor outer(const Tensor& a, const Tensor& b);
/// Sums over the last axis of both, of each with each; where one has no axes, their product.
DECLIVITY_API Tensor inner(const Tensor& a, const Tensor& b);
/// Sums over the last `axes` axes of a and as many first ones of b; or over axes_a[i] of a with axes_b[i] of b, where
/// sizes of 1 stretch. What is left of a stands before what is left of b.
DECLIVITY_API Tensor tensordot(const Tensor& a, const Tensor& b, std::int64_t axes = 2);
DECLIVITY_API Tensor tensordot(const Tensor& a, const Tensor& b, const Dims& axes_a, const Dims& axes_b);
/// Kronecker's product: size i of the result is that of a times that of b; missing axes in front have size 1.
/// @throws ShapeError for more than 4 axes
DECLIVITY_API Tensor kron(const Tensor& a, const Tensor& b);
/// The sum of a matrix's diagonal.
DECLIVITY_API Tensor trace(const Tensor& x);
/// The product of matrices (M, N), in the order of the fewest multiplications; the first and last may be vectors.
DECLIVITY_API Tensor chain_matmul(const std::vector<Tensor>& matrices);
/// The vector product along an axis of size 3.
DECLIVITY_API Tensor cross(const Tensor& a, const Tensor& b, std::int64_t axis = -1);
/// The sum of products along an axis; a and b broadcast.
DECLIVITY_API Tensor vecdot(const Tensor& a, const Tensor& b, std::int64_t axis = -1);
/// Powers of the elements of x (..., N) along a new last axis: x^(columns-1), ..., x, 1, or rising.
/// @param columns -1: N
DECLIVITY_API Tensor vander(const Tensor& x, std::int64_t columns = -1, bool increasing = false);

}  // namespace declivity
