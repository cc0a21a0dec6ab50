// linalg: factorisations multiplied out in double, sizes from 0 to 128, both kernel styles; solutions, determinants,
// norms; singular matrices, errors.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/functions/linalg.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>
#include <tests/support/contract.hpp>
#include <tests/support/devices.hpp>
#include <tests/support/gradient_check.hpp>
#include <tests/support/values.hpp>

#include "ops/support/work_split.hpp"

using namespace declivity;
using namespace declivity::test;

namespace {

using Values = std::vector<double>;

/// A matrix of the batch on the host.
struct Matrix {
    std::int64_t rows = 0, columns = 0;
    Values elements;

    Matrix(std::int64_t m, std::int64_t n) : rows(m), columns(n), elements(static_cast<std::size_t>(m * n)) {}
    double& at(std::int64_t i, std::int64_t j) { return elements[static_cast<std::size_t>(i * columns + j)]; }
    [[nodiscard]] double at(std::int64_t i, std::int64_t j) const {
        return elements[static_cast<std::size_t>(i * columns + j)];
    }
};

std::vector<Matrix> matrices(const Tensor& x) {
    const std::int64_t m = x.size(-2), n = x.size(-1);
    std::vector<Matrix> all;
    const Values all_elements = values(x);
    for (std::size_t at = 0; m * n > 0 && at < all_elements.size(); at += static_cast<std::size_t>(m * n)) {
        Matrix matrix(m, n);
        std::copy_n(all_elements.begin() + static_cast<std::ptrdiff_t>(at), m * n, matrix.elements.begin());
        all.push_back(matrix);
    }
    return all;
}

Matrix operator*(const Matrix& a, const Matrix& b) {
    Matrix out(a.rows, b.columns);
    for (std::int64_t i = 0; i < a.rows; ++i)
        for (std::int64_t k = 0; k < a.columns; ++k)
            for (std::int64_t j = 0; j < b.columns; ++j) out.at(i, j) += a.at(i, k) * b.at(k, j);
    return out;
}

Matrix transposed(const Matrix& a) {
    Matrix out(a.columns, a.rows);
    for (std::int64_t i = 0; i < a.rows; ++i)
        for (std::int64_t j = 0; j < a.columns; ++j) out.at(j, i) = a.at(i, j);
    return out;
}

Matrix scaled_columns(const Matrix& a, const Values& factors) {
    Matrix out = a;
    for (std::int64_t i = 0; i < a.rows; ++i)
        for (std::int64_t j = 0; j < a.columns; ++j) out.at(i, j) *= factors[static_cast<std::size_t>(j)];
    return out;
}

/// The largest difference relative to the largest element, or 1, in units of the type's eps.
double error_in_ulps(const Matrix& a, const Matrix& b, DType dtype) {
    double largest = 1, worst = 0;
    for (const double x : a.elements) largest = std::max(largest, std::abs(x));
    for (std::size_t i = 0; i < a.elements.size(); ++i) {
        const double d = std::abs(a.elements[i] - b.elements[i]);
        worst = d > worst || std::isnan(d) ? d : worst;
    }
    return worst / largest / (dtype == DType::f64 ? 0x1p-52 : 0x1p-23);
}

/// Deviation of columns from orthonormality, in eps.
double skew(const Matrix& a, DType dtype) {
    Matrix identity(a.columns, a.columns);
    for (std::int64_t i = 0; i < a.columns; ++i) identity.at(i, i) = 1;
    return error_in_ulps(identity, transposed(a) * a, dtype);
}

/// Largest element above (below) the diagonal.
double largest_in_triangle(const Matrix& a, bool upper_part) {
    double worst = 0;
    for (std::int64_t i = 0; i < a.rows; ++i)
        for (std::int64_t j = 0; j < a.columns; ++j)
            if (upper_part ? j > i : j < i) worst = std::max(worst, std::abs(a.at(i, j)));
    return worst;
}

std::vector<std::int64_t> sizes() {
    return small_cases() ? std::vector<std::int64_t>{1, 3, 7}
                         : std::vector<std::int64_t>{1, 2, 3, 7, 16, 33, 64, 100, 128};
}

/// Additional row counts, for the smaller sizes.
std::vector<std::int64_t> rows_for(std::int64_t n) {
    return n > 40 ? std::vector{n, n + 3} : std::vector{n, n / 2 + 1, 2 * n + 1};
}

Tensor positive(std::int64_t batch, std::int64_t n, DType dtype, std::uint64_t seed) {
    const Tensor x = random_tensor({batch, n, n}, seed, dtype);
    return matmul(x, transpose(x)) + diag_embed(ones({batch, n}, {dtype}));
}

void for_each_size(const std::function<void(std::int64_t n, DType dtype)>& check) {
    for (const KernelStyle style : kernel_styles()) {
        const ops::KernelStyleScope scope(style);
        for (const DType dtype : floats())
            for (const std::int64_t n : sizes()) {
                // Kernels of the other style are slow to compile here.
                if (style != kernel_styles().front() && n > 40 && (n != 100 || dtype == DType::f64)) continue;
                CAPTURE(static_cast<int>(style));
                CAPTURE(name_of(dtype));
                CAPTURE(n);
                check(n, dtype);
            }
    }
}

}  // namespace

