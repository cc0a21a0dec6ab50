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
struct Grid {
    std::int64_t m = 0, n = 0;
    Values of;

    Grid(std::int64_t rows, std::int64_t columns) : m(rows), n(columns), of(static_cast<std::size_t>(rows * columns)) {}
    Grid(std::int64_t rows, std::int64_t columns, Values elements) : m(rows), n(columns), of(std::move(elements)) {}
    double& operator()(std::int64_t i, std::int64_t j) { return of[static_cast<std::size_t>(i * n + j)]; }
    double operator()(std::int64_t i, std::int64_t j) const { return of[static_cast<std::size_t>(i * n + j)]; }
};

inline Grid grid(std::int64_t m, std::int64_t n, const std::function<double(std::int64_t, std::int64_t)>& element) {
    Grid made(m, n);
    for (std::int64_t i = 0; i < m; ++i)
        for (std::int64_t j = 0; j < n; ++j) made(i, j) = element(i, j);
    return made;
}
inline Grid turned(const Grid& a) {
    return grid(a.n, a.m, [&](auto i, auto j) { return a(j, i); });
}
inline Grid identity(std::int64_t n) {
    return grid(n, n, [](auto i, auto j) { return i == j ? 1.0 : 0.0; });
}
inline Grid operator*(const Grid& a, const Grid& b) {
    return grid(a.m, b.n, [&](auto i, auto j) {
        double sum = 0;
        for (std::int64_t k = 0; k < a.n; ++k) sum += a(i, k) * b(k, j);
        return sum;
    });
}
inline Grid operator*(double f, const Grid& a) {
    return grid(a.m, a.n, [&](auto i, auto j) { return f * a(i, j); });
}
inline Grid operator+(const Grid& a, const Grid& b) {
    return grid(a.m, a.n, [&](auto i, auto j) { return a(i, j) + b(i, j); });
}
inline Grid lower(const Grid& a, std::int64_t off = 0) {
    return grid(a.m, a.n, [&](auto i, auto j) { return j <= i + off ? a(i, j) : 0.0; });
}
inline Grid upper(const Grid& a, std::int64_t off = 0) {
    return grid(a.m, a.n, [&](auto i, auto j) { return j >= i + off ? a(i, j) : 0.0; });
}

/// The inverse, and the determinant, by Gauss-Jordan elimination.
inline std::pair<Grid, double> inverted(Grid a) {
    Grid b = identity(a.n);
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
inline Values eigenvalues(Grid a) {
    for (int sweep = 0; sweep < 60; ++sweep)
        for (std::int64_t p = 0; p < a.n; ++p)
            for (std::int64_t q = p + 1; q < a.n; ++q) {
                const double angle = 0.5 * std::atan2(2 * a(p, q), a(q, q) - a(p, p));
                Grid turn = identity(a.n);
                turn(p, p) = turn(q, q) = std::cos(angle);
                turn(p, q) = std::sin(angle);
                turn(q, p) = -std::sin(angle);
                a = turned(turn) * a * turn;
            }
    Values all;
    for (std::int64_t i = 0; i < a.n; ++i) all.push_back(a(i, i));
    std::ranges::sort(all);
    return all;
}
inline Values singular_values(const Grid& a) {
    Values all = eigenvalues(a.m >= a.n ? turned(a) * a : a * turned(a));
    std::ranges::reverse(all);
    for (double& item : all) item = std::sqrt(std::max(0.0, item));
    return all;
}

inline Grid cholesky_of(const Grid& a) {
    Grid l(a.n, a.n);
    for (std::int64_t j = 0; j < a.n; ++j)
        for (std::int64_t i = j; i < a.n; ++i) {
            double left = a(i, j);
            for (std::int64_t k = 0; k < j; ++k) left -= l(i, k) * l(j, k);
            l(i, j) = i == j ? std::sqrt(left) : left / l(j, j);
        }
    return l;
}

/// Row permutation by partial pivoting, and L and U in one matrix.
inline std::pair<std::vector<std::int64_t>, Grid> lu_of(Grid a) {
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
inline Grid orthonormal(Grid a) {
    for (std::int64_t j = 0; j < a.n; ++j) {
        for (int turn = 0; turn < 2; ++turn)
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
inline Tensor steady(const Tensor& x) { return is_square(x) ? x * 0.5 + eye_for(x) * 2.0 : x; }
inline Grid steady(const Grid& x) { return 0.5 * x + 2.0 * identity(x.n); }
inline Tensor symmetric(const Tensor& x) { return is_square(x) ? x + transpose(x) : x; }
inline Grid symmetric(const Grid& x) { return x + turned(x); }
inline Tensor positive(const Tensor& x) { return is_square(x) ? matmul(x, transpose(x)) + eye_for(x) : x; }
inline Grid positive(const Grid& x) { return x * turned(x) + identity(x.n); }

using GridFunction = std::function<Values(const Grid&)>;

/// A function of each matrix of a batch (batch, m, n).
inline Case of_matrices(const std::string& name, const Shape& shape, std::function<Tensor(const Tensor&)> call,
                        GridFunction reference, bool brief = true) {
    return {.name = name,
            .inputs = {{shape}},
            .call = [call = std::move(call)](const Tensors& in) { return call(in[0]); },
            .reference =
                [shape, reference = std::move(reference)](const Columns& in, DType) {
                    const auto m = shape[-2], n = shape[-1];
                    Values out;
                    for (std::int64_t at = 0; at < shape.numel(); at += m * n) {
                        const Values one =
                            reference(Grid(m, n, Values(in[0].begin() + at, in[0].begin() + at + m * n)));
                        out.insert(out.end(), one.begin(), one.end());
                    }
                    return out;
                },
            .terms = 30,
            .loose = 1e-5,
            .brief = brief};
}

/// A function of two matrices with equal batch sizes.
inline Case of_two(const std::string& name, const Shape& a, const Shape& b,
                   std::function<Tensor(const Tensor&, const Tensor&)> call,
                   std::function<Grid(const Grid&, const Grid&)> reference, bool brief = true) {
    return {.name = name,
            .inputs = {{a}, {b}},
            .call = [call = std::move(call)](const Tensors& in) { return call(in[0], in[1]); },
            .reference =
                [a, b, reference = std::move(reference)](const Columns& in, DType) {
                    const auto each_a = a[-1] * a[-2], each_b = b[-1] * b[-2];
                    Values out;
                    for (std::int64_t i = 0; i < a.numel() / each_a; ++i) {
                        const auto from_a = in[0].begin() + i * each_a, from_b = in[1].begin() + i * each_b;
                        const Grid one = reference(Grid(a[-2], a[-1], Values(from_a, from_a + each_a)),
                                                   Grid(b[-2], b[-1], Values(from_b, from_b + each_b)));
                        out.insert(out.end(), one.of.begin(), one.of.end());
                    }
                    return out;
                },
            .terms = 30,
            .loose = 1e-5,
            .brief = brief};
}

}  // namespace declivity::test::catalogue
