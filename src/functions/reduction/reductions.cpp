// Reductions composed of others.
#include <algorithm>
#include <cmath>
#include <limits>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/ops/reduce.hpp>
#include <declivity/ops/view.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <declivity/tensor/function_call.hpp>
#include <fmt/format.h>

#include "tensor/reduced_precision.hpp"

namespace declivity {

using detail::in_f32;

namespace {

/// Number of elements reduced to one result.
std::int64_t reduced_count(const char* name, const Tensor& x, const Dims& axes) {
    std::int64_t count = 1;
    for (const std::int64_t axis : ops::normalize_axes(name, axes, x.rank()))
        count *= x.shape()[static_cast<int>(axis)];
    return count;
}

Tensor zero_like(const Tensor& x) { return zeros({}, {x.dtype(), x.device()}); }

}  // namespace

Tensor amax(const Tensor& x, const Dims& axes, bool keep_axes) {
    const FunctionCall call("amax", {{"x", x}}, {{"axes", axes}, {"keep_axes", keep_axes}});
    call.require_defined({"x"});
    return call.result(max(x, axes, keep_axes));
}

Tensor amin(const Tensor& x, const Dims& axes, bool keep_axes) {
    const FunctionCall call("amin", {{"x", x}}, {{"axes", axes}, {"keep_axes", keep_axes}});
    call.require_defined({"x"});
    return call.result(min(x, axes, keep_axes));
}

MinMax aminmax(const Tensor& x, const Dims& axes, bool keep_axes) {
    const FunctionCall call("aminmax", {{"x", x}}, {{"axes", axes}, {"keep_axes", keep_axes}});
    call.require_defined({"x"});
    const MinMax result{min(x, axes, keep_axes), max(x, axes, keep_axes)};
    call.results({result.min, result.max});
    return result;
}

Tensor prod(const Tensor& x, const Dims& axes, bool keep_axes) {
    const FunctionCall call("prod", {{"x", x}}, {{"axes", axes}, {"keep_axes", keep_axes}});
    call.require_defined({"x"});
    const Dims reduced_axes = ops::normalize_axes("prod", axes, x.rank());
    if (is_16bit_float(x.dtype()))
        return call.result(in_f32(
            x.dtype(), [&](const Tensor& upcast) { return prod(upcast, axes, keep_axes); }, x));
    const Shape result = ops::reduced_shape(x.shape(), reduced_axes, keep_axes);
    Tensor y = is_floating(x.dtype()) ? x : x.to(DType::i64);
    const std::int64_t n = reduced_count("prod", x, axes);
    if (n == 0) return call.result(sum(y, axes, keep_axes) + 1);
    // Product by repeated multiplication of the two parts of the row: differentiable to any order, with zeros, unlike a
    // rule that divides.
    Dims order;
    for (int i = 0; i < x.rank(); ++i)
        if (std::ranges::find(reduced_axes, i) == reduced_axes.end()) order.push_back(i);
    for (const std::int64_t axis : reduced_axes) order.push_back(axis);
    y = reshape(permute(y, order), {result.numel(), n});
    for (std::int64_t remaining = n; remaining > 1; remaining = (remaining + 1) / 2) {
        const std::int64_t half = remaining / 2;
        const Tensor products = slice(y, 1, 0, half) * slice(y, 1, half, 2 * half);
        y = remaining % 2 == 0 ? products : concat({products, slice(y, 1, remaining - 1, remaining)}, 1);
    }
    return call.result(reshape(y, result));
}

Tensor var(const Tensor& x, const Dims& axes, double correction, bool keep_axes) {
    const FunctionCall call("var", {{"x", x}}, {{"axes", axes}, {"correction", correction}, {"keep_axes", keep_axes}});
    call.require_defined({"x"});
    ops::require_real("var", "x", x.dtype());
    if (is_16bit_float(x.dtype()))
        return call.result(in_f32(
            x.dtype(), [&](const Tensor& upcast) { return var(upcast, axes, correction, keep_axes); }, x));
    const auto n = static_cast<double>(reduced_count("var", x, axes));
    const Tensor squares = sum(square(x - mean(x, axes, true)), axes, keep_axes);
    return call.result(squares * (1 / std::max(0.0, n - correction)));
}

Tensor stddev(const Tensor& x, const Dims& axes, double correction, bool keep_axes) {
    const FunctionCall call("stddev", {{"x", x}},
                            {{"axes", axes}, {"correction", correction}, {"keep_axes", keep_axes}});
    call.require_defined({"x"});
    ops::require_real("stddev", "x", x.dtype());
    if (is_16bit_float(x.dtype()))
        return call.result(in_f32(
            x.dtype(), [&](const Tensor& upcast) { return stddev(upcast, axes, correction, keep_axes); }, x));
    const Tensor variance = var(x, axes, correction, keep_axes);
    if (!any_requires_grad({x})) return call.result(sqrt(variance));
    // The gradient at 0 is 0, not NaN, if all elements are equal.
    const Tensor is_zero = variance == 0;
    return call.result(where(is_zero, zero_like(x), sqrt(where(is_zero, zero_like(x) + 1, variance))));
}

Tensor norm(const Tensor& x, double p, const Dims& axes, bool keep_axes) {
    const FunctionCall call("norm", {{"x", x}}, {{"p", p}, {"axes", axes}, {"keep_axes", keep_axes}});
    call.require_defined({"x"});
    ops::require_real("norm", "x", x.dtype());
    if (std::isnan(p)) throw ValueError("norm: expected a number p, got NaN");
    if (is_16bit_float(x.dtype()))
        return call.result(in_f32(
            x.dtype(), [&](const Tensor& upcast) { return norm(upcast, p, axes, keep_axes); }, x));
    if (p == std::numeric_limits<double>::infinity()) return call.result(max(abs(x), axes, keep_axes));
    if (p == -std::numeric_limits<double>::infinity()) return call.result(min(abs(x), axes, keep_axes));
    if (p == 0) return call.result(sum((x != 0).to(x.dtype()), axes, keep_axes));
    if (p == 1) return call.result(sum(abs(x), axes, keep_axes));
    // The gradient at 0 is 0, not NaN: the root is taken of 1 there and masked.
    const auto root = [&](const Tensor& sums, const auto& root_function) {
        const Tensor is_zero = sums == 0;
        return where(is_zero, zero_like(x), root_function(where(is_zero, zero_like(x) + 1, sums)));
    };
    if (p == 2) return call.result(root(sum(square(x), axes, keep_axes), [](const Tensor& s) { return sqrt(s); }));
    const Tensor magnitude = abs(x), is_zero = magnitude == 0;
    const Tensor safe = pow(where(is_zero, zero_like(x) + 1, magnitude), p);
    const auto norm_of = [&](const Tensor& powers) {
        return root(sum(powers, axes, keep_axes), [p](const Tensor& s) { return pow(s, 1 / p); });
    };
    if (p > 0) return call.result(norm_of(where(is_zero, zero_like(x), safe)));
    const Tensor y = norm_of(safe);
    return call.result(where(any(is_zero, axes, keep_axes) & (y == y), zero_like(x), y));
}

Tensor logsumexp(const Tensor& x, const Dims& axes, bool keep_axes) {
    const FunctionCall call("logsumexp", {{"x", x}}, {{"axes", axes}, {"keep_axes", keep_axes}});
    call.require_defined({"x"});
    if (!is_floating(x.dtype())) return call.result(logsumexp(x.to(DType::f32), axes, keep_axes));
    if (is_16bit_float(x.dtype()))
        return call.result(in_f32(
            x.dtype(), [&](const Tensor& upcast) { return logsumexp(upcast, axes, keep_axes); }, x));
    // Any shift is valid; subtracting the maximum keeps the exponentials finite.
    Tensor shift = reduced_count("logsumexp", x, axes) == 0 ? zero_like(x) : max(x.detach(), axes, true);
    // An infinite maximum is replaced by the largest number: exp() of every finite element is 0, as is its gradient.
    const double max_finite =
        x.dtype() == DType::f64 ? std::numeric_limits<double>::max() : std::numeric_limits<float>::max();
    shift = clamp(shift, -max_finite, max_finite);
    const Tensor sums = log(sum(exp(x - shift), axes, true)) + shift;
    return call.result(
        reshape(sums, ops::reduced_shape(x.shape(), ops::normalize_axes("logsumexp", axes, x.rank()), keep_axes)));
}

Tensor all(const Tensor& x, const Dims& axes, bool keep_axes) {
    const FunctionCall call("all", {{"x", x}}, {{"axes", axes}, {"keep_axes", keep_axes}});
    call.require_defined({"x"});
    return call.result(sum(x == 0, axes, keep_axes) == 0);
}

Tensor any(const Tensor& x, const Dims& axes, bool keep_axes) {
    const FunctionCall call("any", {{"x", x}}, {{"axes", axes}, {"keep_axes", keep_axes}});
    call.require_defined({"x"});
    return call.result(sum(x != 0, axes, keep_axes) != 0);
}

Tensor count_nonzero(const Tensor& x, const Dims& axes, bool keep_axes) {
    const FunctionCall call("count_nonzero", {{"x", x}}, {{"axes", axes}, {"keep_axes", keep_axes}});
    call.require_defined({"x"});
    return call.result(sum(x != 0, axes, keep_axes));
}

Tensor argmin(const Tensor& x, std::int64_t axis, bool keep_axis) {
    const FunctionCall call("argmin", {{"x", x}}, {{"axis", axis}, {"keep_axis", keep_axis}});
    call.require_defined({"x"});
    (void)normalize_axis("argmin", axis, std::max(1, x.rank()));
    // ~x reverses the order of integers without overflow.
    return call.result(argmax(is_floating(x.dtype()) ? -x : bitwise_not(x), axis, keep_axis));
}

}  // namespace declivity