TEST_CASE("linalg: determinant, inverse, solution and factors of 2 x 2 matrices") {
    const Tolerance allowed{1e-5, 1e-5};
    const Tensor a = tensor({1, 2, 3, 4}, {2, 2}), symmetric = tensor({4, 2, 2, 5}, {2, 2});
    CHECK(difference(linalg::det(a), {-2}, allowed) == "");
    CHECK(difference(linalg::inv(a), {-2, 1, 1.5, -0.5}, allowed) == "");
    CHECK(difference(linalg::cholesky(symmetric), {2, 0, 1, 2}, allowed) == "");
    // 4 * 1 + 2 * 2 = 8, 2 * 1 + 5 * 2 = 12.
    CHECK(difference(linalg::solve(symmetric, tensor({8, 12}, {2})), {1, 2}, allowed) == "");
    CHECK(difference(linalg::eigvalsh(tensor({2, 1, 1, 2}, {2, 2})), {1, 3}, allowed) == "");
    CHECK(difference(linalg::svdvals(tensor({0, 2, 3, 0}, {2, 2})), {3, 2}, allowed) == "");
    CHECK(difference(linalg::matrix_norm(a), {std::sqrt(1.0 + 4 + 9 + 16)}, allowed) == "");
}

TEST_CASE("linalg: cholesky reconstructs the matrix") {
    for_each_size([](std::int64_t n, DType dtype) {
        const Tensor a = positive(2, n, dtype, 1);
        for (const bool upper : {false, true}) {
            const auto [factor, info] = linalg::cholesky_ex(a, upper);
            CHECK(values(info) == Values{0, 0});
            const auto expected = matrices(a), got = matrices(factor);
            for (std::size_t i = 0; i < 2; ++i) {
                CHECK(largest_in_triangle(got[i], !upper) == 0);
                const Matrix l = upper ? transposed(got[i]) : got[i];
                CHECK(error_in_ulps(expected[i], l * transposed(l), dtype) < 4 + static_cast<double>(n));
            }
        }
    });
}

TEST_CASE("linalg: lu reconstructs the matrix with its permutation") {
    for_each_size([](std::int64_t n, DType dtype) {
        for (const std::int64_t m : rows_for(n)) {
            const Tensor a = random_tensor({2, m, n}, 3, dtype);
            const auto [p, l, u] = linalg::lu(a);
            const auto expected = matrices(a), ps = matrices(p), ls = matrices(l), us = matrices(u);
            for (std::size_t i = 0; i < 2; ++i) {
                CHECK(largest_in_triangle(ls[i], true) == 0);
                CHECK(largest_in_triangle(us[i], false) == 0);
                CHECK(std::ranges::all_of(ls[i].elements, [](double x) { return std::abs(x) <= 1; }));
                CHECK(error_in_ulps(expected[i], ps[i] * (ls[i] * us[i]), dtype) < 4 + static_cast<double>(n));
            }
            const auto packed = linalg::lu_factor(a);
            CHECK(values(linalg::lu_unpack(packed.lu, packed.pivots).p) == values(p));
        }
    });
}

