// Layer 5. Linear algebra of batches of matrices.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <declivity/tensor/tensor.hpp>
#include <declivity/tensor/tensors_of.hpp>

namespace declivity::linalg {

/// @defgroup functions_linalg Linear algebra
/// @ingroup functions
/// Factorisations, solvers, determinants and norms of matrices, with the names of torch.linalg.
///
/// - Shapes: a matrix is in the last two axes, (..., m, n) or (..., n, n); the axes before them are a batch, which the
///   results have as well. The batch axes of two operands broadcast.
/// - Types: f32 and f64; f16 and bf16 are computed in f32 and rounded once. Results have the type of the operands,
///   which have one type; info and pivots are i32.
/// - Values: nothing synchronises, so that no matrix can be refused for its elements. If a factorisation does not
///   exist, as for a singular matrix, elements are NaN or infinite. The functions `..._ex` also return info, (...): 0,
///   or a description of the failure.
/// - Gradients are the published ones (Giles 2008; Walter, Lehmann 2010; Seeger et al. 2017): if undefined, as for
///   equal eigenvalues, they are the value of the formula, NaN or infinite.
/// - Errors: ShapeError for operands without two axes, for matrices (..., m, n) where (..., n, n) is expected, and for
///   operands whose sizes do not match; TypeError for integers and bool, and for operands of different types;
///   DeviceError for operands on different devices; ValueError for an undefined tensor.
/// - Time: each matrix is processed by one work-group, which is efficient up to some hundred rows; larger ones are
///   correct, but slow.
///
/// @{

/// Results of cholesky_ex().
struct FactorInfo {
    Tensor factor;
    Tensor info;  ///< i32
};
/// Results of inv_ex().
struct InverseInfo {
    Tensor inverse;
    Tensor info;  ///< i32
};
/// Results of solve_ex().
struct SolutionInfo {
    Tensor solution;
    Tensor info;  ///< i32
};
/// Results of lu_factor().
struct LuFactors {
    Tensor lu;      ///< (..., m, n): U, and below its diagonal L, whose own diagonal is 1
    Tensor pivots;  ///< (..., min(m, n)), i32: 1-based index of the row exchanged with row i
};
/// Results of lu_factor_ex().
struct LuFactorsInfo {
    Tensor lu, pivots;
    Tensor info;  ///< i32: 0, or the 1-based index of the first pivot that is 0
};
/// Results of lu() and lu_unpack().
struct Lu {
    Tensor p, l, u;  ///< (..., m, m), (..., m, k) and (..., k, n) for k = min(m, n)
};
/// Results of qr().
struct Qr {
    Tensor q, r;
};
/// Results of eigh().
struct Eigh {
    Tensor values;   ///< (..., n), ascending
    Tensor vectors;  ///< (..., n, n), as columns
};
/// Results of svd().
struct Svd {
    Tensor u;   ///< (..., m, k), as columns, for k = min(m, n); (..., m, m) for full matrices
    Tensor s;   ///< (..., k), descending
    Tensor vh;  ///< (..., k, n), as rows; (..., n, n) for full matrices
};
/// Results of slogdet(), one number for each matrix.
struct SignLogDet {
    Tensor sign;       ///< -1, 0 or 1
    Tensor logabsdet;  ///< minus infinity for 0
};
/// Results of lstsq().
struct LeastSquares {
    Tensor solution;   ///< (..., n, k)
    Tensor residuals;  ///< (..., k): squared lengths of A X - B for m > n, otherwise (0)
};

// ---- factorisations

/// Cholesky factor L with L L^T = A for symmetric, positive definite A (..., n, n), of which the lower triangle is
/// read; `upper`: L^T, from the upper triangle. NaN from the first leading minor on that is not positive; info is its
/// 1-based order.
/// Examples: for a = `[[4, 2], [2, 5]]`, `linalg::cholesky(a)` is `[[2, 0], [1, 2]]`; `linalg::cholesky(a, true)` is
/// `[[2, 1], [0, 2]]`.
DECLIVITY_API Tensor cholesky(const Tensor& a, bool upper = false);
/// cholesky() and its info. Example: for a = `[[4, 2], [2, 5]]`, `linalg::cholesky_ex(-a).info` is `1`.
DECLIVITY_API FactorInfo cholesky_ex(const Tensor& a, bool upper = false);
/// Solution X (..., n, k) of A X = B for B (..., n, k) and the Cholesky factor (..., n, n) of A (with `upper`, its
/// transpose).
/// Example: for b = `[[8], [12]]` and l = `[[2, 0], [1, 2]]`, `linalg::cholesky_solve(b, l)` is `[[1], [2]]`.
DECLIVITY_API Tensor cholesky_solve(const Tensor& b, const Tensor& factor, bool upper = false);
/// Inverse A^-1 (..., n, n) from the Cholesky factor (..., n, n) of A.
/// Example: for l = `[[2, 0], [1, 2]]`, `linalg::cholesky_inverse(l)` is `[[0.3125, -0.125], [-0.125, 0.25]]`.
DECLIVITY_API Tensor cholesky_inverse(const Tensor& factor, bool upper = false);

/// LU factorisation P L U = A of A (..., m, n) with partial pivoting. A matrix of less than full rank has zeros on the
/// diagonal of U.
/// Examples: for a = `[[1, 2], [4, 4]]`, `linalg::lu_factor(a).lu` is `[[4, 4], [0.25, 1]]`;
/// `linalg::lu_factor(a).pivots` is `[2, 2]`.
DECLIVITY_API LuFactors lu_factor(const Tensor& a);
/// lu_factor() and its info. Example: `linalg::lu_factor_ex(zeros({2, 2})).info` is `1`.
DECLIVITY_API LuFactorsInfo lu_factor_ex(const Tensor& a);
/// LU factorisation P L U = A of A (..., m, n) as three matrices.
/// Examples: for a = `[[1, 2], [4, 4]]`, `linalg::lu(a).l` is `[[1, 0], [0.25, 1]]`; `linalg::lu(a).p` is
/// `[[0, 1], [1, 0]]`.
DECLIVITY_API Lu lu(const Tensor& a);
/// P, L and U from the result of lu_factor(): lu (..., m, n), pivots (..., min(m, n)), i32 or i64.
/// Example: for lu = `[[4, 4], [0.25, 1]]` and i32 pivots = `[2, 2]`, `linalg::lu_unpack(lu, pivots).u` is
/// `[[4, 4], [0, 1]]`.
DECLIVITY_API Lu lu_unpack(const Tensor& lu, const Tensor& pivots);
/// X of A X = B for B (..., n, k), from the result of lu_factor(A) for A (..., n, n); `left` = false: of X A = B for B
/// (..., k, n); `adjoint`: with A^T.
/// Example: for lu = `[[4, 4], [0.25, 1]]`, i32 pivots = `[2, 2]` and b = `[[5], [12]]`,
/// `linalg::lu_solve(lu, pivots, b)` is `[[1], [2]]`.
DECLIVITY_API Tensor lu_solve(const Tensor& lu, const Tensor& pivots, const Tensor& b, bool left = true,
                              bool adjoint = false);

/// QR factorisation Q R = A of A (..., m, n) with orthonormal columns of Q, by Householder reflections.
/// Examples: for a = `[[3, 1], [4, 2]]`, `abs(linalg::qr(a).r)` is `[[5, 2.2], [0, 0.4]]`;
/// `linalg::qr(ones({3, 2}), "complete").q.shape()` is `[3, 3]`.
/// @param mode "reduced": q (..., m, k), r (..., k, n) for k = min(m, n); "complete": (..., m, m), (..., m, n), without
/// gradients for m > n; "r": no q, no gradients
/// @throws ValueError for another mode
DECLIVITY_API Qr qr(const Tensor& a, std::string_view mode = "reduced");

/// Eigendecomposition V diag(values) V^T = A of symmetric A (..., n, n), of which one triangle is read, by Jacobi
/// rotations. The signs of the vectors, and the basis for equal values, are arbitrary: functions that depend on them
/// have no gradient.
/// Examples: for a = `[[2, 1], [1, 2]]`, `linalg::eigh(a).values` is `[1, 3]`; `abs(linalg::eigh(a).vectors)` is
/// `[[0.7071, 0.7071], [0.7071, 0.7071]]`.
/// @param uplo "L" or "U"
/// @throws ValueError for another uplo
DECLIVITY_API Eigh eigh(const Tensor& a, std::string_view uplo = "L");
/// Eigenvalues (..., n) of symmetric A (..., n, n), ascending, as eigh(). The gradient is also defined for equal
/// eigenvalues.
/// Example: for a = `[[2, 1], [1, 2]]`, `linalg::eigvalsh(a)` is `[1, 3]`.
DECLIVITY_API Tensor eigvalsh(const Tensor& a, std::string_view uplo = "L");

/// Singular value decomposition U diag(S) V^T = A of A (..., m, n) by Jacobi rotations. Signs are arbitrary as for
/// eigh(). No gradient flows to the columns and rows that only full matrices have.
/// Examples: for a = `[[0, 2], [3, 0], [0, 0]]`, `linalg::svd(a).s` is `[3, 2]`; `abs(linalg::svd(a).vh)` is
/// `[[1, 0], [0, 1]]`; `linalg::svd(a).u.shape()` is `[3, 3]`; `linalg::svd(a, false).u.shape()` is `[3, 2]`.
DECLIVITY_API Svd svd(const Tensor& a, bool full_matrices = true);
/// Singular values (..., min(m, n)) of A (..., m, n), descending. The gradient is also defined for equal singular
/// values and for 0. Example: for a = `[[0, 2], [3, 0], [0, 0]]`, `linalg::svdvals(a)` is `[3, 2]`.
DECLIVITY_API Tensor svdvals(const Tensor& a);

// ---- solvers

/// Options of solve_triangular().
struct SolveTriangularOptions {
    bool upper;                  ///< which triangle is read
    bool left = true;            ///< false: X A = B
    bool unitriangular = false;  ///< unit diagonal, which is not read
};
/// X of A X = B for triangular A (..., n, n) and B (..., n, k), or of X A = B for B (..., k, n).
/// Example: for a = `[[2, 0], [1, 4]]` and b = `[[2], [9]]`, `linalg::solve_triangular(a, b, {.upper = false})` is
/// `[[1], [2]]`.
DECLIVITY_API Tensor solve_triangular(const Tensor& a, const Tensor& b, const SolveTriangularOptions& options);
/// X of A X = B for A (..., n, n) and b (..., n, k), or, as in PyTorch, vectors: (n), or the axes of a except the last.
/// `left` = false: X of X A = B for b (..., k, n).
/// Example: for a = `[[2, 1], [1, 3]]` and b = `[4, 7]`, `linalg::solve(a, b)` is `[1, 2]`.
/// @throws ValueError for vectors b with `left` = false
DECLIVITY_API Tensor solve(const Tensor& a, const Tensor& b, bool left = true);
/// solve() and its info, the 1-based index of the first pivot that is 0.
/// Example: for b = `[4, 7]`, `linalg::solve_ex(zeros({2, 2}), b).info` is `1`.
DECLIVITY_API SolutionInfo solve_ex(const Tensor& a, const Tensor& b, bool left = true);
/// Inverse A^-1 of A (..., n, n), with A A^-1 = I.
/// Example: for a = `[[1, 2], [3, 4]]`, `linalg::inv(a)` is `[[-2, 1], [1.5, -0.5]]`.
DECLIVITY_API Tensor inv(const Tensor& a);
/// inv() and its info, the 1-based index of the first pivot that is 0.
/// Example: `linalg::inv_ex(zeros({2, 2})).info` is `1`.
DECLIVITY_API InverseInfo inv_ex(const Tensor& a);
/// Least squares: X (..., n, k) that minimises ||A X - B|| for A (..., m, n) of full rank and B (..., m, k), or vectors
/// with the axes of a except the last; if there are several (m < n), the smallest X.
/// Examples: for a = `[[1, 0], [1, 1], [1, 2]]` and b = `[[1], [3], [4]]`, `linalg::lstsq(a, b).solution` is
/// `[[1.167], [1.5]]`; `linalg::lstsq(a, b).residuals` is `[0.1667]`.
DECLIVITY_API LeastSquares lstsq(const Tensor& a, const Tensor& b);
/// Inverse of a as a map from its last axes to its first `ind`, which have as many elements: the result has the last
/// axes first.
/// Example: for a = `2 * reshape(eye(4), {2, 2, 4})`, `linalg::tensorinv(a).shape()` is `[4, 2, 2]`.
/// @throws ValueError for an ind below 1
DECLIVITY_API Tensor tensorinv(const Tensor& a, std::int64_t ind = 2);
/// x of tensordot(a, x, x.rank()) = b, where the axes `axes` of a are moved to its end first; a has as many elements as
/// the square of those of b.
/// Example: for a = `2 * reshape(eye(4), {2, 2, 4})` and b = `[[2, 4], [6, 8]]`, `linalg::tensorsolve(a, b)` is
/// `[1, 2, 3, 4]`.
DECLIVITY_API Tensor tensorsolve(const Tensor& a, const Tensor& b, const Dims& axes = {});

/// Options of pinv() and matrix_rank().
struct RankOptions {
    std::optional<double> atol = std::nullopt;  ///< 0 if none
    std::optional<double> rtol = std::nullopt;  ///< of the largest; none: max(m, n) eps, or 0 with a positive atol
    bool hermitian = false;                     ///< a is symmetric: only its lower triangle is read
};
/// Moore-Penrose pseudoinverse (..., n, m) of A (..., m, n): singular values of at most max(atol, rtol S_0) count as 0.
/// Example: for a = `[[1, 0], [0, 0], [0, 2]]`, `linalg::pinv(a)` is `[[1, 0, 0], [0, 0, 0.5]]`.
/// @throws ValueError for a negative tolerance
DECLIVITY_API Tensor pinv(const Tensor& a, const RankOptions& options = {});
/// Number (...) of singular values of A (..., m, n) above the tolerance of pinv(); i64, without gradient.
/// Example: for a = `[[1, 2], [2, 4]]`, `linalg::matrix_rank(a)` is `1`.
/// @throws ValueError for a negative tolerance
DECLIVITY_API Tensor matrix_rank(const Tensor& a, const RankOptions& options = {});

// ---- determinants, powers

/// Determinant (...) of A (..., n, n), the product of the pivots of its LU factorisation, with their sign. Its gradient
/// is also defined for singular matrices, up to the rounding errors of the factorisation.
/// Example: for a = `[[1, 2], [3, 4]]`, `linalg::det(a)` is `-2`.
DECLIVITY_API Tensor det(const Tensor& a);
/// Sign, and logarithm of the magnitude, of the determinant of A (..., n, n).
/// Examples: for a = `[[1, 2], [3, 4]]`, `linalg::slogdet(a).sign` is `-1`; `linalg::slogdet(a).logabsdet` is `0.6931`.
DECLIVITY_API SignLogDet slogdet(const Tensor& a);
/// log(det(A)) (...) of A (..., n, n), NaN if the determinant is negative.
/// Examples: for a = `[[2, 0], [0, 5]]`, `linalg::logdet(a)` is `2.303`; `linalg::logdet(a * a - 9)` is `nan`.
DECLIVITY_API Tensor logdet(const Tensor& a);
/// Matrix power A^n of A (..., n, n): the product of n factors A; of -n factors A^-1 if n < 0; the identity for n = 0.
/// For n of at least 0 also of integers.
/// Examples: for a = `[[1, 1], [0, 1]]`, `linalg::matrix_power(a, 5)` is `[[1, 5], [0, 1]]`;
/// `linalg::matrix_power(a, -1)` is `[[1, -1], [0, 1]]`.
DECLIVITY_API Tensor matrix_power(const Tensor& a, std::int64_t n);
/// Matrix exponential I + A + A^2 / 2 + ... of A (..., n, n), by scaling and squaring with a Taylor polynomial (Higham,
/// Functions of Matrices, 10.3). Accurate up to ||A||_1 of 2^15.
/// Example: for a = `[[0, 1], [0, 0]]`, `linalg::matrix_exp(a)` is `[[1, 1], [0, 1]]`.
DECLIVITY_API Tensor matrix_exp(const Tensor& a);

// ---- norms

/// Order of a norm: a number, infinity, or "fro" (Frobenius) or "nuc" (nuclear, the sum of singular values).
class DECLIVITY_API NormOrder {
  public:
    NormOrder() = default;  ///< none: the square root of the sum of squares
    template <class T>
    requires std::is_arithmetic_v<T> NormOrder(T number)  // NOLINT: implicit by design
        : number_(static_cast<double>(number)) {}
    NormOrder(const char* word) : word_(word) {}  // NOLINT
    [[nodiscard]] const std::optional<double>& number() const noexcept { return number_; }
    /// "" for a number.
    [[nodiscard]] const std::string& word() const noexcept { return word_; }
    /// "2", "fro", "none".
    [[nodiscard]] std::string str() const;

