// Pairwise distances of rows, and bilinear products of two inputs.
#include <algorithm>
#include <cmath>
#include <utility>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <declivity/tensor/function_call.hpp>
#include <fmt/format.h>

#include "reduction.hpp"
#include "tensor/reduced_precision.hpp"

namespace declivity {

using detail::upcast;

namespace {

void require_p(std::string_view function, double p) {
    if (!(p >= 0)) throw ValueError(fmt::format("{}: expected p of at least 0, got {}", function, p));
}

/// Maximum over the last axis; each of equal elements gets the whole gradient, like PyTorch's cdist, unlike its norm().
Tensor largest_difference(const Tensor& difference) {
    const Tensor magnitude = abs(difference);
    if (!any_requires_grad({magnitude})) return max(magnitude, {-1});
    const Tensor largest = max(magnitude.detach(), {-1});
    return attach_backward(
        "cdist", {magnitude}, largest.value(),
        [magnitude = Saved(magnitude), largest = Saved::result(largest.value())](const GradientContext& context) {
            const Tensor in = magnitude.get("cdist").detach(), maxima = unsqueeze(largest.get("cdist").detach(), -1);
            return std::vector{where(equal(in, maxima), unsqueeze(context.gradient(), -1), 0)};
        },
        RuleKind::differentiable);
}

}  // namespace

Tensor cdist(const Tensor& x1, const Tensor& x2, double p) {
    const FunctionCall call("cdist", {{"x1", x1}, {"x2", x2}}, {{"p", p}});
    call.require_defined({"x1", "x2"});
    ops::require_real("cdist", "x1", x1.dtype());
    ops::require_alike("cdist", "x1", x1.dtype(), x1.device(), "x2", x2.dtype(), x2.device());
    require_p("cdist", p);
    if (x1.rank() < 2 || x2.rank() < 2 || x1.size(-1) != x2.size(-1))
        throw ShapeError(
            fmt::format("cdist: expected x1 of shape (..., P, M) and x2 of shape (..., R, M), got {} and {}",
                        x1.shape().str(), x2.shape().str()));
    for (int axis = 3; axis <= std::min(x1.rank(), x2.rank()); ++axis)
        if (x1.size(-axis) != x2.size(-axis) && x1.size(-axis) != 1 && x2.size(-axis) != 1)
            throw ShapeError(fmt::format("cdist: expected batch axes that broadcast to one shape, got {} and {}",
                                         x1.shape().str(), x2.shape().str()));
    const Tensor difference = unsqueeze(upcast(x1), -2) - unsqueeze(upcast(x2), -3);
    // The maximum of no elements is a distance of 0.
    if (difference.size(-1) == 0) return call.result(sum(difference, {-1}).to(x1.dtype()));
    const Tensor y = std::isinf(p) ? largest_difference(difference) : norm(difference, p, {-1});
    return call.result(y.to(x1.dtype()));
}

Tensor pdist(const Tensor& x, double p) {
    const FunctionCall call("pdist", {{"x", x}}, {{"p", p}});
    call.require_defined({"x"});
    ops::require_real("pdist", "x", x.dtype());
    ops::require_rank("pdist", "x", x.shape(), 2, "N, M");
    require_p("pdist", p);
    const std::int64_t n = x.size(0), pairs = n < 2 ? 0 : n * (n - 1) / 2;
    if (pairs == 0 || x.size(1) == 0) return call.result(sum(expand(reshape(sum(x), {1, 1}), {pairs, 1}), {1}) * 0);
    const Tensor distances = cdist(x, x, p);
    // Pair k is in row i, before which there are i (2 n - i - 1) / 2 pairs.
    const TensorOptions index_options{DType::i64, x.device()};
    const Tensor row = arange(0, n, 1, index_options), first = floor_divide(row * (2 * n - 1 - row), 2),
                 k = arange(0, pairs, 1, index_options), i = searchsorted(first, k, true) - 1,
                 j = k - index_select(first, 0, i) + i + 1;
    return call.result(take(distances, i * n + j));
}

Tensor bilinear(const Tensor& x1, const Tensor& x2, const Tensor& weight, const Tensor& bias) {
    const FunctionCall call("bilinear", {{"x1", x1}, {"x2", x2}, {"weight", weight}, {"bias", bias}});
    call.require_defined({"x1", "x2", "weight"});
    ops::require_real("bilinear", "x1", x1.dtype());
    ops::require_rank("bilinear", "weight", weight.shape(), 3, "O, I, J");
    const std::int64_t outs = weight.size(0), ins = weight.size(1), others = weight.size(2);
    bool fits = x1.rank() >= 1 && x1.rank() == x2.rank() && x1.size(-1) == ins && x2.size(-1) == others;
    for (int axis = 0; fits && axis + 1 < x1.rank(); ++axis) fits = x1.size(axis) == x2.size(axis);
    if (!fits)
        throw ShapeError(fmt::format(
            "bilinear: expected x1 of shape (..., {}) and x2 of shape (..., {}) with the same batch axes, got "
            "{} and {}",
            ins, others, x1.shape().str(), x2.shape().str()));
    if (bias.defined()) ops::require_shape("bilinear", "bias", bias.shape(), {outs});
    for (const auto& [name, operand] :
         {std::pair<const char*, const Tensor&>{"x2", x2}, {"weight", weight}, {"bias", bias}})
        if (operand.defined())
            ops::require_alike("bilinear", "x1", x1.dtype(), x1.device(), name, operand.dtype(), operand.device());
    Shape shape = x1.shape();
    shape[-1] = outs;
    std::int64_t rows = 1;
    for (int axis = 0; axis + 1 < x1.rank(); ++axis) rows *= x1.size(axis);
    const Tensor x1_product =
        matmul(reshape(upcast(x1), {rows, ins}), reshape(permute(upcast(weight), {1, 0, 2}), {ins, outs * others}));
    Tensor y = sum(reshape(x1_product, {rows, outs, others}) * unsqueeze(reshape(upcast(x2), {rows, others}), 1), {2});
    if (bias.defined()) y = y + upcast(bias);
    return call.result(reshape(y, shape).to(x1.dtype()));
}

}  // namespace declivity