TEST_CASE("linalg: qr has orthonormal columns and reconstructs the matrix") {
    for_each_size([](std::int64_t n, DType dtype) {
        for (const std::int64_t m : rows_for(n))
            for (const char* mode : {"reduced", "complete", "r"}) {
                CAPTURE(mode);
                const Tensor a = random_tensor({2, m, n}, 5, dtype);
                const auto [q, r] = linalg::qr(a, mode);
                const auto expected = matrices(a), rs = matrices(r);
                if (std::string(mode) == "r") {
                    CHECK(q.shape() == Shape{0});
                    CHECK(values(r) == values(linalg::qr(a).r));
                    continue;
                }
                const auto qs = matrices(q);
                for (std::size_t i = 0; i < 2; ++i) {
                    CHECK(largest_in_triangle(rs[i], false) == 0);
                    CHECK(skew(qs[i], dtype) < 8 + static_cast<double>(n));
                    CHECK(error_in_ulps(expected[i], qs[i] * rs[i], dtype) < 8 + static_cast<double>(n));
                }
            }
    });
}

TEST_CASE("linalg: eigh has orthonormal vectors and sorted values") {
    for_each_size([](std::int64_t n, DType dtype) {
        const Tensor x = random_tensor({2, n, n}, 7, dtype);
        const Tensor a = x + transpose(x);
        for (const char* uplo : {"L", "U"}) {
            // The other triangle is ignored.
            const Tensor one_triangle = uplo[0] == 'L' ? tril(a) + triu(x * 3.0, 1) : triu(a) + tril(x * 3.0, -1);
            const auto [w, v] = linalg::eigh(one_triangle, uplo);
            const auto expected = matrices(a), vs = matrices(v);
            const Values ws = values(w);
            for (std::size_t i = 0; i < 2; ++i) {
                const Values eigenvalues(ws.begin() + static_cast<std::ptrdiff_t>(i) * n,
                                         ws.begin() + static_cast<std::ptrdiff_t>(i + 1) * n);
                CHECK(std::ranges::is_sorted(eigenvalues));
                CHECK(skew(vs[i], dtype) < 16 + static_cast<double>(n) / 2);
                CHECK(error_in_ulps(expected[i], scaled_columns(vs[i], eigenvalues) * transposed(vs[i]), dtype) <
                      16 + 2 * static_cast<double>(n));
            }
            CHECK(difference(linalg::eigvalsh(one_triangle, uplo), ws,
                             tolerance(dtype, 4.0 * static_cast<double>(n), 1)) == "");
        }
    });
}

TEST_CASE("linalg: svd has orthonormal vectors and sorted values, with full and deficient rank") {
    for_each_size([](std::int64_t n, DType dtype) {
        for (const std::int64_t m : n > 40 ? std::vector{n + 3} : rows_for(n))
            for (const std::int64_t rank : {std::min(m, n), std::min(m, n) / 2}) {
                Tensor a = random_tensor({2, m, n}, 9, dtype);
                if (rank < std::min(m, n))
                    a = rank == 0
                            ? a * 0.0
                            : matmul(random_tensor({2, m, rank}, 9, dtype), random_tensor({2, rank, n}, 10, dtype));
                CAPTURE(m);
                CAPTURE(rank);
                for (const bool full : {false, true}) {
                    const auto [u, s, vh] = linalg::svd(a, full);
                    const std::int64_t k = std::min(m, n);
                    CHECK(u.shape() == Shape{2, m, full ? m : k});
                    CHECK(vh.shape() == Shape{2, full ? n : k, n});
                    const auto expected = matrices(a), us = matrices(u), vs = matrices(transpose(vh));
                    const auto left = matrices(slice(u, 2, 0, k)), right = matrices(slice(vh, 1, 0, k));
                    const Values ss = values(s);
                    for (std::size_t i = 0; i < 2; ++i) {
                        const Values singular_values(ss.begin() + static_cast<std::ptrdiff_t>(i) * k,
                                                     ss.begin() + static_cast<std::ptrdiff_t>(i + 1) * k);
                        CHECK(std::ranges::is_sorted(singular_values, std::ranges::greater()));
                        CHECK(singular_values.back() >= 0);
                        CHECK(skew(us[i], dtype) < 16 + static_cast<double>(n));
                        CHECK(skew(vs[i], dtype) < 16 + static_cast<double>(n));
                        CHECK(error_in_ulps(expected[i], scaled_columns(left[i], singular_values) * right[i], dtype) <
                              16 + static_cast<double>(n));
                    }
                    CHECK(difference(linalg::svdvals(a), ss, tolerance(dtype, 4.0 * static_cast<double>(n), 1)) == "");
                }
            }
    });
}

