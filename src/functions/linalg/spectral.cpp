// Eigenvalues of symmetric matrices and singular values, batched, with their gradients.
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

/// Scales rows, and columns.
Tensor rows_times(const Tensor& factors, const Tensor& x) { return unsqueeze(factors, 2) * x; }
Tensor columns_times(const Tensor& x, const Tensor& factors) { return x * unsqueeze(factors, 1); }

/// x[j] - x[i] at [i][j], and 1 on the diagonal.
Tensor differences(const Tensor& x) {
    return unsqueeze(x, 1) - unsqueeze(x, 2) + identity_like(x, x.size(1), x.size(1));
}

Tensor off_diagonal(const Tensor& x) { return x * (1.0 - identity_like(x, x.size(1), x.size(1))); }

}  // namespace

std::pair<Tensor, Tensor> eigh_parts(const Tensor& a, bool upper) {
    const ops::EigenResults forward = ops::eigh(a.dense_view(), upper, true);
    const ops::LazyArray vectors = transpose(Tensor(forward.vectors)).value();
    // Giles, An extended collection of matrix derivative results, 2008, 3.1.
    const std::vector<Tensor> results = attach_backward(
        "linalg::eigh", {a}, {forward.values, vectors},
        [values = Saved::result(forward.values),
         saved_vectors = Saved::result(vectors)](const GradientContext& context) {
            const Tensor w = context.output(values, "linalg::eigh"),
                         v = context.output(saved_vectors, "linalg::eigh", 1);
            // Symmetrised, like the matrix: the antisymmetric part of the eigenvectors' gradient has no effect.
            const Tensor projected = matmul(transpose(v), context.gradient(1));
            const Tensor scaled = off_diagonal(projected - transpose(projected)) * 0.5 / differences(w);
            return std::vector{matmul(matmul(v, scaled + diag_embed(context.gradient(0))), transpose(v))};
        },
        RuleKind::differentiable);
    return {results[0], results[1]};
}

Tensor eigh_values(const Tensor& a, bool upper) {
    if (!any_requires_grad({a})) return Tensor(ops::eigh(a.dense_view(), upper, false).values);
    const ops::EigenResults forward = ops::eigh(a.dense_view(), upper, true);
    // This holds for equal eigenvalues as well, unlike the gradient of eigenvectors.
    return attach_backward(
        "linalg::eigvalsh", {a}, forward.values,
        [upper, a = Saved(a), saved_vectors = Saved::result(forward.vectors)](const GradientContext& context) {
            const Tensor v = grad_enabled() ? eigh_parts(a.get("linalg::eigvalsh"), upper).second
                                            : transpose(saved_vectors.get("linalg::eigvalsh"));
            return std::vector{matmul(columns_times(v, context.gradient()), transpose(v))};
        },
        RuleKind::differentiable);
}

namespace {

/// Giles 2008, 3.2, for matrices of any shape, with k = min(m, n) vectors.
Tensor svd_gradient(const Tensor& u, const Tensor& s, const Tensor& vh, const Tensor& grad_u, const Tensor& grad_s,
                    const Tensor& grad_vh) {
    const Tensor v = transpose(vh), grad_v = transpose(grad_vh), ut = transpose(u);
    const Tensor squares = differences(s * s);
    const auto scaled = [&](const Tensor& x, const Tensor& gradient) {
        const Tensor projected = matmul(transpose(x), gradient);
        return off_diagonal(projected - transpose(projected)) / squares;
    };
    const Tensor inner = columns_times(scaled(u, grad_u), s) + rows_times(s, scaled(v, grad_v)) + diag_embed(grad_s);
    Tensor grad_a = matmul(matmul(u, inner), vh);
    const std::int64_t m = u.size(1), n = v.size(1), k = s.size(1);
    if (m > k) {
        const Tensor g = columns_times(grad_u, 1.0 / s);
        grad_a = grad_a + matmul(g - matmul(u, matmul(ut, g)), vh);
    }
    if (n > k) {
        const Tensor g = rows_times(1.0 / s, grad_vh);
        grad_a = grad_a + matmul(u, g - matmul(matmul(g, v), vh));
    }
    return grad_a;
}

struct PlainSvd {
    Tensor u, s, v;  // columns
};

/// SVD for m >= n, outside of the graph. @param u_columns number of columns of u
PlainSvd tall_svd(const Tensor& a, std::int64_t u_columns) {
    const ops::SvdResults forward = ops::svd(transpose(a).dense_view(), true);
    const Tensor left_vectors = transpose(Tensor(forward.left));
    // For singular values of 0, or the size of rounding errors, columns are missing or not orthogonal. A QR
    // decomposition by Householder reflections completes them, and keeps the others up to the sign.
    const auto [q, r] = qr_parts(left_vectors, u_columns);
    const Tensor diagonals = diagonal(r, 0, 1, 2);
    const Tensor signs =
        where(diagonals < 0, full({}, -1, {a.dtype(), a.device()}), full({}, 1, {a.dtype(), a.device()}));
    const std::int64_t n = a.size(2);
    Tensor u = columns_times(slice(q, 2, 0, n), signs);
    if (u_columns > n) u = concat({u, slice(q, 2, n, u_columns)}, 2);
    return {u, Tensor(forward.values), transpose(Tensor(forward.right))};
}

}  // namespace

SvdParts svd_parts(const Tensor& a, bool full_matrices) {
    const std::int64_t m = a.size(1), n = a.size(2), k = std::min(m, n);
    PlainSvd plain;
    {
        const NoGrad no_grad;
        const Tensor matrices = a.detach();
        plain =
            m >= n ? tall_svd(matrices, full_matrices ? m : n) : tall_svd(transpose(matrices), full_matrices ? n : m);
        if (m < n) std::swap(plain.u, plain.v);
        plain.v = transpose(plain.v);
    }
    const ops::LazyArray u = plain.u.value(), s = plain.s.value(), vh = plain.v.value();
    const std::vector<Tensor> results = attach_backward(
        "linalg::svd", {a}, {u, s, vh},
        [k, u = Saved::result(u), s = Saved::result(s), vh = Saved::result(vh)](const GradientContext& context) {
            constexpr auto* name = "linalg::svd";
            return std::vector{svd_gradient(slice(context.output(u, name), 2, 0, k), context.output(s, name, 1),
                                            slice(context.output(vh, name, 2), 1, 0, k),
                                            slice(context.gradient(0), 2, 0, k), context.gradient(1),
                                            slice(context.gradient(2), 1, 0, k))};
        },
        RuleKind::differentiable);
    return {results[0], results[1], results[2]};
}

Tensor svd_values(const Tensor& a) {
    if (any_requires_grad({a})) {
        const SvdParts forward = [&] {
            const NoGrad no_grad;
            return svd_parts(a.detach(), false);
        }();
        // This holds for equal singular values and for 0 as well, unlike the gradient of singular vectors.
        return attach_backward(
            "linalg::svdvals", {a}, forward.s.value(),
            [a = Saved(a), u = forward.u, vh = forward.vh](const GradientContext& context) {
                const SvdParts parts =
                    grad_enabled() ? svd_parts(a.get("linalg::svdvals"), false) : SvdParts{u, {}, vh};
                return std::vector{matmul(columns_times(parts.u, context.gradient()), parts.vh)};
            },
            RuleKind::differentiable);
    }
    const Tensor columns = a.size(1) >= a.size(2) ? transpose(a) : a;
    return Tensor(ops::svd(columns.dense_view(), false).values);
}

}  // namespace declivity::detail
