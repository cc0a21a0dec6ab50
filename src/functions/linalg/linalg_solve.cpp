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
    // PyTorch: b is a batch of vectors if it has the axes of a but the last.
    Shape vector_batch = a.shape();
    vector_batch.erase(vector_batch.rank() - 1);
    const bool vectors = b.rank() == 1 || (b.rank() + 1 == a.rank() && b.shape() == vector_batch);
    if (vectors && !left)
        throw ValueError(fmt::format("{}: expected matrices b of X A = B, got vectors {}", name, b.shape().str()));
    if (vectors && b.shape().back() != a.shape().back())
        throw ShapeError(fmt::format("{}: expected vectors b of {} elements, the number of rows of a {}, got {}", name,
                                     a.shape().back(), a.shape().str(), b.shape().str()));
    const Tensor sides = vectors ? unsqueeze(b, -1) : left ? b : transpose(b);
    require_sides(name, a, sides, true);
    // X A = B: A^T X^T = B^T.
    const auto [matrices, right] = detail::broadcast_batches(name, left ? a : transpose(a), sides);
    const Batch batch(matrices), b_batch(right);
    Tensor info;
    const Tensor x = b_batch.restore(detail::solve(name, batch.x(), b_batch.x(), &info));
    return {vectors ? squeeze(x, {-1}) : left ? x : transpose(x), batch.restore(info)};
}

InverseInfo inverse(const char* name, const Tensor& a) {
    detail::require_square(name, "a", a);
    const Batch batch(a);
    const std::int64_t n = a.size(-1);
    const Tensor identity = expand(detail::identity_like(batch.x(), n, n), batch.x().shape());
    Tensor info;
    const Tensor x = detail::solve(name, batch.x(), identity, &info);
    return {batch.restore(x), batch.restore(info)};
}

/// Sign of a permutation from its pivots: each row exchange negates it.
Tensor sign_of(const Tensor& pivots, DType dtype) {
    const Tensor identity = arange(1, pivots.size(1) + 1, 1, {pivots.dtype(), pivots.device()});
    const Tensor exchanges = sum(pivots != identity, {1});
    return (1 - exchanges % 2 * 2).to(dtype);
}

Tensor per_matrix(const Tensor& x) { return reshape(x, {x.numel(), 1, 1}); }

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
            const double epsilon = x.dtype() == DType::f64 ? 0x1p-52 : 0x1p-23;
            Tensor perturbation, perturbation_of_a;
            {
                const NoGrad no_grad;
                perturbation = diag_embed((diagonal(parts.lu, 0, 1, 2) == 0).to(x.dtype()) * epsilon);
            }
            const Tensor g = per_matrix(context.gradient());
            const Tensor identity = detail::identity_like(x, n, n);
            if (!grad_enabled()) {
                const Tensor near = parts.lu + perturbation;
                const Tensor value_near = prod(diagonal(near, 0, 1, 2), {1}) * sign_of(parts.pivots, x.dtype());
                const Tensor inverse_transpose =
                    detail::solve_with_lu(near, parts.permutation, expand(identity, x.shape()), true);
                return std::vector{g * per_matrix(value_near) * inverse_transpose};
            }
            {
                const NoGrad no_grad;
                // Relative to the rounding error of adding it to A.
                const Tensor largest = max(abs(x), {1, 2}, true);
                const Tensor scale = where(largest == 0, 1, largest) * 64.0;
                const Tensor l = tril(parts.lu, -1) + identity;
                perturbation_of_a =
                    take_along_axis(matmul(l, perturbation * scale), unsqueeze(argsort(parts.permutation, 1), 2), 1);
            }
            const Tensor near = x + perturbation_of_a;
            const Tensor inverse_near = detail::solve("linalg::det", near, expand(identity, x.shape()), nullptr);
            return std::vector{g * per_matrix(determinant(near)) * transpose(inverse_near)};
        },
        RuleKind::differentiable);
}