TEST_CASE("linalg: triangular solve, solve, inverse") {
    for_each_size([](std::int64_t n, DType dtype) {
        const Tensor x = random_tensor({2, n, n}, 11, dtype) * (1.0 / static_cast<double>(n)) +
                         diag_embed(ones({2, n}, {dtype}) * 2.0);
        const Values two{2};
        for (const std::int64_t k : n > 40 ? std::vector<std::int64_t>{1, 37} : std::vector<std::int64_t>{1, 5, 37}) {
            CAPTURE(k);
            const Tensor b = random_tensor({2, n, k}, 13, dtype);
            const auto bs = matrices(b);
            for (const bool upper : {false, true})
                for (const bool left : {false, true})
                    for (const bool unit : {false, true}) {
                        const Tensor right_sides = left ? b : transpose(b);
                        const auto got = matrices(linalg::solve_triangular(
                            x, right_sides, {.upper = upper, .left = left, .unitriangular = unit}));
                        Tensor triangle = upper ? triu(x) : tril(x);
                        if (unit) triangle = (upper ? triu(x, 1) : tril(x, -1)) + diag_embed(ones({2, n}, {dtype}));
                        const auto as = matrices(triangle);
                        for (std::size_t i = 0; i < 2; ++i)
                            CHECK(error_in_ulps(bs[i], left ? as[i] * got[i] : transposed(got[i] * as[i]), dtype) <
                                  16 + static_cast<double>(n));
                    }
            const auto as = matrices(x);
            for (const bool left : {false, true}) {
                const auto got = matrices(linalg::solve(x, left ? b : transpose(b), left));
                for (std::size_t i = 0; i < 2; ++i)
                    CHECK(error_in_ulps(bs[i], left ? as[i] * got[i] : transposed(got[i] * as[i]), dtype) <
                          16 + static_cast<double>(n));
                const auto packed = linalg::lu_factor(x);
                for (const bool adjoint : {false, true}) {
                    const auto other =
                        matrices(linalg::lu_solve(packed.lu, packed.pivots, left ? b : transpose(b), left, adjoint));
                    for (std::size_t i = 0; i < 2; ++i) {
                        const Matrix a = adjoint ? transposed(as[i]) : as[i];
                        CHECK(error_in_ulps(bs[i], left ? a * other[i] : transposed(other[i] * a), dtype) <
                              16 + static_cast<double>(n));
                    }
                }
            }
            const Tensor p = positive(2, n, dtype, 15);
            const auto ps = matrices(p);
            for (const bool upper : {false, true}) {
                const Tensor factor = linalg::cholesky(p, upper);
                const auto solution = matrices(linalg::cholesky_solve(b, factor, upper));
                for (std::size_t i = 0; i < 2; ++i)
                    CHECK(error_in_ulps(bs[i], ps[i] * solution[i], dtype) < 50 * (16 + static_cast<double>(n)));
            }
        }
        const auto as = matrices(x), inverses = matrices(linalg::inv(x));
        for (std::size_t i = 0; i < 2; ++i) CHECK(skew(as[i] * inverses[i], dtype) < 32 + static_cast<double>(n));
    });
}

