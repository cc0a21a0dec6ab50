// Functions of matrices as cases of the catalogue, with plain C++ references.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <declivity/functions/functions.hpp>
#include <declivity/functions/linalg.hpp>
#include <declivity/functions/products.hpp>
#include <declivity/tensor/creation.hpp>
#include <tests/functions/catalogue/case.hpp>

namespace declivity::test::catalogue {

/// A matrix on the host.
struct HostMatrix {
    std::int64_t m = 0, n = 0;
    Values elements;

    HostMatrix(std::int64_t rows, std::int64_t columns)
        : m(rows), n(columns), elements(static_cast<std::size_t>(rows * columns)) {}
    HostMatrix(std::int64_t rows, std::int64_t columns, Values row_major)
        : m(rows), n(columns), elements(std::move(row_major)) {}
    double& operator()(std::int64_t i, std::int64_t j) { return elements[static_cast<std::size_t>(i * n + j)]; }
    double operator()(std::int64_t i, std::int64_t j) const { return elements[static_cast<std::size_t>(i * n + j)]; }
};

inline HostMatrix host_matrix(std::int64_t m, std::int64_t n,
                              const std::function<double(std::int64_t, std::int64_t)>& element) {
    HostMatrix result(m, n);
    for (std::int64_t i = 0; i < m; ++i)
        for (std::int64_t j = 0; j < n; ++j) result(i, j) = element(i, j);
    return result;
}
inline HostMatrix transposed(const HostMatrix& a) {
    return host_matrix(a.n, a.m, [&](auto i, auto j) { return a(j, i); });
}
inline HostMatrix identity(std::int64_t n) {
    return host_matrix(n, n, [](auto i, auto j) { return i == j ? 1.0 : 0.0; });
}
inline HostMatrix operator*(const HostMatrix& a, const HostMatrix& b) {
    return host_matrix(a.m, b.n, [&](auto i, auto j) {
        double sum = 0;
        for (std::int64_t k = 0; k < a.n; ++k) sum += a(i, k) * b(k, j);
        return sum;
    });
}
inline HostMatrix operator*(double f, const HostMatrix& a) {
    return host_matrix(a.m, a.n, [&](auto i, auto j) { return f * a(i, j); });
}
inline HostMatrix operator+(const HostMatrix& a, const HostMatrix& b) {
    return host_matrix(a.m, a.n, [&](auto i, auto j) { return a(i, j) + b(i, j); });
}
inline HostMatrix lower(const HostMatrix& a, std::int64_t diagonal = 0) {
    return host_matrix(a.m, a.n, [&](auto i, auto j) { return j <= i + diagonal ? a(i, j) : 0.0; });
}
inline HostMatrix upper(const HostMatrix& a, std::int64_t diagonal = 0) {
    return host_matrix(a.m, a.n, [&](auto i, auto j) { return j >= i + diagonal ? a(i, j) : 0.0; });
}

/// The inverse, and the determinant, by Gauss-Jordan elimination.
inline std::pair<HostMatrix, double> inverse_and_determinant(HostMatrix a) {
    HostMatrix b = identity(a.n);
    double determinant = 1;
    for (std::int64_t k = 0; k < a.n; ++k) {
        std::int64_t best = k;
        for (std::int64_t i = k; i < a.n; ++i)
            if (std::abs(a(i, k)) > std::abs(a(best, k))) best = i;
        if (best != k) determinant = -determinant;
        for (std::int64_t j = 0; j < a.n; ++j) {
            std::swap(a(k, j), a(best, j));
            std::swap(b(k, j), b(best, j));
        }
        const double pivot = a(k, k);
        determinant *= pivot;
        for (std::int64_t j = 0; j < a.n; ++j) a(k, j) /= pivot, b(k, j) /= pivot;
        for (std::int64_t i = 0; i < a.n; ++i) {
            const double f = a(i, k);
            for (std::int64_t j = 0; i != k && j < a.n; ++j) a(i, j) -= f * a(k, j), b(i, j) -= f * b(k, j);
        }
    }
    return {b, determinant};
}

/// Eigenvalues of a symmetric matrix in ascending order, by Jacobi rotations.
inline Values eigenvalues(HostMatrix a) {
    for (int sweep = 0; sweep < 60; ++sweep)
        for (std::int64_t p = 0; p < a.n; ++p)
            for (std::int64_t q = p + 1; q < a.n; ++q) {
                const double angle = 0.5 * std::atan2(2 * a(p, q), a(q, q) - a(p, p));
                HostMatrix rotation = identity(a.n);
                rotation(p, p) = rotation(q, q) = std::cos(angle);
                rotation(p, q) = std::sin(angle);
                rotation(q, p) = -std::sin(angle);
                a = transposed(rotation) * a * rotation;
            }
    Values all;
    for (std::int64_t i = 0; i < a.n; ++i) all.push_back(a(i, i));
    std::ranges::sort(all);
    return all;
}
inline Values singular_values(const HostMatrix& a) {
    Values all = eigenvalues(a.m >= a.n ? transposed(a) * a : a * transposed(a));
    std::ranges::reverse(all);
    for (double& item : all) item = std::sqrt(std::max(0.0, item));
    return all;
}

inline HostMatrix cholesky_of(const HostMatrix& a) {
    HostMatrix l(a.n, a.n);
    for (std::int64_t j = 0; j < a.n; ++j)
        for (std::int64_t i = j; i < a.n; ++i) {
            double left = a(i, j);
            for (std::int64_t k = 0; k < j; ++k) left -= l(i, k) * l(j, k);
            l(i, j) = i == j ? std::sqrt(left) : left / l(j, j);
        }
    return l;
}

/// Row permutation by partial pivoting, and L and U in one matrix.
inline std::pair<std::vector<std::int64_t>, HostMatrix> lu_of(HostMatrix a) {
    std::vector<std::int64_t> rows;
    for (std::int64_t i = 0; i < a.m; ++i) rows.push_back(i);
    for (std::int64_t k = 0; k < std::min(a.m, a.n); ++k) {
        std::int64_t best = k;
        for (std::int64_t i = k; i < a.m; ++i)
            if (std::abs(a(i, k)) > std::abs(a(best, k))) best = i;
        std::swap(rows[static_cast<std::size_t>(k)], rows[static_cast<std::size_t>(best)]);
        for (std::int64_t j = 0; j < a.n; ++j) std::swap(a(k, j), a(best, j));
        for (std::int64_t i = k + 1; i < a.m; ++i) {
            a(i, k) /= a(k, k);
            for (std::int64_t j = k + 1; j < a.n; ++j) a(i, j) -= a(i, k) * a(k, j);
        }
    }
    return {rows, a};
}

/// Q of Q R = A with a positive diagonal of R, by Gram-Schmidt.
inline HostMatrix orthonormal(HostMatrix a) {
    for (std::int64_t j = 0; j < a.n; ++j) {
        for (int pass = 0; pass < 2; ++pass)
            for (std::int64_t k = 0; k < j; ++k) {
                double part = 0;
                for (std::int64_t i = 0; i < a.m; ++i) part += a(i, k) * a(i, j);
                for (std::int64_t i = 0; i < a.m; ++i) a(i, j) -= part * a(i, k);
            }
        double length = 0;
        for (std::int64_t i = 0; i < a.m; ++i) length += a(i, j) * a(i, j);
        for (std::int64_t i = 0; i < a.m; ++i) a(i, j) /= std::sqrt(length);
    }
    return a;
}

// Preprocessing of a case's input, on both sides, that makes it well-conditioned; symmetric ones positive definite.

inline bool is_square(const Tensor& x) {
    return x.defined() && is_floating(x.dtype()) && x.rank() >= 2 && x.size(-1) == x.size(-2);
}
inline Tensor eye_for(const Tensor& x) { return diag_embed(ones({x.size(-1)}, {x.dtype(), x.device()})); }
inline Tensor well_conditioned(const Tensor& x) { return is_square(x) ? x * 0.5 + eye_for(x) * 2.0 : x; }
inline HostMatrix well_conditioned(const HostMatrix& x) { return 0.5 * x + 2.0 * identity(x.n); }
inline Tensor symmetric(const Tensor& x) { return is_square(x) ? x + transpose(x) : x; }
inline HostMatrix symmetric(const HostMatrix& x) { return x + transposed(x); }
inline Tensor positive(const Tensor& x) { return is_square(x) ? matmul(x, transpose(x)) + eye_for(x) : x; }
inline HostMatrix positive(const HostMatrix& x) { return x * transposed(x) + identity(x.n); }

using HostMatrixFunction = std::function<Values(const HostMatrix&)>;

/// A function of each matrix of a batch (batch, m, n).
inline Case matrix_case(const std::string& name, const Shape& shape, std::function<Tensor(const Tensor&)> call,
                        HostMatrixFunction reference, bool sampled = true) {
    return {.name = name,
            .inputs = {{shape}},
            .call = [call = std::move(call)](const Tensors& in) { return call(in[0]); },
            .reference =
                [shape, reference = std::move(reference)](const Columns& in, DType) {
                    const auto m = shape[-2], n = shape[-1];
                    Values out;
                    for (std::int64_t at = 0; at < shape.numel(); at += m * n) {
                        const Values result =
                            reference(HostMatrix(m, n, Values(in[0].begin() + at, in[0].begin() + at + m * n)));
                        out.insert(out.end(), result.begin(), result.end());
                    }
                    return out;
                },
            .terms = 30,
            .gradient_tolerance = 1e-5,
            .sampled = sampled};
}

/// A function of two matrices with equal batch sizes.
inline Case matrix_pair_case(const std::string& name, const Shape& a, const Shape& b,
                             std::function<Tensor(const Tensor&, const Tensor&)> call,
                             std::function<HostMatrix(const HostMatrix&, const HostMatrix&)> reference,
                             bool sampled = true) {
    return {.name = name,
            .inputs = {{a}, {b}},
            .call = [call = std::move(call)](const Tensors& in) { return call(in[0], in[1]); },
            .reference =
                [a, b, reference = std::move(reference)](const Columns& in, DType) {
                    const auto each_a = a[-1] * a[-2], each_b = b[-1] * b[-2];
                    Values out;
                    for (std::int64_t i = 0; i < a.numel() / each_a; ++i) {
                        const auto from_a = in[0].begin() + i * each_a, from_b = in[1].begin() + i * each_b;
                        const HostMatrix result = reference(HostMatrix(a[-2], a[-1], Values(from_a, from_a + each_a)),
                                                            HostMatrix(b[-2], b[-1], Values(from_b, from_b + each_b)));
                        out.insert(out.end(), result.elements.begin(), result.elements.end());
                    }
                    return out;
                },
            .terms = 30,
            .gradient_tolerance = 1e-5,
            .sampled = sampled};
}

}  // namespace declivity::test::catalogue
