// Functions that change the shape: reshape, flatten, permute, transpose, slice, expand, concat, pad. Most give another
// view of the same memory.
#include <algorithm>

#include <declivity/ops/copy.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/autograd.hpp>
#include <declivity/tensor/creation.hpp>
#include <declivity/tensor/function_call.hpp>
#include <declivity/tensor/functions.hpp>
#include <fmt/format.h>

#include "broadcast.hpp"
#include "tensor_state.hpp"
#include "ops/engine/expression.hpp"
#include "ops/engine/value.hpp"

namespace declivity {
namespace {

/// For a result that shares the memory of x.
Tensor alias(std::string_view name, const Tensor& x, const ops::Value& result, GradientRule rule) {
    Tensor out = differentiable(name, {x}, result, std::move(rule), RuleKind::composed);
    const ops::Value& from = x.state()->value;
    const bool copied = from.computed() && result.computed() && !(from.view().buffer == result.view().buffer);
    if (!copied) detail::share_memory(x, out);
    return out;
}

/// Elements first, first + step, ... of one axis, `count` of them.
struct Part {
    int axis;
    std::int64_t first, count, step;

    [[nodiscard]] ops::View of(const ops::View& whole) const { return ops::sliced(whole, axis, first, count, step); }
    [[nodiscard]] Tensor of(const Tensor& whole) const {
        return slice(whole, axis, first, count == 0 ? first : first + (count - 1) * step + 1, step);
    }
};

/// @param end may lie outside, as may start
Part part_of(std::string_view name, const Tensor& x, std::int64_t axis, std::int64_t start, std::int64_t end,
             std::int64_t step) {
    const int along = normalize_axis(name, axis, x.rank());
    const std::int64_t size = x.shape()[along];
    if (step < 1) throw ShapeError(fmt::format("{}: wants a step of at least 1, got {}", name, step));
    const auto within = [size](std::int64_t i) { return std::clamp<std::int64_t>(i < 0 ? i + size : i, 0, size); };
    const std::int64_t first = within(start), last = within(end);
    return {along, first, last > first ? ceil_div(last - first, step) : 0, step};
}

/// Element `index` of an axis.
Part part_of(std::string_view name, const Tensor& x, std::int64_t axis, std::int64_t index) {
    const int along = normalize_axis(name, axis, x.rank());
    const std::int64_t size = x.shape()[along];
    if (index < -size || index >= size)
        throw ShapeError(
            fmt::format("{}: wants an index from {} to {} along axis {}, got {}", name, -size, size - 1, along, index));
    return {along, index < 0 ? index + size : index, 1, 1};
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
    const FunctionCall call("reshape", {{"x", x}}, {{"shape", shape}});
    call.require_defined({"x"});
    const Shape target = completed(x.shape(), shape);
    if (target == x.shape()) return call.result(x);
    return call.result(alias(
        "reshape", x, ops::reshaped(x.value(), target),
        [from = x.shape()](const GradientContext& context) { return std::vector{reshape(context.gradient(), from)}; }));
}

Tensor flatten(const Tensor& x, std::int64_t first) {
    const FunctionCall call("flatten", {{"x", x}}, {{"first", first}});
    call.require_defined({"x"});
    const int axis = normalize_axis("flatten", first, x.rank());
    Shape shape;
    std::int64_t rest = 1;
    for (int i = 0; i < x.rank(); ++i) {
        if (i < axis) shape.push_back(x.shape()[i]);
        else rest *= x.shape()[i];
    }
    shape.push_back(rest);
    return call.result(reshape(x, shape));
}

Tensor permute(const Tensor& x, const Dims& order) {
    const FunctionCall call("permute", {{"x", x}}, {{"order", order}});
    call.require_defined({"x"});
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
    return call.result(alias("permute", x, result, [inverse](const GradientContext& context) {
        return std::vector{permute(context.gradient(), inverse)};
    }));
}

Tensor transpose(const Tensor& x, std::int64_t axis_a, std::int64_t axis_b) {
    const FunctionCall call("transpose", {{"x", x}}, {{"axis_a", axis_a}, {"axis_b", axis_b}});
    call.require_defined({"x"});
    const int a = normalize_axis("transpose", axis_a, x.rank()), b = normalize_axis("transpose", axis_b, x.rank());
    Dims order;
    for (int i = 0; i < x.rank(); ++i) order.push_back(i == a ? b : i == b ? a : i);
    return call.result(permute(x, order));
}

Tensor slice(const Tensor& x, std::int64_t axis, std::int64_t start, std::int64_t end, std::int64_t step) {
    const FunctionCall call("slice", {{"x", x}}, {{"axis", axis}, {"start", start}, {"end", end}, {"step", step}});
    call.require_defined({"x"});
    const Part part = part_of("slice", x, axis, start, end, step);
    const ops::Value result = ops::viewed(x.value(), [&](const ops::View& view) { return part.of(view); });
    return call.result(alias("slice", x, result, [part, from = x.shape()](const GradientContext& context) {
        if (!grad_enabled()) {
            context.give_region(0, context.take_gradient(), [part](const ops::View& whole) { return part.of(whole); });
            return std::vector<Tensor>(1);
        }
        const Tensor& g = context.gradient();
        if (part.step == 1) {
            Dims before = Dims::filled(from.rank(), 0), after = before;
            before[part.axis] = part.first;
            after[part.axis] = from[part.axis] - part.first - part.count;
            return std::vector{pad(g, before, after)};
        }
        const Tensor spread = zeros(from, {g.dtype(), g.device()});
        ops::copy(g.view(), part.of(spread.view()));
        return std::vector{differentiable(
            "slice", {g}, spread.view(),
            [part](const GradientContext& second) { return std::vector{part.of(second.gradient())}; },
            RuleKind::composed)};
    }));
}

Tensor select(const Tensor& x, std::int64_t axis, std::int64_t index) {
    const FunctionCall call("select", {{"x", x}}, {{"axis", axis}, {"index", index}});
    call.require_defined({"x"});
    const Part part = part_of("select", x, axis, index);
    Shape shape = x.shape();
    shape.erase(part.axis);
    return call.result(reshape(part.of(x), shape));
}

namespace {

/// What a handle that is given away stands for, so that nobody else holds it. A leaf keeps what its gradient is for.
ops::Value given_elements(Tensor& x) {
    (void)x.value();  // a recorded step is to know
    detail::TensorState& state = *x.state();
    return !ops::others_hold(x.state()) && !state.requires_grad ? std::move(state.value) : state.value;
}

/// Memory with these elements, to write into: their own where nobody else can tell.
ops::View memory_to_write(const ops::Value& x) {
    const ops::View& from = x.view();
    if (!ops::others_hold(x)) {
        from.buffer.launch_readers();
        if (ops::may_write(from)) return from;
    }
    const ops::View out = ops::View::make(from.device(), from.dtype, from.shape);
    ops::copy(from, out);
    return out;
}

/// A gradient, but for what was overwritten.
Tensor without(Tensor gradient, const Part& part) {
    const ops::View out = memory_to_write(given_elements(gradient));
    ops::fill(part.of(out), 0, "slice_scatter");
    out.buffer.mark_written();
    return Tensor(out);
}

Tensor scattered(const char* name, Tensor x, Tensor src, const Part& part) {
    ops::require_alike(name, "x", x.dtype(), x.device(), "src", src.dtype(), src.device());
    Shape shape = x.shape();
    shape[part.axis] = part.count;
    ops::require_shape(name, "src", src.shape(), shape);
    const ops::View out = memory_to_write(given_elements(x));
    ops::store(name, given_elements(src), part.of(out));
    return differentiable(
        name, {x, src}, out,
        [part, shape](const GradientContext& context) {
            std::vector<Tensor> gradients(2);
            Tensor g = context.take_gradient();
            const bool of_x = context.needs(0), of_src = context.needs(1);
            if (of_src) gradients[1] = part.of(g);
            if (grad_enabled()) {
                if (of_x) gradients[0] = scattered("slice_scatter", g, zeros(shape, {g.dtype(), g.device()}), part);
            } else if (of_x) {
                if (of_src) gradients[1] = gradients[1].clone();  // since its memory is written
                gradients[0] = without(std::move(g), part);
            }
            return gradients;
        },
        RuleKind::composed);
}

}  // namespace

Tensor slice_scatter(Tensor x, Tensor src, std::int64_t axis, std::int64_t start, std::int64_t end, std::int64_t step) {
    const FunctionCall call("slice_scatter", {{"x", x}, {"src", src}},
                            {{"axis", axis}, {"start", start}, {"end", end}, {"step", step}});
    call.require_defined({"x", "src"});
    const Part part = part_of("slice_scatter", x, axis, start, end, step);
    return call.result(scattered("slice_scatter", std::move(x), std::move(src), part));
}

Tensor select_scatter(Tensor x, const Tensor& src, std::int64_t axis, std::int64_t index) {
    const FunctionCall call("select_scatter", {{"x", x}, {"src", src}}, {{"axis", axis}, {"index", index}});
    call.require_defined({"x", "src"});
    const Part part = part_of("select_scatter", x, axis, index);
    Shape row = x.shape(), shape = row;
    row.erase(part.axis);
    shape[part.axis] = 1;
    ops::require_shape("select_scatter", "src", src.shape(), row);
    return call.result(scattered("select_scatter", std::move(x), reshape(src, shape), part));
}

Tensor expand(const Tensor& x, const Shape& shape) {
    const FunctionCall call("expand", {{"x", x}}, {{"shape", shape}});
    call.require_defined({"x"});
    if (shape == x.shape()) return call.result(x);
    return call.result(
        alias("expand", x,
              ops::viewed(x.value(), [&](const ops::View& view) { return ops::expanded("expand", view, shape); }),
              [from = x.shape()](const GradientContext& context) {
                  return std::vector{detail::sum_to(context.gradient(), from)};
              }));
}

namespace {

Tensor concatenated(const char* name, std::vector<Tensor> parts, std::int64_t axis) {
    const CallInput inputs[] = {{"parts", std::span<const Tensor>(parts)}};
    const CallAttribute attributes[] = {{"axis", axis}};
    const FunctionCall call("concat", name, inputs, attributes);
    if (parts.empty()) throw ValueError(fmt::format("{}: wants at least one tensor, got none", name));
    call.require_defined({"parts"});
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
    if (!needed) return call.result(Tensor(result));
    return call.result(differentiable(
        name, parts, result,
        [along, sizes](const GradientContext& context) {
            std::vector<Tensor> gradients;
            std::int64_t from = 0;
            for (std::size_t i = 0; i < sizes.size(); from += sizes[i++])
                gradients.push_back(context.needs(i) ? slice(context.gradient(), along, from, from + sizes[i])
                                                     : Tensor());
            return gradients;
        },
        RuleKind::composed));
}

}  // namespace

Tensor concat(std::vector<Tensor> parts, std::int64_t axis) { return concatenated("concat", std::move(parts), axis); }
Tensor cat(std::vector<Tensor> parts, std::int64_t axis) { return concatenated("cat", std::move(parts), axis); }

Tensor pad(const Tensor& x, const Dims& before, const Dims& after, double value) {
    const FunctionCall call("pad", {{"x", x}}, {{"before", before}, {"after", after}, {"value", value}});
    call.require_defined({"x"});
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
    return call.result(differentiable(
        "pad", {x}, result,
        [before, from = x.shape()](const GradientContext& context) {
            Tensor g = context.gradient();
            for (int axis = 0; axis < from.rank(); ++axis) g = slice(g, axis, before[axis], before[axis] + from[axis]);
            return std::vector{g};
        },
        RuleKind::composed));
}

}  // namespace declivity