TEST_CASE("linalg: empty matrices and empty batches") {
    for (const Shape& shape : {Shape{0, 0}, Shape{0, 3, 3}, Shape{2, 0, 0}}) {
        CAPTURE(shape.str());
        const Tensor a = zeros(shape).set_requires_grad();
        Shape front;
        if (shape.rank() == 3) front.push_back(shape[0]);
        CHECK(linalg::cholesky(a).shape() == shape);
        CHECK(linalg::inv(a).shape() == shape);
        CHECK(linalg::qr(a, "complete").q.shape() == shape);
        CHECK(linalg::svd(a).vh.shape() == shape);
        CHECK(linalg::eigh(a).vectors.shape() == shape);
        CHECK(linalg::pinv(a).shape() == shape);
        CHECK(linalg::matrix_exp(a).shape() == shape);
        CHECK(linalg::lu(a).p.shape() == shape);
        const Tensor d = linalg::det(a);
        CHECK(d.shape() == front);
        for (const double value : values(d)) CHECK(value == 1);
        sum(linalg::inv(a)).backward();
        CHECK(a.grad().shape() == shape);
    }
    CHECK(values(linalg::cholesky_ex(zeros({2, 0, 0})).info) == Values{0, 0});
    const auto [q, r] = linalg::qr(zeros({3, 0}), "complete");
    CHECK(values(q) == Values{1, 0, 0, 0, 1, 0, 0, 0, 1});
    CHECK(r.shape() == Shape{3, 0});
    CHECK(linalg::svd(zeros({3, 0})).u.shape() == Shape{3, 3});
    CHECK(linalg::matrix_rank(zeros({3, 0})).item<std::int64_t>() == 0);
}

TEST_CASE("linalg: a failed factorisation gives NaN, and info reports it") {
    for (const KernelStyle style : kernel_styles()) {
        const ops::KernelStyleScope scope(style);
        const Tensor indefinite = tensor({4, 2, 2, 2, 1, 3, 2, 3, 9, 1, 0, 0, 0, 1, 0, 0, 0, 1}, {2, 3, 3});
        const auto checked = linalg::cholesky_ex(indefinite);
        CHECK(values(checked.info) == Values{2, 0});
        const Values l = values(checked.factor);
        CHECK(l[0] == 2);
        CHECK(l[3] == 1);
        CHECK(std::isnan(l[4]));
        CHECK(std::isnan(l[8]));
        CHECK(Values(l.begin() + 9, l.end()) == Values{1, 0, 0, 0, 1, 0, 0, 0, 1});

        const Tensor singular = tensor({1, 2, 2, 4}, {2, 2});
        const auto inverse = linalg::inv_ex(singular);
        CHECK(values(inverse.info) == Values{2});
        CHECK_FALSE(std::isfinite(values(inverse.inverse)[3]));
        CHECK(values(linalg::solve_ex(singular, tensor({1, 2}, {2})).info) == Values{2});
        CHECK(values(linalg::lu_factor_ex(singular).info) == Values{2});
        CHECK(linalg::det(singular).item<float>() == 0);
        const auto both = linalg::slogdet(singular);
        CHECK(both.sign.item<float>() == 0);
        CHECK(values(both.logabsdet)[0] == -std::numeric_limits<double>::infinity());
        CHECK(std::isnan(values(linalg::logdet(tensor({0, 1, 1, 0}, {2, 2})))[0]));
    }
}

TEST_CASE("linalg: the gradient of the determinant is that of the cofactors, also for singular matrices") {
    if (!device().info().fp64) return;
    // Rank 2 and rank 1 of 3.
    for (const Values& elements : {Values{1, 2, 3, 2, 4, 6, 1, 0, 1}, Values{1, 2, 3, 2, 4, 6, 3, 6, 9}}) {
        const Tensor a = tensor(elements, {3, 3}, DType::f64).set_requires_grad();
        Values cofactors;
        for (std::size_t i = 0; i < 3; ++i)
            for (std::size_t j = 0; j < 3; ++j) {
                const auto at = [&](std::size_t r, std::size_t c) { return elements[(i + r) % 3 * 3 + (j + c) % 3]; };
                cofactors.push_back(at(1, 1) * at(2, 2) - at(1, 2) * at(2, 1));
            }
        CHECK(difference(grad({linalg::det(a)}, {a})[0], cofactors, {1e-12, 1e-12}) == "");
        CHECK(difference(grad({linalg::det(a)}, {a}, {.create_graph = true})[0], cofactors, {1e-10, 1e-10}) == "");
    }
}

