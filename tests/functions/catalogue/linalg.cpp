// Linear algebra as cases of the catalogue. Results that are not unique, such as the sign of an eigenvector, are
// normalised.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <declivity/functions/functions.hpp>
#include <declivity/functions/linalg.hpp>
#include <declivity/tensor/creation.hpp>
#include <tests/functions/catalogue/case.hpp>
#include <tests/functions/catalogue/host_matrix.hpp>
#include <tests/functions/catalogue/parts.hpp>

namespace declivity::test::catalogue {
namespace {

void add_factorisations(std::vector<Case>& all) {
    const Shape shape{2, 4, 4};
    all.push_back(matrix_case(
        "linalg::cholesky", shape, [](const Tensor& x) { return linalg::cholesky(positive(x)); },
        [](const HostMatrix& x) { return cholesky_of(positive(x)).elements; }, false));
    all.push_back(matrix_case(
        "linalg::cholesky", {3, 5, 5}, [](const Tensor& x) { return linalg::cholesky(positive(x), true); },
        [](const HostMatrix& x) { return transposed(cholesky_of(positive(x))).elements; }));
    all.push_back(matrix_case(
        "linalg::cholesky_ex", shape, [](const Tensor& x) { return linalg::cholesky_ex(positive(x)).factor; },
        [](const HostMatrix& x) { return cholesky_of(positive(x)).elements; }));
    for (const bool upper_one : {false, true}) {
        all.push_back(matrix_pair_case(
            "linalg::cholesky_solve", {2, 3, 2}, {2, 3, 3},
            [=](const Tensor& b, const Tensor& l) { return linalg::cholesky_solve(b, well_conditioned(l), upper_one); },
            [=](const HostMatrix& b, const HostMatrix& x) {
                const HostMatrix l = upper_one ? transposed(upper(well_conditioned(x))) : lower(well_conditioned(x));
                return inverse_and_determinant(l * transposed(l)).first * b;
            }));
        all.push_back(matrix_case(
            "linalg::cholesky_inverse", {2, 3, 3},
            [=](const Tensor& l) { return linalg::cholesky_inverse(well_conditioned(l), upper_one); },
            [=](const HostMatrix& x) {
                const HostMatrix l = upper_one ? transposed(upper(well_conditioned(x))) : lower(well_conditioned(x));
                return inverse_and_determinant(l * transposed(l)).first.elements;
            }));
    }
    for (const Shape& sizes : {Shape{2, 4, 4}, Shape{3, 5}, Shape{5, 3}}) {
        all.push_back(matrix_case(
            "linalg::lu_factor", sizes, [](const Tensor& x) { return linalg::lu_factor(x).lu; },
            [](const HostMatrix& x) { return lu_of(x).second.elements; }));
        all.push_back(matrix_case(
            "linalg::lu", sizes,
            [](const Tensor& x) {
                const auto [p, l, u] = linalg::lu(x);
                return matmul(p, l);
            },
            [](const HostMatrix& x) {
                const auto [rows, lu] = lu_of(x);
                const std::int64_t k = std::min(x.m, x.n);
                HostMatrix permuted(x.m, k);
                for (std::int64_t i = 0; i < x.m; ++i)
                    for (std::int64_t j = 0; j < k; ++j)
                        permuted(rows[static_cast<std::size_t>(i)], j) = j < i ? lu(i, j) : i == j ? 1 : 0;
                return permuted.elements;
            }));
    }
    all.push_back(matrix_case(
        "linalg::lu_factor_ex", shape, [](const Tensor& x) { return linalg::lu_factor_ex(x).lu; },
        [](const HostMatrix& x) { return lu_of(x).second.elements; }));
    all.push_back(matrix_case(
        "linalg::lu_unpack", {2, 3, 4},
        [](const Tensor& x) {
            if (!x.defined()) return linalg::lu_unpack(x, x).u;
            const auto result = linalg::lu_factor(x);
            const auto [p, l, u] = linalg::lu_unpack(result.lu, result.pivots);
            return matmul(p, matmul(l, u));
        },
        [](const HostMatrix& x) { return x.elements; }));
    for (const bool left : {true, false})
        for (const bool adjoint : {true, false})
            all.push_back(matrix_pair_case(
                "linalg::lu_solve", {2, 3, 3}, left ? Shape{2, 3, 2} : Shape{2, 2, 3},
                [=](const Tensor& x, const Tensor& b) {
                    if (!x.defined()) return linalg::lu_solve(x, x, b);
                    const auto result = linalg::lu_factor(well_conditioned(x));
                    return linalg::lu_solve(result.lu, result.pivots, b, left, adjoint);
                },
                [=](const HostMatrix& x, const HostMatrix& b) {
                    const HostMatrix inverse =
                        inverse_and_determinant(adjoint ? transposed(well_conditioned(x)) : well_conditioned(x)).first;
                    return left ? inverse * b : b * inverse;
                }));
    for (const Shape& sizes : {Shape{2, 4, 4}, Shape{3, 5}, Shape{5, 3}}) {
        const auto signs = [](const Tensor& r) {
            const Tensor d = diagonal(r, 0, -2, -1).detach();
            return where(d < 0, full_like(d, -1), full_like(d, 1));
        };
        all.push_back(matrix_case(
            "linalg::qr", sizes,
            [=](const Tensor& x) {
                const auto [q, r] = linalg::qr(x);
                return q * unsqueeze(signs(r), -2);
            },
            [](const HostMatrix& x) {
                return orthonormal(host_matrix(x.m, std::min(x.m, x.n), [&](auto i, auto j) { return x(i, j); }))
                    .elements;
            },
            sizes.rank() == 2));
        all.push_back(matrix_case(
            "linalg::qr", sizes,
            [=](const Tensor& x) {
                const Tensor r = linalg::qr(x).r;
                return r * unsqueeze(signs(r), -1);
            },
            [](const HostMatrix& x) {
                const HostMatrix q =
                    orthonormal(host_matrix(x.m, std::min(x.m, x.n), [&](auto i, auto j) { return x(i, j); }));
                return upper(transposed(q) * x).elements;
            }));
    }
    // exp(A) of the symmetric A given by one triangle.
    for (const char* uplo : {"L", "U"}) {
        all.push_back(matrix_case(
            "linalg::eigh", shape,
            [uplo](const Tensor& x) {
                const auto [w, v] = linalg::eigh(symmetric(x), uplo);
                return matmul(v * unsqueeze(square(w), -2), transpose(v)) * 0.1;
            },
            [](const HostMatrix& x) { return (0.1 * (symmetric(x) * symmetric(x))).elements; }, uplo[0] == 'U'));
        all.push_back(matrix_case(
            "linalg::eigvalsh", shape, [uplo](const Tensor& x) { return linalg::eigvalsh(symmetric(x), uplo); },
            [](const HostMatrix& x) { return eigenvalues(symmetric(x)); }));
    }
    for (const Shape& sizes : {Shape{2, 4, 4}, Shape{2, 3, 5}, Shape{5, 3}}) {
        for (const bool full : {false, true})
            all.push_back(matrix_case(
                "linalg::svd", sizes,
                [full](const Tensor& x) {
                    const auto [u, s, vh] = linalg::svd(x, full);
                    const std::int64_t k = s.size(-1);
                    return matmul(slice(u, -1, 0, k) * unsqueeze(s * s * s, -2), slice(vh, -2, 0, k)) * 0.05;
                },
                [](const HostMatrix& x) { return (0.05 * (x * transposed(x) * x)).elements; },
                full || sizes.rank() == 2));
        all.push_back(matrix_case(
            "linalg::svdvals", sizes, [](const Tensor& x) { return linalg::svdvals(x); },
            [](const HostMatrix& x) { return singular_values(x); }));
    }
}

void add_equations(std::vector<Case>& all) {
    for (const bool upper_one : {false, true})
        for (const bool left : {false, true})
            for (const bool unit : {false, true})
                all.push_back(matrix_pair_case(
                    "linalg::solve_triangular", {2, 3, 3}, left ? Shape{2, 3, 2} : Shape{2, 2, 3},
                    [=](const Tensor& x, const Tensor& b) {
                        return linalg::solve_triangular(well_conditioned(x), b,
                                                        {.upper = upper_one, .left = left, .unitriangular = unit});
                    },
                    [=](const HostMatrix& x, const HostMatrix& b) {
                        HostMatrix a = upper_one ? upper(well_conditioned(x)) : lower(well_conditioned(x));
                        for (std::int64_t i = 0; unit && i < a.n; ++i) a(i, i) = 1;
                        return left ? inverse_and_determinant(a).first * b : b * inverse_and_determinant(a).first;
                    },
                    !(upper_one && left && unit)));
    for (const bool left : {true, false})
        all.push_back(matrix_pair_case(
            "linalg::solve", {2, 4, 4}, left ? Shape{2, 4, 3} : Shape{2, 3, 4},
            [=](const Tensor& x, const Tensor& b) { return linalg::solve(well_conditioned(x), b, left); },
            [=](const HostMatrix& x, const HostMatrix& b) {
                const HostMatrix a = inverse_and_determinant(well_conditioned(x)).first;
                return left ? a * b : b * a;
            },
            !left));
    all.push_back(matrix_pair_case(
        "linalg::solve", {3, 3}, {3, 1},
        [](const Tensor& x, const Tensor& b) {
            return linalg::solve(well_conditioned(x), b.defined() && b.rank() == 2 ? select(b, 1, 0) : b);
        },
        [](const HostMatrix& x, const HostMatrix& b) {
            return inverse_and_determinant(well_conditioned(x)).first * b;
        }));
    all.push_back(matrix_pair_case(
        "linalg::solve_ex", {2, 3, 3}, {2, 3, 2},
        [](const Tensor& x, const Tensor& b) { return linalg::solve_ex(well_conditioned(x), b).solution; },
        [](const HostMatrix& x, const HostMatrix& b) {
            return inverse_and_determinant(well_conditioned(x)).first * b;
        }));
    all.push_back(matrix_case(
        "linalg::inv", {2, 4, 4}, [](const Tensor& x) { return linalg::inv(well_conditioned(x)); },
        [](const HostMatrix& x) { return inverse_and_determinant(well_conditioned(x)).first.elements; }, false));
    all.push_back(matrix_case(
        "linalg::inv_ex", {3, 3}, [](const Tensor& x) { return linalg::inv_ex(well_conditioned(x)).inverse; },
        [](const HostMatrix& x) { return inverse_and_determinant(well_conditioned(x)).first.elements; }));
    all.push_back(matrix_pair_case(
        "linalg::lstsq", {2, 5, 3}, {2, 5, 2},
        [](const Tensor& a, const Tensor& b) { return linalg::lstsq(a, b).solution; },
        [](const HostMatrix& a, const HostMatrix& b) {
            return inverse_and_determinant(transposed(a) * a).first * transposed(a) * b;
        }));
    all.push_back(matrix_pair_case(
        "linalg::lstsq", {2, 3, 5}, {2, 3, 2},
        [](const Tensor& a, const Tensor& b) { return linalg::lstsq(a, b).solution; },
        [](const HostMatrix& a, const HostMatrix& b) {
            return transposed(a) * inverse_and_determinant(a * transposed(a)).first * b;
        }));
    all.push_back(matrix_case(
        "linalg::tensorinv", {6, 6},
        [](const Tensor& x) {
            const Tensor a = well_conditioned(x);
            return reshape(linalg::tensorinv(a.defined() && a.shape() == Shape{6, 6} ? reshape(a, {2, 3, 6}) : a),
                           {6, 6});
        },
        [](const HostMatrix& x) { return inverse_and_determinant(well_conditioned(x)).first.elements; }));
    all.push_back(matrix_pair_case(
        "linalg::tensorsolve", {6, 6}, {6, 1},
        [](const Tensor& x, const Tensor& b) {
            const Tensor a = well_conditioned(x);
            if (!a.defined() || !b.defined() || !(a.shape() == Shape{6, 6}) || !(b.shape() == Shape{6, 1}))
                return linalg::tensorsolve(a, b);
            return linalg::tensorsolve(reshape(a, {2, 3, 3, 2}), reshape(b, {2, 3}));
        },
        [](const HostMatrix& x, const HostMatrix& b) {
            return inverse_and_determinant(well_conditioned(x)).first * b;
        }));
    all.push_back(matrix_case(
        "linalg::pinv", {2, 5, 3}, [](const Tensor& a) { return linalg::pinv(a); },
        [](const HostMatrix& a) {
            return (inverse_and_determinant(transposed(a) * a).first * transposed(a)).elements;
        }));
    all.push_back(matrix_case(
        "linalg::pinv", {2, 3, 5}, [](const Tensor& a) { return linalg::pinv(a); },
        [](const HostMatrix& a) {
            return (transposed(a) * inverse_and_determinant(a * transposed(a)).first).elements;
        }));
    all.push_back(matrix_case(
        "linalg::pinv", {3, 3},
        [](const Tensor& a) { return linalg::pinv(well_conditioned(symmetric(a)), {.hermitian = true}); },
        [](const HostMatrix& a) { return inverse_and_determinant(well_conditioned(symmetric(a))).first.elements; }));
    all.push_back(matrix_case(
        "linalg::matrix_rank", {2, 4, 2},
        [](const Tensor& x) {
            return linalg::matrix_rank(x.defined() && x.rank() >= 2 ? matmul(x, transpose(x)) : x, {.rtol = 1e-3});
        },
        [](const HostMatrix&) { return Values{2}; }));
    all.back().differentiable = false;
    all.back().reduced_precision = false;  // rounded to f16, the product has full rank
}

void add_determinants(std::vector<Case>& all) {
    all.push_back(matrix_case(
        "linalg::det", {2, 4, 4}, [](const Tensor& x) { return linalg::det(x); },
        [](const HostMatrix& x) { return Values{inverse_and_determinant(x).second}; }, false));
    all.push_back(matrix_case(
        "linalg::slogdet", {2, 4, 4}, [](const Tensor& x) { return linalg::slogdet(x).logabsdet; },
        [](const HostMatrix& x) { return Values{std::log(std::abs(inverse_and_determinant(x).second))}; }));
    all.push_back(matrix_case(
        "linalg::slogdet", {2, 3, 3}, [](const Tensor& x) { return linalg::slogdet(x).sign; },
        [](const HostMatrix& x) { return Values{inverse_and_determinant(x).second < 0 ? -1.0 : 1.0}; }));
    all.back().differentiable = false;
    all.push_back(matrix_case(
        "linalg::logdet", {2, 3, 3}, [](const Tensor& x) { return linalg::logdet(positive(x)); },
        [](const HostMatrix& x) { return Values{std::log(inverse_and_determinant(positive(x)).second)}; }));
    for (const std::int64_t n : {0, 1, 3, -2}) {
        all.push_back(matrix_case(
            "linalg::matrix_power", {2, 3, 3},
            [n](const Tensor& x) { return linalg::matrix_power(well_conditioned(x), n); },
            [n](const HostMatrix& x) {
                const HostMatrix factor =
                    n < 0 ? inverse_and_determinant(well_conditioned(x)).first : well_conditioned(x);
                HostMatrix result = identity(3);
                for (std::int64_t i = 0; i < std::abs(n); ++i) result = result * factor;
                return result.elements;
            }));
        all.back().differentiable = n != 0;
    }
    all.push_back(matrix_case(
        "linalg::matrix_exp", {2, 3, 3}, [](const Tensor& x) { return linalg::matrix_exp(x); },
        [](const HostMatrix& x) {
            HostMatrix result = identity(3), term = identity(3);
            for (int i = 1; i < 60; ++i) term = (1.0 / i) * (term * x), result = result + term;
            return result.elements;
        }));
}

void add_norms(std::vector<Case>& all) {
    const auto add = [&](const linalg::NormOrder& order, const HostMatrixFunction& reference) {
        all.push_back(matrix_case(
            "linalg::matrix_norm", {2, 3, 4}, [order](const Tensor& x) { return linalg::matrix_norm(x, order); },
            reference));
        all.push_back(matrix_case(
            "linalg::norm", {3, 4}, [order](const Tensor& x) { return linalg::norm(x, order); }, reference));
    };
    const auto sums = [](const HostMatrix& x) {
        Values result;
        for (std::int64_t i = 0; i < x.m; ++i) {
            double sum = 0;
            for (std::int64_t j = 0; j < x.n; ++j) sum += std::abs(x(i, j));
            result.push_back(sum);
        }
        return result;
    };
    const double infinity = std::numeric_limits<double>::infinity();
    const auto root = [](const HostMatrix& x) {
        double sum = 0;
        for (const double value : x.elements) sum += value * value;
        return Values{std::sqrt(sum)};
    };
    add("fro", root);
    add("nuc", [](const HostMatrix& x) {
        double sum = 0;
        for (const double singular_value : singular_values(x)) sum += singular_value;
        return Values{sum};
    });
    add(infinity, [=](const HostMatrix& x) { return Values{std::ranges::max(sums(x))}; });
    add(-infinity, [=](const HostMatrix& x) { return Values{std::ranges::min(sums(x))}; });
    add(1, [=](const HostMatrix& x) { return Values{std::ranges::max(sums(transposed(x)))}; });
    add(-1, [=](const HostMatrix& x) { return Values{std::ranges::min(sums(transposed(x)))}; });
    add(2, [](const HostMatrix& x) { return Values{singular_values(x).front()}; });
    add(-2, [](const HostMatrix& x) { return Values{singular_values(x).back()}; });
    all.push_back(matrix_case(
        "linalg::norm", {3, 4}, [](const Tensor& x) { return linalg::norm(x); }, root));
    all.push_back(matrix_case(
        "linalg::vector_norm", {5, 4}, [](const Tensor& x) { return linalg::vector_norm(x, 3, {-1}); },
        [](const HostMatrix& x) {
            Values result;
            for (std::int64_t i = 0; i < x.m; ++i) {
                double sum = 0;
                for (std::int64_t j = 0; j < x.n; ++j) sum += std::pow(std::abs(x(i, j)), 3);
                result.push_back(std::cbrt(sum));
            }
            return result;
        }));
    all.push_back(matrix_case(
        "linalg::cond", {2, 3, 3}, [](const Tensor& x) { return linalg::cond(well_conditioned(x)); },
        [](const HostMatrix& x) {
            const Values s = singular_values(well_conditioned(x));
            return Values{s.front() / s.back()};
        }));
    all.push_back(matrix_case(
        "linalg::cond", {3, 3}, [](const Tensor& x) { return linalg::cond(well_conditioned(x), 1); },
        [=](const HostMatrix& x) {
            return Values{std::ranges::max(sums(transposed(well_conditioned(x)))) *
                          std::ranges::max(sums(transposed(inverse_and_determinant(well_conditioned(x)).first)))};
        }));
}

}  // namespace

std::vector<Case> linalg_catalogue() {
    std::vector<Case> all;
    add_products(all);
    add_factorisations(all);
    add_equations(all);
    add_determinants(all);
    add_norms(all);
    return all;
}

}  // namespace declivity::test::catalogue
