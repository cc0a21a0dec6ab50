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
Tensor divided(const Tensor& a, const Tensor& x, bool upper, bool transposed, bool unit = false) {
    return triangular_solved(a, x, {.upper = upper, .transposed = transposed, .unit = unit});
}
/// X A^-1 or X A^-T.
Tensor divided_right(const Tensor& x, const Tensor& a, bool upper, bool transposed, bool unit = false) {
    return transpose(divided(a, transpose(x), upper, !transposed, unit));
}

}  // namespace

std::pair<Tensor, Tensor> cholesky_factor(const Tensor& a) {
    const ops::CholeskyResults made = ops::cholesky(a.dense_view());
    // Murray, Differentiation of the Cholesky decomposition, 2016: for symmetric A.
    const std::vector<Tensor> results = attach_backward(
        "linalg::cholesky", {a}, {made.factor, made.info},
        [kept = Saved::result(made.factor)](const GradientContext& context) {
            const Tensor l = context.output(kept, "linalg::cholesky");
            const Tensor inner = half_lower(matmul(transpose(l), tril(context.gradient())));
            const Tensor both = divided_right(divided(l, inner, false, true), l, false, false);
            return std::vector{(both + transpose(both)) * 0.5};
        },
        RuleKind::differentiable);
    return {results[0], results[1]};
}

