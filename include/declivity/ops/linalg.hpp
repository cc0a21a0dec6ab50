// Layer 2. Matrix factorisations and solvers: one work-group for each matrix of a batch. All are deferred, and none
// reads an element on the host: a matrix without such a factorisation gives NaN and a nonzero `info`.
#pragma once

#include <cstdint>

#include <declivity/ops/lazy_array.hpp>
#include <declivity/ops/view.hpp>

namespace declivity::ops {

/// @addtogroup ops
/// @{

// Matrices are f32 or f64, dense, (batch, rows, columns).

/// Results of cholesky().
struct CholeskyResults {
    LazyArray factor;  ///< (batch, n, n), lower
    LazyArray info;    ///< (batch), i32: 0, or the 1-based order of the first leading minor that is not positive
};
/// Cholesky factorisation L L^T = A of a (batch, n, n), of which the lower triangle is read.
DECLIVITY_API CholeskyResults cholesky(const View& a);

struct TriangularSolve {
    bool upper = false;       ///< which triangle of a is read
    bool transposed = false;  ///< solves with the transposed matrix
    bool unit = false;        ///< unit diagonal, which is not read
};
/// X of A X = B for a (batch, n, n) and b (batch, n, k).
DECLIVITY_API LazyArray triangular_solve(const View& a, const View& b, const TriangularSolve& options);

struct LuResults {
    LazyArray lu;           ///< (batch, m, n): U, and below its diagonal L
    LazyArray pivots;       ///< (batch, min(m, n)), i32: 1-based index of the row exchanged with row i
    LazyArray permutation;  ///< (batch, m), i32: the row of a that is row i of L U
    LazyArray info;         ///< (batch), i32: 0, or the 1-based index of the first pivot that is 0
};
/// LU factorisation with partial pivoting of a (batch, m, n).
DECLIVITY_API LuResults lu_factor(const View& a);
/// Row permutation (batch, m) of pivots (batch, k), i32, k <= m.
DECLIVITY_API LazyArray lu_permutation(const View& pivots, std::int64_t m);

struct QrResults {
    LazyArray work;  ///< (batch, m, n): R, and below its diagonal Householder vectors
    LazyArray taus;  ///< (batch, min(m, n))
};
/// QR factorisation of a (batch, m, n) by Householder reflections.
DECLIVITY_API QrResults qr_factor(const View& a);
/// The first `columns` (min(m, n) to m) columns of Q: (batch, m, columns).
DECLIVITY_API LazyArray qr_form(const View& work, const View& taus, std::int64_t columns);

struct EigenResults {
    LazyArray values;   ///< (batch, n), ascending
    LazyArray vectors;  ///< (batch, n, n), one per row; none if only values are requested
};
/// Eigendecomposition of symmetric matrices, of which one triangle is read.
DECLIVITY_API EigenResults eigh(const View& a, bool upper, bool vectors);

struct SvdResults {
    LazyArray values;  ///< (batch, n), descending
    LazyArray left;    ///< (batch, n, m), one per row, 0 for a singular value of 0; none if only values are requested
    LazyArray right;   ///< (batch, n, n), one per row
};
/// Singular value decomposition A = U diag(S) V^T by Jacobi rotations; without `vectors` only S.
/// @param columns (batch, n, m), n <= m: the columns of the matrices, stored as rows
DECLIVITY_API SvdResults svd(const View& columns, bool vectors);

/// Integer matrix product modulo 2^bits: a (batch, m, k), b (batch, k, n), any strides -> (batch, m, n).
DECLIVITY_API LazyArray integer_matmul(const View& a, const View& b);

// ---- deprecated names of version 0.1

[[deprecated("ops::integer_matmul")]] inline LazyArray matmul_of_integers(const View& a, const View& b) {
    return integer_matmul(a, b);
}

[[deprecated("ops::lu_permutation")]] inline LazyArray lu_rows(const View& pivots, std::int64_t m) {
    return lu_permutation(pivots, m);
}

/// @}

}  // namespace declivity::ops
