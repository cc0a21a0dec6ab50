// linalg: norms, and functions of singular values.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/functions/linalg.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <declivity/tensor/function_call.hpp>
#include <fmt/format.h>

#include "matrices.hpp"
#include "tensor/reduced_precision.hpp"

namespace declivity::linalg {
namespace {

using detail::Batch;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Mask of the singular values (batch, k) above the tolerance of RankOptions.
Tensor significant(const Tensor& s, std::int64_t m, std::int64_t n, DType dtype, const RankOptions& options) {
    const double eps = dtype == DType::f64    ? 0x1p-52
                       : dtype == DType::f16  ? 0x1p-10
                       : dtype == DType::bf16 ? 0x1p-7
                                              : 0x1p-23;
    const double absolute = options.atol.value_or(0);
    const double relative = options.rtol.value_or(absolute > 0 ? 0 : static_cast<double>(std::max(m, n)) * eps);
    if (s.size(1) == 0) return s > absolute;
    const Tensor first = slice(s, 1, 0, 1);
    return s > maximum(first * relative, absolute);
}

/// Uses only the lower triangle. The gradient is that of a symmetric matrix, as in eigh.
Tensor symmetrised(const Tensor& a) {
    Tensor symmetric;
    {
        const NoGrad no_grad;
        symmetric = tril(a.detach()) + transpose(tril(a.detach(), -1));
    }
    return attach_backward(
        "linalg::hermitian", {a}, symmetric.value(),
        [](const GradientContext& context) {
            const Tensor& g = context.gradient();
            return std::vector{(g + transpose(g)) * 0.5};
        },
        RuleKind::differentiable);
}

void require_options(const char* name, const Tensor& a, const RankOptions& options) {
    if (options.hermitian) detail::require_square(name, "a", a);
    else detail::require_matrices(name, "a", a);
    for (const auto& item : {options.atol, options.rtol})
        if (item && !(*item >= 0))
            throw ValueError(fmt::format("{}: expected tolerances of at least 0, got {}", name, *item));
}

/// Golub, Pereyra, The differentiation of pseudo-inverses, 1973, for matrices of constant rank.
Tensor pseudo_inverse(const Tensor& a, const RankOptions& options, DType dtype) {
    Tensor result;
    {
        const NoGrad no_grad;
        const auto parts = detail::svd_parts(a.detach(), false);
        const Tensor zero = zeros({}, {a.dtype(), a.device()});
        const Tensor inverse = where(significant(parts.s, a.size(1), a.size(2), dtype, options), 1.0 / parts.s, zero);
        result = matmul(transpose(parts.vh) * unsqueeze(inverse, 1), transpose(parts.u));
    }
    return attach_backward(
        "linalg::pinv", {a}, result.value(),
        [a = Saved(a), saved_result = Saved::result(result.value())](const GradientContext& context) {
            const Tensor x = a.get("linalg::pinv"), p = context.output(saved_result, "linalg::pinv"), pt = transpose(p);
            const Tensor g = context.gradient(), gt = transpose(g);
            const Tensor first = matmul(matmul(gt, p), pt), second = matmul(matmul(pt, p), gt);
            return std::vector{first - matmul(x, matmul(p, first)) + second - matmul(matmul(second, p), x) -
                               matmul(matmul(pt, g), pt)};
        },
        RuleKind::differentiable);
}

/// The two matrix axes, non-negative.
std::pair<int, int> matrix_axes(const char* name, const Tensor& a, const Dims& axes) {
    if (axes.rank() != 2) throw ValueError(fmt::format("{}: expected two axes of matrices, got {}", name, axes.str()));
    const int first = normalize_axis(name, axes[0], a.rank()), second = normalize_axis(name, axes[1], a.rank());
    if (first == second) throw ValueError(fmt::format("{}: expected two axes, got {}", name, axes.str()));
    return {first, second};
}

Tensor norm_of_matrices(const char* name, const Tensor& a, const NormOrder& order, const Dims& axes, bool keep_axes) {
    ops::require_real(name, "a", a.dtype());
    if (a.rank() < 2) throw ShapeError(fmt::format("{}: expected at least two axes, got {}", name, a.shape().str()));
    const auto [rows, columns] = matrix_axes(name, a, axes);
    if (order.word() == "fro" || (order.word().empty() && !order.number()))
        return declivity::norm(a, 2, {rows, columns}, keep_axes);
    const double p = order.number().value_or(0);
    if (order.number() && (std::abs(p) == 1 || std::abs(p) == kInfinity)) {
        const int reduced_axis = std::abs(p) == 1 ? rows : columns, kept_axis = std::abs(p) == 1 ? columns : rows;
        if (a.size(kept_axis) == 0)
            throw ShapeError(fmt::format("{}: expected rows and columns for the order {}, got {}", name, order.str(),
                                         a.shape().str()));
        const Tensor sums = sum(abs(a), {reduced_axis}, true);
        const Tensor norms = p > 0 ? max(sums, {kept_axis}, true) : min(sums, {kept_axis}, true);
        return keep_axes ? norms : squeeze(norms, {rows, columns});
    }
    if (order.word() != "nuc" && std::abs(p) != 2)
        throw ValueError(
            fmt::format("{}: expected \"fro\", \"nuc\", inf, -inf, 1, -1, 2 or -2 as the order of a matrix "
                        "norm, got {}",
                        name, order.str()));
    const Tensor matrices = movedim(a, {rows, columns}, {-2, -1});
    const Batch batch(matrices);
    const Tensor s = detail::svd_values(batch.x());
    const Tensor norms = batch.restore(order.word() == "nuc" ? sum(s, {1}) : p > 0 ? max(s, {1}) : min(s, {1}));
    if (!keep_axes) return norms;
    Shape shape = a.shape();
    shape[rows] = shape[columns] = 1;
    return reshape(norms, shape);
}

}  // namespace

std::string NormOrder::str() const {
    return !word_.empty() ? word_ : number_ ? fmt::format("{}", *number_) : std::string("none");
}

Tensor vector_norm(const Tensor& x, double p, const Dims& axes, bool keep_axes) {
    constexpr auto* name = "linalg::vector_norm";
    const FunctionCall call(name, {{"x", x}}, {{"p", p}, {"axes", axes}, {"keep_axes", keep_axes}});
    call.require_defined({"x"});
    ops::require_real(name, "x", x.dtype());
    return call.result(declivity::norm(x, p, axes, keep_axes));
}

Tensor matrix_norm(const Tensor& a, const NormOrder& order, const Dims& axes, bool keep_axes) {
    constexpr auto* name = "linalg::matrix_norm";
    const std::string word = order.str();
    const FunctionCall call(name, {{"a", a}}, {{"order", word}, {"axes", axes}, {"keep_axes", keep_axes}});
    call.require_defined({"a"});
    return call.result(norm_of_matrices(name, a, order, axes, keep_axes));
}

Tensor norm(const Tensor& x, const NormOrder& order, const Dims& axes, bool keep_axes) {
    constexpr auto* name = "linalg::norm";
    const std::string word = order.str();
    const FunctionCall call(name, {{"x", x}}, {{"order", word}, {"axes", axes}, {"keep_axes", keep_axes}});
    call.require_defined({"x"});
    ops::require_real(name, "x", x.dtype());
    const bool has_order = order.number() || !order.word().empty();
    if (!has_order) return call.result(declivity::norm(x, 2, axes, keep_axes));
    const int axis_count = axes.rank() == 0 ? x.rank() : axes.rank();
    if (axis_count == 1 && order.number()) return call.result(declivity::norm(x, *order.number(), axes, keep_axes));
    if (axis_count != 2)
        throw ShapeError(fmt::format("{}: expected one axis, or two, for the order {}, got {} of {}", name, order.str(),
                                     axes.str(), x.shape().str()));
    return call.result(norm_of_matrices(name, x, order, axes.rank() == 0 ? Dims{-2, -1} : axes, keep_axes));
}

Tensor cond(const Tensor& a, const NormOrder& order) {
    constexpr auto* name = "linalg::cond";
    const std::string word = order.str();
    const FunctionCall call(name, {{"a", a}}, {{"order", word}});
    call.require_defined({"a"});
    detail::require_matrices(name, "a", a);
    const bool has_order = order.number() || !order.word().empty();
    if (!has_order || std::abs(order.number().value_or(0)) == 2) {
        if (std::min(a.size(-1), a.size(-2)) == 0)
            throw ShapeError(fmt::format("{}: expected matrices with elements, got {}", name, a.shape().str()));
        const Batch batch(a);
        const Tensor s = detail::svd_values(batch.x());
        const Tensor first = select(s, 1, 0), last = select(s, 1, -1);
        return call.result(batch.restore(order.number().value_or(2) > 0 ? first / last : last / first));
    }
    detail::require_square(name, "a", a);
    return call.result(detail::in_f32(
        a.dtype(),
        [&](const Tensor& upcast) {
            const Tensor norm_of_a = norm_of_matrices(name, upcast, order, {-2, -1}, false);
            return norm_of_a * norm_of_matrices(name, inv(upcast), order, {-2, -1}, false);
        },
        a));
}

Tensor pinv(const Tensor& a, const RankOptions& options) {
    constexpr auto* name = "linalg::pinv";
    const FunctionCall call(
        name, {{"a", a}},
        {{"atol", options.atol.value_or(-1)}, {"rtol", options.rtol.value_or(-1)}, {"hermitian", options.hermitian}});
    call.require_defined({"a"});
    require_options(name, a, options);
    const Batch batch(options.hermitian ? symmetrised(a) : a);
    return call.result(batch.restore(pseudo_inverse(batch.x(), options, a.dtype())));
}

Tensor matrix_rank(const Tensor& a, const RankOptions& options) {
    constexpr auto* name = "linalg::matrix_rank";
    const FunctionCall call(
        name, {{"a", a}},
        {{"atol", options.atol.value_or(-1)}, {"rtol", options.rtol.value_or(-1)}, {"hermitian", options.hermitian}});
    call.require_defined({"a"});
    require_options(name, a, options);
    const NoGrad no_grad;
    const Batch batch(options.hermitian ? symmetrised(a) : a);
    const Tensor s = detail::svd_values(batch.x());
    return call.result(batch.restore(
        sum(significant(s, batch.x().size(1), batch.x().size(2), a.dtype(), options), {1}).to(DType::i64)));
}

}  // namespace declivity::linalg
