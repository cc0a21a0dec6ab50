// linalg: factorisations.
#include <algorithm>
#include <string>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/functions/linalg.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <declivity/tensor/function_call.hpp>
#include <fmt/format.h>

#include "functions/support/axes.hpp"
#include "matrices.hpp"

namespace declivity::linalg {
namespace {

using detail::Batch;

void require_pivots(const char* name, const Tensor& lu, const Tensor& pivots) {
    detail::require_matrices(name, "lu", lu);
    if (pivots.dtype() != DType::i32 && pivots.dtype() != DType::i64)
        throw TypeError(fmt::format("{}: expected pivots of i32 or i64, got {}", name, name_of(pivots.dtype())));
    ops::require_same_device(name, lu.device(), pivots.device());
    ops::require_shape(name, "pivots", pivots.shape(),
                       detail::append_dims(detail::batch_shape_of(lu), {std::min(lu.size(-1), lu.size(-2))}));
}

bool upper_of(const char* name, std::string_view uplo) {
    if (uplo == "U" || uplo == "u") return true;
    if (uplo == "L" || uplo == "l") return false;
    throw ValueError(fmt::format("{}: expected uplo \"L\" or \"U\", got \"{}\"", name, uplo));
}

FactorInfo factor_cholesky(const char* name, const Tensor& a, bool upper) {
    detail::require_square(name, "a", a);
    const Batch batch(a);
    const auto [factor, info] = detail::cholesky_factor(upper ? transpose(batch.x()) : batch.x());
    return {batch.restore(upper ? transpose(factor) : factor), batch.restore(info)};
}

LuFactorsInfo lu_of(const char* name, const Tensor& a) {
    detail::require_matrices(name, "a", a);
    const Batch batch(a);
    const detail::LuParts parts = detail::lu_parts(batch.x());
    return {batch.restore(parts.lu), batch.restore(parts.pivots), batch.restore(parts.info)};
}

/// Permutation matrix P of row indices (batch, m).
Tensor permutation(const Tensor& rows, DType dtype) {
    // Row i of L U is row rows[i] of A: P[rows[i]][i] = 1.
    const std::int64_t m = rows.size(1);
    const Tensor indices = arange(0, m, 1, {DType::i64, rows.device()});
    return (unsqueeze(indices, 1) == unsqueeze(rows, 1)).to(dtype);
}

Lu unpacked(const Tensor& lu, const Tensor& rows) {
    const std::int64_t m = lu.size(1), n = lu.size(2), k = std::min(m, n);
    return {permutation(rows, lu.dtype()), tril(slice(lu, 2, 0, k), -1) + detail::identity_like(lu, m, k),
            triu(slice(lu, 1, 0, k))};
}

}  // namespace

Tensor cholesky(const Tensor& a, bool upper) {
    const FunctionCall call("linalg::cholesky", {{"a", a}}, {{"upper", upper}});
    call.require_defined({"a"});
    return call.result(factor_cholesky("linalg::cholesky", a, upper).factor);
}

FactorInfo cholesky_ex(const Tensor& a, bool upper) {
    const FunctionCall call("linalg::cholesky_ex", {{"a", a}}, {{"upper", upper}});
    call.require_defined({"a"});
    const FactorInfo result = factor_cholesky("linalg::cholesky_ex", a, upper);
    call.results({result.factor, result.info});
    return result;
}

Tensor cholesky_solve(const Tensor& b, const Tensor& factor, bool upper) {
    constexpr auto* name = "linalg::cholesky_solve";
    const FunctionCall call(name, {{"b", b}, {"factor", factor}}, {{"upper", upper}});
    call.require_defined({"b", "factor"});
    detail::require_square(name, "factor", factor);
    detail::require_matrices(name, "b", b);
    ops::require_alike(name, "factor", factor.dtype(), factor.device(), "b", b.dtype(), b.device());
    if (b.size(-2) != factor.size(-1))
        throw ShapeError(
            fmt::format("{}: expected b of shape (..., n, k) for a factor of shape (..., n, n), got {} and {}", name,
                        b.shape().str(), factor.shape().str()));
    const auto [left, right] = detail::broadcast_batches(name, factor, b);
    const Batch triangles(left), sides(right);
    const Tensor first = detail::solve_triangular(triangles.x(), sides.x(), {.upper = upper, .transposed = upper});
    return call.result(
        sides.restore(detail::solve_triangular(triangles.x(), first, {.upper = upper, .transposed = !upper})));
}

Tensor cholesky_inverse(const Tensor& factor, bool upper) {
    constexpr auto* name = "linalg::cholesky_inverse";
    const FunctionCall call(name, {{"factor", factor}}, {{"upper", upper}});
    call.require_defined({"factor"});
    detail::require_square(name, "factor", factor);
    const Tensor identity = detail::identity_like(factor, factor.size(-1), factor.size(-1));
    return call.result(cholesky_solve(expand(identity, factor.shape()), factor, upper));
}

LuFactors lu_factor(const Tensor& a) {
    const FunctionCall call("linalg::lu_factor", {{"a", a}});
    call.require_defined({"a"});
    const LuFactorsInfo result = lu_of("linalg::lu_factor", a);
    call.results({result.lu, result.pivots});
    return {result.lu, result.pivots};
}

LuFactorsInfo lu_factor_ex(const Tensor& a) {
    const FunctionCall call("linalg::lu_factor_ex", {{"a", a}});
    call.require_defined({"a"});
    const LuFactorsInfo result = lu_of("linalg::lu_factor_ex", a);
    call.results({result.lu, result.pivots, result.info});
    return result;
}

Lu lu(const Tensor& a) {
    const FunctionCall call("linalg::lu", {{"a", a}});
    call.require_defined({"a"});
    detail::require_matrices("linalg::lu", "a", a);
    const Batch batch(a);
    const detail::LuParts parts = detail::lu_parts(batch.x());
    const Lu unpacked_parts = unpacked(parts.lu, parts.permutation);
    const Lu result{batch.restore(unpacked_parts.p), batch.restore(unpacked_parts.l), batch.restore(unpacked_parts.u)};
    call.results({result.p, result.l, result.u});
    return result;
}

Lu lu_unpack(const Tensor& lu, const Tensor& pivots) {
    constexpr auto* name = "linalg::lu_unpack";
    const FunctionCall call(name, {{"lu", lu}, {"pivots", pivots}});
    call.require_defined({"lu", "pivots"});
    require_pivots(name, lu, pivots);
    const Batch batch(lu), pivot_batch(pivots, 1);
    const Lu unpacked_parts = unpacked(batch.x(), detail::rows_of_pivots(pivot_batch.x(), lu.size(-2)));
    const Lu result{batch.restore(unpacked_parts.p), batch.restore(unpacked_parts.l), batch.restore(unpacked_parts.u)};
    call.results({result.p, result.l, result.u});
    return result;
}

Tensor lu_solve(const Tensor& lu, const Tensor& pivots, const Tensor& b, bool left, bool adjoint) {
    constexpr auto* name = "linalg::lu_solve";
    const FunctionCall call(name, {{"lu", lu}, {"pivots", pivots}, {"b", b}}, {{"left", left}, {"adjoint", adjoint}});
    call.require_defined({"lu", "pivots", "b"});
    detail::require_square(name, "lu", lu);
    require_pivots(name, lu, pivots);
    detail::require_matrices(name, "b", b);
    ops::require_alike(name, "lu", lu.dtype(), lu.device(), "b", b.dtype(), b.device());
    if (b.size(left ? -2 : -1) != lu.size(-1))
        throw ShapeError(fmt::format("{}: expected b {} for factors (..., n, n), got {} and {}", name,
                                     left ? "(..., n, k)" : "(..., k, n)", b.shape().str(), lu.shape().str()));
    // X A = B: A^T X^T = B^T.
    const Tensor sides = left ? b : transpose(b);
    const auto [factors, right] = detail::broadcast_batches(name, lu, sides);
    const Tensor expanded_pivots = expand(pivots, detail::append_dims(detail::batch_shape_of(factors), {lu.size(-1)}));
    const Batch batch(factors), b_batch(right), pivot_batch(expanded_pivots, 1);
    const Tensor x = b_batch.restore(detail::solve_with_lu(
        batch.x(), detail::rows_of_pivots(pivot_batch.x(), lu.size(-1)), b_batch.x(), adjoint == left));
    return call.result(left ? x : transpose(x));
}

Qr qr(const Tensor& a, std::string_view mode) {
    constexpr auto* name = "linalg::qr";
    const FunctionCall call(name, {{"a", a}}, {{"mode", mode}});
    call.require_defined({"a"});
    detail::require_matrices(name, "a", a);
    if (mode != "reduced" && mode != "complete" && mode != "r")
        throw ValueError(fmt::format("{}: expected mode \"reduced\", \"complete\" or \"r\", got \"{}\"", name, mode));
    const Batch batch(a);
    Qr result;
    if (mode == "r") {
        result.r = batch.restore(detail::qr_r(batch.x()));
        result.q = zeros({0}, {a.dtype(), a.device()});
    } else {
        const std::int64_t columns = mode == "complete" ? a.size(-2) : std::min(a.size(-1), a.size(-2));
        const auto [q, r] = detail::qr_parts(batch.x(), columns);
        result = {batch.restore(q), batch.restore(r)};
    }
    call.results({result.q, result.r});
    return result;
}

Eigh eigh(const Tensor& a, std::string_view uplo) {
    const FunctionCall call("linalg::eigh", {{"a", a}}, {{"uplo", uplo}});
    call.require_defined({"a"});
    detail::require_square("linalg::eigh", "a", a);
    const bool upper = upper_of("linalg::eigh", uplo);
    const Batch batch(a);
    const auto [values, vectors] = detail::eigh_parts(batch.x(), upper);
    const Eigh result{batch.restore(values), batch.restore(vectors)};
    call.results({result.values, result.vectors});
    return result;
}

Tensor eigvalsh(const Tensor& a, std::string_view uplo) {
    const FunctionCall call("linalg::eigvalsh", {{"a", a}}, {{"uplo", uplo}});
    call.require_defined({"a"});
    detail::require_square("linalg::eigvalsh", "a", a);
    const bool upper = upper_of("linalg::eigvalsh", uplo);
    const Batch batch(a);
    return call.result(batch.restore(detail::eigh_values(batch.x(), upper)));
}

Svd svd(const Tensor& a, bool full_matrices) {
    const FunctionCall call("linalg::svd", {{"a", a}}, {{"full_matrices", full_matrices}});
    call.require_defined({"a"});
    detail::require_matrices("linalg::svd", "a", a);
    const Batch batch(a);
    const detail::SvdParts parts = detail::svd_parts(batch.x(), full_matrices);
    const Svd result{batch.restore(parts.u), batch.restore(parts.s), batch.restore(parts.vh)};
    call.results({result.u, result.s, result.vh});
    return result;
}

Tensor svdvals(const Tensor& a) {
    const FunctionCall call("linalg::svdvals", {{"a", a}});
    call.require_defined({"a"});
    detail::require_matrices("linalg::svdvals", "a", a);
    const Batch batch(a);
    return call.result(batch.restore(detail::svd_values(batch.x())));
}

}  // namespace declivity::linalg