SignLogDet sign_and_log(const Tensor& a) {
    Tensor sign, log_size;
    {
        const NoGrad no_grad;
        const detail::LuParts parts = detail::lu_parts(a.detach());
        const Tensor pivots = diagonal(parts.lu, 0, 1, 2);
        sign = prod(declivity::sign(pivots), {1}) * sign_of(parts.pivots, a.dtype());
        log_size = sum(log(abs(pivots)), {1});
    }
    if (!any_requires_grad({a})) return {sign, log_size};
    const Tensor logabsdet = attach_backward(
        "linalg::slogdet", {a}, log_size.value(),
        [a = Saved(a)](const GradientContext& context) {
            const Tensor x = a.get("linalg::slogdet");
            const Tensor identity = expand(detail::identity_like(x, x.size(1), x.size(1)), x.shape());
            const Tensor inverse_transpose = detail::solve("linalg::slogdet", transpose(x), identity, nullptr);
            return std::vector{per_matrix(context.gradient()) * inverse_transpose};
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
    const auto [triangles, sides] = detail::broadcast_batches(name, a, options.left ? b : transpose(b));
    const Batch batch(triangles), b_batch(sides);
    const Tensor x = b_batch.restore(detail::solve_triangular(
        batch.x(), b_batch.x(), {.upper = options.upper, .transposed = !options.left, .unit = options.unitriangular}));
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
    const SolutionInfo result = solution("linalg::solve_ex", a, b, left);
    call.results({result.solution, result.info});
    return result;
}

Tensor inv(const Tensor& a) {
    const FunctionCall call("linalg::inv", {{"a", a}});
    call.require_defined({"a"});
    return call.result(inverse("linalg::inv", a).inverse);
}

InverseInfo inv_ex(const Tensor& a) {
    const FunctionCall call("linalg::inv_ex", {{"a", a}});
    call.require_defined({"a"});
    const InverseInfo result = inverse("linalg::inv_ex", a);
    call.results({result.inverse, result.info});
    return result;
}

LeastSquares lstsq(const Tensor& a, const Tensor& b) {
    constexpr auto* name = "linalg::lstsq";
    const FunctionCall call(name, {{"a", a}, {"b", b}});
    call.require_defined({"a", "b"});
    detail::require_matrices(name, "a", a);
    ops::require_real(name, "b", b.dtype());
    // PyTorch: b is a batch of vectors if it has the axes of a but the last.
    Shape vector_batch = a.shape();
    vector_batch.erase(vector_batch.rank() - 1);
    const bool vectors = b.rank() + 1 == a.rank() && b.shape() == vector_batch;
    const Tensor sides = vectors ? unsqueeze(b, -1) : b;
    detail::require_matrices(name, "b", sides);
    ops::require_alike(name, "a", a.dtype(), a.device(), "b", b.dtype(), b.device());
    if (sides.size(-2) != a.size(-2))
        throw ShapeError(fmt::format("{}: expected a of shape (..., m, n) and b of shape (..., m, k), got {} and {}",
                                     name, a.shape().str(), b.shape().str()));
    const auto [matrices, right] = detail::broadcast_batches(name, a, sides);
    const Batch batch(matrices), b_batch(right);
    const std::int64_t m = a.size(-2), n = a.size(-1);
    Tensor x;
    if (m >= n) {
        const auto [q, r] = detail::qr_parts(batch.x(), n);
        x = detail::solve_triangular(r, matmul(transpose(q), b_batch.x()), {.upper = true});
    } else {
        const auto [q, r] = detail::qr_parts(transpose(batch.x()), m);
        x = matmul(q, detail::solve_triangular(r, b_batch.x(), {.upper = true, .transposed = true}));
    }
    LeastSquares result;
    result.solution = b_batch.restore(x);
    if (vectors) result.solution = squeeze(result.solution, {-1});
    result.residuals = m > n ? b_batch.restore(sum(square(matmul(batch.x(), x) - b_batch.x()), {1}))
                             : zeros({0}, {a.dtype(), a.device()});
    call.results({result.solution, result.residuals});
    return result;
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
    Tensor moved = a;
    if (axes.rank() > 0) {
        Dims ends;
        for (int i = 0; i < axes.rank(); ++i) ends.push_back(a.rank() - axes.rank() + i);
        moved = movedim(a, axes, ends);
    }
    Shape shape;
    for (int axis = b.rank(); axis < moved.rank(); ++axis) shape.push_back(moved.size(axis));
    if (shape.numel() != b.numel() || moved.numel() != b.numel() * b.numel())
        throw ShapeError(fmt::format("{}: expected an a of as many elements as the square of b's, got {} and {}", name,
                                     a.shape().str(), b.shape().str()));
    return call.result(reshape(solve(reshape(moved, {b.numel(), b.numel()}), reshape(b, {b.numel()})), shape));
}

// ---- determinants, powers

Tensor det(const Tensor& a) {
    const FunctionCall call("linalg::det", {{"a", a}});
    call.require_defined({"a"});
    detail::require_square("linalg::det", "a", a);
    const Batch batch(a);
    return call.result(batch.restore(determinant(batch.x())));
}

SignLogDet slogdet(const Tensor& a) {
    const FunctionCall call("linalg::slogdet", {{"a", a}});
    call.require_defined({"a"});
    detail::require_square("linalg::slogdet", "a", a);
    const Batch batch(a);
    const SignLogDet parts = sign_and_log(batch.x());
    const SignLogDet result{batch.restore(parts.sign), batch.restore(parts.logabsdet)};
    call.results({result.sign, result.logabsdet});
    return result;
}

Tensor logdet(const Tensor& a) {
    const FunctionCall call("linalg::logdet", {{"a", a}});
    call.require_defined({"a"});
    detail::require_square("linalg::logdet", "a", a);
    const Batch batch(a);
    const SignLogDet parts = sign_and_log(batch.x());
    return call.result(batch.restore(where(parts.sign < 0, std::numeric_limits<double>::quiet_NaN(), parts.logabsdet)));
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
    // Exponentiation by squaring; unsigned, since the negation of the smallest integer is itself.
    auto exponent = n < 0 ? 0 - static_cast<std::uint64_t>(n) : static_cast<std::uint64_t>(n);
    if (is_16bit_float(a.dtype()))
        return call.result(detail::in_f32(
            a.dtype(), [n](const Tensor& upcast) { return matrix_power(upcast, n); }, a));
    Tensor square = n < 0 ? inv(a) : a, result;
    for (;; square = matmul(square, square)) {
        if (exponent % 2 == 1) result = result.defined() ? matmul(result, square) : square;
        if ((exponent /= 2) == 0) break;
    }
    return call.result(result);
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
    constexpr int max_squarings = 15, degree = 18;
    const Tensor& x = batch.x();
    const std::int64_t n = x.size(1);
    if (x.numel() == 0) return call.result(a * 1.0);
    const Tensor norms = max(sum(abs(x.detach()), {1}, true), {1, 2}, true);
    const Tensor squarings = clamp(ceil(log2(maximum(norms, 1e-30))), 0, max_squarings);
    const Tensor scaled = x * exp2(-squarings);
    const Tensor identity = detail::identity_like(x, n, n);
    // Paterson-Stockmeyer 1973: Horner's scheme in powers of X^3, 2 + 5 products instead of 17.
    const Tensor squared = matmul(scaled, scaled), cubed = matmul(squared, scaled);
    std::vector<double> factors{1};
    for (int i = 1; i <= degree; ++i) factors.push_back(factors.back() / i);
    const auto part = [&](int first) {
        const auto index = static_cast<std::size_t>(first);
        return identity * factors[index] + scaled * factors[index + 1] + squared * factors[index + 2];
    };
    Tensor y = part(degree - 3) + cubed * factors[degree];
    for (int first = degree - 6; first >= 0; first -= 3) y = part(first) + matmul(cubed, y);
    for (int step = 0; step < max_squarings; ++step) y = where(squarings > step, matmul(y, y), y);
    return call.result(batch.restore(y));
}

}  // namespace declivity::linalg