  private:
    std::optional<double> number_;
    std::string word_;
};

/// Norm (sum |x|^p)^(1/p) of vectors along any axes, all if none are given, as declivity::norm.
/// Examples: for x = `[[3, -4], [6, 8]]`, `linalg::vector_norm(x, 2, {1})` is `[5, 10]`; `linalg::vector_norm(x, 1)` is
/// `21`.
DECLIVITY_API Tensor vector_norm(const Tensor& x, double p = 2, const Dims& axes = {}, bool keep_axes = false);
/// Deleted to require p before the axes: vector_norm(x, 2, {1}).
Tensor vector_norm(const Tensor& x, std::initializer_list<std::int64_t> axes) = delete;
/// Norm of matrices in two axes: "fro"; "nuc"; inf and -inf, the largest and smallest sum of |x| over a row; 1 and -1,
/// over a column; 2 and -2, the largest and smallest singular value.
/// Examples: for a = `[[3, 0], [4, 0]]`, `linalg::matrix_norm(a)` is `5`; `linalg::matrix_norm(a, 1)` is `7`;
/// `linalg::matrix_norm(a, INFINITY)` is `4`; `linalg::matrix_norm(a, "nuc")` is `5`.
/// @throws ValueError for another order, or other than two axes; ShapeError for 1, -1 or an infinite order of matrices
/// without elements
DECLIVITY_API Tensor matrix_norm(const Tensor& a, const NormOrder& order = "fro", const Dims& axes = {-2, -1},
                                 bool keep_axes = false);
/// vector_norm for one axis, or no axes and x (N); matrix_norm for two, or no axes and x (m, n). Without an order the
/// square root of the sum of squares over the axes, or over all.
/// Examples: for x = `[3, -4]`, `linalg::norm(x, 1)` is `7`; `linalg::norm(diag(x), 2)` is `4`.
/// @throws ShapeError for an order and another number of axes than one or two; ValueError as matrix_norm()
DECLIVITY_API Tensor norm(const Tensor& x, const NormOrder& order = {}, const Dims& axes = {}, bool keep_axes = false);
/// Condition number ||A|| ||A^-1|| (...) of A (..., n, n); without an order, and for 2, the largest singular value of A
/// (..., m, n) divided by the smallest; for -2 its reciprocal.
/// Example: for a = `[[1, 0], [0, 4]]`, `linalg::cond(a)` is `4`.
/// @throws ValueError for another order than that of matrix_norm(); ShapeError for matrices without elements
DECLIVITY_API Tensor cond(const Tensor& a, const NormOrder& order = {});

// Overloads of tensors_of().
std::vector<Tensor> inline tensors_of(const FactorInfo& all) { return {all.factor, all.info}; }
std::vector<Tensor> inline tensors_of(const InverseInfo& all) { return {all.inverse, all.info}; }
std::vector<Tensor> inline tensors_of(const SolutionInfo& all) { return {all.solution, all.info}; }
std::vector<Tensor> inline tensors_of(const LuFactors& all) { return {all.lu, all.pivots}; }
std::vector<Tensor> inline tensors_of(const LuFactorsInfo& all) { return {all.lu, all.pivots, all.info}; }
std::vector<Tensor> inline tensors_of(const Lu& all) { return {all.p, all.l, all.u}; }
std::vector<Tensor> inline tensors_of(const Qr& all) { return {all.q, all.r}; }
std::vector<Tensor> inline tensors_of(const Eigh& all) { return {all.values, all.vectors}; }
std::vector<Tensor> inline tensors_of(const Svd& all) { return {all.u, all.s, all.vh}; }
std::vector<Tensor> inline tensors_of(const SignLogDet& all) { return {all.sign, all.logabsdet}; }
std::vector<Tensor> inline tensors_of(const LeastSquares& all) { return {all.solution, all.residuals}; }

/// @}

}  // namespace declivity::linalg
