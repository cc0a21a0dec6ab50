// Layer 3. Linear algebra over matrices in the last two axes, (..., m, n); the axes in front are a batch. Of f32 and
// f64; f16 and bf16 are computed in f32 and rounded.
//
// Nothing here waits for the device, so that no matrix can be refused for its elements: where a factorisation does not
// exist, as of a singular matrix, elements are NaN or infinite. The functions `..._ex` give `info` beside it, i32 for
// each matrix: 0, or what went wrong. Gradients are the published ones (Giles 2008; Walter, Lehmann 2010; Seeger et al.
// 2017): where they are not defined, as for equal eigenvalues, they are what the formula gives, NaN or infinite.
//
// Up to some hundred rows a matrix is worked on by one work-group; larger ones are right, but take long.
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

struct FactorInfo {
    Tensor factor;
    Tensor info;  ///< i32
};
struct InverseInfo {
    Tensor inverse;
    Tensor info;  ///< i32
};
struct SolutionInfo {
    Tensor solution;
    Tensor info;  ///< i32
};
struct LuFactors {
    Tensor lu;      ///< (..., m, n): U, and below its diagonal L, whose own diagonal is 1
    Tensor pivots;  ///< (..., min(m, n)), i32: the row, from 1 on, that changed places with row i
};
struct LuFactorsInfo {
    Tensor lu, pivots;
    Tensor info;  ///< i32: 0, or which pivot, from 1 on, is the first that is 0
};
struct Lu {
    Tensor p, l, u;  ///< (..., m, m), (..., m, k) and (..., k, n) for k = min(m, n)
};
struct Qr {
    Tensor q, r;
};
struct Eigh {
    Tensor values;   ///< (..., n), rising
    Tensor vectors;  ///< (..., n, n), as columns
};
struct Svd {
    Tensor u;   ///< (..., m, k), as columns, for k = min(m, n); (..., m, m) of full matrices
    Tensor s;   ///< (..., k), falling
    Tensor vh;  ///< (..., k, n), as rows; (..., n, n) of full matrices
};
struct SignLogDet {
    Tensor sign;       ///< -1, 0 or 1
    Tensor logabsdet;  ///< minus infinity for 0
};
struct LeastSquares {
    Tensor solution;   ///< (..., n, k)
    Tensor residuals;  ///< (..., k): squared lengths of A X - B for m > n, otherwise (0)
};

// ---- factorisations

/// L of L L^T = A for symmetric, positive definite A, of which the lower triangle is read; `upper`: L^T, of the upper
/// one. NaN from the first leading minor on that is not positive; info says which, from 1 on.
DECLIVITY_API Tensor cholesky(const Tensor& a, bool upper = false);
DECLIVITY_API FactorInfo cholesky_ex(const Tensor& a, bool upper = false);
/// X of A X = B, and the inverse of A, for the factor of A. b (..., n, k).
DECLIVITY_API Tensor cholesky_solve(const Tensor& b, const Tensor& factor, bool upper = false);
DECLIVITY_API Tensor cholesky_inverse(const Tensor& factor, bool upper = false);

/// P L U = A, with the largest pivot of each column. A matrix of less than full rank has zeros on the diagonal of U.
DECLIVITY_API LuFactors lu_factor(const Tensor& a);
DECLIVITY_API LuFactorsInfo lu_factor_ex(const Tensor& a);
DECLIVITY_API Lu lu(const Tensor& a);
/// P, L and U of what lu_factor gave.
DECLIVITY_API Lu lu_unpack(const Tensor& lu, const Tensor& pivots);
/// X of A X = B for what lu_factor gave of A; `left` = false: of X A = B; `adjoint`: of A^T.
DECLIVITY_API Tensor lu_solve(const Tensor& lu, const Tensor& pivots, const Tensor& b, bool left = true,
                              bool adjoint = false);

/// Q R = A with orthonormal columns of Q, by Householder's reflections.
/// @param mode "reduced": q (..., m, k), r (..., k, n) for k = min(m, n); "complete": (..., m, m), (..., m, n), without
/// gradients for m > n; "r": no q, no gradients
DECLIVITY_API Qr qr(const Tensor& a, std::string_view mode = "reduced");

/// V diag(values) V^T = A of symmetric A, of which one triangle is read, by Jacobi's rotations. The sign of a vector,
/// and which vectors stand for equal values, is left open: functions that depend on that have no gradient.
/// @param uplo "L" or "U"
DECLIVITY_API Eigh eigh(const Tensor& a, std::string_view uplo = "L");
DECLIVITY_API Tensor eigvalsh(const Tensor& a, std::string_view uplo = "L");

/// U diag(S) V^T = A by Jacobi's rotations. Signs are left open as of eigh. No gradient flows to the columns and rows
/// that only full matrices have.
DECLIVITY_API Svd svd(const Tensor& a, bool full_matrices = true);
DECLIVITY_API Tensor svdvals(const Tensor& a);

