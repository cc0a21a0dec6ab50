// Layer 2. Factorisations of matrices and what is solved with them: one work-group for each matrix of a batch. All
// wait until they are needed, and none reads an element on the host: a matrix that has no such factorisation gives NaN,
// and says so in `info`.
#pragma once

#include <cstdint>

#include <declivity/ops/lazy_array.hpp>
#include <declivity/ops/view.hpp>

namespace declivity::ops {

/// Matrices are f32 or f64, dense, (batch, rows, columns).

struct CholeskyResults {
    LazyArray factor;  ///< (batch, n, n), lower
    LazyArray info;    ///< (batch), i32: 0, or which leading minor, from 1 on, is the first that is not positive
};
/// Reads the lower triangle of a (batch, n, n).
DECLIVITY_API CholeskyResults cholesky(const View& a);

struct TriangularSolve {
    bool upper = false;       ///< which triangle of a is read
    bool transposed = false;  ///< solves with its transposed matrix
    bool unit = false;        ///< its diagonal counts as 1
};
/// X of A X = B for a (batch, n, n) and b (batch, n, k).
DECLIVITY_API LazyArray triangular_solve(const View& a, const View& b, const TriangularSolve& how);

struct LuResults {
    LazyArray lu;      ///< (batch, m, n): U, and below its diagonal L
    LazyArray pivots;  ///< (batch, min(m, n)), i32: the row, from 1 on, that changed places with row i
    LazyArray rows;    ///< (batch, m), i32: the row of a that is row i of L U
    LazyArray info;    ///< (batch), i32: 0, or which pivot, from 1 on, is the first that is 0
};
DECLIVITY_API LuResults lu_factor(const View& a);
/// rows (batch, m) of pivots (batch, k), i32, k <= m.
DECLIVITY_API LazyArray lu_rows(const View& pivots, std::int64_t m);

struct QrResults {
    LazyArray work;  ///< (batch, m, n): R, and below its diagonal Householder vectors
    LazyArray taus;  ///< (batch, min(m, n))
};
DECLIVITY_API QrResults qr_factor(const View& a);
/// The first `columns` (min(m, n) to m) columns of Q: (batch, m, columns).
DECLIVITY_API LazyArray qr_form(const View& work, const View& taus, std::int64_t columns);

struct EigenResults {
    LazyArray values;   ///< (batch, n), rising
    LazyArray vectors;  ///< (batch, n, n), one a row; none where only values are wanted
};
/// Of symmetric matrices, of which one triangle is read.
DECLIVITY_API EigenResults eigh(const View& a, bool upper, bool vectors);

struct SvdResults {
    LazyArray values;  ///< (batch, n), falling
    LazyArray left;    ///< (batch, n, m), one a row, 0 for a value of 0; none where only values are wanted
    LazyArray right;   ///< (batch, n, n), one a row
};
/// @param columns (batch, n, m), n <= m: the columns of the matrices, as rows
DECLIVITY_API SvdResults svd(const View& columns, bool vectors);

/// Of integers, modulo 2^bits: a (batch, m, k), b (batch, k, n), strided. (batch, m, n).
DECLIVITY_API LazyArray matmul_of_integers(const View& a, const View& b);

}  // namespace declivity::ops
