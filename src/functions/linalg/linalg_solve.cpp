// linalg: linear systems, inverses, determinants and powers.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/functions/linalg.hpp>
#include <declivity/functions/products.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <declivity/tensor/function_call.hpp>
#include <fmt/format.h>

#include "matrices.hpp"
#include "tensor/reduced_precision.hpp"

namespace declivity::linalg {
namespace {

using detail::Batch;

void require_sides(const char* name, const Tensor& a, const Tensor& b, bool left) {
    detail::require_matrices(name, "b", b);
    ops::require_alike(name, "a", a.dtype(), a.device(), "b", b.dtype(), b.device());
    if (b.size(left ? -2 : -1) != a.size(-1))
        throw ShapeError(fmt::format("{}: expected b {} for a (..., n, n), got {} and {}", name,
                                     left ? "(..., n, k)" : "(..., k, n)", b.shape().str(), a.shape().str()));
}

SolutionInfo solution(const char* name, const Tensor& a, const Tensor& b, bool left) {
    detail::require_square(name, "a", a);
    ops::require_real(name, "b", b.dtype());
    // Like PyTorch: b is a batch of vectors if it has the axes of a but the last.
    Shape of_vectors = a.shape();
    of_vectors.erase(of_vectors.rank() - 1);
    const bool vectors = b.rank() == 1 || (b.rank() + 1 == a.rank() && b.shape() == of_vectors);
    if (vectors && !left)
        throw ValueError(fmt::format("{}: expected matrices b of X A = B, got vectors {}", name, b.shape().str()));
    if (vectors && b.shape().back() != a.shape().back())
        throw ShapeError(fmt::format("{}: expected vectors b of {} elements, the number of rows of a {}, got {}", name,
                                     a.shape().back(), a.shape().str(), b.shape().str()));
    const Tensor sides = vectors ? unsqueeze(b, -1) : left ? b : transpose(b);
    require_sides(name, a, sides, true);
    // X A = B: A^T X^T = B^T.
    const auto [matrices, right] = detail::stretched(name, left ? a : transpose(a), sides);
    const Batch batch(matrices), of_b(right);
    Tensor info;
    const Tensor x = of_b.back(detail::solved(name, batch.x(), of_b.x(), &info));
    return {vectors ? squeeze(x, {-1}) : left ? x : transpose(x), batch.back(info)};
}

InverseInfo inverse(const char* name, const Tensor& a) {
    detail::require_square(name, "a", a);
    const Batch batch(a);
    const std::int64_t n = a.size(-1);
    const Tensor identity = expand(detail::identity_like(batch.x(), n, n), batch.x().shape());
    Tensor info;
    const Tensor x = detail::solved(name, batch.x(), identity, &info);
    return {batch.back(x), batch.back(info)};
}

/// Sign of a permutation from its pivots: each row exchange negates it.
Tensor sign_of(const Tensor& pivots, DType dtype) {
    const Tensor still = arange(1, pivots.size(1) + 1, 1, {pivots.dtype(), pivots.device()});
    const Tensor turns = sum(pivots != still, {1});
    return (1 - turns % 2 * 2).to(dtype);
}

Tensor at_matrices(const Tensor& x) { return reshape(x, {x.numel(), 1, 1}); }

/// Determinants of a batch (batch, n, n).
Tensor determinant(const Tensor& a) {
    detail::LuParts parts;
    Tensor value;
    {
        const NoGrad no_grad;
        parts = detail::lu_parts(a.detach());
        value = prod(diagonal(parts.lu, 0, 1, 2), {1}) * sign_of(parts.pivots, a.dtype());
    }
    if (!any_requires_grad({a})) return value;
    return attach_backward(
        "linalg::det", {a}, value.value(),
        [a = Saved(a), parts](const GradientContext& context) {
            // det(A) A^-T, the cofactor matrix, is a polynomial of the elements of A: where pivots are 0, they are
            // replaced by values of the size of rounding errors.
            const Tensor x = a.get("linalg::det");
            const std::int64_t n = x.size(1);
            const double least = x.dtype() == DType::f64 ? 0x1p-52 : 0x1p-23;
            Tensor missing, off;
            {
                const NoGrad no_grad;
                missing = diag_embed((diagonal(parts.lu, 0, 1, 2) == 0).to(x.dtype()) * least);
            }
            const Tensor g = at_matrices(context.gradient());
            const Tensor identity = detail::identity_like(x, n, n);
            if (!grad_enabled()) {
                const Tensor near = parts.lu + missing;
                const Tensor value_near = prod(diagonal(near, 0, 1, 2), {1}) * sign_of(parts.pivots, x.dtype());
                const Tensor turned = detail::lu_solved(near, parts.rows, expand(identity, x.shape()), true);
                return std::vector{g * at_matrices(value_near) * turned};
            }
            {
                const NoGrad no_grad;
                // Relative to the rounding error of adding it to A.
                const Tensor largest = max(abs(x), {1, 2}, true);
                const Tensor scale = where(largest == 0, 1, largest) * 64.0;
                const Tensor l = tril(parts.lu, -1) + identity;
                off = take_along_axis(matmul(l, missing * scale), unsqueeze(argsort(parts.rows, 1), 2), 1);
            }
            const Tensor near = x + off;
            const Tensor inverse_near = detail::solved("linalg::det", near, expand(identity, x.shape()), nullptr);
            return std::vector{g * at_matrices(determinant(near)) * transpose(inverse_near)};
        },
        RuleKind::differentiable);
}

SignLogDet sign_and_log(const Tensor& a) {
    Tensor sign, size;
    {
        const NoGrad no_grad;
        const detail::LuParts parts = detail::lu_parts(a.detach());
        const Tensor pivots = diagonal(parts.lu, 0, 1, 2);
        sign = prod(declivity::sign(pivots), {1}) * sign_of(parts.pivots, a.dtype());
        size = sum(log(abs(pivots)), {1});
    }
    if (!any_requires_grad({a})) return {sign, size};
    const Tensor logabsdet = attach_backward(
        "linalg::slogdet", {a}, size.value(),
        [a = Saved(a)](const GradientContext& context) {
            const Tensor x = a.get("linalg::slogdet");
            const Tensor identity = expand(detail::identity_like(x, x.size(1), x.size(1)), x.shape());
            const Tensor turned = detail::solved("linalg::slogdet", transpose(x), identity, nullptr);
            return std::vector{at_matrices(context.gradient()) * turned};
        },
        RuleKind::differentiable);
    return {sign, logabsdet};
}

}  // namespace

Tensor solve_triangular(const Tensor& a, const Tensor& b, const SolveTriangularOptions& options) {
    constexpr auto* name = "linalg::solve_triangular";
    const FunctionCall call(
        name, {{"a", a}, {"b", b}},
        {{"upper", options.upper}, {"left", options.left}, {"unitriangular", options.unitriangular}});
    call.require_defined({"a", "b"});
    detail::require_square(name, "a", a);
    require_sides(name, a, b, options.left);
    const auto [triangles, sides] = detail::stretched(name, a, options.left ? b : transpose(b));
    const Batch batch(triangles), of_b(sides);
    const Tensor x = of_b.back(detail::triangular_solved(
        batch.x(), of_b.x(), {.upper = options.upper, .transposed = !options.left, .unit = options.unitriangular}));
    return call.result(options.left ? x : transpose(x));
}

Tensor solve(const Tensor& a, const Tensor& b, bool left) {
    const FunctionCall call("linalg::solve", {{"a", a}, {"b", b}}, {{"left", left}});
    call.require_defined({"a", "b"});
    return call.result(solution("linalg::solve", a, b, left).solution);
}

SolutionInfo solve_ex(const Tensor& a, const Tensor& b, bool left) {
    const FunctionCall call("linalg::solve_ex", {{"a", a}, {"b", b}}, {{"left", left}});
    call.require_defined({"a", "b"});
    const SolutionInfo made = solution("linalg::solve_ex", a, b, left);
    call.results({made.solution, made.info});
    return made;
}

Tensor inv(const Tensor& a) {
    const FunctionCall call("linalg::inv", {{"a", a}});
    call.require_defined({"a"});
    return call.result(inverse("linalg::inv", a).inverse);
}

InverseInfo inv_ex(const Tensor& a) {
    const FunctionCall call("linalg::inv_ex", {{"a", a}});
    call.require_defined({"a"});
    const InverseInfo made = inverse("linalg::inv_ex", a);
    call.results({made.inverse, made.info});
    return made;
}

LeastSquares lstsq(const Tensor& a, const Tensor& b) {
    constexpr auto* name = "linalg::lstsq";
    const FunctionCall call(name, {{"a", a}, {"b", b}});
    call.require_defined({"a", "b"});
    detail::require_matrices(name, "a", a);
    ops::require_real(name, "b", b.dtype());
    // Like PyTorch: b is a batch of vectors if it has the axes of a but the last.
    Shape of_vectors = a.shape();
    of_vectors.erase(of_vectors.rank() - 1);
    const bool vectors = b.rank() + 1 == a.rank() && b.shape() == of_vectors;
    const Tensor sides = vectors ? unsqueeze(b, -1) : b;
    detail::require_matrices(name, "b", sides);
    ops::require_alike(name, "a", a.dtype(), a.device(), "b", b.dtype(), b.device());
    if (sides.size(-2) != a.size(-2))
        throw ShapeError(fmt::format("{}: expected a of shape (..., m, n) and b of shape (..., m, k), got {} and {}",
                                     name, a.shape().str(), b.shape().str()));
    const auto [matrices, right] = detail::stretched(name, a, sides);
    const Batch batch(matrices), of_b(right);
    const std::int64_t m = a.size(-2), n = a.size(-1);
    Tensor x;
    if (m >= n) {
        const auto [q, r] = detail::qr_parts(batch.x(), n);
        x = detail::triangular_solved(r, matmul(transpose(q), of_b.x()), {.upper = true});
    } else {
        const auto [q, r] = detail::qr_parts(transpose(batch.x()), m);
        x = matmul(q, detail::triangular_solved(r, of_b.x(), {.upper = true, .transposed = true}));
    }
    LeastSquares made;
    made.solution = of_b.back(x);
    if (vectors) made.solution = squeeze(made.solution, {-1});
    made.residuals =
        m > n ? of_b.back(sum(square(matmul(batch.x(), x) - of_b.x()), {1})) : zeros({0}, {a.dtype(), a.device()});
    call.results({made.solution, made.residuals});
    return made;
}

Tensor tensorinv(const Tensor& a, std::int64_t ind) {
    constexpr auto* name = "linalg::tensorinv";
    const FunctionCall call(name, {{"a", a}}, {{"ind", ind}});
    call.require_defined({"a"});
    ops::require_real(name, "a", a.dtype());
    if (ind <= 0) throw ValueError(fmt::format("{}: expected an ind of at least 1, got {}", name, ind));
    Shape first, last;
    for (int axis = 0; axis < a.rank(); ++axis) (axis < ind ? first : last).push_back(a.size(axis));
    if (first.numel() != last.numel())
        throw ShapeError(fmt::format("{}: expected as many elements in the first {} axes as in the others, got {}",
                                     name, ind, a.shape().str()));
    Shape shape = last;
    for (const std::int64_t size : first) shape.push_back(size);
    return call.result(reshape(inv(reshape(a, {first.numel(), last.numel()})), shape));
}

Tensor tensorsolve(const Tensor& a, const Tensor& b, const Dims& axes) {
    constexpr auto* name = "linalg::tensorsolve";
    const FunctionCall call(name, {{"a", a}, {"b", b}}, {{"axes", axes}});
    call.require_defined({"a", "b"});
    ops::require_real(name, "a", a.dtype());
    ops::require_alike(name, "a", a.dtype(), a.device(), "b", b.dtype(), b.device());
    Tensor turned = a;
    if (axes.rank() > 0) {
        Dims ends;
        for (int i = 0; i < axes.rank(); ++i) ends.push_back(a.rank() - axes.rank() + i);
        turned = movedim(a, axes, ends);
    }
    Shape shape;
    for (int axis = b.rank(); axis < turned.rank(); ++axis) shape.push_back(turned.size(axis));
    if (shape.numel() != b.numel() || turned.numel() != b.numel() * b.numel())
        throw ShapeError(fmt::format("{}: expected an a of as many elements as the square of b's, got {} and {}", name,
                                     a.shape().str(), b.shape().str()));
    return call.result(reshape(solve(reshape(turned, {b.numel(), b.numel()}), reshape(b, {b.numel()})), shape));
}

// ---- determinants, powers

Tensor det(const Tensor& a) {
    const FunctionCall call("linalg::det", {{"a", a}});
    call.require_defined({"a"});
    detail::require_square("linalg::det", "a", a);
    const Batch batch(a);
    return call.result(batch.back(determinant(batch.x())));
}

SignLogDet slogdet(const Tensor& a) {
    const FunctionCall call("linalg::slogdet", {{"a", a}});
    call.require_defined({"a"});
    detail::require_square("linalg::slogdet", "a", a);
    const Batch batch(a);
    const SignLogDet made = sign_and_log(batch.x());
    const SignLogDet all{batch.back(made.sign), batch.back(made.logabsdet)};
    call.results({all.sign, all.logabsdet});
    return all;
}

Tensor logdet(const Tensor& a) {
    const FunctionCall call("linalg::logdet", {{"a", a}});
    call.require_defined({"a"});
    detail::require_square("linalg::logdet", "a", a);
    const Batch batch(a);
    const SignLogDet made = sign_and_log(batch.x());
    return call.result(batch.back(where(made.sign < 0, std::numeric_limits<double>::quiet_NaN(), made.logabsdet)));
}

Tensor matrix_power(const Tensor& a, std::int64_t n) {
    constexpr auto* name = "linalg::matrix_power";
    const FunctionCall call(name, {{"a", a}}, {{"n", n}});
    call.require_defined({"a"});
    if (is_floating(a.dtype()) || n < 0) detail::require_square(name, "a", a);
    if (a.rank() < 2 || a.size(-1) != a.size(-2) || a.dtype() == DType::boolean)
        throw ShapeError(
            fmt::format("{}: expected square matrices of shape (..., n, n) of numbers, got {}", name, a.shape().str()));
    if (n == 0) return call.result(expand(detail::identity_like(a, a.size(-1), a.size(-1)), a.shape()).clone());
    // By repeated squaring; unsigned, since 0 - n of the smallest number is itself.
    auto left = n < 0 ? 0 - static_cast<std::uint64_t>(n) : static_cast<std::uint64_t>(n);
    if (is_16bit_float(a.dtype()))
        return call.result(detail::in_f32(
            a.dtype(), [n](const Tensor& wide) { return matrix_power(wide, n); }, a));
    Tensor square = n < 0 ? inv(a) : a, made;
    for (;; square = matmul(square, square)) {
        if (left % 2 == 1) made = made.defined() ? matmul(made, square) : square;
        if ((left /= 2) == 0) break;
    }
    return call.result(made);
}

Tensor matrix_exp(const Tensor& a) {
    constexpr auto* name = "linalg::matrix_exp";
    const FunctionCall call(name, {{"a", a}});
    call.require_defined({"a"});
    detail::require_square(name, "a", a);
    const Batch batch(a);
    // Scaling and squaring: scaled by a power of two to a norm of at most 1, where a polynomial of degree 18 is exact
    // to 1e-17; squared as often as the matrix of the largest norm needs, and each matrix takes the result for its own
    // number of squarings.
    constexpr int most = 15, degree = 18;
    const Tensor& x = batch.x();
    const std::int64_t n = x.size(1);
    if (x.numel() == 0) return call.result(a * 1.0);
    const Tensor size = max(sum(abs(x.detach()), {1}, true), {1, 2}, true);
    const Tensor turns = clamp(ceil(log2(maximum(size, 1e-30))), 0, most);
    const Tensor scaled = x * exp2(-turns);
    const Tensor identity = detail::identity_like(x, n, n);
    // Paterson-Stockmeyer 1973: Horner's scheme in powers of X^3, 2 + 5 products instead of 17.
    const Tensor squared = matmul(scaled, scaled), cubed = matmul(squared, scaled);
    std::vector<double> factors{1};
    for (int i = 1; i <= degree; ++i) factors.push_back(factors.back() / i);
    const auto part = [&](int first) {
        const auto at = static_cast<std::size_t>(first);
        return identity * factors[at] + scaled * factors[at + 1] + squared * factors[at + 2];
    };
    Tensor y = part(degree - 3) + cubed * factors[degree];
    for (int first = degree - 6; first >= 0; first -= 3) y = part(first) + matmul(cubed, y);
    for (int turn = 0; turn < most; ++turn) y = where(turns > turn, matmul(y, y), y);
    return call.result(batch.back(y));
}

}  // namespace declivity::linalg