// ---- equations

struct SolveTriangularOptions {
    bool upper;                  ///< which triangle is read
    bool left = true;            ///< false: X A = B
    bool unitriangular = false;  ///< the diagonal counts as 1, and is not read
};
/// X of A X = B for triangular A; the axes in front broadcast.
DECLIVITY_API Tensor solve_triangular(const Tensor& a, const Tensor& b, const SolveTriangularOptions& options);
/// X of A X = B (X A = B); b (..., n, k), or, as PyTorch has it, of vectors: (n), or of the axes of a but the last.
DECLIVITY_API Tensor solve(const Tensor& a, const Tensor& b, bool left = true);
DECLIVITY_API SolutionInfo solve_ex(const Tensor& a, const Tensor& b, bool left = true);
DECLIVITY_API Tensor inv(const Tensor& a);
DECLIVITY_API InverseInfo inv_ex(const Tensor& a);
/// The X of the smallest ||A X - B||, of full rank of A; of several (m < n) the smallest X.
DECLIVITY_API LeastSquares lstsq(const Tensor& a, const Tensor& b);
/// The inverse of a as a matrix from its last axes to its first `ind`; and x of tensordot(a, x, x.rank()) = b, for
/// which `axes` of a move to its end first.
DECLIVITY_API Tensor tensorinv(const Tensor& a, std::int64_t ind = 2);
DECLIVITY_API Tensor tensorsolve(const Tensor& a, const Tensor& b, const Dims& axes = {});

struct RankOptions {
    std::optional<double> atol = std::nullopt;  ///< 0
    std::optional<double> rtol = std::nullopt;  ///< of the largest; max(m, n) eps, or 0 beside a positive atol
    bool hermitian = false;                     ///< a is symmetric: its lower triangle alone is read
};
/// Moore's and Penrose's inverse: singular values of at most max(atol, rtol S_0) count as 0.
DECLIVITY_API Tensor pinv(const Tensor& a, const RankOptions& options = {});
/// How many singular values are above that; i64.
DECLIVITY_API Tensor matrix_rank(const Tensor& a, const RankOptions& options = {});

// ---- determinants, powers

/// Its gradient is defined for singular matrices as well, and is as exact as rounding errors of the factorisation let
/// it be.
DECLIVITY_API Tensor det(const Tensor& a);
/// Sign, and logarithm of the magnitude.
DECLIVITY_API SignLogDet slogdet(const Tensor& a);
/// log(det(a)), NaN where that is negative.
DECLIVITY_API Tensor logdet(const Tensor& a);
/// A A ... A; of negative n that of the inverse; of 0 the identity.
DECLIVITY_API Tensor matrix_power(const Tensor& a, std::int64_t n);
/// exp(A) = I + A + A^2 / 2 + ..., by Taylor's polynomial of a scaled matrix that is squared again (Higham, Functions
/// of Matrices, 10.3). Right up to ||A||_1 of 2^15.
DECLIVITY_API Tensor matrix_exp(const Tensor& a);

// ---- norms

/// A number, infinity, or a word: "fro" (Frobenius), "nuc" (the sum of singular values).
class DECLIVITY_API NormOrder {
  public:
    NormOrder() = default;  ///< none: the root of the sum of squares
    template <class T>
    requires std::is_arithmetic_v<T> NormOrder(T number)  // NOLINT: that is its purpose
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

/// (sum |x|^p)^(1/p), as declivity::norm.
DECLIVITY_API Tensor vector_norm(const Tensor& x, double p = 2, const Dims& axes = {}, bool keep_axes = false);
/// Axes stand behind p: vector_norm(x, 2, {1}).
Tensor vector_norm(const Tensor& x, std::initializer_list<std::int64_t> axes) = delete;
/// Of matrices in two axes: "fro"; "nuc"; inf and -inf, the largest and smallest sum of |x| along rows; 1 and -1, along
/// columns; 2 and -2, the largest and smallest singular value.
DECLIVITY_API Tensor matrix_norm(const Tensor& a, const NormOrder& order = "fro", const Dims& axes = {-2, -1},
                                 bool keep_axes = false);
/// That of a vector for one axis, or none and x (N); that of matrices for two, or none and x (m, n). Without an order
/// the root of the sum of squares over the axes, or of all.
DECLIVITY_API Tensor norm(const Tensor& x, const NormOrder& order = {}, const Dims& axes = {}, bool keep_axes = false);
/// ||A|| ||A^-1||; without an order, and for 2 and -2, by singular values.
DECLIVITY_API Tensor cond(const Tensor& a, const NormOrder& order = {});

// Lists of their tensors.
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

}  // namespace declivity::linalg
