// Cholesky factorisation, triangular systems, LU and QR of batches of matrices, with their gradients.
#include <algorithm>
#include <utility>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/ops/linalg.hpp>
#include <declivity/tensor/creation.hpp>

#include "matrices.hpp"
#include "tensor/tensor_state.hpp"

namespace declivity::detail {
namespace {

/// The lower triangle with half of the diagonal.
Tensor half_lower(const Tensor& x) { return (tril(x) + tril(x, -1)) * 0.5; }

/// A^-1 X or A^-T X for triangular A.
Tensor solve_left(const Tensor& a, const Tensor& x, bool upper, bool transposed, bool unit = false) {
    return solve_triangular(a, x, {.upper = upper, .transposed = transposed, .unit = unit});
}
/// X A^-1 or X A^-T.
Tensor solve_right(const Tensor& x, const Tensor& a, bool upper, bool transposed, bool unit = false) {
    return transpose(solve_left(a, transpose(x), upper, !transposed, unit));
}

}  // namespace

std::pair<Tensor, Tensor> cholesky_factor(const Tensor& a) {
    const ops::CholeskyResults forward = ops::cholesky(a.dense_view());
    // Murray, Differentiation of the Cholesky decomposition, 2016: for symmetric A.
    const std::vector<Tensor> results = attach_backward(
        "linalg::cholesky", {a}, {forward.factor, forward.info},
        [saved_factor = Saved::result(forward.factor)](const GradientContext& context) {
            const Tensor l = context.output(saved_factor, "linalg::cholesky");
            const Tensor inner = half_lower(matmul(transpose(l), tril(context.gradient())));
            const Tensor grad_a = solve_right(solve_left(l, inner, false, true), l, false, false);
            return std::vector{(grad_a + transpose(grad_a)) * 0.5};
        },
        RuleKind::differentiable);
    return {results[0], results[1]};
}

Tensor solve_triangular(const Tensor& a, const Tensor& b, const ops::TriangularSolve& options) {
    const ops::LazyArray x = ops::triangular_solve(a.dense_view(), b.dense_view(), options);
    return attach_backward(
        "linalg::solve_triangular", {a, b}, x,
        [options, a = Saved(a), saved_solution = Saved::result(x)](const GradientContext& context) {
            const Tensor triangle = a.get("linalg::solve_triangular");
            ops::TriangularSolve adjoint = options;
            adjoint.transposed = !options.transposed;
            const Tensor grad_b = solve_triangular(triangle, context.gradient(), adjoint);
            if (!context.needs(0)) return std::vector{Tensor(), grad_b};
            const Tensor solution = context.output(saved_solution, "linalg::solve_triangular");
            const Tensor outer_product =
                options.transposed ? matmul(solution, transpose(grad_b)) : matmul(grad_b, transpose(solution));
            const int offset = options.unit ? 1 : 0;
            return std::vector{-(options.upper ? triu(outer_product, offset) : tril(outer_product, -offset)), grad_b};
        },
        RuleKind::differentiable);
}

// ---- LU

namespace {

/// Gradient of A = P L U from those of L (m, k), of which the part below the diagonal counts, and U (k, n). The square
/// part follows de Hoog et al. 2011; below it L2 = A2 U^-1, to its right U2 = L^-1 A2.
Tensor lu_gradient(const Tensor& lu, const Tensor& rows, const Tensor& g) {
    const std::int64_t m = lu.size(1), n = lu.size(2), k = std::min(m, n);
    const Tensor square = slice(slice(lu, 1, 0, k), 2, 0, k);
    const Tensor l = tril(square, -1) + identity_like(lu, k, k), u = triu(square);
    const Tensor g_square = slice(slice(g, 1, 0, k), 2, 0, k);
    Tensor grad_l = tril(g_square, -1), grad_u = triu(g_square), rest;
    if (m > n) {
        rest = solve_right(slice(g, 1, k, m), u, true, true);  // of A2
        grad_u = grad_u - triu(matmul(transpose(slice(lu, 1, k, m)), rest));
    }
    if (n > m) {
        rest = solve_left(l, slice(g, 2, k, n), false, true, true);
        grad_l = grad_l - tril(matmul(rest, transpose(slice(lu, 2, k, n))), -1);
    }
    const Tensor inner = tril(matmul(transpose(l), grad_l), -1) + triu(matmul(grad_u, transpose(u)));
    Tensor grad_a = solve_right(solve_left(l, inner, false, true, true), u, true, true);
    if (rest.defined()) grad_a = concat({grad_a, rest}, m > n ? 1 : 2);
    // Row i of L U is row rows[i] of A.
    const Tensor inverse = argsort(rows, 1);
    return take_along_axis(grad_a, unsqueeze(inverse, 2), 1);
}

}  // namespace

LuParts lu_parts(const Tensor& a) {
    const ops::LuResults forward = ops::lu_factor(a.dense_view());
    const Tensor rows = Tensor(forward.permutation).to(DType::i64);
    const std::vector<Tensor> results = attach_backward(
        "linalg::lu_factor", {a}, {forward.lu, forward.pivots, forward.info},
        [rows, saved_lu = Saved::result(forward.lu)](const GradientContext& context) {
            return std::vector{lu_gradient(context.output(saved_lu, "linalg::lu_factor"), rows, context.gradient())};
        },
        RuleKind::differentiable);
    return {results[0], results[1], rows, results[2]};
}

Tensor rows_of_pivots(const Tensor& pivots, std::int64_t m) {
    return Tensor(ops::lu_permutation(pivots.detach().to(DType::i32).dense_view(), m)).to(DType::i64);
}

Tensor solve_with_lu(const Tensor& lu, const Tensor& rows, const Tensor& b, bool adjoint) {
    if (!adjoint) {
        const Tensor permuted = take_along_axis(b, unsqueeze(rows, 2), 1);
        return solve_left(lu, solve_left(lu, permuted, false, false, true), true, false);
    }
    const Tensor permuted = solve_left(lu, solve_left(lu, b, true, true), false, true, true);
    return take_along_axis(permuted, unsqueeze(argsort(rows, 1), 2), 1);
}

Tensor solve(const char* name, const Tensor& a, const Tensor& b, Tensor* info) {
    ops::LazyArray x;
    LuParts parts;
    {
        const NoGrad no_grad;
        parts = lu_parts(a.detach());
        x = solve_with_lu(parts.lu, parts.permutation, b.detach(), false).value();
    }
    if (info != nullptr) *info = parts.info;
    return attach_backward(
        name, {a, b}, x,
        [name, a = Saved(a), lu = parts.lu, rows = parts.permutation,
         saved_solution = Saved::result(x)](const GradientContext& context) {
            const Tensor& g = context.gradient();
            const Tensor grad_b =
                grad_enabled() ? solve(name, transpose(a.get(name)), g, nullptr) : solve_with_lu(lu, rows, g, true);
            return std::vector{
                context.needs(0) ? -matmul(grad_b, transpose(context.output(saved_solution, name))) : Tensor(), grad_b};
        },
        RuleKind::differentiable);
}

// ---- QR

namespace {

/// Walter, Lehmann, Algorithmic differentiation of linear algebra functions, 2010, for m >= n: A = Q R.
Tensor qr_gradient_tall(const Tensor& q, const Tensor& r, const Tensor& grad_q, const Tensor& grad_r) {
    const Tensor m = matmul(r, transpose(grad_r)) - matmul(transpose(grad_q), q);
    const Tensor symmetric = tril(m) + transpose(tril(m, -1));
    return solve_right(grad_q + matmul(q, symmetric), r, true, true);
}

Tensor qr_gradient(const Tensor& q, const Tensor& r, const Tensor& grad_q, const Tensor& grad_r) {
    const std::int64_t m = q.size(1), n = r.size(2);
    if (m >= n) return qr_gradient_tall(q, r, grad_q, grad_r);
    // A = (X, Y) = Q (U, V): V = Q^T Y.
    const Tensor grad_v = slice(grad_r, 2, m, n), v = slice(r, 2, m, n);
    const Tensor y = matmul(q, v);
    const Tensor grad_x =
        qr_gradient_tall(q, slice(r, 2, 0, m), grad_q + matmul(y, transpose(grad_v)), triu(slice(grad_r, 2, 0, m)));
    return concat({grad_x, matmul(q, grad_v)}, 2);
}

}  // namespace

Tensor qr_r(const Tensor& a) {
    const NoGrad no_grad;
    const Tensor work(ops::qr_factor(a.dense_view()).work);
    return triu(slice(work, 1, 0, std::min(a.size(1), a.size(2))));
}

std::pair<Tensor, Tensor> qr_parts(const Tensor& a, std::int64_t columns) {
    const ops::QrResults forward = ops::qr_factor(a.dense_view());
    const std::int64_t m = a.size(1), n = a.size(2), k = std::min(m, n);
    const Tensor q(ops::qr_form(forward.work.view(), forward.taus.view(), columns));
    Tensor r;
    {
        const NoGrad no_grad;
        r = triu(slice(Tensor(forward.work), 1, 0, columns));
    }
    if (columns > k) return {q, r};
    const std::vector<Tensor> results = attach_backward(
        "linalg::qr", {a}, {q.value(), r.value()},
        [saved_q = Saved::result(q.value()), saved_r = Saved::result(r.value())](const GradientContext& context) {
            return std::vector{qr_gradient(context.output(saved_q, "linalg::qr"),
                                           context.output(saved_r, "linalg::qr", 1), context.gradient(0),
                                           triu(context.gradient(1)))};
        },
        RuleKind::differentiable);
    return {results[0], results[1]};
}

}  // namespace declivity::detail