Tensor triangular_solved(const Tensor& a, const Tensor& b, const ops::TriangularSolve& how) {
    const ops::LazyArray x = ops::triangular_solve(a.dense_view(), b.dense_view(), how);
    return attach_backward(
        "linalg::solve_triangular", {a, b}, x,
        [how, a = Saved(a), kept = Saved::result(x)](const GradientContext& context) {
            const Tensor triangle = a.get("linalg::solve_triangular");
            ops::TriangularSolve turned = how;
            turned.transposed = !how.transposed;
            const Tensor of_b = triangular_solved(triangle, context.gradient(), turned);
            if (!context.needs(0)) return std::vector{Tensor(), of_b};
            const Tensor solution = context.output(kept, "linalg::solve_triangular");
            const Tensor whole = how.transposed ? matmul(solution, transpose(of_b)) : matmul(of_b, transpose(solution));
            const int off = how.unit ? 1 : 0;
            return std::vector{-(how.upper ? triu(whole, off) : tril(whole, -off)), of_b};
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
    Tensor of_l = tril(g_square, -1), of_u = triu(g_square), more;
    if (m > n) {
        more = divided_right(slice(g, 1, k, m), u, true, true);  // of A2
        of_u = of_u - triu(matmul(transpose(slice(lu, 1, k, m)), more));
    }
    if (n > m) {
        more = divided(l, slice(g, 2, k, n), false, true, true);
        of_l = of_l - tril(matmul(more, transpose(slice(lu, 2, k, n))), -1);
    }
    const Tensor inner = tril(matmul(transpose(l), of_l), -1) + triu(matmul(of_u, transpose(u)));
    Tensor all = divided_right(divided(l, inner, false, true, true), u, true, true);
    if (more.defined()) all = concat({all, more}, m > n ? 1 : 2);
    // Row i of L U is row rows[i] of A.
    const Tensor back = argsort(rows, 1);
    return take_along_axis(all, unsqueeze(back, 2), 1);
}

}  // namespace

LuParts lu_parts(const Tensor& a) {
    const ops::LuResults made = ops::lu_factor(a.dense_view());
    const Tensor rows = Tensor(made.rows).to(DType::i64);
    const std::vector<Tensor> results = attach_backward(
        "linalg::lu_factor", {a}, {made.lu, made.pivots, made.info},
        [rows, kept = Saved::result(made.lu)](const GradientContext& context) {
            return std::vector{lu_gradient(context.output(kept, "linalg::lu_factor"), rows, context.gradient())};
        },
        RuleKind::differentiable);
    return {results[0], results[1], rows, results[2]};
}

Tensor rows_of_pivots(const Tensor& pivots, std::int64_t m) {
    return Tensor(ops::lu_rows(pivots.detach().to(DType::i32).dense_view(), m)).to(DType::i64);
}

Tensor lu_solved(const Tensor& lu, const Tensor& rows, const Tensor& b, bool adjoint) {
    if (!adjoint) {
        const Tensor moved = take_along_axis(b, unsqueeze(rows, 2), 1);
        return divided(lu, divided(lu, moved, false, false, true), true, false);
    }
    const Tensor moved = divided(lu, divided(lu, b, true, true), false, true, true);
    return take_along_axis(moved, unsqueeze(argsort(rows, 1), 2), 1);
}

Tensor solved(const char* name, const Tensor& a, const Tensor& b, Tensor* info) {
    ops::LazyArray x;
    LuParts parts;
    {
        const NoGrad no_grad;
        parts = lu_parts(a.detach());
        x = lu_solved(parts.lu, parts.rows, b.detach(), false).value();
    }
    if (info != nullptr) *info = parts.info;
    return attach_backward(
        name, {a, b}, x,
        [name, a = Saved(a), lu = parts.lu, rows = parts.rows,
         kept = Saved::result(x)](const GradientContext& context) {
            const Tensor& g = context.gradient();
            const Tensor of_b =
                grad_enabled() ? solved(name, transpose(a.get(name)), g, nullptr) : lu_solved(lu, rows, g, true);
            return std::vector{context.needs(0) ? -matmul(of_b, transpose(context.output(kept, name))) : Tensor(),
                               of_b};
        },
        RuleKind::differentiable);
}

// ---- QR

namespace {

/// Walter, Lehmann, Algorithmic differentiation of linear algebra functions, 2010, for m >= n: A = Q R.
Tensor qr_gradient_tall(const Tensor& q, const Tensor& r, const Tensor& of_q, const Tensor& of_r) {
    const Tensor m = matmul(r, transpose(of_r)) - matmul(transpose(of_q), q);
    const Tensor symmetric = tril(m) + transpose(tril(m, -1));
    return divided_right(of_q + matmul(q, symmetric), r, true, true);
}

Tensor qr_gradient(const Tensor& q, const Tensor& r, const Tensor& of_q, const Tensor& of_r) {
    const std::int64_t m = q.size(1), n = r.size(2);
    if (m >= n) return qr_gradient_tall(q, r, of_q, of_r);
    // A = (X, Y) = Q (U, V): V = Q^T Y.
    const Tensor of_v = slice(of_r, 2, m, n), v = slice(r, 2, m, n);
    const Tensor y = matmul(q, v);
    const Tensor of_x =
        qr_gradient_tall(q, slice(r, 2, 0, m), of_q + matmul(y, transpose(of_v)), triu(slice(of_r, 2, 0, m)));
    return concat({of_x, matmul(q, of_v)}, 2);
}

}  // namespace

Tensor qr_r(const Tensor& a) {
    const NoGrad no_grad;
    const Tensor work(ops::qr_factor(a.dense_view()).work);
    return triu(slice(work, 1, 0, std::min(a.size(1), a.size(2))));
}

std::pair<Tensor, Tensor> qr_parts(const Tensor& a, std::int64_t columns) {
    const ops::QrResults made = ops::qr_factor(a.dense_view());
    const std::int64_t m = a.size(1), n = a.size(2), least = std::min(m, n);
    const Tensor q(ops::qr_form(made.work.view(), made.taus.view(), columns));
    Tensor r;
    {
        const NoGrad no_grad;
        r = triu(slice(Tensor(made.work), 1, 0, columns));
    }
    if (columns > least) return {q, r};
    const std::vector<Tensor> results = attach_backward(
        "linalg::qr", {a}, {q.value(), r.value()},
        [of_q = Saved::result(q.value()), of_r = Saved::result(r.value())](const GradientContext& context) {
            return std::vector{qr_gradient(context.output(of_q, "linalg::qr"), context.output(of_r, "linalg::qr", 1),
                                           context.gradient(0), triu(context.gradient(1)))};
        },
        RuleKind::differentiable);
    return {results[0], results[1]};
}

}  // namespace declivity::detail
