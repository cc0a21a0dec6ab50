// Functions that change the shape: reshape, flatten, permute, transpose, slice, expand, concat, pad. Most give another
// view of the same memory.
#include <algorithm>

#include <declivity/ops/expression.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/autograd.hpp>
#include <declivity/tensor/creation.hpp>
#include <declivity/tensor/functions.hpp>
#include <fmt/format.h>

#include "broadcast.hpp"
#include "tensor_state.hpp"

namespace declivity {
namespace {

/// For a result that shares the memory of x.
Tensor alias(std::string_view name, const Tensor& x, const ops::Value& result, GradientRule rule) {
    return differentiable(name, {x}, result, std::move(rule), RuleKind::composed);
}

Shape completed(const Shape& from, const Shape& to) {
    Shape out = to;
    int open = -1;
    std::int64_t known = 1;
    for (int axis = 0; axis < to.rank(); ++axis) {
        if (to[axis] == -1 && open < 0) open = axis;
        else known *= to[axis];
    }
    if (open >= 0 && known > 0 && from.numel() % known == 0) out[open] = from.numel() / known;
    const bool negative = std::ranges::any_of(out, [](std::int64_t size) { return size < 0; });
    if (negative || out.numel() != from.numel())
        throw ShapeError(
            fmt::format("reshape: wants a shape of {} elements (as {}), got {}", from.numel(), from.str(), to.str()));
    return out;
}

}  // namespace

Tensor reshape(const Tensor& x, const Shape& shape) {
    detail::require_defined("reshape", x);
    const Shape target = completed(x.shape(), shape);
    if (target == x.shape()) return x;
    return alias("reshape", x, ops::reshaped(x.value(), target), [from = x.shape()](const GradientContext& context) {
        return std::vector{reshape(context.gradient(), from)};
    });
}

Tensor flatten(const Tensor& x, std::int64_t first) {
    detail::require_defined("flatten", x);
    const int axis = normalize_axis("flatten", first, x.rank());
    Shape shape;
    std::int64_t rest = 1;
    for (int i = 0; i < x.rank(); ++i) {
        if (i < axis) shape.push_back(x.shape()[i]);
        else rest *= x.shape()[i];
    }
    shape.push_back(rest);
    return reshape(x, shape);
}

Tensor permute(const Tensor& x, const Dims& order) {
    detail::require_defined("permute", x);
    Dims axes = order;
    bool once = order.rank() == x.rank();
    for (int i = 0; i < axes.rank(); ++i) {
        axes[i] = normalize_axis("permute", order[i], x.rank());
        once = once && std::find(axes.begin(), axes.begin() + i, axes[i]) == axes.begin() + i;
    }
    if (!once)
        throw ShapeError(fmt::format("permute: wants each axis of {} once, got {}", x.shape().str(), order.str()));
    const ops::Value result = ops::viewed(x.value(), [&](const ops::View& view) { return ops::permuted(view, axes); });
    Dims inverse = axes;
    for (int i = 0; i < axes.rank(); ++i) inverse[static_cast<int>(axes[i])] = i;
    return alias("permute", x, result, [inverse](const GradientContext& context) {
        return std::vector{permute(context.gradient(), inverse)};
    });
}

Tensor transpose(const Tensor& x, std::int64_t axis_a, std::int64_t axis_b) {
    detail::require_defined("transpose", x);
    const int a = normalize_axis("transpose", axis_a, x.rank()), b = normalize_axis("transpose", axis_b, x.rank());
    Dims order;
    for (int i = 0; i < x.rank(); ++i) order.push_back(i == a ? b : i == b ? a : i);
    return permute(x, order);
}

Tensor slice(const Tensor& x, std::int64_t axis, std::int64_t start, std::int64_t end, std::int64_t step) {
    detail::require_defined("slice", x);
    const int along = normalize_axis("slice", axis, x.rank());
    const std::int64_t size = x.shape()[along];
    if (step < 1) throw ShapeError(fmt::format("slice: wants a step of at least 1, got {}", step));
    const auto within = [size](std::int64_t i) { return std::clamp<std::int64_t>(i < 0 ? i + size : i, 0, size); };
    const std::int64_t first = within(start), last = within(end);
    const std::int64_t count = last > first ? ceil_div(last - first, step) : 0;
    const ops::Value result =
        ops::viewed(x.value(), [&](const ops::View& view) { return ops::sliced(view, along, first, count, step); });
    return alias("slice", x, result, [along, first, count, step, from = x.shape()](const GradientContext& context) {
        if (!grad_enabled()) {
            context.give_region(0, context.take_gradient(),
                                [=](const ops::View& whole) { return ops::sliced(whole, along, first, count, step); });
            return std::vector<Tensor>(1);
        }
        const Tensor& g = context.gradient();
        if (step == 1) {
            Dims before = Dims::filled(from.rank(), 0), after = before;
            before[along] = first;
            after[along] = from[along] - first - count;
            return std::vector{pad(g, before, after)};
        }
        const Tensor spread = zeros(from, {g.dtype(), g.device()});
        ops::copy(g.view(), ops::sliced(spread.view(), along, first, count, step));
        return std::vector{differentiable(
            "slice", {g}, spread.view(),
            [=](const GradientContext& second) {
                return std::vector{
                    slice(second.gradient(), along, first, count == 0 ? first : first + (count - 1) * step + 1, step)};
            },
            RuleKind::composed)};
    });
}

Tensor expand(const Tensor& x, const Shape& shape) {
    detail::require_defined("expand", x);
    if (shape == x.shape()) return x;
    return alias("expand", x,
                 ops::viewed(x.value(), [&](const ops::View& view) { return ops::expanded("expand", view, shape); }),
                 [from = x.shape()](const GradientContext& context) {
                     return std::vector{detail::sum_to(context.gradient(), from)};
                 });
}

namespace {

Tensor concatenated(const char* name, std::vector<Tensor> parts, std::int64_t axis) {
    if (parts.empty()) throw ValueError(fmt::format("{}: wants at least one tensor, got none", name));
    for (const Tensor& part : parts) detail::require_defined(name, part);
    const int along = normalize_axis(name, axis, parts[0].rank());
    Shape shape = parts[0].shape();
    std::vector<std::int64_t> sizes;
    shape[along] = 0;
    for (const Tensor& part : parts) {
        Shape other = part.shape();
        ops::require_alike(name, "the first part", parts[0].dtype(), parts[0].device(), "another", part.dtype(),
                           part.device());
        if (other.rank() == shape.rank()) other[along] = shape[along];
        if (!(other == shape))
            throw ShapeError(fmt::format("{}: wants parts that differ along axis {} only, got {} and {}", name, along,
                                         parts[0].shape().str(), part.shape().str()));
        sizes.push_back(part.shape()[along]);
        shape[along] += part.shape()[along];
    }
    const ops::View result = ops::View::make(parts[0].device(), parts[0].dtype(), shape);
    const bool needed = recorded(parts);
    std::int64_t start = 0;
    for (std::size_t i = 0; i < parts.size(); start += sizes[i++])
        ops::store(name, detail::take_value(needed ? parts[i] : std::exchange(parts[i], {})),
                   ops::sliced(result, along, start, sizes[i]));
    if (!needed) return Tensor(result);
    return differentiable(
        name, parts, result,
        [along, sizes](const GradientContext& context) {
            std::vector<Tensor> gradients;
            std::int64_t from = 0;
            for (std::size_t i = 0; i < sizes.size(); from += sizes[i++])
                gradients.push_back(context.needs(i) ? slice(context.gradient(), along, from, from + sizes[i])
                                                     : Tensor());
            return gradients;
        },
        RuleKind::composed);
}

}  // namespace

Tensor concat(std::vector<Tensor> parts, std::int64_t axis) { return concatenated("concat", std::move(parts), axis); }
Tensor cat(std::vector<Tensor> parts, std::int64_t axis) { return concatenated("cat", std::move(parts), axis); }

Tensor pad(const Tensor& x, const Dims& before, const Dims& after, double value) {
    detail::require_defined("pad", x);
    const bool fits = before.rank() == x.rank() && after.rank() == x.rank() &&
                      std::ranges::all_of(before, [](auto n) { return n >= 0; }) &&
                      std::ranges::all_of(after, [](auto n) { return n >= 0; });
    if (!fits)
        throw ShapeError(
            fmt::format("pad: wants a number of at least 0 before and after each of {} axes, got {} and {}", x.rank(),
                        before.str(), after.str()));
    Shape shape = x.shape();
    for (int axis = 0; axis < x.rank(); ++axis) shape[axis] += before[axis] + after[axis];
    const ops::View result = ops::View::make(x.device(), x.dtype(), shape);
    ops::fill(result, value, "pad");
    ops::View inner = result;
    for (int axis = 0; axis < x.rank(); ++axis) inner = ops::sliced(inner, axis, before[axis], x.shape()[axis]);
    ops::copy(x.view(), inner);
    return differentiable(
        "pad", {x}, result,
        [before, from = x.shape()](const GradientContext& context) {
            Tensor g = context.gradient();
            for (int axis = 0; axis < from.rank(); ++axis) g = slice(g, axis, before[axis], before[axis] + from[axis]);
            return std::vector{g};
        },
        RuleKind::composed);
}

}  // namespace declivity
