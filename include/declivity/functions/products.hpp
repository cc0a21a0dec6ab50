// Layer 5. Tensor products in addition to matmul: einsum, batched products, vector products, and functions composed of
// them.
#pragma once

#include <concepts>
#include <cstdint>
#include <string_view>
#include <vector>

#include <declivity/tensor/tensor.hpp>

namespace declivity {

/// @defgroup functions_products Products of tensors
/// @ingroup functions
/// Einstein summation, batched and vector products, in addition to @ref functions_matmul. For floating types, and for
/// integers modulo 2^bits; f16 and bf16 are accumulated in f32.
///
/// Errors: ShapeError for another number of axes, and for sizes that do not match; TypeError for operands of different
/// types, except by outer() and kron(), which convert them to a common one; DeviceError for operands on different
/// devices; ValueError for an undefined operand.
/// @{

/// Einstein summation: "bij,bjk->bik". One letter per axis of each operand; an index that is missing in the result is
/// summed, one that occurs twice in an operand takes its diagonal, and "..." stands for axes that broadcast. Without
/// "->" the result has "..." and the letters that occur once, A to Z before a to z. Axes of size 1 broadcast. Operands
/// are contracted from left to right, two at a time, by matmul.
/// Examples: for a = `[[1, 2], [3, 4]]` and v = `[10, 1]`, `einsum("ij,j->i", a, v)` is `[12, 34]`; `einsum("ii", a)`
/// is `5` (trace); `einsum("ij->ji", a)` is `[[1, 3], [2, 4]]`; `einsum("i,j", {v, v})` is `[[100, 10], [10, 1]]`.
/// @throws ValueError for an invalid equation, or no operand; ShapeError for operands that do not match it
DECLIVITY_API Tensor einsum(std::string_view equation, const std::vector<Tensor>& operands);
/// Overload for operands as separate arguments.
template <std::derived_from<Tensor>... Operands>
Tensor einsum(std::string_view equation, const Operands&... operands) {
    return einsum(equation, std::vector<Tensor>{operands...});
}

/// Matrix product (M, K) x (K, N) -> (M, N), without broadcasting; see matmul().
/// Example: for a = `[[1, 2], [3, 4]]`, `mm(a, a)` is `[[7, 10], [15, 22]]`.
DECLIVITY_API Tensor mm(const Tensor& a, const Tensor& b);
/// Matrix product of each pair of a batch: (B, M, K) x (B, K, N) -> (B, M, N), without broadcasting.
/// Example: for a = `[[[1, 2]], [[3, 4]]]` and b = `[[[1], [1]], [[10], [1]]]`, `bmm(a, b)` is `[[[3]], [[34]]]`.
DECLIVITY_API Tensor bmm(const Tensor& a, const Tensor& b);
/// Product of a matrix (M, K) and a vector (K): (M).
/// Example: for a = `[[1, 2], [3, 4]]` and v = `[10, 1]`, `mv(a, v)` is `[12, 34]`.
DECLIVITY_API Tensor mv(const Tensor& a, const Tensor& vector);
/// Sum of the products a[i] b[i] of two vectors (N); a tensor without axes.
/// Example: for a = `[1, 2]` and b = `[10, 1]`, `dot(a, b)` is `12`.
DECLIVITY_API Tensor dot(const Tensor& a, const Tensor& b);
/// dot(), which is the same for real numbers.
/// Example: for a = `[1, 2]` and b = `[3, 4]`, `vdot(a, b)` is `11`.
DECLIVITY_API Tensor vdot(const Tensor& a, const Tensor& b);

/// Factors of the input and of the product. With beta = 0 the input is not read: its NaN do not propagate.
struct AddmmOptions {
    Scalar beta = 1;
    Scalar alpha = 1;
};
/// beta x + alpha a b for matrices a (M, K) and b (K, N); x broadcasts to the result (M, N).
/// Examples: for x = `[1, 1]` and a = `[[1, 2], [3, 4]]`, `addmm(x, a, a)` is `[[8, 11], [16, 23]]`;
/// `addmm(x, a, a, {.beta = 0, .alpha = 2})` is `[[14, 20], [30, 44]]`.
/// @throws TypeError for a floating alpha or beta and integers
DECLIVITY_API Tensor addmm(const Tensor& x, const Tensor& a, const Tensor& b, const AddmmOptions& options = {});
/// beta x + alpha a b, batched: a (B, M, K) and b (B, K, N); x broadcasts to the result (B, M, N).
/// Example: for a = `[[[1, 2]], [[3, 4]]]` and b = `[[[1], [1]], [[10], [1]]]`, `baddbmm(ones({2, 1, 1}), a, b)` is
/// `[[[4]], [[35]]]`.
DECLIVITY_API Tensor baddbmm(const Tensor& x, const Tensor& a, const Tensor& b, const AddmmOptions& options = {});
/// beta x + alpha times the sum over B of the products a b: a (B, M, K), b (B, K, N); x broadcasts to the result (M,
/// N).
/// Example: for a = `[[[1, 2]], [[3, 4]]]` and b = `[[[1], [1]], [[10], [1]]]`, `addbmm(ones({1, 1}), a, b)` is
/// `[[38]]`.
DECLIVITY_API Tensor addbmm(const Tensor& x, const Tensor& a, const Tensor& b, const AddmmOptions& options = {});
/// beta x + alpha a v for a matrix a (M, K) and a vector v (K); x broadcasts to the result (M).
/// Example: for x = `[1, 1]` and a = `[[1, 2], [3, 4]]`, `addmv(x, a, x)` is `[4, 8]`.
DECLIVITY_API Tensor addmv(const Tensor& x, const Tensor& a, const Tensor& vector, const AddmmOptions& options = {});
/// beta x + alpha outer(a, b) for vectors a (M) and b (N); x broadcasts to the result (M, N).
/// Example: for x = `[[0, 1]]`, a = `[1, 2]` and b = `[3, 4]`, `addr(x, a, b)` is `[[3, 5], [6, 9]]`.
DECLIVITY_API Tensor addr(const Tensor& x, const Tensor& a, const Tensor& b, const AddmmOptions& options = {});

/// Outer product a[i] b[j] of vectors (M) and (N): (M, N).
/// Example: for a = `[1, 2]` and b = `[3, 4, 5]`, `outer(a, b)` is `[[3, 4, 5], [6, 8, 10]]`.
DECLIVITY_API Tensor outer(const Tensor& a, const Tensor& b);
/// Inner product: sum over the last axis of both, for each pair of the other indices; if one has no axes, their
/// product.
/// Example: for a = `[[1, 2], [3, 4]]` and b = `[10, 1]`, `inner(a, b)` is `[12, 34]`.
DECLIVITY_API Tensor inner(const Tensor& a, const Tensor& b);
/// Contraction of the last `axes` axes of a with the first ones of b, where sizes of 1 broadcast. The remaining axes of
/// a come before those of b.
/// Examples: for a = `[[1, 2], [3, 4]]`, `tensordot(a, a)` is `30`; `tensordot(a, a, 1)` is `[[7, 10], [15, 22]]`;
/// `tensordot(a, a, {0}, {0})` is `[[10, 14], [14, 20]]`.
/// @throws ValueError for a negative number of axes, or more than a or b has
DECLIVITY_API Tensor tensordot(const Tensor& a, const Tensor& b, std::int64_t axes = 2);
/// Contraction of axes_a[i] of a with axes_b[i] of b, where sizes of 1 broadcast. The remaining axes of a come before
/// those of b.
/// @throws ValueError unless there are as many axes of a as of b, each once
DECLIVITY_API Tensor tensordot(const Tensor& a, const Tensor& b, const Dims& axes_a, const Dims& axes_b);
/// Kronecker product: size i of the result is that of a times that of b; missing leading axes have size 1.
/// Example: for a = `[[1, 2]]` and b = `[[1], [10]]`, `kron(a, b)` is `[[1, 2], [10, 20]]`.
/// @throws ShapeError for more than 4 axes
DECLIVITY_API Tensor kron(const Tensor& a, const Tensor& b);
/// Sum of the diagonal of a matrix (M, N); a tensor without axes.
/// Example: for x = `[[1, 2], [3, 4]]`, `trace(x)` is `5`.
DECLIVITY_API Tensor trace(const Tensor& x);
/// Product of matrices (M, N), in the order with the fewest multiplications; the first and last may be vectors.
/// Example: for a = `[[1, 2], [3, 4]]` and v = `[10, 1]`, `chain_matmul({a, a, v})` is `[80, 172]`.
DECLIVITY_API Tensor chain_matmul(const std::vector<Tensor>& matrices);
/// Cross product of vectors along an axis of size 3; a and b have as many axes, and broadcast.
/// Example: for a = `[1, 0, 0]` and b = `[0, 1, 0]`, `cross(a, b)` is `[0, 0, 1]`.
DECLIVITY_API Tensor cross(const Tensor& a, const Tensor& b, std::int64_t axis = -1);
/// Sum of the products a b along an axis, which is removed; a and b broadcast.
/// Example: for a = `[[1, 2], [3, 4]]` and b = `[10, 1]`, `vecdot(a, b)` is `[12, 34]`.
DECLIVITY_API Tensor vecdot(const Tensor& a, const Tensor& b, std::int64_t axis = -1);
/// Vandermonde matrix: powers of the elements of x (..., N) along a new last axis: x^(columns-1), ..., x, 1, or
/// increasing.
/// Examples: for x = `[2, 3]`, `vander(x, 3)` is `[[4, 2, 1], [9, 3, 1]]`; `vander(x, 3, true)` is
/// `[[1, 2, 4], [1, 3, 9]]`.
/// @param columns -1: N
/// @throws ValueError for a negative number of columns other than -1
DECLIVITY_API Tensor vander(const Tensor& x, std::int64_t columns = -1, bool increasing = false);

/// @}

}  // namespace declivity