TEST_CASE("linalg: magnitudes whose squares overflow") {
    const Tensor x = random_tensor({5, 3}, 1);
    for (const double scale : {1e-25, 1e25}) {
        const Tensor a = x * scale;
        const auto [q, r] = linalg::qr(a);
        CHECK(skew(matrices(q)[0], DType::f32) < 16);
        CHECK(difference(linalg::svdvals(a) * (1 / scale), values(linalg::svdvals(x)), tolerance(DType::f32, 30)) ==
              "");
    }
}

TEST_CASE("linalg: matrices of several hundred rows") {
    if (small_cases()) return;
    const Tensor x = random_tensor({300, 300}, 1);
    const auto a = matrices(x);
    const auto [u, s, vh] = linalg::svd(x);
    CHECK(error_in_ulps(a[0], scaled_columns(matrices(u)[0], values(s)) * matrices(vh)[0], DType::f32) < 600);
    const auto [p, l, upper] = linalg::lu(x);
    CHECK(error_in_ulps(a[0], matrices(p)[0] * (matrices(l)[0] * matrices(upper)[0]), DType::f32) < 600);
    const auto [q, r] = linalg::qr(x);
    CHECK(error_in_ulps(a[0], matrices(q)[0] * matrices(r)[0], DType::f32) < 600);
}

TEST_CASE("linalg: broadcast batch axes, vectors, f16 and bf16") {
    const Tensor a = random_tensor({2, 1, 3, 3}, 1) + diag_embed(ones({3})) * 3.0, b = random_tensor({4, 3, 2}, 2);
    const Tensor x = linalg::solve(a, b);
    CHECK(x.shape() == Shape{2, 4, 3, 2});
    CHECK(difference(matmul(a, x), values(expand(b, {2, 4, 3, 2})), tolerance(DType::f32, 30)) == "");
    const Tensor triangles = linalg::solve_triangular(a, b, {.upper = true});
    CHECK(difference(matmul(triu(a), triangles), values(expand(b, {2, 4, 3, 2})), tolerance(DType::f32, 30)) == "");
    CHECK(linalg::solve(random_tensor({2, 3, 3}, 1), ones({2, 3})).shape() == Shape{2, 3});
    CHECK(linalg::solve(random_tensor({2, 3, 3}, 1), ones({3})).shape() == Shape{2, 3});
    for (const DType half : {DType::f16, DType::bf16}) {
        const Tensor reduced = a.to(half);
        CHECK(linalg::inv(reduced).dtype() == half);
        CHECK(values(linalg::inv(reduced)) == values(linalg::inv(reduced.to(DType::f32)).to(half)));
        CHECK(values(linalg::svd(reduced).s) == values(linalg::svd(reduced.to(DType::f32)).s.to(half)));
    }
}

