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
#include <tests/functions/catalogue/grids.hpp>
#include <tests/functions/catalogue/parts.hpp>

namespace declivity::test::catalogue {
namespace {

void add_factorisations(std::vector<Case>& all) {
    const Shape shape{2, 4, 4};
    all.push_back(of_matrices(
        "linalg::cholesky", shape, [](const Tensor& x) { return linalg::cholesky(positive(x)); },
        [](const Grid& x) { return cholesky_of(positive(x)).of; }, false));
    all.push_back(of_matrices(
        "linalg::cholesky", {3, 5, 5}, [](const Tensor& x) { return linalg::cholesky(positive(x), true); },
        [](const Grid& x) { return turned(cholesky_of(positive(x))).of; }));
    all.push_back(of_matrices(
        "linalg::cholesky_ex", shape, [](const Tensor& x) { return linalg::cholesky_ex(positive(x)).factor; },
        [](const Grid& x) { return cholesky_of(positive(x)).of; }));
    for (const bool upper_one : {false, true}) {
        all.push_back(of_two(
            "linalg::cholesky_solve", {2, 3, 2}, {2, 3, 3},
            [=](const Tensor& b, const Tensor& l) { return linalg::cholesky_solve(b, steady(l), upper_one); },
            [=](const Grid& b, const Grid& x) {
                const Grid l = upper_one ? turned(upper(steady(x))) : lower(steady(x));
                return inverted(l * turned(l)).first * b;
            }));
        all.push_back(of_matrices(
            "linalg::cholesky_inverse", {2, 3, 3},
            [=](const Tensor& l) { return linalg::cholesky_inverse(steady(l), upper_one); },
            [=](const Grid& x) {
                const Grid l = upper_one ? turned(upper(steady(x))) : lower(steady(x));
                return inverted(l * turned(l)).first.of;
            }));
    }
    for (const Shape& sizes : {Shape{2, 4, 4}, Shape{3, 5}, Shape{5, 3}}) {
        all.push_back(of_matrices(
            "linalg::lu_factor", sizes, [](const Tensor& x) { return linalg::lu_factor(x).lu; },
            [](const Grid& x) { return lu_of(x).second.of; }));
        all.push_back(of_matrices(
            "linalg::lu", sizes,
            [](const Tensor& x) {
                const auto [p, l, u] = linalg::lu(x);
                return matmul(p, l);
            },
            [](const Grid& x) {
                const auto [rows, lu] = lu_of(x);
                const std::int64_t k = std::min(x.m, x.n);
                Grid moved(x.m, k);
                for (std::int64_t i = 0; i < x.m; ++i)
                    for (std::int64_t j = 0; j < k; ++j)
                        moved(rows[static_cast<std::size_t>(i)], j) = j < i ? lu(i, j) : i == j ? 1 : 0;
                return moved.of;
            }));
    }
    all.push_back(of_matrices(
        "linalg::lu_factor_ex", shape, [](const Tensor& x) { return linalg::lu_factor_ex(x).lu; },
        [](const Grid& x) { return lu_of(x).second.of; }));
    all.push_back(of_matrices(
        "linalg::lu_unpack", {2, 3, 4},
        [](const Tensor& x) {
            if (!x.defined()) return linalg::lu_unpack(x, x).u;
            const auto made = linalg::lu_factor(x);
            const auto [p, l, u] = linalg::lu_unpack(made.lu, made.pivots);
            return matmul(p, matmul(l, u));
        },
        [](const Grid& x) { return x.of; }));
    for (const bool left : {true, false})
        for (const bool adjoint : {true, false})
            all.push_back(of_two(
                "linalg::lu_solve", {2, 3, 3}, left ? Shape{2, 3, 2} : Shape{2, 2, 3},
                [=](const Tensor& x, const Tensor& b) {
                    if (!x.defined()) return linalg::lu_solve(x, x, b);
                    const auto made = linalg::lu_factor(steady(x));
                    return linalg::lu_solve(made.lu, made.pivots, b, left, adjoint);
                },
                [=](const Grid& x, const Grid& b) {
                    const Grid one = inverted(adjoint ? turned(steady(x)) : steady(x)).first;
                    return left ? one * b : b * one;
                }));
    for (const Shape& sizes : {Shape{2, 4, 4}, Shape{3, 5}, Shape{5, 3}}) {
        const auto signs = [](const Tensor& r) {
            const Tensor d = diagonal(r, 0, -2, -1).detach();
            return where(d < 0, full_like(d, -1), full_like(d, 1));
        };
        all.push_back(of_matrices(
            "linalg::qr", sizes,
            [=](const Tensor& x) {
                const auto [q, r] = linalg::qr(x);
                return q * unsqueeze(signs(r), -2);
            },
            [](const Grid& x) {
                return orthonormal(grid(x.m, std::min(x.m, x.n), [&](auto i, auto j) { return x(i, j); })).of;
            },
            sizes.rank() == 2));
        all.push_back(of_matrices(
            "linalg::qr", sizes,
            [=](const Tensor& x) {
                const Tensor r = linalg::qr(x).r;
                return r * unsqueeze(signs(r), -1);
            },
            [](const Grid& x) {
                const Grid q = orthonormal(grid(x.m, std::min(x.m, x.n), [&](auto i, auto j) { return x(i, j); }));
                return upper(turned(q) * x).of;
            }));
    }
    // exp(A) of the symmetric A given by one triangle.
    for (const char* uplo : {"L", "U"}) {
        all.push_back(of_matrices(
            "linalg::eigh", shape,
            [uplo](const Tensor& x) {
                const auto [w, v] = linalg::eigh(symmetric(x), uplo);
                return matmul(v * unsqueeze(square(w), -2), transpose(v)) * 0.1;
            },
            [](const Grid& x) { return (0.1 * (symmetric(x) * symmetric(x))).of; }, uplo[0] == 'U'));
        all.push_back(of_matrices(
            "linalg::eigvalsh", shape, [uplo](const Tensor& x) { return linalg::eigvalsh(symmetric(x), uplo); },
            [](const Grid& x) { return eigenvalues(symmetric(x)); }));
    }
    for (const Shape& sizes : {Shape{2, 4, 4}, Shape{2, 3, 5}, Shape{5, 3}}) {
        for (const bool full : {false, true})
            all.push_back(of_matrices(
                "linalg::svd", sizes,
                [full](const Tensor& x) {
                    const auto [u, s, vh] = linalg::svd(x, full);
                    const std::int64_t k = s.size(-1);
                    return matmul(slice(u, -1, 0, k) * unsqueeze(s * s * s, -2), slice(vh, -2, 0, k)) * 0.05;
                },
                [](const Grid& x) { return (0.05 * (x * turned(x) * x)).of; }, full || sizes.rank() == 2));
        all.push_back(of_matrices(
            "linalg::svdvals", sizes, [](const Tensor& x) { return linalg::svdvals(x); },
            [](const Grid& x) { return singular_values(x); }));
    }
}

void add_equations(std::vector<Case>& all) {
    for (const bool upper_one : {false, true})
        for (const bool left : {false, true})
            for (const bool unit : {false, true})
                all.push_back(of_two(
                    "linalg::solve_triangular", {2, 3, 3}, left ? Shape{2, 3, 2} : Shape{2, 2, 3},
                    [=](const Tensor& x, const Tensor& b) {
                        return linalg::solve_triangular(steady(x), b,
                                                        {.upper = upper_one, .left = left, .unitriangular = unit});
                    },
                    [=](const Grid& x, const Grid& b) {
                        Grid a = upper_one ? upper(steady(x)) : lower(steady(x));
                        for (std::int64_t i = 0; unit && i < a.n; ++i) a(i, i) = 1;
                        return left ? inverted(a).first * b : b * inverted(a).first;
                    },
                    !(upper_one && left && unit)));
    for (const bool left : {true, false})
        all.push_back(of_two(
            "linalg::solve", {2, 4, 4}, left ? Shape{2, 4, 3} : Shape{2, 3, 4},
            [=](const Tensor& x, const Tensor& b) { return linalg::solve(steady(x), b, left); },
            [=](const Grid& x, const Grid& b) {
                const Grid a = inverted(steady(x)).first;
                return left ? a * b : b * a;
            },
            !left));
    all.push_back(of_two(
        "linalg::solve", {3, 3}, {3, 1},
        [](const Tensor& x, const Tensor& b) {
            return linalg::solve(steady(x), b.defined() && b.rank() == 2 ? select(b, 1, 0) : b);
        },
        [](const Grid& x, const Grid& b) { return inverted(steady(x)).first * b; }));
    all.push_back(of_two(
        "linalg::solve_ex", {2, 3, 3}, {2, 3, 2},
        [](const Tensor& x, const Tensor& b) { return linalg::solve_ex(steady(x), b).solution; },
        [](const Grid& x, const Grid& b) { return inverted(steady(x)).first * b; }));
    all.push_back(of_matrices(
        "linalg::inv", {2, 4, 4}, [](const Tensor& x) { return linalg::inv(steady(x)); },
        [](const Grid& x) { return inverted(steady(x)).first.of; }, false));
    all.push_back(of_matrices(
        "linalg::inv_ex", {3, 3}, [](const Tensor& x) { return linalg::inv_ex(steady(x)).inverse; },
        [](const Grid& x) { return inverted(steady(x)).first.of; }));
    all.push_back(of_two(
        "linalg::lstsq", {2, 5, 3}, {2, 5, 2},
        [](const Tensor& a, const Tensor& b) { return linalg::lstsq(a, b).solution; },
        [](const Grid& a, const Grid& b) { return inverted(turned(a) * a).first * turned(a) * b; }));
    all.push_back(of_two(
        "linalg::lstsq", {2, 3, 5}, {2, 3, 2},
        [](const Tensor& a, const Tensor& b) { return linalg::lstsq(a, b).solution; },
        [](const Grid& a, const Grid& b) { return turned(a) * inverted(a * turned(a)).first * b; }));
    all.push_back(of_matrices(
        "linalg::tensorinv", {6, 6},
        [](const Tensor& x) {
            const Tensor a = steady(x);
            return reshape(linalg::tensorinv(a.defined() && a.shape() == Shape{6, 6} ? reshape(a, {2, 3, 6}) : a),
                           {6, 6});
        },
        [](const Grid& x) { return inverted(steady(x)).first.of; }));
    all.push_back(of_two(
        "linalg::tensorsolve", {6, 6}, {6, 1},
        [](const Tensor& x, const Tensor& b) {
            const Tensor a = steady(x);
            if (!a.defined() || !b.defined() || !(a.shape() == Shape{6, 6}) || !(b.shape() == Shape{6, 1}))
                return linalg::tensorsolve(a, b);
            return linalg::tensorsolve(reshape(a, {2, 3, 3, 2}), reshape(b, {2, 3}));
        },
        [](const Grid& x, const Grid& b) { return inverted(steady(x)).first * b; }));
    all.push_back(of_matrices(
        "linalg::pinv", {2, 5, 3}, [](const Tensor& a) { return linalg::pinv(a); },
        [](const Grid& a) { return (inverted(turned(a) * a).first * turned(a)).of; }));
    all.push_back(of_matrices(
        "linalg::pinv", {2, 3, 5}, [](const Tensor& a) { return linalg::pinv(a); },
        [](const Grid& a) { return (turned(a) * inverted(a * turned(a)).first).of; }));
    all.push_back(of_matrices(
        "linalg::pinv", {3, 3}, [](const Tensor& a) { return linalg::pinv(steady(symmetric(a)), {.hermitian = true}); },
        [](const Grid& a) { return inverted(steady(symmetric(a))).first.of; }));
    all.push_back(of_matrices(
        "linalg::matrix_rank", {2, 4, 2},
        [](const Tensor& x) {
            return linalg::matrix_rank(x.defined() && x.rank() >= 2 ? matmul(x, transpose(x)) : x, {.rtol = 1e-3});
        },
        [](const Grid&) { return Values{2}; }));
    all.back().differentiable = false;
    all.back().reduced_precision = false;  // rounded to f16, the product has full rank
}

void add_determinants(std::vector<Case>& all) {
    all.push_back(of_matrices(
        "linalg::det", {2, 4, 4}, [](const Tensor& x) { return linalg::det(x); },
        [](const Grid& x) { return Values{inverted(x).second}; }, false));
    all.push_back(of_matrices(
        "linalg::slogdet", {2, 4, 4}, [](const Tensor& x) { return linalg::slogdet(x).logabsdet; },
        [](const Grid& x) { return Values{std::log(std::abs(inverted(x).second))}; }));
    all.push_back(of_matrices(
        "linalg::slogdet", {2, 3, 3}, [](const Tensor& x) { return linalg::slogdet(x).sign; },
        [](const Grid& x) { return Values{inverted(x).second < 0 ? -1.0 : 1.0}; }));
    all.back().differentiable = false;
    all.push_back(of_matrices(
        "linalg::logdet", {2, 3, 3}, [](const Tensor& x) { return linalg::logdet(positive(x)); },
        [](const Grid& x) { return Values{std::log(inverted(positive(x)).second)}; }));
    for (const std::int64_t n : {0, 1, 3, -2}) {
        all.push_back(of_matrices(
            "linalg::matrix_power", {2, 3, 3}, [n](const Tensor& x) { return linalg::matrix_power(steady(x), n); },
            [n](const Grid& x) {
                const Grid one = n < 0 ? inverted(steady(x)).first : steady(x);
                Grid made = identity(3);
                for (std::int64_t i = 0; i < std::abs(n); ++i) made = made * one;
                return made.of;
            }));
        all.back().differentiable = n != 0;
    }
    all.push_back(of_matrices(
        "linalg::matrix_exp", {2, 3, 3}, [](const Tensor& x) { return linalg::matrix_exp(x); },
        [](const Grid& x) {
            Grid made = identity(3), term = identity(3);
            for (int i = 1; i < 60; ++i) term = (1.0 / i) * (term * x), made = made + term;
            return made.of;
        }));
}

void add_norms(std::vector<Case>& all) {
    const auto add = [&](const linalg::NormOrder& order, const GridFunction& reference) {
        all.push_back(of_matrices(
            "linalg::matrix_norm", {2, 3, 4}, [order](const Tensor& x) { return linalg::matrix_norm(x, order); },
            reference));
        all.push_back(of_matrices(
            "linalg::norm", {3, 4}, [order](const Tensor& x) { return linalg::norm(x, order); }, reference));
    };
    const auto sums = [](const Grid& x) {
        Values made;
        for (std::int64_t i = 0; i < x.m; ++i) {
            double sum = 0;
            for (std::int64_t j = 0; j < x.n; ++j) sum += std::abs(x(i, j));
            made.push_back(sum);
        }
        return made;
    };
    const double infinity = std::numeric_limits<double>::infinity();
    const auto root = [](const Grid& x) {
        double sum = 0;
        for (const double value : x.of) sum += value * value;
        return Values{std::sqrt(sum)};
    };
    add("fro", root);
    add("nuc", [](const Grid& x) {
        double sum = 0;
        for (const double singular_value : singular_values(x)) sum += singular_value;
        return Values{sum};
    });
    add(infinity, [=](const Grid& x) { return Values{std::ranges::max(sums(x))}; });
    add(-infinity, [=](const Grid& x) { return Values{std::ranges::min(sums(x))}; });
    add(1, [=](const Grid& x) { return Values{std::ranges::max(sums(turned(x)))}; });
    add(-1, [=](const Grid& x) { return Values{std::ranges::min(sums(turned(x)))}; });
    add(2, [](const Grid& x) { return Values{singular_values(x).front()}; });
    add(-2, [](const Grid& x) { return Values{singular_values(x).back()}; });
    all.push_back(of_matrices(
        "linalg::norm", {3, 4}, [](const Tensor& x) { return linalg::norm(x); }, root));
    all.push_back(of_matrices(
        "linalg::vector_norm", {5, 4}, [](const Tensor& x) { return linalg::vector_norm(x, 3, {-1}); },
        [](const Grid& x) {
            Values made;
            for (std::int64_t i = 0; i < x.m; ++i) {
                double sum = 0;
                for (std::int64_t j = 0; j < x.n; ++j) sum += std::pow(std::abs(x(i, j)), 3);
                made.push_back(std::cbrt(sum));
            }
            return made;
        }));
    all.push_back(of_matrices(
        "linalg::cond", {2, 3, 3}, [](const Tensor& x) { return linalg::cond(steady(x)); },
        [](const Grid& x) {
            const Values s = singular_values(steady(x));
            return Values{s.front() / s.back()};
        }));
    all.push_back(of_matrices(
        "linalg::cond", {3, 3}, [](const Tensor& x) { return linalg::cond(steady(x), 1); },
        [=](const Grid& x) {
            return Values{std::ranges::max(sums(turned(steady(x)))) *
                          std::ranges::max(sums(turned(inverted(steady(x)).first)))};
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