TEST_CASE("linalg: errors name the called function") {
    struct InvalidCall {
        std::string name;
        std::function<void()> call;
    };
    const Tensor flat = zeros({2, 3}), square = zeros({3, 3}), integers = zeros({3, 3}, {DType::i32}), row = zeros({3});
    const Tensor x_f16 = zeros({3, 3}, {DType::f16}), batch = zeros({2, 3, 3});
    const std::vector<InvalidCall> mistakes{
        {"linalg::cholesky", [&] { (void)linalg::cholesky(flat); }},
        {"linalg::cholesky", [&] { (void)linalg::cholesky(integers); }},
        {"linalg::cholesky_ex", [&] { (void)linalg::cholesky_ex(row); }},
        {"linalg::cholesky_solve", [&] { (void)linalg::cholesky_solve(flat, square); }},
        {"linalg::cholesky_inverse", [&] { (void)linalg::cholesky_inverse(flat); }},
        {"linalg::lu", [&] { (void)linalg::lu(row); }},
        {"linalg::lu_factor", [&] { (void)linalg::lu_factor(integers); }},
        {"linalg::lu_unpack", [&] { (void)linalg::lu_unpack(square, row); }},
        {"linalg::lu_solve", [&] { (void)linalg::lu_solve(square, zeros({2}, {DType::i32}), square); }},
        {"linalg::lu_solve", [&] { (void)linalg::lu_solve(square, zeros({3}, {DType::i32}), flat); }},
        {"linalg::qr", [&] { (void)linalg::qr(square, "some"); }},
        {"linalg::eigh", [&] { (void)linalg::eigh(square, "X"); }},
        {"linalg::eigvalsh", [&] { (void)linalg::eigvalsh(flat); }},
        {"linalg::svd", [&] { (void)linalg::svd(row); }},
        {"linalg::svdvals", [&] { (void)linalg::svdvals(integers); }},
        {"linalg::solve_triangular", [&] { (void)linalg::solve_triangular(square, flat, {.upper = true}); }},
        {"linalg::solve_triangular", [&] { (void)linalg::solve_triangular(square, x_f16, {.upper = true}); }},
        {"linalg::solve", [&] { (void)linalg::solve(square, flat); }},
        {"linalg::solve", [&] { (void)linalg::solve(square, row, false); }},
        {"linalg::solve_ex",
         [&] {
             (void)linalg::solve_ex(batch, zeros({4, 3, 1}));
         }},
        {"linalg::inv", [&] { (void)linalg::inv(flat); }},
        {"linalg::inv_ex", [&] { (void)linalg::inv_ex(row); }},
        {"linalg::lstsq", [&] { (void)linalg::lstsq(square, flat); }},
        {"linalg::tensorinv", [&] { (void)linalg::tensorinv(flat, 1); }},
        {"linalg::tensorinv", [&] { (void)linalg::tensorinv(square, 0); }},
        {"linalg::tensorsolve", [&] { (void)linalg::tensorsolve(flat, row); }},
        {"linalg::pinv", [&] { (void)linalg::pinv(square, {.rtol = -1}); }},
        {"linalg::matrix_rank", [&] { (void)linalg::matrix_rank(flat, {.hermitian = true}); }},
        {"linalg::det", [&] { (void)linalg::det(flat); }},
        {"linalg::slogdet", [&] { (void)linalg::slogdet(integers); }},
        {"linalg::logdet", [&] { (void)linalg::logdet(row); }},
        {"linalg::matrix_power", [&] { (void)linalg::matrix_power(flat, 2); }},
        {"linalg::matrix_power", [&] { (void)linalg::matrix_power(integers, -1); }},
        {"linalg::matrix_exp", [&] { (void)linalg::matrix_exp(flat); }},
        {"linalg::vector_norm", [&] { (void)linalg::vector_norm(integers); }},
        {"linalg::matrix_norm", [&] { (void)linalg::matrix_norm(square, 3); }},
        {"linalg::matrix_norm", [&] { (void)linalg::matrix_norm(square, "fro", {0}); }},
        {"linalg::matrix_norm",
         [&] {
             (void)linalg::matrix_norm(square, "fro", {0, -2});
         }},
        {"linalg::norm", [&] { (void)linalg::norm(batch, 2); }},
        {"linalg::norm", [&] { (void)linalg::norm(row, "nuc"); }},
        {"linalg::cond", [&] { (void)linalg::cond(flat, 1); }},
    };
    for (const InvalidCall& mistake : mistakes) {
        std::string message = "nothing was thrown";
        try {
            mistake.call();
        } catch (const Error& error) {
            message = error.what();
        }
        CHECK_MESSAGE(message.starts_with(mistake.name + ": "), mistake.name << " says: " << message);
    }
}
